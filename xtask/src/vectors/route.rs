//! The real router over a real store in a temporary folder; only the clock is set by hand.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request};
use certify::identity::Plain;
use certify::keyring::Folder;
use certify::policy::{CertifiedMode, Policy};
use certify::run::Issuer;
use certify::shelf::Shelf;
use certify::{AuditVisa, Endpoint, Settings};
use door::Door;
use http_body_util::BodyExt as _;
use serde_json::Value as Json;
use source::Kind;
use store::{Query, Store};
use tempfile::TempDir;
use testkit::{CountingRandom, MovableClock};
use tower::ServiceExt as _;
use web::health::Check;
use web::token::Tokens;
use web::{Announcements, Limits, State};

use super::case::{Case, Expected};

/// Everything that an arrival may write to.
const TABLES: [&str; 6] = [
    "certify_events",
    "certify_arrivals",
    "certify_certificates",
    "certify_payloads",
    "audit_events",
    "outbox",
];

/// An installation and its router.
pub(crate) struct Route {
    visa: Arc<AuditVisa>,
    clock: Arc<MovableClock>,
    router: Router,
    _folder: TempDir,
}

/// What became of a delivery.
pub(crate) struct Verdict {
    pub(crate) verdict: Expected,
    /// Whether any table grew.
    pub(crate) written: bool,
    status: u16,
    code: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({} {})", self.verdict, self.status, self.code)
    }
}

impl Route {
    /// An empty installation.
    ///
    /// # Errors
    /// The folder can't be used.
    pub(crate) async fn open() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let clock = Arc::new(MovableClock::at(0));
        let settings = store::Settings::folder(folder.path().join("data"));
        let chains = [store::migration::CORE, store::migration::CERTIFY];
        let store = Store::open(&settings, &chains, clock.clone()).await?;
        let door = Door::new(store, Arc::new(CountingRandom::default()));
        let shelf = Shelf::open(&folder.path().join("deliveries"))?;
        let keys = Folder::new(folder.path().join("keys"), None);
        let tokens = Tokens::new(door.clone(), clock.clone());
        let checks = vec![Check::shelf(&shelf)];
        let visa = Arc::new(AuditVisa::open(door, clock.clone(), shelf, keys, settings_of()).await?);
        let router = web::router(State {
            visa: Arc::clone(&visa),
            clock: clock.clone(),
            tokens,
            metrics: None,
            limits: Limits::default(),
            trusted_proxies: Vec::new(),
            checks,
            announcements: Announcements { destinations: Vec::new(), nudge: None },
            rebuild: None,
            supply: None,
        });
        Ok(Self { visa, clock, router, _folder: folder })
    }

    /// Delivers a case to an endpoint of its own, at its own time.
    ///
    /// # Errors
    /// The store can't be counted.
    pub(crate) async fn judge(&self, case: &Case) -> anyhow::Result<Verdict> {
        self.clock.set(case.now);
        let Some(source) = case.source() else {
            return Ok(Verdict::without("no endpoint starts with such a secret"));
        };
        let endpoint = Endpoint { source, plain: Plain::No, unstated: CertifiedMode::Live };
        self.visa.set_endpoints(vec![endpoint]);
        let mut request = Request::post("/webhooks/vectors");
        for (name, value) in &case.headers {
            let Ok(value) = HeaderValue::from_bytes(value) else {
                return Ok(Verdict::without("no HTTP header can hold such a value"));
            };
            request = request.header(name, value);
        }
        let request = request.body(Body::from(case.body.clone())).context("a request")?;
        let before = self.rows().await?;
        let response = self.router.clone().oneshot(request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        let written = self.rows().await? != before;
        let code = code(case.kind, &body);
        let verdict = if accepted(case, status, &code) { Expected::Accept } else { Expected::Reject };
        Ok(Verdict { verdict, written, status, code })
    }

    async fn rows(&self) -> anyhow::Result<Vec<i64>> {
        let counts = TABLES.map(|table| format!("(select count(*) from {table})")).join(", ");
        let query = Query::new("vectors.count", format!("select {counts}"), vec![]);
        let rows = self.visa.door().store().query(query).await?;
        let row = rows.first().context("a row of counts")?;
        Ok((0..TABLES.len()).map(|column| row.int(column)).collect::<Result<_, _>>()?)
    }
}

impl Verdict {
    /// Refused before any request could be made of it.
    fn without(why: &str) -> Self {
        Self { verdict: Expected::Reject, written: false, status: 0, code: why.into() }
    }
}

/// The signature is accepted when the answer is, or when what is refused came after the signature: a
/// vector's body need not be an event. `WeChat` Pay's vectors mean the whole notice, which must open.
fn accepted(case: &Case, status: u16, code: &str) -> bool {
    let after = ["BODY_", "ID_", "FIELD_", "RESOURCE_"].iter().any(|after| code.starts_with(after));
    match (status, case.kind) {
        (200..=299, _) => true,
        (_, Kind::WechatPay) => after && case.signature_only,
        _ => after,
    }
}

/// The code in an answer; `Alipay` is told none.
fn code(kind: Kind, body: &[u8]) -> String {
    let json: Json = serde_json::from_slice(body).unwrap_or_default();
    let member = |name: &str| json.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    match kind {
        // Its own form: the code stands in front of the message.
        Kind::WechatPay => member("message").split(':').next().unwrap_or_default().to_owned(),
        _ => member("code"),
    }
}

fn settings_of() -> Settings {
    Settings {
        policy: Policy::default(),
        issuer: Issuer { name: "Vectors".into(), url: "https://deliver.example.com".into() },
        announce: Vec::new(),
        announce_repeats: Vec::new(),
        wait: Duration::from_secs(2),
    }
}
