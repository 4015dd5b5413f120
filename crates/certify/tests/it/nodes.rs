//! Several nodes on one database: each with folders of its own, or with one keys folder that all mount.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use certify::answer::Reply;
use certify::keyring::{Error, Folder};
use certify::policy::Policy;
use certify::run::Issuer;
use certify::shelf::Shelf;
use certify::{AuditVisa, Settings};
use door::Door;
use kernel::Random;
use store::{Query, Store};
use tempfile::TempDir;
use testkit::{CountingRandom, MovableClock};

use crate::house::{NOW, context, endpoint, signed};

/// The database and what stands beside it.
pub(crate) struct Site {
    pub(crate) root: TempDir,
    pub(crate) clock: Arc<MovableClock>,
    /// The embedded engine has one owner, which the nodes of a test share.
    store: Store,
}

/// Counted bytes, others for each node.
#[derive(Debug)]
struct Own {
    node: u8,
    count: CountingRandom,
}

impl Random for Own {
    fn fill(&self, bytes: &mut [u8]) {
        self.count.fill(bytes);
        if let Some(first) = bytes.first_mut() {
            *first ^= self.node;
        }
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(MovableClock::at(NOW));
        let store = store(root.path(), &clock).await;
        Self { root, clock, store }
    }

    /// A node whose keys stand in `keys`. Where the engine is a server of its own, the node has connections
    /// of its own.
    pub(crate) async fn node(&self, number: u8, keys: &str) -> Result<Arc<AuditVisa>, Error> {
        self.node_at(number, (keys, "deliveries")).await
    }

    /// As [`Site::node`], with the files of its certificates in a folder of that name.
    pub(crate) async fn node_at(
        &self,
        number: u8,
        (keys, files): (&str, &str),
    ) -> Result<Arc<AuditVisa>, Error> {
        let store = match self.store.is_shared() {
            true => store(self.root.path(), &self.clock).await,
            false => self.store.clone(),
        };
        let random = Own { node: number, count: CountingRandom::default() };
        let shelf = Shelf::open(&self.root.path().join(files)).expect("a shelf");
        let settings = Settings {
            policy: Policy::default(),
            issuer: Issuer { name: "Evan & Co".into(), url: "https://deliver.example.com".into() },
            announce: vec!["log".into()],
            announce_repeats: Vec::new(),
            wait: Duration::from_secs(2),
        };
        let door = Door::new(store, Arc::new(random));
        let keys = Folder::new(self.keys(keys), None);
        let visa = AuditVisa::open(door, self.clock.clone(), shelf, keys, settings).await?;
        let visa = visa.on_node(format!("node-{number}"));
        visa.set_endpoints(vec![endpoint("stripe")]);
        visa.reached_at(format!("10.0.0.{number}:8080"));
        Ok(Arc::new(visa))
    }

    pub(crate) fn keys(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Names of the files in a keys folder.
    pub(crate) fn key_files(&self, name: &str) -> Vec<String> {
        let Ok(listed) = std::fs::read_dir(self.keys(name)) else { return Vec::new() };
        let mut names: Vec<_> =
            listed.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Copies what is missing from one keys folder into another, as an operator does.
    pub(crate) fn copy_keys(&self, from: &str, to: &str) {
        std::fs::create_dir_all(self.keys(to)).expect("a folder");
        for name in self.key_files(from) {
            let (from, to) = (self.keys(from).join(&name), self.keys(to).join(&name));
            std::fs::copy(from, to).expect("copied with its mode");
        }
    }

    pub(crate) async fn number(&self, sql: String) -> i64 {
        let rows = self.store.query(Query::new("test.number", sql, vec![])).await.expect("rows");
        rows[0].int(0).expect("a number")
    }

    pub(crate) async fn texts(&self, sql: &'static str) -> Vec<String> {
        let rows = self.store.query(Query::new("test.texts", sql, vec![])).await.expect("rows");
        rows.iter().map(|row| row.text(0).expect("text").to_owned()).collect()
    }
}

async fn store(root: &Path, clock: &Arc<MovableClock>) -> Store {
    let settings = testkit::postgres::settings(&root.join("data"));
    let chains = [store::migration::CORE, store::migration::CERTIFY];
    Store::open(&settings, &chains, clock.clone()).await.expect("a store")
}

pub(crate) async fn deliver(visa: &AuditVisa, body: &str) -> Reply {
    let endpoint = visa.endpoint("stripe").expect("an endpoint");
    let headers = signed(body, NOW);
    let headers: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
    let body = Bytes::copy_from_slice(body.as_bytes());
    visa.receive(&endpoint, &headers, body, context()).await.expect("a right signature")
}

/// The id of the key that a node signs with.
pub(crate) fn active(visa: &AuditVisa) -> String {
    visa.keys().active().expect("a key").id().to_string()
}
