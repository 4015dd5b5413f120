//! A domain in small: `Add` puts one row into `test_effects`, which no index keeps from being put twice.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use door::{
    AuditRow, Command, Decision, Failure, Form, Hash, Key, Layout, OutboxRow, RecordTable, Repeat, Ruling,
    Steps, Submission,
};
use kernel::{Binding, Digest, Outcome, Time};
use store::migration::{Chain, File};
use store::{Error, Query, Raise, Row, Value, Write, values};

pub(crate) const TEST: Chain = Chain {
    name: "test",
    files: &[File::new(
        "test_v1",
        "create table test_records (
                id {pk}, key text not null unique, amount {int},
                status text not null check (status in ('received', 'processing', 'processed', 'failed', 'orphaned')),
                fingerprint {bytes} not null, claim_token {bytes}, attempt_no {int} not null default 1,
                locked_until {time}, response_code {int}, response_body {json}, expires_at {time},
                created_at {time} not null, updated_at {time} not null) {strict};
              create table test_bound (
                id {pk}, key text not null unique, amount {int}, request text not null, status text not null,
                {char payload_hash 64} not null, claim_token {bytes}, attempt_no {int} not null default 1,
                generation {int} not null default 1, locked_until {time}, response_code {int}, response_body {jsonb},
                expires_at {time} not null, created_at {time} not null, updated_at {time} not null) {strict};
              create table test_steps (
                event {int} not null, name text not null, attempt_no {int} not null,
                result {bytes} not null, recorded_at {time} not null, primary key (event, name)) {strict_by_key};
              create table test_effects (id {pk}, key text not null, amount {int} not null) {strict};
              create table test_names (name text primary key) {strict};
              create table test_arrivals (id {pk}, key text not null, same {flag} not null) {strict};
              create table test_failures (id {pk}, key text not null, cause text not null) {strict};",
    )],
};

const DAY: Duration = Duration::from_secs(86_400);

pub(crate) static RECORDS: LazyLock<RecordTable> =
    LazyLock::new(|| RecordTable::new("test_records", &["key"], &["amount"], "test_steps"));

/// As a client's keys are kept: hashed in hex, counted, and a failure holds its key.
pub(crate) static BOUND: LazyLock<RecordTable> = LazyLock::new(|| {
    RecordTable::of(&Layout {
        name: "test_bound",
        key: &["key"],
        facts: &["amount", "request"],
        steps: "test_steps",
        hash: Hash::Hex,
        binding: Binding::Held,
        generation: Some("generation"),
        origin: Some("request"),
    })
});

/// Differs in every decision, so that an outcome that was decided twice is seen.
static SERIAL: AtomicI64 = AtomicI64::new(1);

type Preparing = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// What the decision does beside the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twist {
    None,
    Panic,
    PanicInLoad,
    /// Takes a name that is unique.
    TakeName,
    WrongStatement,
    DoubledDestination,
    AuditWithoutRole,
    LeaveOpen,
    /// Tells whoever asked to come later.
    ComeLater,
    /// Decides from a row of another kind than it must be.
    Damaged,
}

#[derive(Clone)]
pub(crate) struct Add {
    key: String,
    amount: i64,
    form: Form,
    prepares: bool,
    twist: Twist,
    lives: Option<Duration>,
    /// Under which version of a secret it is hashed, where its key is a client's.
    secret: Option<u8>,
    prepare: Arc<dyn Fn(Steps) -> Preparing + Send + Sync>,
}

pub(crate) fn add(key: &str, amount: i64) -> Add {
    Add {
        key: key.into(),
        amount,
        form: Form::Atomic,
        prepares: true,
        twist: Twist::None,
        lives: None,
        secret: None,
        prepare: Arc::new(|_| Box::pin(async { Ok(()) })),
    }
}

impl Add {
    pub(crate) fn preparing<F>(mut self, prepare: impl Fn(Steps) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.prepare = Arc::new(move |steps| Box::pin(prepare(steps)));
        self
    }

    pub(crate) fn failing(self) -> Self {
        self.preparing(|_| async { Err(broken()) })
    }

    pub(crate) fn leased(mut self, seconds: u64) -> Self {
        self.form = Form::Leased(Duration::from_secs(seconds));
        self
    }

    pub(crate) fn leased_for(mut self, length: Duration) -> Self {
        self.form = Form::Leased(length);
        self
    }

    pub(crate) fn without_preparation(mut self) -> Self {
        self.prepares = false;
        self
    }

    /// Under a client's key, hashed under this version of the secret.
    pub(crate) fn bound(mut self, secret: u8) -> Self {
        self.secret = Some(secret);
        self
    }

    pub(crate) fn twisted(mut self, twist: Twist) -> Self {
        self.twist = twist;
        self
    }

    pub(crate) fn living(mut self, seconds: u64) -> Self {
        self.lives = Some(Duration::from_secs(seconds));
        self
    }

    /// Under its key, without waiting for a twin.
    pub(crate) fn now(self) -> Submission<Self> {
        self.waiting(Duration::ZERO)
    }

