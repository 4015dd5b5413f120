//! Latency with few and with many stored keys, in one database that grows between the measurements.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::database::{Database, Template};
use super::subject::{Kind, Place, Subject, Way};
use super::table::Growth;
use crate::bench::disk::Speed;

/// Clients: the aims name 8 and 32.
const CLIENTS: [usize; 2] = [8, 32];

/// Each subject's numbers begin so far from the next one's: they share a database.
const APART: u64 = 1 << 40;

/// Records inserted between two checkpoints: more would only fill the disk with the log.
const BATCH: u64 = 1_000_000;

/// Finished records, numbered from and to; their keys are spread like the loads'. Without the index, which is
/// made anew afterwards: quicker, and as full as PostgreSQL makes it.
const FILL: &str = r#"set session_replication_role = replica;
drop index if exists uq_bench_records_key;
insert into bench_records (tenant_id, key, account_id, amount, status, fingerprint, attempt_no, response_code, response_body, expires_at, created_at, updated_at)
select 1, (1000000000000000000 + (hashint8extended(n, 7) & 4611686018427387903))::text, 100000 + n % 100000, 100,
  'succeeded', sha256(int8send(n)), 1, 200,
  '{"status":"succeeded","transfer":"1000000000000000000","account":100000,"amount":100}', now() + interval '1 day', now(), now()
from generate_series($FROM, $TO) as n;
checkpoint;"#;

const INDEX: &str =
    "create unique index if not exists uq_bench_records_key on bench_records (tenant_id, key);
vacuum (analyze) bench_records;
checkpoint;";

/// Adds what is missing to so many stored keys.
fn fill(database: &Database, name: &str, stored: u64) -> Result<()> {
    let count = database.ask(name, "select count(*) from bench_records")?;
    let mut from = count.parse::<u64>()? + 1;
    while from <= stored {
        let to = stored.min(from + BATCH - 1);
        let sql = FILL.replace("$FROM", &from.to_string()).replace("$TO", &to.to_string());
        database.ask(name, &sql)?;
        from = to + 1;
    }
    database.ask(name, INDEX).map(drop)
}

/// Measures all subjects on the door's schema at each number of stored keys, `rounds` times.
///
/// # Errors
/// The database can't be filled, or a subject stops answering.
pub(super) fn measured(
    database: &Database,
    subjects: &[Subject],
    stored: &[u64],
    (rounds, time): (u32, Duration),
) -> Result<Vec<Growth>> {
    let ours: Vec<&Subject> = subjects
        .iter()
        .filter(|it| {
            it.template == Template::Door
                && !matches!(it.way, Way::Pgbench(form) if form != super::pgbench::Form::Pipelined)
        })
        .collect();
    ensure!(stored.is_sorted(), "--stored has to rise");
    let place = |subject: &Subject| Place::new(database, Speed::Native, subject.name);
    let Some(first) = ours.first() else { return Ok(Vec::new()) };
    let grown = place(first)?.name;
    let url = database.fresh(&grown, Template::Door)?;
    let mut rows = Vec::new();
    let mut started = Vec::new();
    for (&subject, range) in ours.iter().zip(0..) {
        started.push((subject, subject.start_on(&place(subject)?, url.clone(), range * APART)?));
    }
    for &stored in stored {
        eprintln!("{stored} stored keys: filling");
        fill(database, &grown, stored)?;
        for (subject, started) in &mut started {
            for clients in CLIENTS {
                eprintln!("{stored} stored keys: {}, {clients} clients", subject.name);
                let mut samples = Vec::new();
                for _ in 0..rounds {
                    samples.push(started.measure(Kind::First, clients, time)?);
                }
                rows.push(Growth { subject: subject.name, clients, stored, samples });
            }
        }
    }
    drop(started);
    database.remove(&grown)?;
    Ok(rows)
}
