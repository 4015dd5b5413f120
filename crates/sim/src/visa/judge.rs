//! What must hold at the end of a run with AuditVisa.

use std::collections::BTreeMap;

use kernel::Digest;
use serde_json::Value as Json;
use store::Error;
use testkit::history::{self, Announcement, History};

use super::Visa;
use super::event::key;
use super::house::outcome;
use crate::client::Sent;
use crate::domain::fingerprint;
use crate::finish::nothing_left;
use crate::judge::{rows, tables, told};

/// Counts that must be zero: what is wrong, and how many.
const RULES: [(&str, &str); 5] = [
    (
        "certificates have not exactly one announcement",
        "select count(*) from certify_certificates c join certify_events e on e.id = c.event
         where (select count(*) from outbox o where o.object_id = e.ref) <> 1",
    ),
    (
        "announcements have no certificate",
        "select count(*) from outbox o where not exists (select 1 from certify_certificates c
         join certify_events e on e.id = c.event where e.ref = o.object_id)",
    ),
    (
        "announcements don't go to both channels",
        "select count(*) from outbox o
         where (select count(*) from outbox_deliveries d where d.outbox_id = o.id) <> 2",
    ),
    (
        "certificates have not exactly one audit row that says so",
        "select count(*) from certify_certificates c join certify_events e on e.id = c.event
         where (select count(*) from audit_events a where a.object_id = e.ref
           and a.event_name in ('certify.event.processed', 'certify.event.adopted')) <> 1",
    ),
    (
        "second reports have not exactly one audit row that says so",
        "select count(*) from certify_events e where e.certificate_event is not null
         and (select count(*) from audit_events a where a.object_id = e.ref
           and a.event_name = 'certify.event.change_reused') <> 1",
    ),
];

/// Judges a run that is over.
pub(super) async fn judge(scene: &Visa) {
    for (what, sql) in RULES {
        nothing_left(&scene.world, sql, what);
    }
    nothing_left(&scene.world, tables::UNEXPLAINED, "deliveries are held without a reason");
    if let Err(error) = histories(scene).and_then(|()| arrivals(scene)) {
        scene.world.find(format!("the tables can't be judged: {error}"));
    }
    match scene.houses.first() {
        Some(house) => match house.check().await {
            Some(Json::Array(list)) if list.is_empty() => {}
            found => scene.world.find(format!("the program's own check finds {found:?}")),
        },
        None => scene.world.find("there is no node".into()),
    }
}

fn histories(scene: &Visa) -> Result<(), Error> {
    let sql = "select id, event_id, ref, payload_hash, response_body from certify_events where response_code is not null";
    let (mut effects, mut references) = (Vec::new(), BTreeMap::new());
    for row in rows(&scene.world, sql)? {
        let Some(event) = scene.senders.number(row.text(1)?) else {
            scene.world.find(format!("an event that nobody sent: {}", row.text(1)?));
            continue;
        };
        references.insert(row.text(2)?.to_owned(), event);
        let content: Json = serde_json::from_str(row.text(4)?).unwrap_or_default();
        let payload =
            scene.senders.payload(event, Digest::from_slice(row.bytes(3)?).unwrap_or(Digest::UNKNOWN));
        effects.push(history::Effect {
            key: key(event),
            outcome: outcome(&content),
            id: row.int(0)?.to_string(),
            fingerprint: payload.map(|payload| fingerprint(&key(event), payload)),
            generation: 0,
        });
    }
    one_certificate(scene, &effects);
    let mut announcements = Vec::new();
    for shown in told::shown(&scene.world, &scene.foreign)? {
        let Some(event) = references.get(&shown.object_id) else { continue };
        announcements.extend((0..shown.times).map(|_| Announcement { key: key(*event), generation: 0 }));
    }
    let mut submissions: Vec<_> = scene.clients.all().iter().map(Sent::history).collect();
    submissions
        .extend(scene.world.ghosts().into_iter().map(|(key, payload, at)| told::ghost(key, payload, at)));
    for anomaly in (History { submissions, effects, announcements }).anomalies() {
        scene.world.find(anomaly.to_string());
    }
    Ok(())
}

/// Two events that report one change have one certificate.
fn one_certificate(scene: &Visa, effects: &[history::Effect]) {
    let of = |event| effects.iter().find(|effect| effect.key == key(event)).map(|effect| &effect.outcome);
    if let (Some(first), Some(second)) = (of(0), of(1))
        && first != second
    {
        scene.world.find("two reports of one change have two certificates".into());
    }
}

/// Each delivery that was acknowledged left its arrival.
fn arrivals(scene: &Visa) -> Result<(), Error> {
    let sql = "select e.event_id, count(*) from certify_arrivals a join certify_events e on e.id = a.event group by e.id";
    let mut kept = BTreeMap::new();
    for row in rows(&scene.world, sql)? {
        kept.extend(scene.senders.number(row.text(0)?).map(|event| (key(event), row.int(1))));
    }
    for event in 0..scene.senders.count() {
        let sent = scene.clients.all();
        let answered = sent.iter().filter(|sent| sent.key == key(event) && sent.is_finished()).count();
        let kept = kept.remove(&key(event)).transpose()?.unwrap_or(0);
        if kept < i64::try_from(answered).unwrap_or(i64::MAX) {
            scene.world.find(format!("{}: {answered} deliveries were acknowledged, {kept} kept", key(event)));
        }
    }
    Ok(())
}
