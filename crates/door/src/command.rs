//! What a domain writes to have a command: which rows to look at, and what to decide from them.
//! Transactions, repeats, retries, audit and outbox are the door's; a command can't forget them.

use std::time::Duration;

use kernel::{Digest, Fingerprint, Outcome, Time};
use store::{Query, Raise, Row, Value, Write};

use crate::decision::{AuditRow, Decision};
use crate::entry::Failure;
use crate::record::RecordTable;
use crate::steps::Steps;

/// A command on its way to the door.
#[derive(Debug)]
pub struct Submission<C> {
    /// Under which key; without one there is no record and no repeat, all else is the same.
    pub key: Option<Key>,
    /// What to do.
    pub command: C,
    /// How long to wait for a twin that is running, before answering "in progress".
    pub wait: Duration,
}

/// A key with its scope, the table that keeps its record, and what makes two submissions the same.
#[derive(Clone, Debug)]
pub struct Key {
    /// Where the record is kept.
    pub table: &'static RecordTable,
    /// One value for each key column of the table.
    pub values: Vec<Value>,
    /// Of the fields that count; it is kept.
    pub fingerprint: Fingerprint,
    /// Of the same fields, as a record of before a rotation of the fingerprint's secret has it.
    pub former: Vec<Fingerprint>,
    /// What the locks tell payloads apart by. Without a secret, so that a rotation does not matter to them.
    pub payload: Digest,
    /// How long the result is kept for repeats, counted from its commit; `None` for ever.
    pub life: Option<Duration>,
}

impl Key {
    /// A key that lives for ever, whose fingerprint depends on no secret.
    #[must_use]
    pub const fn lasting(table: &'static RecordTable, values: Vec<Value>, fingerprint: Fingerprint) -> Self {
        Self { table, values, fingerprint, former: Vec::new(), payload: fingerprint, life: None }
    }

    /// What the locks are taken on. Unkeyed, so that every node computes the same.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut fields: Vec<Vec<u8>> = vec![self.table.name().as_bytes().to_vec()];
        fields.extend(self.values.iter().map(|value| match value {
            Value::Null => vec![0],
            Value::Int(int) => [&[1][..], &int.to_be_bytes()].concat(),
            Value::Money(count) => [&[5][..], &count.to_be_bytes()].concat(),
            Value::Time(time) => [&[4][..], &time.micros().to_be_bytes()].concat(),
            Value::Text(text) => [&[2][..], text.as_bytes()].concat(),
            Value::Bytes(bytes) => [&[3][..], bytes].concat(),
        }));
        Digest::of_fields(&fields.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
}

/// How a command's work is laid out in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Every effect is a local row: one transaction, a crash leaves nothing behind.
    Atomic,
    /// There is a foreign step: the claim is committed first, with a lease of this length.
    Leased(Duration),
}

/// A repeat of a finished key, told to the command so that it can record the arrival.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Row id of the record.
    pub record: i64,
    /// What the repeat gets.
    pub outcome: Outcome,
    /// Whether the repeat's fingerprint is the record's.
    pub same: bool,
}

/// A command: pure but for [`Command::prepare`].
pub trait Command: Send + Sync + Sized + 'static {
    /// What `prepare` makes: built files, an encrypted credential, a foreign answer.
    type Prepared: Send + Sync + 'static;

    /// Atomic unless there is a foreign step.
    fn form(&self) -> Form {
        Form::Atomic
    }

    /// Whether `prepare` does anything worth skipping for a repeat. If not, the door spares the plain
    /// look before it.
    fn prepares(&self) -> bool {
        true
    }

    /// Before the transaction, and only when no finished record stands. Its result may be thrown away,
    /// so it must be repeatable; foreign calls of leased work go through [`Steps::once`].
    ///
    /// # Errors
    /// A failure of ours or of a foreign side: recorded as `failed`, retryable.
    fn prepare(&self, steps: &Steps) -> impl Future<Output = Result<Self::Prepared, Failure>> + Send;

    /// Values of the record table's fact columns, as far as known before deciding: for the record of a
    /// claim or a failure.
    fn facts(&self) -> Vec<Value>;

    /// The rows to decide from, in the order that `decide` expects.
    fn load(&self, prepared: &Self::Prepared) -> Vec<Query>;

    /// Decides. Pure: same input, same decision.
    ///
    /// # Errors
    /// A damaged row.
    fn decide(
        &self,
        prepared: &Self::Prepared,
        loaded: &[Vec<Row>],
        at: Time,
    ) -> Result<Decision, store::Error>;

    /// A check of the store raised on what `decide` wanted. The rows were loaded anew; give the decision
    /// that the check stands for. It is not decided again.
    ///
    /// # Errors
    /// A damaged row, or [`store::Error::Raised`] again for a check that no rule of the domain stands
    /// behind.
    fn raised(
        &self,
        prepared: &Self::Prepared,
        raise: &Raise,
        loaded: &[Vec<Row>],
        at: Time,
    ) -> Result<Decision, store::Error> {
        let _ = (prepared, loaded, at);
        Err(store::Error::Raised(raise.clone()))
    }

    /// Rows that a repeat leaves behind: its arrival.
    fn repeat(&self, repeat: &Repeat, at: Time) -> Vec<Write> {
        let _ = (repeat, at);
        Vec::new()
    }

    /// What a repeat leaves behind in the audit.
    fn repeat_audit(&self, repeat: &Repeat, at: Time) -> Vec<AuditRow> {
        let _ = (repeat, at);
        Vec::new()
    }

    /// Rows that a durable claim leaves behind (leased form), after the record's own.
    fn claimed(&self, at: Time) -> Vec<Write> {
        let _ = at;
        Vec::new()
    }

    /// Rows that a failure leaves behind, after the record's own.
    fn failed(&self, failure: &Failure, at: Time) -> Vec<Write> {
        let _ = (failure, at);
        Vec::new()
    }
}
