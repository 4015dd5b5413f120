//! A node with AuditVisa: it starts as a server does, and again until it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use certify::keyring::Folder;
use certify::policy::Policy;
use certify::run::Issuer;
use certify::shelf::memory::{Files, Way};
use certify::shelf::{Form, Shelf};
use certify::{AuditVisa, Context, Settings};
use futures::future::BoxFuture;
use kernel::{Digest, Time};
use parking_lot::Mutex;
use serde_json::Value as Json;
use store::Query;
use testkit::history;

use super::Visa;
use super::event::{self, ENDPOINT, endpoint};
use crate::client::Clients;
use crate::domain::{REMOVED, SHOWN};
use crate::foreign::Foreign;
use crate::node::Node;
use crate::process::{Process, ProcessClock};
use crate::world::World;

/// Between two tries to start.
const AGAIN: Duration = Duration::from_millis(300);
/// How long a delivery waits for its twin.
const WAIT: Duration = Duration::from_millis(500);

/// What all nodes share.
pub(super) type Site<'s> = (&'s Arc<World>, &'s Arc<Foreign>, &'s Arc<Files>);

/// A node.
pub(super) struct House {
    pub(super) node: Node,
    visa: Arc<Mutex<Option<Arc<AuditVisa>>>>,
    sweeps: Arc<AtomicBool>,
    life: u32,
}

impl House {
    pub(super) fn start((world, foreign, files): Site<'_>, number: usize, life: u32) -> Self {
        let node = Node::start(world, foreign, number, life);
        let visa = Arc::default();
        let boot = Boot {
            world: Arc::clone(world),
            process: Arc::clone(&node.process),
            door: node.door.clone(),
            shelf: Shelf::in_memory(
                Arc::clone(files),
                Arc::new(Road {
                    world: Arc::clone(world),
                    foreign: Arc::clone(foreign),
                    process: Arc::clone(&node.process),
                }),
            ),
            visa: Arc::clone(&visa),
        };
        tokio::spawn(boot.run());
        Self { node, visa, sweeps: Arc::default(), life }
    }

    /// Dies and starts anew.
    pub(super) fn restart(&mut self, site: Site<'_>, clients: &Clients) {
        self.node.kill(site.0, clients);
        *self = Self::start(site, self.node.process.node, self.life + 1);
    }

    /// A sender delivers; `which` of the event's bodies.
    pub(super) fn deliver(&self, scene: &Visa, number: usize, which: usize) {
        let Some((body, payload)) = scene.senders.body(number, which) else { return };
        let (world, process) = (Arc::clone(&scene.world), Arc::clone(&self.node.process));
        let headers = scene.senders.headers(&body, world.now().seconds());
        let visa = self.visa.lock().clone();
        let key = event::key(number);
        scene.clients.send(&scene.world, &self.node.process, (key.clone(), payload), async move {
            process.pass().await;
            // Who is still starting takes no connection.
            let Some(visa) = visa else { return history::Answer::Unknown };
            let answer = received(&visa, &headers, body).await;
            process.pass().await;
            world.tell(|| format!("{} {key} is told {}", process.name, shown(&answer)));
            answer
        });
    }

    /// A whole sweep, unless one is under way.
    pub(super) fn reconcile(&self, world: &Arc<World>) {
        let Some(visa) = self.visa.lock().clone() else { return };
        if self.sweeps.swap(true, Ordering::Relaxed) {
            return;
        }
        let (world, process) = (Arc::clone(world), Arc::clone(&self.node.process));
        let sweeps = Arc::clone(&self.sweeps);
        tokio::spawn(async move {
            process.pass().await;
            let done = visa.reconcile("sim").await;
            world.tell(|| format!("{} reconciles: {done:?}", process.name));
            sweeps.store(false, Ordering::Relaxed);
        });
    }

    /// Somebody opens a certificate: what is given out has the hash on record.
    pub(super) fn fetch(&self, world: &Arc<World>) {
        let Some(visa) = self.visa.lock().clone() else { return };
        let rows = world.read(&Query::new("slugs", "select slug from certify_certificates", Vec::new()));
        let slugs: Vec<String> =
            rows.iter().flatten().filter_map(|row| row.text(0).ok().map(ToOwned::to_owned)).collect();
        let (Some(slug), Some(form)) = (world.pick(&slugs).cloned(), world.pick(&Form::ALL).copied()) else {
            return;
        };
        let (world, process) = (Arc::clone(world), Arc::clone(&self.node.process));
        tokio::spawn(async move {
            process.pass().await;
            let served = visa.delivered(&slug, form).await;
            world.tell(|| format!("{} gives out {slug}: {}", process.name, served.is_ok()));
            if served.is_ok_and(|served| Digest::of(&served.bytes) != served.hash) {
                world.find(format!("{slug}: other bytes were given out than the record says"));
            }
        });
    }

