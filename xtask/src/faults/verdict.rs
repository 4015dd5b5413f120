//! What must hold after a fault, whatever it was: the checker of histories over what senders were told and
//! what the database holds; one certificate and one announcement a change; nothing stuck; no session and no
//! lock left behind; the same bytes from every node.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use testkit::history::{Announcement, Effect, History};

use super::ledger::{self, Delivery, Excuse, Try};
use super::site::{CONNECTIONS, NODES, Site};
use crate::lab::record::{Certificate, Recorded, Records};

/// How long a session may hold something after the last answer: longer than the database lets a session
/// live whose node is gone (`postgres.idle_timeout`, 2 s here) and a statement run (1 s).
const AT_REST_WITHIN: Duration = Duration::from_secs(10);
/// Certificates whose files are fetched from every node.
const FETCHED: usize = 3;
/// Ends of a certificate's files, in the order of their hashes.
const FORMS: [&str; 3] = ["html", "zip", "json"];

/// What was found.
pub(super) struct Verdict {
    /// What is wrong.
    pub(super) anomalies: Vec<String>,
    /// Tries of all senders.
    pub(super) submissions: usize,
    /// Sizes, for people.
    pub(super) summary: String,
}

/// What senders were told.
pub(super) struct Told<'a> {
    /// Number of the first change.
    pub(super) base: u64,
    pub(super) tries: &'a [Try],
    /// What was not acknowledged in the end.
    pub(super) left: &'a [Delivery],
    pub(super) excuse: Excuse,
}

/// Judges a load, after which the database may have so many sessions that it can't know to be dead.
///
/// # Errors
/// The database or a node doesn't answer.
pub(super) fn judge(site: &Site, told: &Told<'_>, ghosts: usize) -> Result<Verdict> {
    let Told { base, tries, left, excuse } = *told;
    let records = Records::within(&site.psql()?, &condition(&Site::changes(base)))?;
    let mut history = History {
        submissions: tries.iter().map(|one| one.submission(excuse)).collect(),
        ..History::default()
    };
    recorded(&records, &mut history)?;
    let mut anomalies: Vec<String> = history.anomalies().iter().map(ToString::to_string).collect();
    anomalies.extend(left.iter().map(|one| format!("{} was not acknowledged in the end", one.event.id)));
    words(tries, excuse, &mut anomalies);
    changes(&records, &mut anomalies);
    arrivals(&records, tries, &mut anomalies);
    at_rest(site, ghosts, &mut anomalies)?;
    alike(site, &records, &mut anomalies)?;
    Ok(Verdict { anomalies, submissions: tries.len(), summary: history.summary() })
}

/// Which events the laboratory gave a number in the range: `evt_1Lab` and twelve digits.
fn condition(numbers: &Range<u64>) -> String {
    format!(
        "event_id ~ '^evt_1Lab[0-9]{{12}}' and substr(event_id, 9, 12)::bigint between {} and {}",
        numbers.start,
        numbers.end - 1
    )
}

/// The number in an event's id.
fn number(event: &str) -> Option<u64> {
    event.strip_prefix("evt_1Lab")?.get(..12)?.parse().ok()
}

/// Effects and announcements as the database has them.
fn recorded(records: &Records, history: &mut History) -> Result<()> {
    let mut references: BTreeMap<&str, &str> = BTreeMap::new();
    for (event, record) in &records.events {
        references.insert(&record.reference, event);
        let Some(outcome) = &record.outcome else { continue };
        history.effects.push(Effect {
            key: event.clone(),
            outcome: ledger::kept_outcome(outcome).with_context(|| record.reference.clone())?,
            id: format!("event {}", record.id),
            fingerprint: ledger::kept_fingerprint(&record.payload_hash),
            generation: 0,
        });
    }
    for announced in &records.announcements {
        let key = references.get(announced.reference.as_str()).copied().unwrap_or(&announced.reference);
        history.announcements.push(Announcement { key: key.to_owned(), generation: 0 });
    }
    Ok(())
}

/// Nobody was told anything but "done" and "come again".
fn words(tries: &[Try], excuse: Excuse, anomalies: &mut Vec<String>) {
    let mut strange: BTreeMap<(u16, &str), usize> = BTreeMap::new();
    for told in tries.iter().filter_map(|one| one.strange(excuse)) {
        *strange.entry(told).or_default() += 1;
    }
    anomalies
        .extend(strange.iter().map(|((status, code), count)| format!("{count} answers {status} {code}")));
}

/// One certificate a change, every report of it processed and pointing there, one announcement of it.
fn changes(records: &Records, anomalies: &mut Vec<String>) {
    let mut announced: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &records.announcements {
        *announced.entry(&one.reference).or_default() += 1;
    }
    let announced = |reference: &str| announced.get(reference).copied().unwrap_or_default();
    let mut by_change: BTreeMap<u64, Vec<&Recorded>> = BTreeMap::new();
    for (event, record) in &records.events {
        by_change.entry(number(event).unwrap_or(u64::MAX)).or_default().push(record);
    }
    let owners: BTreeSet<i64> = records.certificates.iter().map(|one| one.event).collect();
    for (change, reports) in &by_change {
        // Its sender gave up, and recovery is still to come: judged at the end of the run.
        if reports.iter().all(|report| report.status == "failed" && report.outcome.is_none()) {
            continue;
        }
        let issued: Vec<_> = reports.iter().filter(|report| owners.contains(&report.id)).collect();
        if issued.len() != 1 {
            anomalies.push(format!("change {change}: {} certificates", issued.len()));
        }
        for report in reports {
            let of = report.certificate_event.unwrap_or(report.id);
            if report.status != "processed" || !issued.iter().any(|one| one.id == of) {
                anomalies.push(format!("{}: {}, of event {of}", report.reference, report.status));
            }
            let wanted = usize::from(owners.contains(&report.id));
            if announced(&report.reference) != wanted {
                anomalies.push(format!(
                    "{}: {} announcements",
                    report.reference,
                    announced(&report.reference)
                ));
            }
        }
    }
}

