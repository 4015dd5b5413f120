//! Histories of a server that does it right: a seed makes the clients' sends, in parallel and out of
//! order, and the moment at which each of them takes effect.

use kernel::Fingerprint;
use testkit::Seeded;
use testkit::history::{Announcement, Answer, Effect, Finished, History, Submission};

/// What one send meets when its turn has come.
struct Turn {
    at: u64,
    span: (u64, u64),
    fingerprint: Fingerprint,
}

/// One key of the right server.
struct Server {
    key: String,
    keeps_fingerprint: bool,
    record: Option<(Fingerprint, Vec<u8>)>,
    generation: u32,
}

/// A history of `keys` keys, each sent 1 to 8 times.
pub(crate) fn right(seed: u64, keys: u64) -> History {
    let mut seeded = Seeded::new(seed);
    let mut history = History::default();
    for number in 0..keys {
        let mut server = Server {
            key: format!("key-{number}"),
            keeps_fingerprint: seeded.chance(70),
            record: None,
            generation: 0,
        };
        let turns = turns(&mut seeded);
        let spans: Vec<(u64, u64)> = turns.iter().map(|turn| turn.span).collect();
        for turn in &turns {
            let others = spans.iter().filter(|other| **other != turn.span && overlap(**other, turn.span));
            let crowded = others.count() > 0;
            let answer = server.meet(turn, crowded, &mut seeded, &mut history);
            history.submissions.push(Submission {
                key: server.key.clone(),
                fingerprint: turn.fingerprint,
                started: turn.span.0,
                ended: turn.span.1,
                answer,
            });
        }
    }
    shuffle(&mut history.submissions, &mut seeded);
    shuffle(&mut history.effects, &mut seeded);
    history
}

const fn overlap(one: (u64, u64), other: (u64, u64)) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

fn turns(seeded: &mut Seeded) -> Vec<Turn> {
    let mut turns: Vec<Turn> = (0..=seeded.below(8))
        .map(|_| {
            let started = 10 + seeded.below(200);
            let at = started + seeded.below(30);
            let payload: &[u8] = if seeded.chance(80) { b"payload" } else { b"another" };
            Turn { at, span: (started, at + seeded.below(30)), fingerprint: Fingerprint::of(payload) }
        })
        .collect();
    turns.sort_by_key(|turn| turn.at);
    turns
}

impl Server {
    fn meet(&mut self, turn: &Turn, crowded: bool, seeded: &mut Seeded, history: &mut History) -> Answer {
        if crowded && seeded.chance(10) {
            return Answer::InProgress;
        }
        if seeded.chance(5) {
            return Answer::Unknown;
        }
        if self.record.is_some() && seeded.chance(10) {
            self.record = None;
            self.generation += 1;
        }
        let replayed = self.record.is_some();
        if !replayed {
            self.run(turn.fingerprint, seeded, history);
        }
        let Some((kept, outcome)) = &self.record else { return Answer::Unknown };
        let same = *kept == turn.fingerprint;
        let generation = seeded.chance(50).then_some(self.generation);
        if seeded.chance(15) {
            Answer::Unknown
        } else if !same && seeded.chance(50) {
            Answer::Mismatch
        } else {
            Answer::Finished(Finished { outcome: outcome.clone(), replayed, same, generation })
        }
    }

    fn run(&mut self, fingerprint: Fingerprint, seeded: &mut Seeded, history: &mut History) {
        // Now and then the same bytes come out of every generation.
        let life = if self.keeps_fingerprint { self.generation } else { 0 };
        let outcome = format!("200 {{\"of\":\"{}\",\"life\":{life}}}", self.key).into_bytes();
        self.record = Some((fingerprint, outcome.clone()));
        history.effects.push(Effect {
            key: self.key.clone(),
            outcome,
            id: format!("{}/{}", self.key, self.generation),
            fingerprint: self.keeps_fingerprint.then_some(fingerprint),
            generation: self.generation,
        });
        if seeded.chance(80) {
            let announcement = Announcement { key: self.key.clone(), generation: self.generation };
            history.announcements.push(announcement);
        }
    }
}

fn shuffle<T>(items: &mut [T], seeded: &mut Seeded) {
    for last in (1..items.len()).rev() {
        let other = usize::try_from(seeded.below(last as u64 + 1)).unwrap_or(last);
        items.swap(last, other);
    }
}
