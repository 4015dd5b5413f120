//! One installation in a temporary folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use certify::answer::Reply;
use certify::identity::Plain;
use certify::keyring::Folder;
use certify::policy::{CertifiedMode, Policy};
use certify::run::Issuer;
use certify::shelf::Shelf;
use certify::{AuditVisa, Context, Endpoint, Settings};
use door::Door;
use serde_json::Value as Json;
use source::{Kind, Secret, Signer, Source};
use store::{Query, Store};
use tempfile::TempDir;
use testkit::{CountingRandom, MovableClock};

pub(crate) const SECRET: &str = "whsec_for_tests_only";
/// 2026-01-02T00:00:00Z, after the samples' own times.
pub(crate) const NOW: i64 = 1_767_312_000;

pub(crate) struct House {
    pub(crate) visa: Arc<AuditVisa>,
    pub(crate) clock: Arc<MovableClock>,
    pub(crate) folder: TempDir,
}

impl House {
    pub(crate) async fn new() -> Self {
        Self::with(Policy::default()).await
    }

    pub(crate) async fn with(policy: Policy) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::open(folder, policy, &["log"]).await
    }

    pub(crate) async fn open(folder: TempDir, policy: Policy, announce: &[&str]) -> Self {
        let clock = Arc::new(MovableClock::at(NOW));
        let settings = testkit::postgres::settings(&folder.path().join("data"));
        let chains = [store::migration::CORE, store::migration::CERTIFY];
        let store = Store::open(&settings, &chains, clock.clone()).await.expect("a store");
        let door = Door::new(store, Arc::new(CountingRandom::default()));
        let shelf = Shelf::open(&folder.path().join("deliveries")).expect("a shelf");
        let keys = Folder::new(folder.path().join("keys"), None);
        let settings = Settings {
            policy,
            issuer: Issuer { name: "Evan & Co".into(), url: "https://deliver.example.com".into() },
            announce: announce.iter().map(ToString::to_string).collect(),
            announce_repeats: Vec::new(),
            wait: Duration::from_secs(2),
        };
        let visa = AuditVisa::open(door, clock.clone(), shelf, keys, settings).await.expect("AuditVisa");
        visa.set_endpoints(vec![endpoint("stripe"), endpoint("stripe-two")]);
        Self { visa: Arc::new(visa), clock, folder }
    }

    /// Closes the installation and opens it again on the same folder.
    pub(crate) async fn reopened(self) -> Self {
        let Self { visa, folder, .. } = self;
        drop(visa);
        Self::open(folder, Policy::default(), &["log"]).await
    }

    pub(crate) async fn deliver(&self, body: &str) -> Reply {
        self.deliver_at("stripe", body).await
    }

    pub(crate) async fn deliver_at(&self, source: &str, body: &str) -> Reply {
        let endpoint = self.visa.endpoint(source).expect("an endpoint");
        let headers = signed(body, NOW);
        let headers: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        let body = Bytes::copy_from_slice(body.as_bytes());
        self.visa.receive(&endpoint, &headers, body, context()).await.expect("a right signature")
    }

    pub(crate) async fn count(&self, table: &'static str) -> i64 {
        let query = Query::new("test.count", format!("select count(*) from {table}"), vec![]);
        self.visa.door().store().query(query).await.expect("a count")[0].int(0).expect("a number")
    }

    pub(crate) async fn shown(&self, event: &str) -> Json {
        self.visa.show(event, None).await.expect("a look").pop().expect("an event")
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.folder.path().join("deliveries")).expect("the shelf");
        let mut files: Vec<_> = listed.map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    }

    pub(crate) async fn problems(&self) -> Json {
        self.visa.check().await.expect("a check")["list"].clone()
    }
}

pub(crate) fn endpoint(name: &str) -> Endpoint {
    let mut settings = source::Settings::new(name, Kind::Stripe);
    settings.account = "stripe".into();
    settings.secrets = vec![Secret::new(SECRET).expect("a secret")];
    let source = Source::new(settings).expect("a source");
    Endpoint { source, plain: Plain::Yes, unstated: CertifiedMode::Live }
}

pub(crate) fn signed(body: &str, now: i64) -> Vec<(String, String)> {
    let signer = Signer::new(Kind::Stripe, &Secret::new(SECRET).expect("a secret")).expect("a signer");
    signer.sign(body.as_bytes(), now, "unused")
}

pub(crate) fn context() -> Context {
    Context { request_id: "req-1".into(), trace_id: "trace-1".into(), client_ip: Some("192.0.2.1".into()) }
}

pub(crate) fn json(reply: &Reply) -> Json {
    serde_json::from_str(&reply.body).expect("JSON")
}

/// The sample with another event id and session, as another payment has.
pub(crate) fn payment(number: u32) -> String {
    source::samples::CHECKOUT_PAID
        .replace("evt_1SkQl3B7WZ01zgkWh3b8kqQe", &format!("evt_{number}"))
        .replace(
            "cs_test_a1YS1URlnyQCN5fUUduORoQ7Pw41PJqDWkIVQCpJPqkfIhd6tVY8XB1OLY",
            &format!("cs_test_{number}"),
        )
        .replace("pi_3SkQl0B7WZ01zgkW0Zc3hJ7Q", &format!("pi_{number}"))
}
