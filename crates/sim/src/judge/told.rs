//! Rules between the tables and what clients and receivers saw.

use std::collections::{BTreeMap, BTreeSet};

use store::Error;
use testkit::history::{self, Announcement, History};
use uuid::Uuid;

use super::{Effects, rows};
use crate::domain::{SHOWN, fingerprint};
use crate::foreign::Foreign;
use crate::run::Scene;
use crate::world::World;

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
pub(crate) fn ghost(key: String, payload: i64, at: u64) -> history::Submission {
    let fingerprint = fingerprint(&key, payload);
    history::Submission { key, fingerprint, started: at, ended: at, answer: history::Answer::Unknown }
}

/// The formal announcements that arrived.
fn announcements(scene: &Scene, effects: &Effects) -> Result<Vec<Announcement>, Error> {
    let mut announced = Vec::new();
    for shown in shown(&scene.world, &scene.foreign)? {
        let Some(effect) = effects.by_serial(shown.request_id.parse().unwrap_or(0)) else { continue };
        let one = || Announcement { key: effect.key.clone(), generation: effect.generation };
        announced.extend((0..shown.times).map(|_| one()));
    }
    Ok(announced)
}

/// An announcement and how often it arrived at the channel that shows repeats, less what a person released.
pub(crate) struct Shown {
    pub(crate) object_id: String,
    pub(crate) request_id: String,
    pub(crate) times: u32,
}

/// All announcements, with what must hold of them in any run.
pub(crate) fn shown(world: &World, foreign: &Foreign) -> Result<Vec<Shown>, Error> {
    let sql = "select o.event_id, o.request_id, d.id, d.destination, d.status, d.outcome, o.object_id
        from outbox_deliveries d join outbox o on o.id = d.outbox_id";
    let (arrived, released) = (foreign.arrived(), released(world)?);
    let (mut known, mut announced) = (BTreeSet::new(), Vec::new());
    for row in rows(world, sql)? {
        let damaged = |_| Error::Corrupt { table: "outbox", column: "event_id".into() };
        let event = Uuid::from_slice(row.bytes(0)?).map_err(damaged)?;
        let (id, channel) = (row.int(2)?, row.text(3)?);
        known.insert(event);
        let here = arrived.iter().filter(|((name, of), _)| *name == channel && *of == event);
        let times: u32 = here.map(|(_, times)| times).sum();
        let by_person = row.text_or_null(5)?.is_some_and(|outcome| outcome.contains("operator"));
        if row.text(4)? == "delivered" && times == 0 && !by_person {
            world.find(format!("delivery {id} to {channel} counts as delivered and never arrived"));
        }
        if channel == SHOWN {
            let released = released.get(&id).copied().unwrap_or(0).min(times.saturating_sub(1));
            let (object_id, request_id) = (row.text(6)?.to_owned(), row.text(1)?.to_owned());
            announced.push(Shown { object_id, request_id, times: times - released });
        }
    }
    for (channel, event) in arrived.keys().filter(|(_, event)| !known.contains(event)) {
        world.find(format!("{channel} got {event}, which is in no outbox"));
    }
    Ok(announced)
}

/// How often a person knowingly had a delivery sent again that may have arrived: its end was unclear, or
/// another person had settled it before.
fn released(world: &World) -> Result<BTreeMap<i64, u32>, Error> {
    let sql = "select object_id, event_name, before_state from audit_events where object_type = 'outbox_delivery' order by id";
    let (mut released, mut settled) = (BTreeMap::new(), BTreeSet::new());
    for row in rows(world, sql)? {
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
    for row in rows(&scene.world, "select key, same, count(*) from sim_arrivals group by key, same")? {
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
