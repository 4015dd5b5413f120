//! Versions of the key that wraps data keys (section 13.2): the registry of them in the database, and the rows that
//! move from an earlier one to the current one. The secret is not seen by it, and its ciphertext stays.
//!
//! A version is registered when a server first wraps under it. Rows are rewrapped one by one, by compare-and-set on
//! their version, so that any number of nodes may do it, at any time, and a node that dies leaves nothing behind. Not
//! here: how a version is made (`onceseal supply keys rotate`, or the key service itself), who rewraps when (the
//! binary's scheduler).

mod row;

use std::collections::BTreeMap;
use std::sync::Arc;

use custody::envelope::CIPHER_ALGO;
use door::{Answer, Door, Failure, Submission};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Store, Write, values};

use crate::Commanded;
use crate::action::Context;
use crate::caller::{Caller, Object, PLATFORM};
use crate::exact::Stamp;
use crate::house::House;
use crate::rows::Reader;

pub use row::Rewrap;
use row::TABLES;

const REGISTRY: &str = "select key_version, status, rotated_at from security_kms_key_registry
where key_alias = $1 order by key_version";
const RETIRE: &str = "update security_kms_key_registry set status = 'retired', updated_at = $1
where key_alias = $2 and status in ('active', 'rotating') and key_version < $3";
const REGISTER: &str = "insert into security_kms_key_registry
  (key_alias, cipher_algo, key_version, status, rotated_at, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7)";

/// A version of the key.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Version {
    /// From 1.
    pub version: i64,
    /// `active`, `rotating`, `retired`.
    pub status: String,
    /// Since when it wraps.
    pub rotated_at: Option<Stamp>,
    /// Rows that it wraps the data key of.
    pub rows: i64,
    /// Whether nothing needs it any more.
    pub removable: bool,
}

/// The versions of a key as the registry has them, with the rows that need each. A version that rows name and the
/// registry does not is among them, as `unknown`.
///
/// # Errors
/// The store's.
pub async fn versions(store: &Store, alias: &str) -> Result<Vec<Version>, Error> {
    let mut queries = vec![Query::new("kek.registry", REGISTRY, values![alias])];
    queries.extend(TABLES.iter().map(|table| table.uses(alias)));
    let answers = store.queries(queries).await?;
    let mut rows: BTreeMap<i64, i64> = BTreeMap::new();
    for row in answers.iter().skip(1).flatten() {
        *rows.entry(row.int(0)?).or_default() += row.int(1)?;
    }
    let mut found = Vec::new();
    for row in answers.first().into_iter().flatten() {
        let mut reader = Reader::new(row);
        let (version, status) = (reader.int()?, reader.text()?.to_owned());
        let (rotated_at, rows) = (row.time_or_null(2)?.map(Stamp), rows.remove(&version).unwrap_or_default());
        let removable = status == "retired" && rows == 0;
        found.push(Version { version, status, rotated_at, rows, removable });
    }
    let unknown = |(version, rows)| {
        let (status, rotated_at, removable) = ("unknown".to_owned(), None, false);
        Version { version, status, rotated_at, rows, removable }
    };
    found.extend(rows.into_iter().map(unknown));
    Ok(found)
}

