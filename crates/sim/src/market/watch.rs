//! What is looked at after each commit: whether the ledger is sound, by entries alone, and which formal results
//! came to stand on record, each explained by the tables at that very moment.

use kernel::{Digest, Outcome, Time};
use parking_lot::Mutex;
use serde_json::Value as Json;
use store::{Error, Query, Row, Value, Write, values};

use super::errand::Errand;
use crate::domain::fingerprint;
use crate::world::World;

/// What may come of errands, and of asking for them again; anything else is a finding.
pub(crate) const OUTCOMES: [&str; 33] = [
    "mount done",
    "mount SUP_ACC_4094",
    "mount SUP_ACC_5031",
    "publish done",
    "publish SUP_PKG_4002",
    "publish SUP_PKG_4091",
    "batch succeeded",
    "batch partial",
    "batch failed",
    "batch taken over",
    "withdraw done",
    "withdraw SUP_SET_4001",
    "withdraw SUP_SET_4003",
    "withdraw SUP_SET_4091",
    "cancel done",
    "cancel SUP_SET_4092",
    "cancel SUP_SET_4094",
    "start done",
    "start SUP_SET_4094",
    "complete done",
    "complete SUP_SET_4094",
    "fail done",
    "fail SUP_SET_4094",
    "reject done",
    "reject SUP_SET_4094",
    "return done",
    "return SUP_SET_4094",
    "code sent",
    "earning released",
    "call billed",
    "replayed",
    "mismatch",
    "expired and done anew",
];

/// So rare that no number of seeds is promised one: the store's time is read before the rows are locked, so who
/// waited for a payout to begin may be older than it, and is asked to come again.
const RARE: &str = "withdraw SUP_SET_4291";

const RESULTS: &str = "select idempotency_key, claim_generation, request_id, payload_hash, response_code, response_body, expires_at, attempt_no
from supply_idempotency_record where response_code is not null order by id";

/// Section 11.5 of the domain's specification in few words, and what else holds at any time: what is wrong, and
/// how often.
const SOUND: [(&str, &str); 9] = [
    (
        "journals do not balance",
        "select count(*) from (select sum(case direction when 'dr' then amount else -amount end) as rest, count(*) as legs
         from billing_ledger_entries group by journal_id) where rest <> 0 or legs < 2",
    ),
    (
        "journals have no entries",
        "select count(*) from billing_journals j
         where not exists (select 1 from billing_ledger_entries e where e.journal_id = j.id)",
    ),
    (
        "balances are not what their entries add up to",
        "select count(*) from billing_accounts a where a.balance is not null
         and a.balance <> case a.account_code when 'supplier_receivable' then -1 else 1 end
           * (select coalesce(sum(case e.direction when 'cr' then e.amount else -e.amount end), 0)
              from billing_ledger_entries e where e.billing_account_id = a.id)",
    ),
    ("balances are below zero", "select count(*) from billing_accounts where balance < 0"),
    (
        "suppliers have two open settlements",
        "select count(*) from (select user_id from supply_settlements where status in ('pending', 'processing')
         group by user_id having count(*) > 1)",
    ),
    (
        "frozen balances are not the open settlements",
        "select count(*) from billing_accounts a where a.account_code = 'supplier_frozen'
         and a.balance <> (select coalesce(sum(t.total_amount), 0) from supply_settlements t
           where t.user_id = a.owner_id and t.status in ('pending', 'processing'))",
    ),
    (
        "available balances are not the released earnings",
        "select count(*) from billing_accounts a where a.account_code = 'supplier_available'
         and a.balance <> (select coalesce(sum(e.available_amount), 0) from supply_earnings e
           where e.user_id = a.owner_id and e.status <> 'pending')",
    ),
    (
        "earnings are not the sum of their parts",
        "select count(*) from supply_earnings where status <> 'pending'
         and amount <> available_amount + frozen_amount + withdrawn_amount + reversed_amount",
    ),
    (
        "used-up codes without a settlement, or settlements without one",
        "select abs((select count(*) from supply_sms_codes where consumed_at is not null)
         - (select count(*) from supply_settlements))",
    ),
];