    /// What the program finds wrong with its own store and files.
    pub(super) async fn check(&self) -> Option<Json> {
        let visa = self.visa.lock().clone()?;
        visa.check().await.ok()?.get("list").cloned()
    }
}

/// The start of a node.
struct Boot {
    world: Arc<World>,
    process: Arc<Process>,
    door: door::Door,
    shelf: Shelf,
    visa: Arc<Mutex<Option<Arc<AuditVisa>>>>,
}

impl Boot {
    async fn run(self) {
        loop {
            self.process.pass().await;
            match self.open().await {
                Ok(visa) => {
                    *self.visa.lock() = Some(visa);
                    self.world.tell(|| format!("{} is ready", self.process.name));
                    return;
                }
                Err(cause) => self.world.tell(|| format!("{} can't start: {cause}", self.process.name)),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn open(&self) -> anyhow::Result<Arc<AuditVisa>> {
        let settings = Settings {
            policy: Policy::default(),
            issuer: Issuer { name: "Simulation".into(), url: "https://deliver.example.com".into() },
            announce: vec![SHOWN.into(), REMOVED.into()],
            announce_repeats: Vec::new(),
            wait: WAIT,
        };
        let clock =
            Arc::new(ProcessClock { world: Arc::clone(&self.world), process: Arc::clone(&self.process) });
        let keys = Folder::new(self.world.keys().to_owned(), None);
        let visa = AuditVisa::open(self.door.clone(), clock, self.shelf.clone(), keys, settings).await?;
        visa.set_endpoints(endpoint().into_iter().collect());
        visa.recover_at_start().await?;
        Ok(Arc::new(visa))
    }
}

fn shown(answer: &history::Answer) -> String {
    match answer {
        history::Answer::Finished(history::Finished { outcome, replayed, same, .. }) => {
            let outcome = String::from_utf8_lossy(outcome);
            format!("{outcome} (replayed {replayed}, same {same})")
        }
        other => format!("{other:?}"),
    }
}

async fn received(visa: &AuditVisa, headers: &[(String, String)], body: Bytes) -> history::Answer {
    let Some(endpoint) = visa.endpoint(ENDPOINT) else { return history::Answer::Unknown };
    let headers: Vec<(&str, &[u8])> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let context = Context { request_id: "req-1".into(), trace_id: "trace-1".into(), client_ip: None };
    // A clock that is hours off refuses right signatures; the sender comes again.
    let Ok(reply) = visa.receive(&endpoint, &headers, body, context).await else {
        return history::Answer::Unknown;
    };
    let content: Json = serde_json::from_str(&reply.body).unwrap_or_default();
    match reply.status {
        200 => history::Answer::Finished(history::Finished {
            outcome: outcome(&content),
            replayed: reply.replayed,
            same: content.get("payload_differs").is_none(),
            generation: None,
        }),
        202 => history::Answer::InProgress,
        _ => history::Answer::Unknown,
    }
}

/// What a result says for ever: where its certificate is and what it says, or why there is none.
pub(super) fn outcome(content: &Json) -> Vec<u8> {
    let part = |name| content.get(name).map(ToString::to_string).unwrap_or_default();
    ["html_url", "zip_url", "json_url", "run_hash", "signature", "reason"].map(part).join(" ").into_bytes()
}

/// The way to the files.
struct Road {
    world: Arc<World>,
    foreign: Arc<Foreign>,
    process: Arc<Process>,
}

impl Road {
    async fn pass(&self) -> Result<(), String> {
        self.process.pass().await;
        self.world.way().await;
        self.process.pass().await;
        if self.foreign.loses_a_file() { Err("no answer from the shelf".into()) } else { Ok(()) }
    }
}

impl Way for Road {
    fn there(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.pass())
    }

    fn back(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.pass())
    }

    fn now(&self) -> Time {
        self.world.now()
    }
}
