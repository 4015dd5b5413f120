//! Rules about what the store holds of one key, and about what was announced of it.

use std::collections::BTreeMap;

use super::{Answer, Finished, Kind, Story};

/// Judges effects and announcements of one key.
pub(super) fn judge(story: &Story<'_>, told: &mut impl FnMut(Kind, String)) {
    doubles(story, told);
    unasked(story, told);
    announcements(story, told);
}

fn doubles(story: &Story<'_>, told: &mut impl FnMut(Kind, String)) {
    let mut generations: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for effect in &story.effects {
        generations.entry(effect.generation).or_default().push(&effect.id);
    }
    for (generation, ids) in generations.into_iter().filter(|(_, ids)| ids.len() > 1) {
        told(
            Kind::DoubleEffect,
            format!("{} effects in generation {generation}: {}", ids.len(), ids.join(", ")),
        );
    }
}

fn unasked(story: &Story<'_>, told: &mut impl FnMut(Kind, String)) {
    for effect in &story.effects {
        let mut asked = story
            .submissions
            .iter()
            .filter(|submission| {
                effect.fingerprint.is_none_or(|fingerprint| fingerprint == submission.fingerprint)
            })
            .peekable();
        if asked.peek().is_none() {
            let of = effect.fingerprint.map(|fingerprint| format!(" with fingerprint {fingerprint}"));
            told(
                Kind::EffectUnasked,
                format!("effect {} without a submission{}", effect.id, of.unwrap_or_default()),
            );
        } else if asked.all(|submission| refused(&submission.answer)) {
            told(
                Kind::MismatchTookEffect,
                format!("effect {}, but every submission of it was told mismatch", effect.id),
            );
        }
    }
}

const fn refused(answer: &Answer) -> bool {
    match answer {
        Answer::Mismatch => true,
        Answer::Finished(Finished { same, .. }) => !*same,
        Answer::InProgress | Answer::Unknown => false,
    }
}

fn announcements(story: &Story<'_>, told: &mut impl FnMut(Kind, String)) {
    let mut generations: BTreeMap<u32, usize> = BTreeMap::new();
    for announcement in &story.announcements {
        *generations.entry(announcement.generation).or_default() += 1;
    }
    for (generation, count) in generations {
        if count > 1 {
            told(
                Kind::DoubleAnnouncement,
                format!("{count} formal announcements in generation {generation}"),
            );
        }
        if story.effects.iter().all(|effect| effect.generation != generation) {
            told(
                Kind::AnnouncedNothing,
                format!("announced in generation {generation}, but the store holds no effect of it"),
            );
        }
    }
}