/// A formal result, as it stood on record.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Name of the errand.
    pub(super) name: String,
    pub(super) generation: i64,
    pub(super) request_id: String,
    pub(super) fingerprint: Digest,
    pub(super) code: i64,
    pub(super) body: String,
    pub(super) expires_at: Time,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    entries: Mutex<Vec<Entry>>,
    counts: Mutex<Vec<u64>>,
}

/// What an answer carries.
pub(super) fn bytes(code: i64, body: &str) -> Vec<u8> {
    format!("{code} {body}").into_bytes()
}

/// The code of an error.
pub(super) fn code(body: &str) -> Option<String> {
    let body: Json = serde_json::from_str(body).ok()?;
    Some(body.get("error")?.get("code")?.as_str()?.to_owned())
}

impl Seen {
    /// After each commit.
    pub(super) fn committed(&self, world: &World, writes: &[Write]) {
        let any = |prefix| writes.iter().any(|write| write.name.starts_with(prefix));
        if any("books.") || any("settlement.") {
            sound(world);
        }
        if any("record.")
            && let Err(error) = self.look(world)
        {
            world.find(format!("the records can't be read: {error}"));
        }
    }

    fn look(&self, world: &World) -> Result<(), Error> {
        for row in world.read(&Query::new("watch.results", RESULTS, Vec::new()))? {
            let (entry, attempt) = (read(&row)?, row.int(7)?);
            let mut entries = self.entries.lock();
            let same = |other: &&Entry| (&other.name, other.generation) == (&entry.name, entry.generation);
            match entries.iter().find(same) {
                Some(known) if (&known.request_id, &known.body) == (&entry.request_id, &entry.body) => {}
                Some(known) => {
                    world.find(format!("{}: its result was {known:?} and became {entry:?}", entry.name));
                    entries.push(entry);
                }
                None => {
                    entries.push(entry.clone());
                    drop(entries);
                    self.appeared(world, &entry, attempt);
                }
            }
        }
        Ok(())
    }

    fn appeared(&self, world: &World, entry: &Entry, attempt: i64) {
        let word = entry.name.split('-').next().unwrap_or_default();
        let outcome = match code(&entry.body) {
            Some(code) => code,
            None if word == "batch" => ended(&entry.body).to_owned(),
            None => "done".to_owned(),
        };
        self.known(world, &entry.name, &format!("{word} {outcome}"));
        if word == "batch" && attempt > 1 {
            self.count("batch taken over");
        }
        if entry.generation > 1 {
            self.count("expired and done anew");
        }
        if let Some((sql, values)) = explains(&entry.name, &outcome, entry) {
            let rows = world.read(&Query::new("watch.explains", sql, values));
            if !rows.is_ok_and(|rows| rows.first().is_some_and(|row| row.int(0).is_ok_and(|n| n > 0))) {
                world.find(format!("{}: {outcome} is not what the tables say: {}", entry.name, entry.body));
            }
        }
    }

    /// An answer for this time.
    pub(super) fn passed(&self, world: &World, name: &str, body: &str) {
        let word = name.split('-').next().unwrap_or_default();
        self.known(world, name, &format!("{word} {}", code(body).unwrap_or_default()));
    }

    fn known(&self, world: &World, name: &str, outcome: &str) {
        if !self.count(outcome) && outcome != RARE {
            world.find(format!("{name}: {outcome} is not among what may come of it"));
        }
    }

    /// Counts an outcome; `false` where there is none of that name.
    pub(super) fn count(&self, outcome: &str) -> bool {
        self.add(outcome, 1)
    }

    /// As [`Seen::count`], several at once.
    pub(super) fn add(&self, outcome: &str, times: u64) -> bool {
        let mut counts = self.counts.lock();
        counts.resize(OUTCOMES.len(), 0);
        let place = OUTCOMES.iter().position(|known| *known == outcome);
        match place.and_then(|place| counts.get_mut(place)) {
            Some(count) => {
                *count += times;
                true
            }
            None => false,
        }
    }

    pub(super) fn counts(&self) -> Vec<u64> {
        self.counts.lock().clone()
    }

