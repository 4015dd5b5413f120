//! One installation in a temporary folder, and its router.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use certify::identity::Plain;
use certify::keyring::Folder;
use certify::policy::{CertifiedMode, Policy};
use certify::run::Issuer;
use certify::shelf::Shelf;
use certify::{AuditVisa, Endpoint, Settings};
use door::Door;
use http_body_util::BodyExt as _;
use serde_json::Value as Json;
use source::{Kind, Secret, Signer, Source};
use store::{Query, Store};
use testkit::{CountingRandom, MovableClock, canary};
use tower::ServiceExt as _;
use web::health::Check;
use web::token::{Token, Tokens};
use web::{Announcements, Limits, State};

pub(crate) const SECRET: &str = "whsec_for_tests_only";
/// 2026-01-02T00:00:00Z, after the samples' own times.
pub(crate) const NOW: i64 = 1_767_312_000;

pub(crate) struct House {
    pub(crate) visa: Arc<AuditVisa>,
    pub(crate) clock: Arc<MovableClock>,
    pub(crate) folder: canary::Folder,
    pub(crate) router: Router,
    pub(crate) token: Token,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }

    /// Status and code of a problem.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text());
        let json = self.json();
        for member in ["type", "title", "code", "message", "message_zh", "detail", "next", "request_id"] {
            assert!(json[member].as_str().is_some_and(|text| !text.is_empty()), "{member} in {json}");
        }
        assert_eq!(json["status"], self.status);
        (self.status, json["code"].as_str().expect("a code").to_owned())
    }
}

impl House {
    pub(crate) async fn new() -> Self {
        Self::with(Policy::default(), Limits::default()).await
    }

    pub(crate) async fn with(policy: Policy, limits: Limits) -> Self {
        Self::changed(policy, |state| State { limits, ..state }).await
    }

