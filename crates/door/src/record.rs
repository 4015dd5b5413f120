//! The record table's SQL, rendered once: the claim columns are the same in every table, key and facts
//! are the domain's.

use kernel::{Binding, Claim, Fingerprint, Lease, Outcome, Record, Standing, Time};
use store::{Query, Row, Value, Write, planted};

use crate::command::Key;

/// A table that keeps the records of one kind of scope.
#[derive(Debug)]
pub struct RecordTable {
    name: &'static str,
    steps: &'static str,
    facts: usize,
    hash: Hash,
    binding: Binding,
    counts: bool,
    find: String,
    insert: String,
    replace: String,
    settle: String,
    returning: String,
    extend: String,
    fence: String,
    fence_kept: String,
    step_find: String,
    step_insert: String,
    steps_clear: String,
}

/// Status word of a durable claim.
pub const RUNNING: &str = "processing";
/// Status word of a failed attempt.
pub const FAILED: &str = "failed";
const ORPHANED: &str = "orphaned";
/// Name of the write that takes an old row for a new attempt.
pub(crate) const REPLACED: &str = "record.replace";

const CLAIM_COLUMNS: [&str; 8] = [
    "status",
    "claim_token",
    "attempt_no",
    "locked_until",
    "response_code",
    "response_body",
    "expires_at",
    "updated_at",
];

/// What differs between record tables besides their keys and facts.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The table.
    pub name: &'static str,
    /// Columns of its unique key.
    pub key: &'static [&'static str],
    /// Further columns that are the domain's.
    pub facts: &'static [&'static str],
    /// Table of the foreign steps, by record id in the column `event`.
    pub steps: &'static str,
    /// Where the fingerprint stands, and how.
    pub hash: Hash,
    /// Whether a failed attempt holds its key for its payload.
    pub binding: Binding,
    /// Column that counts how often the key was used anew after its end, if there is one.
    pub generation: Option<&'static str>,
    /// Fact column that names the request which the result came of, if repeats are to be told.
    pub origin: Option<&'static str>,
}

/// How a fingerprint is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// 32 bytes in `fingerprint`.
    Bytes,
    /// 64 lower-case hex digits in `payload_hash` (supply specification, section 2.4).
    Hex,
}

impl Hash {
    const fn column(self) -> &'static str {
        match self {
            Self::Bytes => "fingerprint",
            Self::Hex => "payload_hash",
        }
    }

    fn value(self, fingerprint: Fingerprint) -> Value {
        match self {
            Self::Bytes => fingerprint.into(),
            Self::Hex => fingerprint.to_hex().into(),
        }
    }
}