/// Every acknowledged arrival is on record.
fn arrivals(records: &Records, tries: &[Try], anomalies: &mut Vec<String>) {
    let mut acknowledged: BTreeMap<&str, u64> = BTreeMap::new();
    for one in tries.iter().filter(|one| one.is_acknowledged()) {
        *acknowledged.entry(&one.event).or_default() += 1;
    }
    for (event, count) in acknowledged {
        let kept = records.events.get(event).map_or(0, |record| record.arrivals);
        if kept < count {
            anomalies.push(format!("{event}: {count} arrivals acknowledged, {kept} on record"));
        }
    }
}

/// No session inside a transaction, no advisory lock, no more sessions than the nodes may have; all this after
/// a moment, in which the database sees which nodes have gone.
fn at_rest(site: &Site, ghosts: usize, anomalies: &mut Vec<String>) -> Result<()> {
    let since = Instant::now();
    loop {
        let held = site.ask(HELD)?;
        let sessions: usize = site.ask(SESSIONS)?.parse()?;
        let crowded = sessions > NODES * CONNECTIONS + ghosts;
        if held.is_empty() && !crowded {
            return Ok(());
        }
        if since.elapsed() > AT_REST_WITHIN {
            let after = format!("{AT_REST_WITHIN:?} after the last answer");
            anomalies.extend(held.lines().map(|line| format!("{after}: {line}")));
            if crowded {
                anomalies.push(format!(
                    "{after}: {sessions} sessions of {NODES} nodes with {CONNECTIONS} connections each"
                ));
            }
            return Ok(());
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// What sessions of the nodes hold that they should have let go, a line each.
const HELD: &str = "select a.state || ', ' || left(a.query, 100) || ', locks: ' || \
         (select count(*) from pg_locks l where l.pid = a.pid and l.locktype = 'advisory') \
     from pg_stat_activity a where a.usename = 'onceseal' and a.backend_type = 'client backend' \
     and a.xact_start < now() - interval '1 s'";
const SESSIONS: &str =
    "select count(*) from pg_stat_activity where usename = 'onceseal' and backend_type = 'client backend'";

/// Every node gives the recorded bytes.
fn alike(site: &Site, records: &Records, anomalies: &mut Vec<String>) -> Result<()> {
    let last = records.certificates.iter().rev().take(FETCHED);
    for Certificate { slug, hashes, .. } in last {
        for node in site.nodes.iter() {
            for (form, hash) in FORMS.iter().zip(hashes) {
                let answer = node.get(&format!("/d/{slug}.{form}"))?;
                if answer.status != 200 || hex::encode(Sha256::digest(&answer.body)) != *hash {
                    anomalies.push(format!("{slug}.{form}: a node gives other bytes ({})", answer.status));
                }
            }
        }
    }
    Ok(())
}

/// How long announcements and retries may take after the last answer: the lease of a node that was killed
/// between a line and its mark (60 s) and the relay's look (5 s); the pause after an event's first failure
/// (60 s) and recovery's look (30 s), with as much again for a machine that is busy.
const ENDED_WITHIN: Duration = Duration::from_secs(180);

const OPEN: &str = "select (select count(*) from outbox_deliveries where status in ('pending', 'sending')) \
     + (select count(*) from certify_events where status in ('processing', 'failed'))";

/// Judges the whole run at its end, and ends it: all announcements out, once each; nodes end in order. Gives
/// lines for people, and what is wrong.
///
/// # Errors
/// The database doesn't answer, or a node doesn't end in order.
pub(super) fn end(site: &Site) -> Result<(Vec<String>, Vec<String>)> {
    let (mut lines, mut wrong) = (Vec::new(), Vec::new());
    let since = Instant::now();
    while site.ask(OPEN)? != "0" && since.elapsed() < ENDED_WITHIN {
        std::thread::park_timeout(Duration::from_millis(200));
    }
    let took = since.elapsed().as_millis();
    for (what, table, good) in
        [("announcements", "outbox_deliveries", "delivered"), ("events", "certify_events", "processed")]
    {
        let states =
            site.ask(&format!("select status || ' ' || count(*) from {table} group by status order by 1"))?;
        let states = states.replace('\n', ", ");
        lines.push(format!("{what}, {took} ms after the last answer: {states}"));
        if !states.starts_with(good) || states.contains(',') {
            wrong.push(format!("{what} without an end: {states}"));
        }
    }
    for node in site.nodes.iter() {
        node.stop()?;
        for log in node.logs()? {
            let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
            wrong.extend(text.lines().filter(|line| line.contains("panicked at")).map(ToOwned::to_owned));
        }
    }
    Ok((lines, wrong))
}