    pub(crate) fn waiting(self, wait: Duration) -> Submission<Self> {
        let payload = Digest::of_fields(&[self.key.as_bytes(), &self.amount.to_be_bytes()]);
        if let Some(version) = self.secret {
            let hashed = |version| Digest::of_fields(&[&[version], payload.as_bytes()]);
            let key = Key::lasting(&BOUND, values![self.key.as_str()], hashed(version));
            let (former, life) = (vec![hashed(version - 1)], Some(self.lives.unwrap_or(DAY)));
            return Submission { key: Some(Key { former, payload, life, ..key }), command: self, wait };
        }
        let fingerprint = payload;
        let key = Key::lasting(&RECORDS, values![self.key.as_str()], fingerprint);
        let key = Key { life: self.lives, ..key };
        Submission { key: Some(key), command: self, wait }
    }

    pub(crate) fn keyless(self) -> Submission<Self> {
        Submission { key: None, command: self, wait: Duration::ZERO }
    }

    fn outcome(&self, code: u16) -> Outcome {
        let serial = SERIAL.fetch_add(1, Ordering::SeqCst);
        Outcome { code, body: format!(r#"{{"amount":{},"serial":{serial}}}"#, self.amount) }
    }

    fn decision(&self, code: u16, at: Time) -> Decision {
        Decision {
            status: "processed",
            facts: self.facts(),
            ruling: Ruling::Formal(self.outcome(code)),
            writes: Vec::new(),
            audit: vec![AuditRow::system("test.add.done", "effect", self.key.clone(), "req-1".into())],
            outbox: vec![OutboxRow {
                event_name: "test.effect.add.done",
                object_type: "effect",
                object_id: self.key.clone(),
                aggregate_version: 1,
                tenant_id: 1,
                operator_id: 1,
                request_id: "req-1".into(),
                payload: serde_json::json!({ "amount": self.amount }),
                occurred_at: at,
                destinations: vec!["one".into(), "two".into()],
            }],
        }
    }
}

pub(crate) fn broken() -> Failure {
    Failure::Step { step: "call", cause: "broken on purpose".into() }
}

impl Command for Add {
    type Prepared = ();

    fn form(&self) -> Form {
        self.form
    }

    fn prepares(&self) -> bool {
        self.prepares
    }

    async fn prepare(&self, steps: &Steps) -> Result<(), Failure> {
        (self.prepare)(steps.clone()).await
    }

    fn facts(&self) -> Vec<Value> {
        match self.secret {
            Some(version) => values![self.amount, format!("request {version}")],
            None => values![self.amount],
        }
    }

    fn load(&self, (): &()) -> Vec<Query> {
        assert!(self.twist != Twist::PanicInLoad, "on purpose");
        vec![Query::new("effects.count", "select count(*), 'text' from test_effects", vec![])]
    }

    fn decide(&self, (): &(), loaded: &[Vec<Row>], at: Time) -> Result<Decision, Error> {
        let mut decision = self.decision(200, at);
        let effect = "insert into test_effects (key, amount) values ($1, $2)";
        decision.writes.push(Write::one("effects.insert", effect, values![&self.key, self.amount]));
        match self.twist {
            Twist::None | Twist::PanicInLoad => {}
            Twist::Panic => panic!("on purpose"),
            Twist::TakeName => {
                let take = "insert into test_names (name) values ($1)";
                decision.writes.push(Write::one("names.take", take, values!["the one name"]));
            }
            Twist::WrongStatement => {
                decision.writes.push(Write::any("wrong", "insert into nowhere values (1)", vec![]));
            }
            Twist::DoubledDestination => {
                decision.outbox[0].destinations.push("one".into());
            }
            Twist::AuditWithoutRole => decision.audit[0].operator_role = "",
            Twist::LeaveOpen => {
                decision.ruling = Ruling::Open;
                decision.status = "received";
            }
            Twist::ComeLater => {
                decision.ruling = Ruling::Passing(self.outcome(429));
                decision.status = "failed";
                decision.writes.clear();
            }
            Twist::Damaged => {
                loaded[0][0].int(1)?;
            }
        }
        Ok(decision)
    }

    fn raised(&self, (): &(), raise: &Raise, _: &[Vec<Row>], at: Time) -> Result<Decision, Error> {
        match raise.write {
            "names.take" => Ok(self.decision(409, at)),
            _ => Err(Error::Raised(raise.clone())),
        }
    }

    fn repeat(&self, repeat: &Repeat, _: Time) -> Vec<Write> {
        let sql = "insert into test_arrivals (key, same) values ($1, $2)";
        vec![Write::one("arrivals.insert", sql, values![&self.key, repeat.same])]
    }

    fn repeat_audit(&self, repeat: &Repeat, _: Time) -> Vec<AuditRow> {
        let name = if repeat.same { "test.add.replayed" } else { "test.add.mismatch" };
        let row = || AuditRow::system(name, "effect", self.key.clone(), "req-1".into());
        self.secret.map(|_| row()).into_iter().collect()
    }

    fn failed(&self, failure: &Failure, _: Time) -> Vec<Write> {
        let sql = "insert into test_failures (key, cause) values ($1, $2)";
        vec![Write::one("failures.insert", sql, values![&self.key, failure.to_string()])]
    }
}