impl RecordTable {
    /// A table `name` whose unique key is `key` and whose further columns are `facts`; `steps` keeps the
    /// foreign steps, by record id in the column `event`.
    #[must_use]
    pub fn new(
        name: &'static str,
        key: &'static [&'static str],
        facts: &'static [&'static str],
        steps: &'static str,
    ) -> Self {
        let (hash, binding) = (Hash::Bytes, Binding::Free);
        Self::of(&Layout { name, key, facts, steps, hash, binding, generation: None, origin: None })
    }

    /// A table with this layout.
    #[must_use]
    pub fn of(layout: &Layout) -> Self {
        let Layout { name, key, facts, steps, hash, binding, generation, origin } = *layout;
        let changed: Vec<&str> = [facts, &[hash.column()], &CLAIM_COLUMNS].concat();
        let columns = [key, changed.as_slice(), &["created_at"]].concat();
        let places = numbered(1, columns.len(), |_, n| format!("${n}"));
        let by_key =
            numbered(1, key.len(), |i, n| format!("{} = ${n}", key.get(i).unwrap_or(&""))).join(" and ");
        let sets = numbered(1, changed.len(), |i, n| format!("{} = ${n}", changed.get(i).unwrap_or(&"")));
        let (a, b, c) = (sets.len() + 1, sets.len() + 2, sets.len() + 3);
        let sets = sets.join(", ");
        let anew = generation.map_or_else(String::new, |it| format!(", {it} = {it} + ${a}"));
        let (d, e, f) = if generation.is_some() { (b, c, c + 1) } else { (a, b, c) };
        let (fingerprint, count, origin) =
            (hash.column(), generation.unwrap_or("1"), origin.unwrap_or("null"));
        Self {
            name,
            steps,
            facts: facts.len(),
            hash,
            binding,
            counts: generation.is_some(),
            find: format!(
                "select id, {fingerprint}, status, claim_token, attempt_no, locked_until, response_code, response_body, expires_at, {count}, {origin}
                 from {name} where {by_key}"
            ),
            insert: format!("insert into {name} ({}) values ({})", columns.join(", "), places.join(", ")),
            replace: format!(
                "update {name} set {sets}{anew} where id = ${d} and attempt_no = ${e} and (response_code is null or expires_at <= ${f})"
            ),
            settle: if planted::is("no-fence-check") {
                format!("update {name} set {sets} where id = ${a} and (attempt_no = ${b} or true) and (claim_token = ${c} or true)")
            } else {
                format!("update {name} set {sets} where id = ${a} and attempt_no = ${b} and claim_token = ${c}")
            },
            returning: format!(" returning id, {count}"),
            extend: format!(
                "update {name} set locked_until = $1, updated_at = $2 where id = $3 and attempt_no = $4 and claim_token = $5 and status = '{RUNNING}'"
            ),
            fence: format!("select id from {name} where id = $1 and attempt_no = $2 and claim_token = $3"),
            fence_kept: format!(
                "select id from {name} where id = $1 and attempt_no = $2 and claim_token = $3 {{for_update}}"
            ),
            step_find: format!("select result from {steps} where event = $1 and name = $2"),
            step_insert: format!(
                "insert into {steps} (event, name, attempt_no, result, recorded_at)
                 select id, $1, attempt_no, $2, $3 from {name} where id = $4 and attempt_no = $5 and claim_token = $6"
            ),
            steps_clear: format!("delete from {steps} where event = $1"),
        }
    }

    /// The table's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Look-up by key.
    #[must_use]
    pub fn find(&'static self, key: &Key) -> Query {
        Query::new(self.name, self.find.as_str(), key.values.clone())
    }

    /// Writes the row where `place` says. A place that another attempt has meanwhile taken hits no row,
    /// which raises.
    pub(crate) fn write(&'static self, key: &Key, place: &Place, row: ClaimRow, at: Time) -> Write {
        debug_assert_eq!(row.facts.len(), self.facts, "{}: facts", self.name);
        let changed = row.values(key, at);
        match place {
            Place::Insert => {
                let values = [key.values.clone(), changed, vec![at.into()]].concat();
                if planted::is("look-before-lock") {
                    // As somebody writes it who trusts such a look.
                    let sql = format!("{} on conflict do nothing", self.insert);
                    return Write::any("record.insert", sql, values);
                }
                Write::one("record.insert", self.insert.as_str(), values)
            }
            Place::Replace { id, found, anew, .. } => {
                let mut values = changed;
                values.extend(self.counts.then(|| i64::from(*anew == Anew::Yes).into()));
                values.extend([(*id).into(), (*found).into(), at.into()]);
                Write::one(REPLACED, self.replace.as_str(), values)
            }
            Place::Settle(Held { id, claim, .. }) => {
                let values = [changed, vec![(*id).into(), claim.attempt.into(), claim.token.into()]].concat();
                Write::one("record.settle", self.settle.as_str(), values)
            }
        }
    }

    /// Writes a durable claim where `place` says; the row's id and generation are only known then, and are
    /// returned.
    pub(crate) fn claim(&'static self, key: &Key, place: &Place, row: ClaimRow, at: Time) -> Write {
        let mut write = self.write(key, place, row, at);
        write.sql = format!("{}{}", write.sql, self.returning).into();
        write
    }

    /// Whether a failed attempt holds its key for its payload.
    pub(crate) const fn binding(&self) -> Binding {
        self.binding
    }

    /// Moves the end of the lease, while `held` is the claim.
    pub(crate) fn extend(&'static self, held: Held, until: Time, at: Time) -> Write {
        let Held { id, claim, .. } = held;
        let values = vec![until.into(), at.into(), id.into(), claim.attempt.into(), claim.token.into()];
        Write::one("record.extend", self.extend.as_str(), values)
    }

    /// What must go before another piece of work begins under an old row: its predecessor's steps.
    pub(crate) fn clear(&'static self, place: &Place) -> Option<Write> {
        match place {
            Place::Replace { id, anew: Anew::Yes, .. } => {
                Some(Write::any("steps.clear", self.steps_clear.as_str(), vec![(*id).into()]))
            }
            _ => None,
        }
    }

    /// Finds the row while `held` is its claim.
    pub(crate) fn fence(&'static self, held: Held) -> Query {
        let Held { id, claim, .. } = held;
        Query::new(self.name, self.fence.as_str(), vec![id.into(), claim.attempt.into(), claim.token.into()])
    }

    /// The same, and the row stays as it is until the commit: whoever still writes under the claim is waited for.
    pub(crate) fn fence_kept(&'static self, held: Held) -> Query {
        Query { sql: self.fence_kept.as_str().into(), ..self.fence(held) }
    }

    pub(crate) fn step_find(&'static self, id: i64, name: &'static str) -> Query {
        Query::new(self.steps, self.step_find.as_str(), vec![id.into(), name.into()])
    }

    pub(crate) fn step_insert(
        &'static self,
        held: Held,
        name: &'static str,
        result: &[u8],
        at: Time,
    ) -> Write {
        let Held { id, claim, .. } = held;
        let values =
            vec![name.into(), result.into(), at.into(), id.into(), claim.attempt.into(), claim.token.into()];
        Write::one("step.insert", self.step_insert.as_str(), values)
    }

    /// Reads what [`RecordTable::find`] found.
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(&self, row: &Row) -> Result<Record, store::Error> {
        let attempt = row.int(4)?;
        let standing = match (row.text(2)?, row.int_or_null(6)?) {
            (RUNNING, None) => Standing::Running(Lease { claim: claim(row, attempt)?, until: row.time(5)? }),
            (ORPHANED, _) => Standing::Orphaned,
            (_, Some(code)) => {
                let damaged = |_| store::Error::Corrupt { table: "record", column: "response_code".into() };
                let code = u16::try_from(code).map_err(damaged)?;
                let outcome = Outcome { code, body: row.text(7)?.to_owned() };
                Standing::Finished { outcome, expires_at: row.time_or_null(8)? }
            }
            (_, None) => Standing::Failed { expires_at: row.time_or_null(8)? },
        };
        let fingerprint = match self.hash {
            Hash::Bytes => row.digest(1)?,
            Hash::Hex => Fingerprint::from_hex(row.text(1)?)
                .ok_or(store::Error::Corrupt { table: self.name, column: self.hash.column().into() })?,
        };
        Ok(Record { id: row.int(0)?, fingerprint, attempt, generation: row.int(9)?, standing })
    }
}

