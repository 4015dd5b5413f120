//! A server with the supply API, and callers of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use auth::{Callers, Grant, Issuer, IssuerKey, Role, Scopes, Statuses, UserType, Verifier};
use axum::body::Body;
use axum::http::{Method, Request};
use certify::policy::Policy as Certification;
use certify::shelf::Shelf;
use custody::provider::policy::Policy as Verdicts;
use custody::provider::{Addresses, Settings};
use custody::sms::SmsCodes;
use custody::{Custody, Effort, Fingerprints, LocalKeyring, Material, Verifier as Provider};
use door::Door;
use guard::{Guard, Scanner, TOKEN_EXCEPTIONS};
use http_body_util::BodyExt as _;
use kernel::Clock as _;
use kernel::money::{Currency, Quota, QuotaUnit};
use onceseal_http::{Fingerprints as Hashes, Profile, Protocol};
use relay::{Relay, Settings as Sending};
use secrecy::SecretSlice;
use serde_json::Value as Json;
use store::{Query, Store, Write, values};
use supply::consumers::{Statements, payout, statement};
use supply::exit::Quiet;
use supply::tokens::TokenRows;
use supply::{House as Market, Keys, Policy, Route};
use tempfile::TempDir;
use testkit::CountingRandom;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::RwLock;
use tower::ServiceExt as _;
use web::supply::{Links, OnShelf, Rates, Supply};

use crate::house::{Got, House};

/// The platform's first administrator.
pub(crate) const ADMIN: i64 = 90;
/// Folder of statements.
const SHELF: &str = "shelf";

pub(crate) struct Api {
    pub(crate) house: House,
    pub(crate) door: Door,
    issuer: Arc<Issuer>,
    pub(crate) market: Arc<Market>,
    pub(crate) guard: Arc<Guard>,
    /// Whoever holds it for writing keeps the provider from answering.
    pub(crate) provider: Arc<RwLock<()>>,
    address: String,
    policy: Policy,
    /// Makes statements; nobody runs it but a test.
    pub(crate) statements: Arc<Statements>,
    /// Holds the shelf of statements.
    files: TempDir,
    admin: String,
    count: AtomicU64,
}

/// Another server's router.
pub(crate) struct Server(axum::Router);

fn material(name: &str, seed: u8) -> Material {
    let bytes: Vec<u8> = (0..32).map(|n: u8| n.wrapping_mul(37) ^ seed).collect();
    Material::from_bytes(name, &bytes).expect("material")
}

