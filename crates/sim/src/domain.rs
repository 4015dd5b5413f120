//! Commands for the door: small, but with everything that the door has branches for. `Put` leaves one row
//! in `sim_effects` for each formal result, which no index keeps from being left twice.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use door::{AuditRow, Command, Decision, Failure, Form, Key, OutboxRow, RecordTable, Repeat, Ruling, Steps};
use kernel::{Digest, Fingerprint, Outcome, Time};
use serde_json::{Value as Json, json};
use store::migration::{Chain, File};
use store::{Error, Query, Raise, Row, Value, Write, values};

use crate::foreign::Foreign;
use crate::process::Process;
use crate::world::World;

pub(crate) const CHAIN: Chain = Chain {
    name: "sim domain",
    files: &[File::new(
        "sim_domain",
        "create table sim_records (
           id {pk}, key text not null unique, payload {int},
           status text not null check (status in ('received', 'processing', 'processed', 'failed', 'orphaned')),
           fingerprint {bytes} not null, claim_token {bytes}, attempt_no {int} not null default 1,
           locked_until {time}, response_code {int}, response_body {json}, expires_at {time},
           created_at {time} not null, updated_at {time} not null) {strict};
         create table sim_steps (
           event {int} not null references sim_records (id), name text not null, attempt_no {int} not null,
           result {bytes} not null, recorded_at {time} not null, primary key (event, name)) {strict_by_key};
         create table sim_effects (
           id {pk}, key text not null, payload {int} not null, serial {int} not null, code {int} not null,
           body text not null, made_at {time} not null, expires_at {time}) {strict};
         create table sim_names (name text primary key, key text not null) {strict};
         create table sim_accounts (id {pk}, balance {int} not null, version {int} not null) {strict};
         insert into sim_accounts values (1, 0, 1), (2, 0, 1);
         create table sim_arrivals (id {pk}, key text not null, same {flag} not null) {strict};
         create table sim_failures (id {pk}, key text not null, cause text not null) {strict};",
    )],
};

pub(crate) static RECORDS: LazyLock<RecordTable> =
    LazyLock::new(|| RecordTable::new("sim_records", &["key"], &["payload"], "sim_steps"));

/// Where announcements go: to a channel that shows repeats, and to one that removes them.
pub(crate) const SHOWN: &str = "shown";
pub(crate) const REMOVED: &str = "removed";

/// How long a lease is.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// How long a key lives that does not live for ever.
pub(crate) const LIVES: Duration = Duration::from_secs(24 * 3600);

/// The rule that a command runs into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// None.
    None,
    /// A name may be taken once.
    Name(u64),
    /// An account changes version by version.
    Account(i64),
}

/// What all submissions under a key have in common.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) leased: bool,
    pub(crate) prepares: bool,
    pub(crate) expires: bool,
    pub(crate) rule: Rule,
}

/// The command.
#[derive(Clone)]
pub(crate) struct Put {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
    pub(crate) foreign: Arc<Foreign>,
    pub(crate) kind: Kind,
    pub(crate) key: String,
    pub(crate) payload: i64,
}

/// What stands ready before the transaction.
#[derive(Debug)]
pub(crate) struct Ready {
    /// What the foreign side gave for its two steps.
    receipts: Option<(String, String)>,
    /// The key is to be left open.
    open: bool,
}

pub(crate) fn fingerprint(key: &str, payload: i64) -> Fingerprint {
    Digest::of_fields(&[key.as_bytes(), &payload.to_be_bytes()])
}

/// The record's key.
pub(crate) fn key_of(key: &str, payload: i64) -> Key {
    Key::lasting(&RECORDS, values![key], fingerprint(key, payload))
}

impl Command for Put {
    type Prepared = Ready;

    fn form(&self) -> Form {
        if self.kind.leased { Form::Leased(LEASE) } else { Form::Atomic }
    }

    fn prepares(&self) -> bool {
        self.kind.leased || self.kind.prepares
    }

    async fn prepare(&self, steps: &Steps) -> Result<Ready, Failure> {
        let mut receipts = None;
        if self.kind.leased {
            let (foreign, attempt) = (&self.foreign, steps.attempt());
            let charge = steps.once("charge", foreign.charge(self, attempt)).await?;
            let confirm = steps.once("confirm", foreign.confirm(self, attempt, &charge)).await?;
            receipts = Some((text(&charge), text(&confirm)));
        } else if self.kind.prepares {
            self.foreign.build(&self.process).await?;
        }
        Ok(Ready { receipts, open: self.foreign.leaves_open() })
    }

    fn facts(&self) -> Vec<Value> {
        values![self.payload]
    }

