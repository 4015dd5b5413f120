//! A domain in small behind the layer, on a socket: what comes of an operation is in its body.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use door::{Command, Decision, Door, Failure, Form, Hash, Layout, RecordTable, Ruling, Steps};
use kernel::{Binding, Clock, Outcome, Time};
use onceseal_http::path::{Aliases, ApiPath};
use onceseal_http::{Answers, Call, Fingerprints, Limits, Need, Profile, Protocol, Rejected, Scope, look_up};
use secrecy::SecretSlice;
use store::migration::{CORE, Chain, File};
use store::{Error, Query, Row, Settings, Store, Value, Write, values};
use tempfile::TempDir;
use testkit::{CountingRandom, MovableClock};
use tokio::sync::Semaphore;

use crate::wire::Server;

const BANK: Chain = Chain {
    name: "bank",
    files: &[File::new(
        "bank_v1",
        "create table bank_records (
           id {pk}, owner {int} not null, path text not null, key text not null, request_id text not null,
           {char payload_hash 64} not null, status text not null, claim_token {bytes}, attempt_no {int} not null,
           locked_until {time}, response_code {int}, response_body {json}, expires_at {time},
           created_at {time} not null, updated_at {time} not null, unique (owner, path, key)) {strict};
         create table bank_steps (
           event {int} not null, name text not null, attempt_no {int} not null, result {bytes} not null,
           recorded_at {time} not null, primary key (event, name)) {strict_by_key};
         create table bank_effects (id {pk}, kind text not null) {strict};",
    )],
};

static RECORDS: LazyLock<RecordTable> = LazyLock::new(|| {
    RecordTable::of(&Layout {
        name: "bank_records",
        key: &["owner", "path", "key"],
        facts: &["request_id"],
        steps: "bank_steps",
        hash: Hash::Hex,
        binding: Binding::Held,
        generation: None,
        origin: Some("request_id"),
    })
});

/// Digits that no float keeps, white space and an order of names that no reader keeps.
pub(crate) const EXACT: &str = r#"{"z": 9007199254740993.10, "a":[1.0,  1e40], "é":"\u00e9"}"#;
/// As the supply side stores a refusal.
pub(crate) const REFUSED: &str = r#"{"error":{"code":"SUP_SET_4001","message":"too much","message_zh":"超额","details":{"available_amount":42.00, "rule_code":"INV-SET-002"}}}"#;
const LATER: &str = r#"{"error":{"code":"SUP_SET_4291","message":"cooling","message_zh":"冷却中","details":{"retry_after_seconds":90}}}"#;

/// What comes of an operation.
struct Act {
    kind: &'static str,
    request_id: String,
    gate: Arc<Gate>,
}

/// Where the kinds `slow` and `leased` wait until they are let through.
pub(crate) struct Gate {
    pub(crate) arrived: Semaphore,
    pub(crate) open: Semaphore,
}

const KINDS: [&str; 12] = [
    "data", "none", "list", "refused", "later", "broken", "damaged", "junk", "silent", "slow", "leased",
    "panic",
];

impl Command for Act {
    type Prepared = ();

    fn form(&self) -> Form {
        if self.kind == "leased" { Form::Leased(Duration::from_secs(30)) } else { Form::Atomic }
    }

