//! What must hold at the end of a run with the supply side: the rows, audit, outbox and journals exactly as the
//! results on record demand them, each answer explained, and the program's own check of the ledger.

use store::Error;
use testkit::history::{self, History};

use super::Market;
use super::counter::KEYED;
use super::errand::Errand;
use super::watch::{Entry, code};
use crate::client::Sent;
use crate::finish::{count, nothing_left};
use crate::judge::{rows, tables, told};

/// Counts that must be zero: what is wrong, and how many.
const RULES: [(&str, &str); 11] = [
    (
        "keys have two records",
        "select count(*) from (select 1 from supply_idempotency_record
         group by tenant_id, operator_id, api_path, idempotency_key having count(*) > 1)",
    ),
    (
        // One that is not the last under its key was left when the key ended: whoever came then began anew.
        "batches are not finished",
        "select count(*) from supply_batch_jobs j where j.finished_at is null
           and not exists (select 1 from supply_batch_jobs n
             where n.idempotency_record_id = j.idempotency_record_id and n.claim_generation > j.claim_generation)",
    ),
    (
        "batches have not a receipt for each item",
        "select count(*) from supply_batch_jobs j where j.finished_at is not null
           and j.total <> (select count(*) from supply_batch_items i where i.job_id = j.id)",
    ),
    (
        "items were changed more or less often than their receipts say",
        "select count(*) from supply_batch_items i where (i.result = 'success') <>
         (select count(*) from audit_events a where a.event_name = 'supply.package.price.update'
           and a.object_id = cast(i.package_id as text)
           and a.metadata = '{\"batch_id\":\"' || i.job_id || '\"}')",
    ),
    (
        "changes of a price are not told once each",
        "select abs((select count(*) from audit_events where event_name = 'supply.package.price.update')
         - (select count(*) from outbox where event_name = 'supply.package.price_update.succeeded'))",
    ),
    (
        "packages have not the version that their changes make",
        "select count(*) from supply_packages p where p.id > 31 and p.version <>
         (select count(*) from audit_events a where a.object_type = 'supply_package' and a.result_code = 'OK'
           and a.object_id = cast(p.id as text)
           and a.event_name in ('supply.package.price.update', 'supply.package.publish'))",
    ),
    (
        "codes are not told once each",
        "select abs((select count(*) from supply_sms_codes)
         - (select count(*) from outbox where event_name = 'supply.settlement.sms_code.succeeded'))",
    ),
    (
        "earnings were released twice, or without a journal",
        "select count(*) from supply_earnings e where (e.status <> 'pending') <>
         (select count(*) from audit_events a where a.event_name = 'supply.earning.release'
           and a.result_code = 'OK' and a.object_id = cast(e.id as text))
         or (e.status <> 'pending') <> (select count(*) from billing_journals j
           where j.journal_type = 'J-RELEASE' and j.source_id = cast(e.id as text))",
    ),
    (
        "calls are not billed once each",
        "select abs((select count(*) from supply_usage_records)
         - (select count(*) from billing_journals where journal_type = 'J-USAGE'))
         + (select count(*) from (select 1 from supply_usage_records
            group by api_key_id, order_id, request_id having count(*) > 1))",
    ),
    (
        "announcements don't go to both channels",
        "select count(*) from outbox o where (o.event_name like 'supply.settlement.%'
           or o.event_name like 'supply.account.%' or o.event_name like 'supply.package.publish.%'
           or o.event_name like 'supply.package.batch_price.%')
         and (select count(*) from outbox_deliveries d where d.outbox_id = o.id) <> 2",
    ),
    ("deliveries are held without a reason", tables::UNEXPLAINED),
];

/// Judges a run that is over.
pub(super) async fn judge(market: &Market) {
    for (what, sql) in RULES {
        nothing_left(&market.world, sql, what);
    }
    let entries = market.seen.entries();
    let judged =
        traces(market, &entries).and_then(|()| answers(market, &entries)).and_then(|()| repeats(market));
    if let Err(error) = judged {
        market.world.find(format!("the tables can't be judged: {error}"));
    }
    expired(market, &entries);
    facts(market, &entries);
    let Some(shop) = market.shops.first() else { return market.world.find("there is no node".into()) };
    match supply::settlements::reconcile(shop.node.door.store()).await {
        Ok(found) if found.is_empty() => {}
        found => market.world.find(format!("the program's own check of the ledger finds {found:?}")),
    }
}

/// Audit, outbox and journals, by request, exactly as the results demand them.
fn traces(market: &Market, entries: &[Entry]) -> Result<(), Error> {
    let (mut audit, mut outbox, mut journals) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let Some(errand) = market.errands.lock().get(&entry.name).copied() else { continue };
        let (traces, request) = (errand.traces(), || entry.request_id.clone());
        let refused = code(&entry.body);
        let done = refused.is_none();
        audit.push((request(), format!("{} {}", traces.event, refused.as_deref().unwrap_or("OK"))));
        outbox.extend(done.then(|| (request(), errand.word().to_owned())));
        journals.extend(traces.journal.filter(|_| done).map(|kind| (request(), kind.to_owned())));
    }
    let told = |name: &str| {
        let errands = market.errands.lock();
        let of = errands.values().find(|errand| errand.traces().told.contains(&name));
        of.map_or_else(|| name.to_owned(), |errand| errand.word().to_owned())
    };
    // Refusals that leave the key open have no formal result: told to come later, or outrun although the state would
    // still allow it.
    let sql = "select request_id, event_name || ' ' || result_code from audit_events
        where event_name not in ('idempotency.replayed', 'idempotency.payload_mismatch', 'invariant_violation',
          'supply.package.price.update') and result_code not in ('SUP_ACC_5031', 'SUP_SET_4291')
          and cast(metadata as text) not like '%\"retryable\":true%'";
    compare(market, "audit", found(market, sql)?, audit);
    let sql = "select request_id, event_name from outbox
        where event_name <> 'supply.package.price_update.succeeded'";
    let kept = found(market, sql)?.into_iter().map(|(request, name)| (request, told(&name))).collect();
    compare(market, "outbox", kept, outbox);
    let kept = found(market, "select request_id, journal_type from billing_journals")?;
    compare(market, "journals", kept, journals);
    Ok(())
}

