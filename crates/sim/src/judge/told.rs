//! Rules between the tables and what clients and receivers saw.

use std::collections::{BTreeMap, BTreeSet};

use store::Error;
use testkit::history::{self, Announcement, History};
use uuid::Uuid;

use super::{Effects, rows};
use crate::domain::{SHOWN, fingerprint};
use crate::run::Scene;

/// Every answer is explained by one effect, and no announcement came twice that nobody released.
pub(super) fn judge(scene: &Scene, effects: &Effects) -> Result<(), Error> {
    let mut history = History {
        submissions: scene.clients.all().iter().map(crate::client::Sent::history).collect(),
        effects: effects.0.iter().map(effect).collect(),
        announcements: announcements(scene, effects)?,
    };
    history
        .submissions
        .extend(scene.world.ghosts().into_iter().map(|(key, payload, at)| ghost(key, payload, at)));
    for anomaly in history.anomalies() {
        scene.world.find(anomaly.to_string());
    }
    expired(scene, effects);
    arrivals(scene)
}

fn effect(effect: &super::Effect) -> history::Effect {
    history::Effect {
        key: effect.key.clone(),
        outcome: effect.body.clone().into_bytes(),
        id: effect.serial.to_string(),
        fingerprint: Some(fingerprint(&effect.key, effect.payload)),
        generation: effect.generation,
    }
}

/// Somebody who is no client seemed to be at work.
fn ghost(key: String, payload: i64, at: u64) -> history::Submission {
    let fingerprint = fingerprint(&key, payload);
    history::Submission { key, fingerprint, started: at, ended: at, answer: history::Answer::Unknown }
}

/// What arrived at the channel that shows repeats, less what a person released.
fn announcements(scene: &Scene, effects: &Effects) -> Result<Vec<Announcement>, Error> {
    let sql = "select o.event_id, o.request_id, d.id, d.destination, d.status, d.outcome
        from outbox_deliveries d join outbox o on o.id = d.outbox_id";
    let arrived = scene.foreign.arrived();
    let released = released(scene)?;
    let mut known: BTreeMap<Uuid, i64> = BTreeMap::new();
    let mut announced = Vec::new();
    for row in rows(scene, sql)? {
        let damaged = |_| Error::Corrupt { table: "outbox", column: "event_id".into() };
        let event = Uuid::from_slice(row.bytes(0)?).map_err(damaged)?;
        let (serial, id, channel) = (row.text(1)?.parse().unwrap_or(0), row.int(2)?, row.text(3)?);
        known.insert(event, serial);
        let count =
            |(of, (name, id)): (u32, &(&str, Uuid))| if *name == channel && *id == event { of } else { 0 };
        let times: u32 = arrived.iter().map(|(at, times)| count((*times, at))).sum();
        if row.text(4)? == "delivered"
            && times == 0
            && !row.text_or_null(5)?.unwrap_or("").contains("operator")
        {
            scene.world.find(format!("delivery {id} to {channel} counts as delivered and never arrived"));
        }
        let Some(effect) = effects.by_serial(serial) else { continue };
        let released = released.get(&id).copied().unwrap_or(0).min(times.saturating_sub(1));
        let shown = if channel == SHOWN { times - released } else { 0 };
        let one = || Announcement { key: effect.key.clone(), generation: effect.generation };
        announced.extend((0..shown).map(|_| one()));
    }
    for (channel, event) in arrived.keys().filter(|(_, event)| !known.contains_key(event)) {
        scene.world.find(format!("{channel} got {event}, which is in no outbox"));
    }
    Ok(announced)
}

/// How often a person knowingly had a delivery sent again that may have arrived: its end was unclear, or
/// another person had settled it before.
fn released(scene: &Scene) -> Result<BTreeMap<i64, u32>, Error> {
    let sql = "select object_id, event_name, before_state from audit_events where object_type = 'outbox_delivery' order by id";
    let (mut released, mut settled) = (BTreeMap::new(), BTreeSet::new());
    for row in rows(scene, sql)? {
        let id: i64 = row.text(0)?.parse().unwrap_or(0);
        let unclear = row.text(2)?.contains("\"uncertain\"");
        if row.text(1)? == "relay.delivery.settle" {
            settled.insert(id);
        } else if unclear || settled.contains(&id) {
            *released.entry(id).or_default() += 1;
        }
    }
    Ok(released)
}

/// An expired result is not given again to whoever came after its end.
fn expired(scene: &Scene, effects: &Effects) {
    for sent in scene.clients.all() {
        let Some((_, history::Answer::Finished(finished))) = &sent.told else { continue };
        let Some(effect) = effects.by_body(&finished.outcome) else { continue };
        if finished.replayed && effect.expires_at.is_some_and(|end| end <= sent.started_at) {
            scene.world.find(format!(
                "{}: a submission at {} was given a result that expired before: {}",
                sent.key, sent.started_at, effect.body
            ));
        }
    }
}

/// Each repeat that was answered left its row.
fn arrivals(scene: &Scene) -> Result<(), Error> {
    let mut counts: BTreeMap<(String, bool), i64> = BTreeMap::new();
    for row in rows(scene, "select key, same, count(*) from sim_arrivals group by key, same")? {
        counts.insert((row.text(0)?.to_owned(), row.flag(1)?), row.int(2)?);
    }
    let mut answered: BTreeMap<(String, bool), i64> = BTreeMap::new();
    for sent in scene.clients.all() {
        if let Some((_, history::Answer::Finished(finished))) = &sent.told
            && finished.replayed
        {
            *answered.entry((sent.key.clone(), finished.same)).or_default() += 1;
        }
    }
    for (of, answered) in answered {
        let kept = counts.get(&of).copied().unwrap_or(0);
        if kept < answered {
            scene.world.find(format!("{of:?}: {answered} repeats were answered, {kept} are on record"));
        }
    }
    Ok(())
}