    /// One whose edge gets another state.
    pub(crate) async fn changed(policy: Policy, change: impl FnOnce(State) -> State) -> Self {
        let folder = canary::Folder::new().expect("a folder");
        let clock = Arc::new(MovableClock::at(NOW));
        let settings = testkit::postgres::settings(&folder.path().join("data"));
        let chains = [store::migration::CORE, store::migration::CERTIFY, store::migration::SUPPLY];
        let store = Store::open(&settings, &chains, clock.clone()).await.expect("a store");
        let door = Door::new(store, Arc::new(CountingRandom::default()));
        let shelf = Shelf::open(&folder.path().join("deliveries")).expect("a shelf");
        let keys = Folder::new(folder.path().join("keys"), None);
        let settings = certify_settings(policy);
        let checks = vec![Check::shelf(&shelf)];
        let token = Token::random(&*door.random());
        let tokens = Tokens::new(door.clone(), clock.clone()).with_local(&token);
        let visa = AuditVisa::open(door, clock.clone(), shelf, keys, settings).await.expect("AuditVisa");
        let visa = Arc::new(visa);
        visa.set_endpoints(vec![
            endpoint("stripe", "stripe"),
            endpoint("other", "other"),
            wechat(),
            alipay(),
        ]);
        let state = State {
            visa: Arc::clone(&visa),
            clock: clock.clone(),
            tokens,
            metrics: None,
            limits: Limits::default(),
            trusted_proxies: vec!["10.0.0.0/8".parse().expect("a net")],
            checks,
            announcements: Announcements { destinations: vec!["log".into()], nudge: None },
            rebuild: None,
            supply: None,
        };
        let router = web::router(change(state));
        Self { visa, clock, folder, router, token }
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> Got {
        let response = self.router.clone().oneshot(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes().to_vec();
        Got { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.call(Request::get(path).body(Body::empty()).expect("a request")).await
    }

    /// As an operator with the local token.
    pub(crate) async fn order(&self, method: Method, path: &str) -> Got {
        self.call(self.operator(method, path).body(Body::empty()).expect("a request")).await
    }

    pub(crate) async fn order_with(&self, path: &str, input: &Json) -> Got {
        let request = self.operator(Method::POST, path).header("content-type", "application/json");
        self.call(request.body(Body::from(input.to_string())).expect("a request")).await
    }

    pub(crate) fn operator(&self, method: Method, path: &str) -> axum::http::request::Builder {
        let uri = format!("/api/v1/certify/{path}");
        Request::builder()
            .method(method)
            .uri(uri)
            .header("authorization", format!("Bearer {}", self.token.expose()))
    }

    /// A body, rightly signed, at the Stripe source.
    pub(crate) async fn deliver(&self, body: impl AsRef<[u8]>) -> Got {
        self.call(delivery("stripe", body.as_ref(), NOW)).await
    }

    /// Rows of everything that an arrival may write.
    pub(crate) async fn written(&self) -> Vec<i64> {
        let mut counts = Vec::new();
        for table in ["certify_events", "certify_arrivals", "certify_certificates", "audit_events", "outbox"]
        {
            counts.push(self.count(table).await);
        }
        counts.push(self.files().len().try_into().expect("few"));
        counts
    }

    pub(crate) async fn count(&self, table: &'static str) -> i64 {
        let query = Query::new("test.count", format!("select count(*) from {table}"), vec![]);
        self.visa.door().store().query(query).await.expect("a count")[0].int(0).expect("a number")
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.folder.path().join("deliveries")).expect("the shelf");
        let mut files: Vec<_> = listed.map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    }
}

fn endpoint(name: &str, account: &str) -> Endpoint {
    let mut settings = source::Settings::new(name, Kind::Stripe);
    settings.account = account.into();
    settings.secrets = vec![Secret::new(SECRET).expect("a secret")];
    let plain = if account == "stripe" { Plain::Yes } else { Plain::No };
    Endpoint { source: Source::new(settings).expect("a source"), plain, unstated: CertifiedMode::Live }
}

/// An endpoint that answers in another style; its keys are not used here.
fn wechat() -> Endpoint {
    let mut settings = source::Settings::new("wechat", Kind::WechatPay);
    settings.api_v3_key = Some(Secret::new("0123456789abcdefghijklmnopqrstuv").expect("a key"));
    let text = include_str!("keys/rsa-public.pem").into();
    settings.public_keys = vec![source::PublicKey { id: "PUB_KEY_ID_1".into(), text }];
    Endpoint {
        source: Source::new(settings).expect("a source"),
        plain: Plain::No,
        unstated: CertifiedMode::Live,
    }
}

fn alipay() -> Endpoint {
    let mut settings = source::Settings::new("alipay", Kind::Alipay);
    let text = include_str!("keys/rsa-public.pem").into();
    settings.public_keys = vec![source::PublicKey { id: String::new(), text }];
    Endpoint {
        source: Source::new(settings).expect("a source"),
        plain: Plain::No,
        unstated: CertifiedMode::Live,
    }
}

/// The sender's headers for a body.
pub(crate) fn signed(body: &[u8], at: i64) -> Vec<(String, String)> {
    let signer = Signer::new(Kind::Stripe, &Secret::new(SECRET).expect("a secret")).expect("a signer");
    signer.sign(body, at, "unused")
}

/// A rightly signed delivery.
pub(crate) fn delivery(source: &str, body: &[u8], at: i64) -> Request<Body> {
    let mut request = Request::post(format!("/webhooks/{source}"));
    for (name, value) in signed(body, at) {
        request = request.header(name, value);
    }
    request.body(Body::from(body.to_vec())).expect("a request")
}

/// The same as bytes on the wire; the connection stays open behind it.
pub(crate) fn wire(source: &str, body: &str) -> String {
    let mut text =
        format!("POST /webhooks/{source} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in signed(body.as_bytes(), NOW) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{text}\r\n{body}")
}

/// The paid checkout with another event id, as another payment has.
pub(crate) fn payment(id: &str) -> String {
    source::samples::CHECKOUT_PAID
        .replace("evt_1SkQl3B7WZ01zgkWh3b8kqQe", id)
        .replace(
            "cs_test_a1YS1URlnyQCN5fUUduORoQ7Pw41PJqDWkIVQCpJPqkfIhd6tVY8XB1OLY",
            &format!("cs_test_{}", id.len()),
        )
        .replace("pi_3SkQl0B7WZ01zgkW0Zc3hJ7Q", &format!("pi_{}", kernel::Digest::of(id.as_bytes())))
}

/// Path of a link in an answer.
pub(crate) fn path(answer: &Json, member: &str) -> String {
    let link = answer[member].as_str().expect("a link");
    link.strip_prefix("https://deliver.example.com").expect("our address").to_owned()
}

pub(crate) const fn ok() -> u16 {
    StatusCode::OK.as_u16()
}

fn certify_settings(policy: Policy) -> Settings {
    Settings {
        policy,
        issuer: Issuer { name: "Evan & Co".into(), url: "https://deliver.example.com".into() },
        announce: vec!["log".into()],
        announce_repeats: Vec::new(),
        wait: Duration::from_millis(500),
    }
}
