//! Rules between the tables.

use store::Error;

use super::{Effects, rows};
use crate::domain::{Rule, receipts};
use crate::finish::nothing_left;
use crate::node::kind_of;
use crate::run::Scene;

/// Held deliveries that say nothing.
pub(crate) const UNEXPLAINED: &str = "select count(*) from outbox_deliveries
    where status in ('refused', 'uncertain', 'dead') and error is null and outcome is null";

/// One record a key, and audit, outbox and deliveries exactly as the effects demand them.
pub(super) fn judge(scene: &Scene, effects: &Effects) -> Result<(), Error> {
    records(scene, effects)?;
    announced(scene, effects)?;
    rules(scene, effects)?;
    receipts_kept(scene, effects)
}

fn records(scene: &Scene, effects: &Effects) -> Result<(), Error> {
    let sql = "select key, payload, status, response_code, response_body, expires_at from sim_records";
    let kept = rows(&scene.world, sql)?;
    for row in &kept {
        let key = row.text(0)?;
        let Some(effect) = effects.last(key) else {
            scene.world.find(format!("{key}: its record is {} and there is no effect", row.text(2)?));
            continue;
        };
        let record = (row.int(1)?, row.int_or_null(3)?, row.text_or_null(4)?, row.time_or_null(5)?);
        let wanted = (effect.payload, Some(effect.code), Some(effect.body.as_str()), effect.expires_at);
        if record != wanted {
            scene.world.find(format!("{key}: its record is {record:?}, its last effect {wanted:?}"));
        }
    }
    for effect in &effects.0 {
        if !kept.iter().any(|row| row.text(0) == Ok(effect.key.as_str())) {
            scene.world.find(format!("{}: an effect without a record", effect.key));
        }
    }
    Ok(())
}

fn announced(scene: &Scene, effects: &Effects) -> Result<(), Error> {
    let audit = "select object_id, request_id from audit_events where event_name = 'sim.put.done'";
    let outbox = "select object_id, request_id from outbox";
    let deliveries =
        "select o.object_id, o.request_id from outbox_deliveries d join outbox o on o.id = d.outbox_id
        group by o.id, d.destination";
    for (table, sql, copies, refusals) in
        [("audit", audit, 1, true), ("outbox", outbox, 1, false), ("deliveries", deliveries, 2, false)]
    {
        let mut found = Vec::new();
        for row in rows(&scene.world, sql)? {
            found.push((row.text(0)?.to_owned(), row.text(1)?.to_owned()));
        }
        let wanted = effects.0.iter().filter(|effect| refusals || effect.code == 200);
        let mut wanted: Vec<_> = wanted
            .flat_map(|effect| std::iter::repeat_n((effect.key.clone(), effect.serial.to_string()), copies))
            .collect();
        found.sort();
        wanted.sort();
        if found != wanted {
            scene.world.find(format!("{table} has {found:?}, the effects demand {wanted:?}"));
        }
    }
    nothing_left(&scene.world, UNEXPLAINED, "deliveries are held without a reason");
    Ok(())
}

/// Balances and names follow from the effects.
fn rules(scene: &Scene, effects: &Effects) -> Result<(), Error> {
    let accepted = |rule| {
        let of = move |key: &str| kind_of(&scene.kinds, key).is_some_and(|kind| kind.rule == rule);
        effects.0.iter().filter(move |effect| effect.code == 200 && of(&effect.key))
    };
    for row in rows(&scene.world, "select id, balance from sim_accounts")? {
        let (id, balance) = (row.int(0)?, row.int(1)?);
        let wanted: i64 = accepted(Rule::Account(id)).map(|effect| effect.payload).sum();
        if balance != wanted {
            scene.world.find(format!("account {id} has {balance}, the effects say {wanted}"));
        }
    }
    let names = rows(&scene.world, "select name from sim_names")?;
    for name in 0..3 {
        let word = format!("n{name}");
        let taken = names.iter().filter(|row| row.text(0) == Ok(word.as_str())).count();
        let wanted = accepted(Rule::Name(name)).count();
        if taken != wanted {
            scene.world.find(format!("name {name} is taken {taken} times, by {wanted} effects"));
        }
    }
    Ok(())
}

/// What the foreign side gave for the effect is what stands on record, and its second step built on the first.
fn receipts_kept(scene: &Scene, effects: &Effects) -> Result<(), Error> {
    let sql = "select r.key, s.name, s.result from sim_steps s join sim_records r on r.id = s.event";
    let steps = rows(&scene.world, sql)?;
    for (number, _) in scene.kinds.iter().enumerate().filter(|(_, kind)| kind.leased) {
        let key = format!("k{number}");
        let Some(effect) = effects.last(&key) else { continue };
        let Some((charge, confirm)) = receipts(&effect.body) else {
            scene.world.find(format!("{key}: a leased effect without receipts: {}", effect.body));
            continue;
        };
        let kept = |name: &str| {
            let of = |row: &&store::Row| row.text(0) == Ok(key.as_str()) && row.text(1) == Ok(name);
            let result = steps.iter().find(of).and_then(|row| row.bytes(2).ok());
            result.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let found = (kept("charge"), kept("confirm"));
        let built_on = confirm.starts_with(&format!("{charge}+"));
        if found != (Some(charge.clone()), Some(confirm.clone())) || !built_on {
            scene.world.find(format!("{key}: receipts {charge}, {confirm}; on record {found:?}"));
        }
    }
    Ok(())
}