    fn load(&self, _ready: &Ready) -> Vec<Query> {
        match self.kind.rule {
            Rule::None => Vec::new(),
            Rule::Name(name) => {
                let sql = "select key from sim_names where name = $1";
                vec![Query::new("names.find", sql, values![format!("n{name}")])]
            }
            Rule::Account(id) => {
                let sql = "select balance, version from sim_accounts where id = $1";
                vec![Query::new("accounts.find", sql, values![id])]
            }
        }
    }

    fn decide(&self, ready: &Ready, loaded: &[Vec<Row>], at: Time) -> Result<Decision, Error> {
        if ready.open {
            return Ok(self.open());
        }
        let row = loaded.first().and_then(|rows| rows.first());
        let write = match (self.kind.rule, row) {
            (Rule::Name(_), Some(_)) => return Ok(self.refused(ready, at)),
            (Rule::Name(name), None) => {
                let sql = "insert into sim_names (name, key) values ($1, $2)";
                Some(Write::one("names.take", sql, values![format!("n{name}"), &self.key]))
            }
            (Rule::Account(id), Some(row)) => {
                let sql = "update sim_accounts set balance = $1, version = version + 1 where id = $2 and version = $3";
                let balance = row.int(0)? + self.payload;
                Some(Write::one("accounts.set", sql, values![balance, id, row.int(1)?]))
            }
            _ => None,
        };
        let mut decision = self.decision(200, ready, at);
        decision.writes.extend(write);
        Ok(decision)
    }

    fn raised(&self, ready: &Ready, raise: &Raise, _: &[Vec<Row>], at: Time) -> Result<Decision, Error> {
        match raise.write {
            "names.take" | "accounts.set" => Ok(self.refused(ready, at)),
            _ => Err(Error::Raised(raise.clone())),
        }
    }

    fn repeat(&self, repeat: &Repeat, _: Time) -> Vec<Write> {
        let sql = "insert into sim_arrivals (key, same) values ($1, $2)";
        vec![Write::one("arrivals.insert", sql, values![&self.key, repeat.same])]
    }

    fn failed(&self, failure: &Failure, _: Time) -> Vec<Write> {
        let sql = "insert into sim_failures (key, cause) values ($1, $2)";
        vec![Write::one("failures.insert", sql, values![&self.key, failure.to_string()])]
    }
}

impl Put {
    /// The key that it comes under.
    pub(crate) fn under(&self) -> Key {
        Key { life: self.kind.expires.then_some(LIVES), ..key_of(&self.key, self.payload) }
    }

    fn decision(&self, code: u16, ready: &Ready, at: Time) -> Decision {
        let serial = self.world.serial();
        let expires_at = self.kind.expires.then(|| at.plus(LIVES));
        let body =
            json!({ "serial": serial, "payload": self.payload, "receipts": ready.receipts }).to_string();
        let effect = "insert into sim_effects (key, payload, serial, code, body, made_at, expires_at)
            values ($1, $2, $3, $4, $5, $6, $7)";
        let row = values![&self.key, self.payload, serial, code, &body, at, expires_at];
        let mut audit = AuditRow::system("sim.put.done", "sim_key", self.key.clone(), serial.to_string());
        audit.result_code = if code == 200 { "OK".into() } else { "REFUSED".into() };
        Decision {
            status: "processed",
            facts: self.facts(),
            ruling: Ruling::Formal(Outcome { code, body }),
            writes: vec![Write::one("effects.insert", effect, row)],
            audit: vec![audit],
            outbox: vec![self.told(serial, at)],
        }
    }

    fn told(&self, serial: i64, at: Time) -> OutboxRow {
        OutboxRow {
            event_name: "sim.key.put.done",
            object_type: "sim_key",
            object_id: self.key.clone(),
            aggregate_version: serial,
            tenant_id: 1,
            operator_id: 1,
            request_id: serial.to_string(),
            payload: json!({ "serial": serial }),
            occurred_at: at,
            destinations: vec![SHOWN.into(), REMOVED.into()],
        }
    }

    /// A refusal is a result, too; nobody else is told of it.
    fn refused(&self, ready: &Ready, at: Time) -> Decision {
        let decision = self.decision(409, ready, at);
        Decision { outbox: Vec::new(), ..decision }
    }

    /// The key stays open: nothing came of it yet.
    fn open(&self) -> Decision {
        Decision {
            status: "received",
            facts: self.facts(),
            ruling: Ruling::Open,
            writes: Vec::new(),
            audit: Vec::new(),
            outbox: Vec::new(),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Receipts in an outcome's body.
pub(crate) fn receipts(body: &str) -> Option<(String, String)> {
    let body: Json = serde_json::from_str(body).ok()?;
    let receipt = |index| body.get("receipts")?.get(index)?.as_str().map(ToOwned::to_owned);
    Some((receipt(0)?, receipt(1)?))
}