/// A provider that accepts everything, once it may.
async fn provider(gate: Arc<RwLock<()>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            drop(gate.read().await);
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{\"data\":[]}";
            // Whoever asked may have gone.
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

impl Api {
    pub(crate) async fn new() -> Self {
        let policy = Policy {
            withdraw_enabled: true,
            // Tokens live for three days, the usual hold is seven.
            earnings_hold: Duration::ZERO,
            withdraw_review: Duration::ZERO,
            withdraw_cooldown: Duration::ZERO,
            ..Policy::default()
        };
        Self::with(policy).await
    }

    pub(crate) async fn with(policy: Policy) -> Self {
        Self::in_profile(policy, Profile::Seed).await
    }

    pub(crate) async fn in_profile(policy: Policy, profile: Profile) -> Self {
        Self::changed(policy, |supply| {
            let protocol = Arc::get_mut(&mut supply.protocol).expect("nobody else has it");
            protocol.answers.profile = profile;
        })
        .await
    }

    pub(crate) async fn changed(policy: Policy, change: impl FnOnce(&mut Supply)) -> Self {
        let random = Arc::new(CountingRandom::default());
        let key = IssuerKey::random(&*random).expect("a key");
        let issuer =
            Arc::new(Issuer::new("https://onceseal.example", "supply", vec![key]).expect("an issuer"));
        let gate = Arc::new(RwLock::new(()));
        let (held, address) = (Arc::clone(&issuer), provider(Arc::clone(&gate)).await);
        let (mut kept, mut market, mut guard, mut statements) = (None, None, None, None);
        let (numbers, at) = (policy.clone(), address.clone());
        let files = tempfile::tempdir().expect("a folder");
        let path = files.path().join(SHELF);
        let house = House::changed(Certification::default(), |state| {
            let door = state.visa.door().clone();
            kept = Some(door.clone());
            let mut supply = supply((door, &path), (numbers, at), held, Arc::clone(&state.clock));
            change(&mut supply);
            market = Some(Arc::clone(&supply.house));
            guard = Some(Arc::clone(&supply.guard));
            statements = Some(Arc::clone(&supply.statements));
            web::State { supply: Some(Arc::new(supply)), ..state }
        })
        .await;
        let door = kept.expect("a door");
        supply::platform::seed(&door, Currency::CNY).await.expect("accounts of the platform");
        let market = market.expect("a market");
        let (guard, provider, count) = (guard.expect("a guard"), gate, AtomicU64::new(1));
        let api = Self {
            house,
            door,
            issuer,
            market,
            guard,
            provider,
            address,
            policy,
            files,
            statements: statements.expect("statements"),
            admin: String::new(),
            count,
        };
        let admin = api.first_admin().await;
        Self { admin, ..api }
    }

    /// A token of an administrator, whose row is put past all rules: somebody must be the first.
    async fn first_admin(&self) -> String {
        let grant = Grant {
            operator_id: ADMIN,
            tenant_id: 1,
            role: Role::Admin,
            user_type: UserType::Platform,
            scopes: Scopes::new(["*"]).expect("scopes"),
            ttl: Duration::from_secs(259_200),
        };
        let at = self.house.clock.now();
        let minted = self.issuer.mint(&grant, at, &*self.door.random()).expect("a token");
        let user = "insert into iam_users (id, tenant_id, name, created_at, updated_at) values ($1, 1, 'admin', $2, $3)";
        let token = "insert into auth_tokens (tenant_id, name, fingerprint, expires_at, user_id, role, user_type, scope, refresh_until, created_at, updated_at) values (1, $1, $2, $3, $4, 'admin', 'platform', $5, $6, $7, $8)";
        let row = values![
            &minted.jti,
            minted.fingerprint,
            minted.expires_at,
            ADMIN,
            "[\"*\"]",
            minted.expires_at,
            at,
            at
        ];
        let writes = vec![Write::one("user", user, values![ADMIN, at, at]), Write::one("token", token, row)];
        let made = self.door.maintain("first", vec![], move |_, _| Ok((writes.clone(), ()))).await;
        made.expect("the first administrator");
        minted.token.expose().to_owned()
    }

    /// Where statements stand.
    pub(crate) fn shelf(&self) -> PathBuf {
        self.files.path().join(SHELF)
    }

    /// A key that no call had before.
    pub(crate) fn key(&self) -> String {
        format!("key-{:016}", self.count.fetch_add(1, Ordering::SeqCst))
    }

    fn request_id(&self) -> String {
        format!("6f1c0000-0000-4000-8000-{:012x}", self.count.fetch_add(1, Ordering::SeqCst))
    }

    /// A write by this token under this key.
    pub(crate) async fn write(&self, call: (Method, &str), token: &str, key: &str, body: &str) -> Got {
        self.house.call(self.request(call, token, key, body)).await
    }

    fn request(&self, (method, path): (Method, &str), token: &str, key: &str, body: &str) -> Request<Body> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .header("x-request-id", self.request_id())
            .header("idempotency-key", key);
        let request =
            if body.is_empty() { request } else { request.header("content-type", "application/json") };
        request.body(Body::from(body.to_owned())).expect("a request")
    }

    /// Another server on the same database: with a store of its own, where the engine has that.
    pub(crate) async fn second(&self) -> Server {
        let store = match testkit::postgres::settings(&self.house.folder.path().join("data")) {
            store::Settings::Postgres(settings) => {
                let chains = [store::migration::CORE, store::migration::CERTIFY, store::migration::SUPPLY];
                let settings = store::Settings::Postgres(settings);
                Store::open(&settings, &chains, self.house.clock.clone()).await.expect("a store")
            }
            _ => self.door.store().clone(),
        };
        let door = Door::new(store, self.door.random());
        let numbers = (self.policy.clone(), self.address.clone());
        let (folder, at) = (self.shelf(), door.clone());
        let supply = supply((at, &folder), numbers, Arc::clone(&self.issuer), self.house.clock.clone());
        let state = web::State {
            visa: Arc::clone(&self.house.visa),
            clock: self.house.clock.clone(),
            tokens: web::token::Tokens::new(door, self.house.clock.clone()),
            metrics: None,
            limits: web::Limits::default(),
            trusted_proxies: Vec::new(),
            checks: Vec::new(),
            announcements: web::Announcements { destinations: Vec::new(), nudge: None },
            rebuild: None,
            supply: Some(Arc::new(supply)),
        };
        Server(web::router(state))
    }

    /// As [`Api::write`], a POST at the other server.
    pub(crate) async fn write_at(
        &self,
        server: &Server,
        path: &str,
        (token, key): (&str, &str),
        body: &str,
    ) -> Got {
        self.call_at(server, self.request((Method::POST, path), token, key, body)).await
    }

    /// Any request at the other server.
    pub(crate) async fn call_at(&self, server: &Server, request: Request<Body>) -> Got {
        let response = server.0.clone().oneshot(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes().to_vec();
        Got { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Runs a command of the platform's own on objects of this tenant.
    pub(crate) async fn run<A: supply::Action>(&self, tenant: i64, action: A) {
        let caller = supply::Caller {
            capacity: supply::Capacity::Admin,
            ..supply::Caller::system(tenant, &format!("fact:{}", self.key()))
        };
        let context = supply::Context { caller, house: Arc::clone(&self.market) };
        let command = supply::Commanded { context, action };
        let ended = self.door.submit(door::Submission { key: None, command, wait: Duration::ZERO }).await;
        let made = matches!(&ended, Ok(door::Answer::Done(done)) if done.outcome.code < 300);
        assert!(made, "{ended:?}");
    }

    /// Rows of texts.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.door.store().query(Query::new("texts", sql.to_owned(), vec![])).await.expect("rows");
        rows.iter().map(|row| row.text_or_null(0).expect("a text").unwrap_or_default().to_owned()).collect()
    }

    pub(crate) fn on_postgres(&self) -> bool {
        matches!(
            testkit::postgres::settings(&self.house.folder.path().join("data")),
            store::Settings::Postgres(_)
        )
    }

    /// A POST under a key of its own, that must succeed; its `data`.
    pub(crate) async fn done(&self, path: &str, token: &str, body: &str) -> Json {
        let got = self.write((Method::POST, path), token, &self.key(), body).await;
        assert!((200..300).contains(&got.status), "{path}: {} {}", got.status, got.text());
        got.json()["data"].clone()
    }

    /// As the administrator.
    pub(crate) async fn admin(&self, path: &str, body: &str) -> Json {
        let token = self.admin.clone();
        self.done(path, &token, body).await
    }

    pub(crate) fn admin_token(&self) -> &str {
        &self.admin
    }

    pub(crate) async fn read(&self, path: &str, token: &str) -> Got {
        let request = Request::get(path).header("authorization", format!("Bearer {token}"));
        self.house.call(request.body(Body::empty()).expect("a request")).await
    }

    /// A token for a user, issued over the API.
    pub(crate) async fn token(&self, (tenant, user): (i64, i64), scopes: &[&str]) -> String {
        let body = serde_json::json!({ "tenant_id": tenant, "user_id": user, "role": "owner", "user_type": "supply",
            "scope": scopes, "ttl_seconds": 259_200 });
        let data = self.admin("/api/v1/platform/tokens/issue", &body.to_string()).await;
        data["access_token"].as_str().expect("a token").to_owned()
    }

    pub(crate) async fn count(&self, sql: &str) -> i64 {
        let rows = self.door.store().query(Query::new("count", sql.to_owned(), vec![])).await.expect("rows");
        rows[0].int(0).expect("a count")
    }

    /// SQL past all rules.
    pub(crate) async fn force(&self, sql: &str) {
        let write = Write::any("force", sql.to_owned(), vec![]);
        self.door.maintain("force", vec![], move |_, _| Ok((vec![write.clone()], ()))).await.expect("forced");
    }

    /// Puts a row into the audit.
    pub(crate) async fn audit(&self, row: door::AuditRow) {
        let random = self.door.random();
        let plan = move |_: Vec<Vec<store::Row>>, now| Ok((vec![row.clone().write(now, &*random)], ()));
        self.door.maintain("audit", vec![], plan).await.expect("audited");
    }

    /// Releases all earnings that are due, as the scheduler does.
    pub(crate) async fn released(&self) -> usize {
        let due = supply::platform::earnings_to_release(self.house.clock.now(), 100);
        let rows = self.door.store().query(due).await.expect("rows");
        for row in &rows {
            let due = supply::platform::Due::read(row).expect("due");
            let context = supply::Context { caller: due.caller("release"), house: Arc::clone(&self.market) };
            let command =
                supply::Commanded { context, action: supply::earnings::Release { earning_id: due.id } };
            let ended = self.door.submit(door::Submission { key: None, command, wait: Duration::ZERO }).await;
            assert!(matches!(ended, Ok(door::Answer::Done(_))), "{ended:?}");
        }
        rows.len()
    }

    /// A relay with the channel of statements alone, that gives up after so many attempts.
    pub(crate) fn relay(&self, attempts_max: i64) -> Relay {
        let settings = Sending { attempts_max, ..Sending::default() };
        let channels: Vec<Arc<dyn relay::Channel>> = vec![self.statements.clone()];
        Relay::new(self.door.clone(), self.house.clock.clone(), channels, settings)
    }

    /// All statements that are due.
    pub(crate) async fn statements_made(&self) {
        let relay = self.relay(1);
        while relay.turn().await.expect("a round").claimed > 0 {}
    }

    /// The six digits of the newest SMS code, as the channel would derive them.
    pub(crate) async fn sms_code(&self) -> String {
        let sql = "select key_version, code_ref from supply_sms_codes order by id desc limit 1";
        let rows = self.door.store().query(Query::new("code", sql, vec![])).await.expect("rows");
        let version = u32::try_from(rows[0].int(0).expect("a version")).expect("a version");
        let codes = SmsCodes::new((1, &material("sms", 3)), None).expect("codes");
        let code = codes.code(version, rows[0].text(1).expect("a reference")).expect("a code");
        secrecy::ExposeSecret::expose_secret(&code).to_owned()
    }
}

fn supply(
    (door, folder): (Door, &Path),
    (policy, provider): (Policy, String),
    issuer: Arc<Issuer>,
    clock: Arc<dyn kernel::Clock>,
) -> Supply {
    let random = door.random();
    let ring =
        LocalKeyring::new("local", 1, vec![(1, material("kek", 1))], Arc::clone(&random)).expect("a ring");
    let addresses = Addresses { openai: provider, ..Addresses::default() };
    // Time enough for a test to look at a verification that is running.
    let effort = Effort { budget: Duration::from_secs(20), ..Settings::default().effort };
    let settings = Settings { addresses, effort, ..Settings::default() };
    let verdicts = Verdicts::standard(Quota::whole(10_000_000, QuotaUnit::Token).expect("a quota"));
    let verifier =
        Provider::new(settings, verdicts, Arc::clone(&clock), Arc::clone(&random)).expect("a verifier");
    let keys = Keys {
        custody: Custody::new(Arc::new(ring), Arc::clone(&random)),
        fingerprints: Arc::new(Fingerprints::new(&material("pepper", 2), None).expect("fingerprints")),
        sms: Some(Arc::new(SmsCodes::new((1, &material("sms", 3)), None).expect("codes"))),
        verifier: Arc::new(verifier),
    };
    let guard =
        Arc::new(Guard::new(Scanner::standard().expect("patterns"), TOKEN_EXCEPTIONS.to_vec(), &[5; 32]));
    let market = Market {
        policy,
        random: Arc::clone(&random),
        clock: Arc::clone(&clock),
        keys,
        // Nobody serves it: deliveries wait.
        routes: std::iter::once(Route { prefix: "supply.".into(), destination: "bus".into() })
            .chain(statement::routes())
            .chain([payout::route()])
            .collect(),
        guard: Some(Arc::clone(&guard)),
    };
    let tokens = Verifier::new(issuer.name(), issuer.audience(), issuer.keys().expect("keys"));
    let rows = TokenRows::new(door.store().clone());
    let secret =
        |seed: u8| SecretSlice::from((0..32).map(|n: u8| n.wrapping_mul(29) ^ seed).collect::<Vec<u8>>());
    let hashes = Hashes::new(&secret(4), &[]).expect("hashes");
    let market = Arc::new(market);
    let files = Arc::new(OnShelf(Shelf::open(folder).expect("a shelf")));
    let statements = Statements { door: door.clone(), house: Arc::clone(&market), files };
    let life = Duration::from_secs(900);
    Supply {
        house: market,
        statements: Arc::new(statements),
        links: Links::new(secret(7), vec![], "https://onceseal.example", life),
        callers: Callers::new(tokens, Statuses::new(Arc::new(rows))),
        issuer: Some(issuer),
        protocol: Arc::new(Protocol::new(hashes, random)),
        guard,
        rates: Rates::default(),
        quiet: Quiet::default(),
        tally: Arc::default(),
        twin_wait: Duration::from_millis(200),
        buyer_keys: secret(6),
        clock,
        door,
    }
}