/// Registers `current` as the version that wraps, and those of `held` that the registry does not have as earlier
/// ones; all in one transaction. Nothing happens where a later version wraps already.
///
/// # Errors
/// The store's.
pub async fn register(door: &Door, alias: &str, held: &[i64], current: i64) -> Result<(), Failure> {
    let (random, owned, held) = (door.random(), alias.to_owned(), held.to_vec());
    let reads = vec![Query::new("kek.registry", REGISTRY, values![alias])];
    let plan = move |rows: Vec<Vec<Row>>, now: Time| {
        let alias = owned.as_str();
        let mut known = Vec::new();
        for row in rows.iter().flatten() {
            known.push((row.int(0)?, row.text(1)? == "active"));
        }
        if known.iter().any(|(version, active)| *active && *version >= current) {
            return Ok((Vec::new(), ()));
        }
        let row = |version: i64, status: &str| {
            let row = values![alias, CIPHER_ALGO, version, status, now, now, now];
            Write::one("kek.register", REGISTER, row)
        };
        let mut writes = vec![Write::any("kek.retire", RETIRE, values![now, alias, current])];
        let is_new = |version: &&i64| **version < current && known.iter().all(|(one, _)| one != *version);
        writes.extend(held.iter().filter(is_new).map(|version| row(*version, "retired")));
        writes.push(row(current, "active"));
        let caller = Caller::system(PLATFORM, &format!("kek:{alias}:{current}"));
        let mut audit = caller.audit("CRED-ROTATE", &Object { kind: "kms_key", id: alias.to_owned() });
        let before = known.iter().find(|(_, active)| *active).map(|(version, _)| *version);
        audit.before_state = json!({ "version": before });
        audit.after_state = json!({ "status": "active", "version": current });
        writes.push(audit.write(now, &*random));
        Ok((writes, ()))
    };
    match door.maintain("kek.register", reads, plan).await {
        // Another node was faster with the same, or all is fenced and only read.
        Err(Failure::Store(Error::Raised(_) | Error::Fenced)) | Ok(_) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// How far a walk over all rows has come: the last id of each table. Its text is the ids with dots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk([i64; TABLES.len()]);

impl Walk {
    /// Of its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let ids: Option<Vec<i64>> = text.split('.').map(|id| id.parse().ok().filter(|id| *id >= 0)).collect();
        ids?.try_into().ok().map(Self)
    }
}

impl std::fmt::Display for Walk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.map(|id| id.to_string()).join("."))
    }
}

/// What a round came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Rows that the current version wraps now.
    pub rewrapped: usize,
    /// Rows that it does not: changed meanwhile, or their data key can't be unwrapped. The log says which.
    pub left: usize,
    /// Where the next round goes on; `None` at the end of all tables.
    pub next: Option<Walk>,
}

/// Tries at most `limit` rows of each table, from where the walk has come: what can't be rewrapped is passed, so that
/// it neither holds back those behind it nor is tried again before the walk's end. Where this node wraps under an
/// earlier version than the registry has, it leaves all to the others: it would only turn their work back.
///
/// # Errors
/// The store's, or the key service is out of reach.
pub async fn round(door: &Door, house: &Arc<House>, mut walk: Walk, limit: i64) -> Result<Round, Failure> {
    let kms = house.keys.custody.kms();
    let untold =
        |cause: custody::KmsError| Failure::Step { step: row::OUT_OF_REACH, cause: cause.to_string() };
    let current = i64::from(kms.current().await.map_err(untold)?);
    let registry = door.store().query(Query::new("kek.registry", REGISTRY, values![kms.alias()])).await?;
    let mut newest = 0;
    for row in &registry {
        newest = newest.max(row.int(0)?);
    }
    if newest > current {
        return Ok(Round::default());
    }
    if newest < current {
        // The key service has turned the key by itself.
        register(door, kms.alias(), &[], current).await?;
    }
    let mut round = Round::default();
    let mut full = false;
    for (table, after) in TABLES.iter().zip(&mut walk.0) {
        let rows = door.store().query(table.due(kms.alias(), current, (*after, limit))).await?;
        full |= i64::try_from(rows.len()).is_ok_and(|found| found >= limit);
        for row in &rows {
            let action = Rewrap::read(table, row)?;
            *after = action.id();
            if is_rewrapped(door, house, action).await? {
                round.rewrapped += 1;
            } else {
                round.left += 1;
            }
        }
    }
    Ok(Round { next: full.then_some(walk), ..round })
}

/// Whether it went; what is wrong with the row alone is not told as an error.
async fn is_rewrapped(door: &Door, house: &Arc<House>, action: Rewrap) -> Result<bool, Failure> {
    let context = Context { caller: action.caller(), house: Arc::clone(house) };
    let name = context.caller.request_id.clone();
    let command = Commanded { context, action };
    let submission = Submission { key: None, command, wait: std::time::Duration::ZERO };
    match door.submit(submission).await {
        Ok(Answer::Done(done)) => Ok(done.outcome.code < 300),
        Ok(_) => Ok(false),
        // Every further row would wait for it as long.
        Err(failure @ Failure::Step { step: row::OUT_OF_REACH, .. }) => Err(failure),
        Err(cause) => {
            tracing::warn!(fact = name, %cause, "not_rewrapped");
            Ok(false)
        }
    }
}