/// Pairs of what came of requests under keys.
fn found(market: &Market, sql: &'static str) -> Result<Vec<(String, String)>, Error> {
    let mut found = Vec::new();
    for row in rows(&market.world, sql)? {
        if row.text(0)?.starts_with(KEYED) {
            found.push((row.text(0)?.to_owned(), row.text(1)?.to_owned()));
        }
    }
    Ok(found)
}

fn compare(market: &Market, table: &str, found: Vec<(String, String)>, wanted: Vec<(String, String)>) {
    let (mut found, mut wanted) = (found, wanted);
    found.sort();
    wanted.sort();
    if found != wanted {
        let more: Vec<_> = found.iter().filter(|row| !wanted.contains(row)).collect();
        let less: Vec<_> = wanted.iter().filter(|row| !found.contains(row)).collect();
        market.world.find(format!(
            "{table} has {} rows, the results demand {}; of them only there {more:?}, only demanded {less:?}",
            found.len(),
            wanted.len()
        ));
    }
}

/// Every answer is explained by one result, and no announcement came twice that nobody released.
fn answers(market: &Market, entries: &[Entry]) -> Result<(), Error> {
    let effect = |entry: &Entry| history::Effect {
        key: entry.name.clone(),
        outcome: super::watch::bytes(entry.code, &entry.body),
        // One request may do it twice, if its commit is in the dark for longer than the key lives.
        id: format!("{} {}", entry.request_id, entry.generation),
        fingerprint: Some(entry.fingerprint),
        generation: u32::try_from(entry.generation - 1).unwrap_or(u32::MAX),
    };
    let mut submissions: Vec<_> = market.clients.all().iter().map(Sent::history).collect();
    submissions
        .extend(market.world.ghosts().into_iter().map(|(key, payload, at)| told::ghost(key, payload, at)));
    let effects = entries.iter().map(effect).collect();
    for anomaly in (History { submissions, effects, announcements: Vec::new() }).anomalies() {
        market.world.find(anomaly.to_string());
    }
    for shown in told::shown(&market.world, &market.foreign)? {
        if shown.times > 1 {
            market.world.find(format!(
                "{}: what request {} did was announced {} times",
                shown.object_id, shown.request_id, shown.times
            ));
        }
    }
    Ok(())
}

/// Each repeat that was answered left its audit row.
fn repeats(market: &Market) -> Result<(), Error> {
    let sql = "select idempotency_key, event_name from audit_events where event_name like 'idempotency.%'";
    let mut kept = Vec::new();
    for row in rows(&market.world, sql)? {
        let name = Errand::name_of(row.text(0)?).unwrap_or_default().to_owned();
        kept.push((name, row.text(1)? == "idempotency.replayed"));
    }
    for (name, _) in market.errands.lock().iter() {
        for same in [true, false] {
            let answered = market.clients.all().iter().filter(|sent| {
                let told = sent.told.as_ref().map(|(_, answer)| answer);
                sent.key == *name
                    && matches!(told, Some(history::Answer::Finished(done)) if done.replayed && done.same == same)
            }).count();
            let kept = kept.iter().filter(|(of, as_same)| (of, *as_same) == (name, same)).count();
            if kept < answered {
                market
                    .world
                    .find(format!("{name}: {answered} repeats were answered, {kept} are in the audit"));
            }
        }
    }
    Ok(())
}

/// An expired result is not given again to whoever came after its end.
fn expired(market: &Market, entries: &[Entry]) {
    for sent in market.clients.all() {
        let Some((_, history::Answer::Finished(finished))) = &sent.told else { continue };
        let of = |entry: &&Entry| {
            entry.name == sent.key && super::watch::bytes(entry.code, &entry.body) == finished.outcome
        };
        let alive = entries.iter().filter(of).any(|entry| entry.expires_at > sent.started_at);
        if finished.replayed && !alive {
            market.world.find(format!("{}: an expired result was given again", sent.key));
        }
    }
}

/// As many rows as results, and how much was done without a key.
fn facts(market: &Market, entries: &[Entry]) {
    let world = &market.world;
    for (word, sql) in [
        ("withdraw", "select count(*) from supply_settlements"),
        ("mount", "select count(*) from supply_accounts where id > 6"),
    ] {
        let done = entries.iter().filter(|entry| entry.name.starts_with(word) && entry.code < 400).count();
        let rows = count(world, sql);
        if usize::try_from(rows) != Ok(done) {
            world.find(format!("{done} of {word} are done, {rows} rows are there"));
        }
    }
    for (word, sql) in [
        ("code sent", "select count(*) from supply_sms_codes"),
        (
            "earning released",
            "select count(*) from audit_events where event_name = 'supply.earning.release' and result_code = 'OK'",
        ),
        ("call billed", "select count(*) from supply_usage_records"),
    ] {
        market.seen.add(word, u64::try_from(count(world, sql)).unwrap_or(0));
    }
}