    /// Whether a result stood on record.
    pub(super) fn has(&self, name: &str, outcome: &Outcome) -> bool {
        let is = |entry: &Entry| {
            entry.name == name && entry.code == i64::from(outcome.code) && entry.body == outcome.body
        };
        self.entries.lock().iter().any(is)
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().clone()
    }
}

fn read(row: &Row) -> Result<Entry, Error> {
    let damaged = || Error::Corrupt { table: "supply_idempotency_record", column: "payload_hash".into() };
    Ok(Entry {
        name: Errand::name_of(row.text(0)?).unwrap_or_default().to_owned(),
        generation: row.int(1)?,
        request_id: row.text(2)?.to_owned(),
        fingerprint: Digest::from_hex(row.text(3)?).ok_or_else(damaged)?,
        code: row.int(4)?,
        body: row.text(5)?.to_owned(),
        expires_at: row.time(6)?,
    })
}

/// How a batch ended.
fn ended(body: &str) -> &'static str {
    let body: Json = serde_json::from_str(body).unwrap_or_default();
    let count = |name| body.get("data").and_then(|data| data.get(name)).and_then(Json::as_i64);
    match (count("success_count"), count("failed_count")) {
        (Some(0), Some(_)) => "failed",
        (Some(_), Some(0)) => "succeeded",
        _ => "partial",
    }
}

fn sound(world: &World) {
    for (what, sql) in SOUND {
        let rows = world.read(&Query::new("watch.sound", sql, Vec::new()));
        match rows.as_ref().map(|rows| rows.first().map(|row| row.int(0))) {
            Ok(Some(Ok(0))) => {}
            found => world.find(format!("after a commit {what}: {found:?}")),
        }
    }
}

/// What must be found where an errand ended so: rows that were locked until the commit, or that only move one way.
fn explains(name: &str, outcome: &str, entry: &Entry) -> Option<(&'static str, Vec<Value>)> {
    let mut parts = name.split('-');
    let word = parts.next()?;
    let id: i64 = parts.next()?.parse().ok()?;
    let withdrawn = if entry.fingerprint == fingerprint(name, 1) { 4_000_000_000 } else { 17_000_000_000 };
    Some(match (word, outcome) {
        ("withdraw", "SUP_SET_4091") => {
            ("select count(*) from supply_settlements where status in ('pending', 'processing')", Vec::new())
        }
        ("withdraw", "SUP_SET_4001") => (
            "select count(*) from billing_accounts where account_code = 'supplier_available' and balance < $1",
            vec![Value::Money(withdrawn)],
        ),
        ("cancel", "SUP_SET_4092") => (
            "select count(*) from supply_settlements where id = $1 and status in ('processing', 'completed')",
            values![id],
        ),
        ("cancel", "SUP_SET_4094") => {
            ("select count(*) from supply_settlements where id = $1 and status = 'failed'", values![id])
        }
        ("start" | "reject", "SUP_SET_4094") => {
            ("select count(*) from supply_settlements where id = $1 and status <> 'pending'", values![id])
        }
        ("complete" | "fail", "SUP_SET_4094") => {
            ("select count(*) from supply_settlements where id = $1 and status <> 'processing'", values![id])
        }
        ("return", "SUP_SET_4094") => (
            "select count(*) from supply_settlements where id = $1 and (status <> 'completed' or returned_at is not null)",
            values![id],
        ),
        ("publish", "done") => {
            ("select count(*) from supply_packages where id = $1 and status = 'active'", values![id])
        }
        // Whoever changed a price in between was faster, too.
        ("publish", "SUP_PKG_4091") => (
            "select count(*) from supply_packages where id = $1 and (status = 'active' or exists (
               select 1 from audit_events where request_id = $2 and metadata like '%\"lost_race\":true%'))",
            values![id, &entry.request_id],
        ),
        ("publish", "SUP_PKG_4002") => (
            "select count(*) from supply_packages p join supply_accounts a on a.id = p.supply_account_id
             where p.id = $1 and a.available_quota < p.total_quota",
            values![id],
        ),
        ("mount", "SUP_ACC_4094") => (
            "select count(*) from supply_accounts where request_id <> 'stock' and status = 'pending'",
            Vec::new(),
        ),
        _ => return None,
    })
}
