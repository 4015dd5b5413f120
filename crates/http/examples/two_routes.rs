//! Two routes that move money, each request once: `cargo run -p onceseal-http --example two_routes`. The
//! README of this crate walks through it.

use std::sync::{Arc, LazyLock};
use std::{path::Path, time::Duration};

use axum::extract::{Path as Segment, State};
use axum::response::Response;
use axum::{Router, routing::post};
use door::{AuditRow, Command, Decision, Door, Failure, Hash, Layout, RecordTable, Ruling, Steps};
use kernel::{Binding, Clock, Outcome, Random, Time};
use onceseal_http::{Call, Fingerprints, Need, Protocol, Rejected, Scope};
use secrecy::SecretSlice;
use store::migration::{CORE, Chain, File};
use store::{Error, Query, Row, Settings, Store, Value, Write, values};

const PAY: Chain = Chain { name: "pay", files: &[File::new("pay_v1", "
  create table pay_records (id {pk}, owner {int} not null, path text not null, key text not null,
    request_id text not null, {char payload_hash 64} not null, status text not null, claim_token {bytes},
    attempt_no {int} not null, locked_until {time}, response_code {int}, response_body {json}, expires_at {time},
    created_at {time} not null, updated_at {time} not null, unique (owner, path, key)) {strict};
  create table pay_steps (event {int} not null, name text not null, attempt_no {int} not null,
    result {bytes} not null, recorded_at {time} not null, primary key (event, name)) {strict_by_key};
  create table wallets (id {key}, cents {int} not null check (cents >= 0)) {strict};")] };

static RECORDS: LazyLock<RecordTable> = LazyLock::new(|| {
    RecordTable::of(&Layout {
        name: "pay_records",
        key: &["owner", "path", "key"],
        facts: &["request_id"],
        steps: "pay_steps",
        hash: Hash::Hex,
        binding: Binding::Held,
        generation: None,
        origin: Some("request_id"),
    })
});

const TAKE: &str = "update wallets set cents = cents - $1 where id = $2";
const GIVE: &str = "insert into wallets (id, cents) values ($1, $2) on conflict (id) do update set cents = wallets.cents + $2";
const SHORT: &str = r#"{"error":{"code":"FUNDS","message":"not enough cents","message_zh":"余额不足"}}"#;

/// Cents into a wallet, out of another one where it is a transfer.
struct Move {
    from: Option<i64>,
    to: i64,
    cents: i64,
    request_id: String,
}

impl Command for Move {
    type Prepared = ();

    async fn prepare(&self, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }
    fn facts(&self) -> Vec<Value> {
        values![&self.request_id]
    }
    fn load(&self, (): &()) -> Vec<Query> {
        let sql = "select cents from wallets where id = $1 {for_update}";
        vec![Query::new("wallets.from", sql, values![self.from.unwrap_or(0)])]
    }
    fn decide(&self, (): &(), loaded: &[Vec<Row>], _: Time) -> Result<Decision, Error> {
        let row = loaded.first().and_then(|rows| rows.first());
        let held = row.map(|row| row.int(0)).transpose()?.unwrap_or(0);
        let mut audit = AuditRow::system("pay.move", "wallet", self.to.to_string(), self.request_id.clone());
        let (mut status, mut writes) = ("succeeded", Vec::new());
        let mut outcome =
            Outcome { code: 201, body: format!(r#"{{"data":{{"to":{},"cents":{}}}}}"#, self.to, self.cents) };
        if self.from.is_some() && held < self.cents {
            // A refusal by a rule is an outcome, too: every repeat gets it.
            (status, audit.result_code, outcome) =
                ("failed", "FUNDS".into(), Outcome { code: 409, body: SHORT.into() });
        } else {
            writes.extend(self.from.map(|from| Write::one("wallets.take", TAKE, values![self.cents, from])));
            writes.push(Write::one("wallets.give", GIVE, values![self.to, self.cents]));
        }
        let (facts, ruling) = (self.facts(), Ruling::Formal(outcome));
        Ok(Decision { status, facts, ruling, writes, audit: vec![audit], outbox: Vec::new() })
    }
}

/// Whose keys: a real server takes the owner from its token.
fn scope() -> Scope {
    Scope { table: &RECORDS, owner: values![1_i64], life: Duration::from_secs(24 * 3600) }
}

type Answered = Result<Response, Rejected>;

async fn deposit(State(door): State<Door>, Segment(to): Segment<i64>, call: Call) -> Answered {
    let cents = call.fields(|fields| fields.whole("cents", 1..=1_000_000))?;
    let command = Move { from: None, to, cents, request_id: call.asked().request_id.clone() };
    Ok(call.submit(&door, &scope(), command, Duration::from_secs(1)).await)
}

async fn transfer(State(door): State<Door>, call: Call) -> Answered {
    let (from, to, cents) = call.fields(|fields| {
        let (from, to) = (fields.whole("from", 1..=i64::MAX), fields.whole("to", 1..=i64::MAX));
        let cents = fields.whole("cents", 1..=1_000_000);
        Some((from?, to?, cents?))
    })?;
    let command = Move { from: Some(from), to, cents, request_id: call.asked().request_id.clone() };
    Ok(call.submit(&door, &scope(), command, Duration::from_secs(1)).await)
}

pub(crate) async fn router(
    folder: &Path,
    secret: SecretSlice<u8>,
) -> Result<(Router, Door), Box<dyn std::error::Error>> {
    let store = Store::open(&Settings::folder(folder), &[CORE, PAY], Arc::new(System)).await?;
    let door = Door::new(store, Arc::new(System));
    let protocol = Arc::new(Protocol::new(Fingerprints::new(&secret, &[])?, Arc::new(System)));
    let routes =
        Router::new().route("/wallets/{id}/deposits", post(deposit)).route("/transfers", post(transfer));
    Ok((routes.route_layer(protocol.layer(Need::Required)).with_state(door.clone()), door))
}

#[derive(Debug)]
struct System;

impl Clock for System {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that all others are given")]
    fn now(&self) -> Time {
        let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        Time::from_micros(i64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(i64::MAX))
    }
}

impl Random for System {
    #[expect(clippy::disallowed_methods, reason = "this is the randomness that all others are given")]
    fn fill(&self, bytes: &mut [u8]) {
        if getrandom::fill(bytes).is_err() {
            std::process::abort();
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let mut secret = vec![0; 32];
    System.fill(&mut secret);
    let (routes, _) = router(folder.path(), secret.into()).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8087").await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, routes).await?;
    Ok(())
}