    async fn prepare(&self, _: &Steps) -> Result<(), Failure> {
        match self.kind {
            "broken" => Err(Failure::Step { step: "call", cause: "the provider is away".into() }),
            "panic" => panic!("on purpose"),
            "slow" | "leased" => {
                self.gate.arrived.add_permits(1);
                self.gate.open.acquire().await.unwrap().forget();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn facts(&self) -> Vec<Value> {
        values![&self.request_id]
    }

    fn load(&self, (): &()) -> Vec<Query> {
        vec![Query::new("effects.kinds", "select kind from bank_effects order by id limit 1", vec![])]
    }

    fn decide(&self, (): &(), _: &[Vec<Row>], _: Time) -> Result<Decision, Error> {
        let formal = |code, body: &str| Ruling::Formal(Outcome { code, body: body.into() });
        let ruling = match self.kind {
            "none" => formal(204, "{}"),
            "list" => formal(200, "[1.10]"),
            "junk" => formal(200, "{"),
            "refused" => formal(400, REFUSED),
            "later" => Ruling::Passing(Outcome { code: 429, body: LATER.into() }),
            "silent" => Ruling::Open,
            "damaged" => return Err(Error::Corrupt { table: "wallets", column: "cents".into() }),
            _ => formal(201, &format!(r#"{{"data":{EXACT}}}"#)),
        };
        let effect =
            Write::one("effects.insert", "insert into bank_effects (kind) values ($1)", values![self.kind]);
        let status = if self.kind == "refused" { "failed" } else { "succeeded" };
        let (audit, outbox) = (Vec::new(), Vec::new());
        Ok(Decision { status, facts: self.facts(), ruling, writes: vec![effect], audit, outbox })
    }
}

pub(crate) struct Bank {
    pub(crate) server: Server,
    pub(crate) door: Door,
    pub(crate) clock: Arc<MovableClock>,
    pub(crate) gate: Arc<Gate>,
    _folder: TempDir,
}

#[derive(Clone)]
struct Counter {
    door: Door,
    clock: Arc<MovableClock>,
    gate: Arc<Gate>,
    answers: Answers,
}

fn scope() -> Scope {
    Scope { table: &RECORDS, owner: values![7_i64], life: Duration::from_secs(24 * 3600) }
}

async fn act(State(at): State<Counter>, call: Call) -> Result<Response, Rejected> {
    let kind = call.fields(|fields| {
        let (kind, note) =
            (fields.word("kind", KINDS), fields.optional("note", |fields, name| fields.text(name, 1..=9)));
        note?;
        kind
    })?;
    let act = Act { kind, request_id: call.asked().request_id.clone(), gate: at.gate };
    Ok(call.submit(&at.door, &scope(), act, Duration::ZERO).await)
}

async fn look(State(at): State<Counter>, call: Call) -> Response {
    let key = call.asked().key.as_ref().unwrap();
    let path = ApiPath::of("/acts", &Aliases::default()).unwrap();
    let key = scope().find(&path, key.as_str());
    let found = look_up(at.door.store(), &key, at.clock.now()).await.unwrap();
    at.answers.operation(call.asked(), found.as_ref())
}

impl Bank {
    pub(crate) async fn new(profile: Profile) -> Self {
        Self::limited(profile, Limits::default()).await
    }

    pub(crate) async fn limited(profile: Profile, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = testkit::postgres::settings(folder.path());
        Self::over(profile, limits, &settings, folder).await
    }

    /// On the embedded store, whatever the others run on.
    pub(crate) async fn embedded(profile: Profile) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::folder(folder.path());
        Self::over(profile, Limits::default(), &settings, folder).await
    }

    async fn over(profile: Profile, limits: Limits, settings: &Settings, folder: TempDir) -> Self {
        let clock = Arc::new(MovableClock::at(1_774_576_984));
        let store = Store::open(settings, &[CORE, BANK], Arc::clone(&clock) as _).await.unwrap();
        let random = Arc::new(CountingRandom::default());
        let door = Door::new(store, Arc::clone(&random) as _);
        let gate = Arc::new(Gate { arrived: Semaphore::new(0), open: Semaphore::new(0) });
        let fingerprints = Fingerprints::new(&SecretSlice::from(vec![9; 32]), &[]).unwrap();
        let answers = Answers { profile, ..Answers::default() };
        let aliases = Aliases::new([("/old", "/api/v1")]);
        let protocol = Arc::new(Protocol { answers, limits, aliases, ..Protocol::new(fingerprints, random) });
        let counter =
            Counter { door: door.clone(), clock: Arc::clone(&clock), gate: Arc::clone(&gate), answers };
        let critical = || Router::new().route("/acts", post(act)).route_layer(protocol.layer(Need::Required));
        let router = critical()
            .route("/free", post(act).layer(protocol.layer(Need::Optional)))
            .route("/look", post(look).layer(protocol.layer(Need::Required)))
            .route("/bare", post(act))
            .nest("/api/v1", critical())
            .nest("/old", critical())
            .with_state(counter);
        Self { server: Server::over(router).await, door, clock, gate, _folder: folder }
    }

    pub(crate) async fn count(&self, sql: &'static str) -> i64 {
        self.door.store().query(Query::new("count", sql, vec![])).await.unwrap()[0].int(0).unwrap()
    }

    /// Runs SQL past all rules.
    pub(crate) async fn force(&self, sql: &'static str) {
        let write = Write::any("force", sql, vec![]);
        self.door.maintain("force", vec![], move |_, _| Ok((vec![write.clone()], ()))).await.unwrap();
    }

    pub(crate) async fn effects(&self) -> i64 {
        self.count("select count(*) from bank_effects").await
    }

    /// Waits until somebody stands at the gate.
    pub(crate) async fn reached(&self) {
        let arrived = tokio::time::timeout(Duration::from_secs(20), self.gate.arrived.acquire()).await;
        arrived.expect("nobody came to the gate").unwrap().forget();
    }
}