/// The request that the result in a found row came of, where the table tells it.
pub(crate) fn origin(row: &Row) -> Result<Option<String>, store::Error> {
    Ok(row.text_or_null(10)?.map(ToOwned::to_owned))
}

fn claim(row: &Row, attempt: i64) -> Result<Claim, store::Error> {
    let damaged = |_| store::Error::Corrupt { table: "record", column: "claim_token".into() };
    Ok(Claim { token: row.bytes(3)?.try_into().map_err(damaged)?, attempt })
}

/// A durable claim and its row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) id: i64,
    pub(crate) generation: i64,
    pub(crate) claim: Claim,
}

/// Where a record's row goes.
pub(crate) enum Place {
    /// No row stands under the key.
    Insert,
    /// An open or expired row of another attempt, which must still have the attempt number `found`.
    Replace { id: i64, found: i64, attempts: i64, anew: Anew },
    /// The row of our own durable claim.
    Settle(Held),
}

/// Whether a row is taken for another piece of work (its key expired, or another payload failed under
/// it), or to go on with the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anew {
    Yes,
    No,
}

impl Place {
    pub(crate) const fn attempt(&self) -> i64 {
        match self {
            Self::Insert => 1,
            Self::Replace { attempts, .. } => *attempts + 1,
            Self::Settle(held) => held.claim.attempt,
        }
    }
}

/// The changing columns of a record.
pub(crate) struct ClaimRow {
    pub(crate) facts: Vec<Value>,
    pub(crate) status: &'static str,
    pub(crate) lease: Option<Lease>,
    pub(crate) attempt: i64,
    pub(crate) outcome: Option<Outcome>,
}

impl ClaimRow {
    fn values(self, key: &Key, at: Time) -> Vec<Value> {
        let (code, body) = self.outcome.map(|outcome| (outcome.code, outcome.body)).unzip();
        let mut values = self.facts;
        values.extend([
            key.table.hash.value(key.fingerprint),
            self.status.into(),
            self.lease.map(|lease| lease.claim.token.to_vec()).into(),
            self.attempt.into(),
            self.lease.map(|lease| lease.until).into(),
            code.into(),
            body.into(),
            key.life.map(|life| at.plus(life)).into(),
            at.into(),
        ]);
        values
    }
}

fn numbered(first: usize, count: usize, text: impl Fn(usize, usize) -> String) -> Vec<String> {
    (0..count).map(|i| text(i, first + i)).collect()
}
