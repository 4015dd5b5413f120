//! All that a database has of the supply side, in lines without times, ids that are counted past, and random text:
//! two runs that did the same have the same portrait. Repeats' own audit rows are left out.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::lab::House;
use crate::services::psql::Psql;

/// How long the database may keep a dead server's sessions: it sees the end of their connections, at the latest
/// when its statement is done (`postgres.statement_timeout`, 5 s).
const GONE_WITHIN: Duration = Duration::from_secs(6);
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(50);

/// A line each.
pub(super) type Portrait = BTreeSet<String>;

/// For both engines.
const SQL: &str = "select 'account ' || status || ' ' || count(*) from supply_accounts group by status
union all select 'package ' || id || ' ' || status || ' version ' || version || ' ' || cast(price_per_1m_input as text) || ' ' || cast(price_per_1m_output as text) from supply_packages
union all select 'settlement of ' || tenant_id || ' ' || status || ' ' || coalesce(fail_reason, '') || ' version ' || version || ' ' || cast(total_amount as text) from supply_settlements
union all select 'items ' || count(*) || ' ' || cast(coalesce(sum(amount), 0) as text) from supply_settlement_items
union all select 'earning ' || id || ' ' || status || ' ' || cast(available_amount as text) || ' ' || cast(frozen_amount as text) || ' ' || cast(withdrawn_amount as text) from supply_earnings
union all select 'balance ' || owner_type || ' ' || owner_id || ' ' || account_code || ' ' || coalesce(cast(balance as text), '') from billing_accounts
union all select 'journal ' || journal_type || ' ' || count(*) from billing_journals group by journal_type
union all select 'entries ' || count(*) || ' ' || cast(sum(amount) as text) from billing_ledger_entries
union all select 'codes used ' || count(*) from supply_sms_codes where consumed_at is not null
union all select 'wrong codes ' || coalesce(sum(attempts), 0) from supply_sms_codes
union all select 'batches ' || count(*) || ' done ' || coalesce(sum(success_count), 0) || ' failed ' || coalesce(sum(failed_count), 0) from supply_batch_jobs where finished_at is not null
union all select 'receipts ' || count(*) from supply_batch_items
union all select 'audit ' || event_name || ' ' || result_code || ' ' || count(*) from audit_events where tenant_id > 1 and event_name not like 'idempotency.%' group by event_name, result_code
union all select 'outbox ' || event_name || ' ' || count(*) from outbox where tenant_id > 1 group by event_name
union all select 'key ' || idempotency_key || ' ' || status || ' ' || coalesce(response_code, 0) from supply_idempotency_record where idempotency_key like 'crash-%'";

/// Whether servers are still logged in.
const SESSIONS: &str = "select count(*) from pg_stat_activity a where a.datname = current_database() \
     and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'";

/// Of a house's own file, read from a copy: the first look after a crash is the program's own.
///
/// # Errors
/// It can't be read.
pub(super) fn of_file(house: &House) -> Result<Portrait> {
    let copy = House::at(house.folder().join("look"));
    fs::create_dir_all(copy.data())?;
    for name in ["state.db", "state.db-wal"] {
        if house.data().join(name).exists() {
            fs::copy(house.data().join(name), copy.data().join(name))?;
        }
    }
    let store = copy.store()?;
    let lines = store.prepare(SQL)?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    drop(store);
    fs::remove_dir_all(copy.folder())?;
    Ok(lines)
}

/// Of a database.
///
/// # Errors
/// It can't be asked.
pub(super) fn of_database(psql: &Psql) -> Result<Portrait> {
    Ok(psql.ask(SQL)?.lines().map(ToOwned::to_owned).collect())
}

/// Waits until nobody is logged in any more.
///
/// # Errors
/// Somebody stays.
pub(super) fn deserted(psql: &Psql) -> Result<()> {
    let since = Instant::now();
    loop {
        let left = psql.ask(SESSIONS)?;
        if left == "0" {
            return Ok(());
        }
        ensure!(since.elapsed() < GONE_WITHIN, "{left} sessions {GONE_WITHIN:?} after the server's end");
        std::thread::park_timeout(LOOK);
    }
}

/// The number at the end of the line that begins so; 0 where there is none.
pub(super) fn count(portrait: &Portrait, line: &str) -> usize {
    let found = portrait.iter().find_map(|known| known.strip_prefix(line)?.strip_prefix(' ')?.parse().ok());
    found.unwrap_or(0)
}

/// What one has and the other has not, for people.
pub(super) fn differences(wanted: &Portrait, found: &Portrait) -> String {
    let missing = wanted.difference(found).map(|line| format!("no \"{line}\""));
    let more = found.difference(wanted).map(|line| format!("\"{line}\""));
    missing.chain(more).collect::<Vec<_>>().join(", ")
}
