//! What a gate is held on: a fresh database, one server on it (on PostgreSQL two), a provider and an SMS service on
//! loopback, suppliers who have earned. Everything goes over HTTP, and every answer is kept for the search at the
//! end. Not here: what is checked.
//!
//! The first server runs with its scheduler, until what was sold is released. Then it is ended and started again
//! with a scheduler that never comes to its turn: from there on nothing happens by itself, and what the tables say
//! before and after a call can be compared.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kernel::Clock as _;
use parking_lot::Mutex;
use play::{Answer, Call, Client, Market, Phone, Provider, Supplier};
use serde_json::Value as Json;

use super::check::Check;
use super::database::{Address, Database, Engine};
use super::evidence::Redactor;
use super::ground::{Around, Place, admin, copied, database, keys, letters, listen, operator, port, prepare};
use super::node::Node;
use super::raw::Raw;
use crate::random::SystemClock;

/// Suppliers who have earned: one for each check that withdraws.
const EARNERS: usize = 44;
/// What each has earned at least, in CNY.
const EARNED: u64 = 1100;
/// Made at the same time.
const AT_ONCE: usize = 4;
/// How long releases may take.
const RELEASED_WITHIN: Duration = Duration::from_secs(60);
/// Between two looks at something that comes by itself.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The scheduler never comes to its turn.
const STILL: &str = "supply.scheduler_interval=10m";
/// Everything that was answered: where, and all of it.
pub type Tape = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// The stage.
pub struct Stage {
    /// Which engine.
    pub engine: Engine,
    /// The database behind the product's back.
    pub database: Database,
    /// The provider of models.
    pub provider: Provider,
    /// The SMS service.
    pub phone: Phone,
    /// The platform, and a client of the first server.
    pub market: Market,
    /// A client of the other server; on SQLite there is one only.
    pub second: Client,
    /// Everything that was answered.
    pub tape: Tape,
    /// What every mounted credential holds.
    pub canary: String,
    folder: PathBuf,
    redactor: Redactor,
    earners: Mutex<Vec<Supplier>>,
    places: Vec<Place>,
    nodes: tokio::sync::Mutex<Vec<Node>>,
    count: AtomicUsize,
    server: Option<(Address, String)>,
}

impl Stage {
    /// Sets everything up below `folder`; on PostgreSQL a database is made on the server at this address.
    ///
    /// # Errors
    /// A part does not start; says which and why.
    pub async fn set(folder: PathBuf, server: Option<&Address>) -> Result<Self, String> {
        let made = database(server).await?;
        let address = made.as_ref().map(|(server, name)| server.named(name)).transpose()?;
        let fail = |cause: std::io::Error| format!("no port on loopback: {cause}");
        let (provider, phone) = (Provider::start().await.map_err(fail)?, Phone::start().await.map_err(fail)?);
        let around = Around { provider: provider.address(), phone: phone.address() };
        let first = folder.join("node-1");
        let mut place = prepare(&first, address.as_ref(), &around)?;
        keys(&first)?;
        let node = Node::start(place.config.clone(), place.log.clone(), listen(&place)).await?;
        place.port = port(&node.base)?;
        let database = match &address {
            None => Database::sqlite(&first.join("data"))?,
            Some(address) => Database::postgres(address).await?,
        };
        let tape = Tape::default();
        let client = watched(&node.base, &tape)?;
        let admin = admin(&place.config).await?;
        let mut stage = Self {
            engine: database.engine(),
            database,
            provider,
            phone,
            second: client.clone(),
            market: Market::new(client, admin),
            tape,
            canary: letters(40),
            folder,
            redactor: Redactor::new()?,
            earners: Mutex::default(),
            places: vec![place],
            nodes: tokio::sync::Mutex::new(vec![node]),
            count: AtomicUsize::new(1),
            server: made,
        };
        stage.sold().await?;
        stage.stilled(address.as_ref()).await?;
        Ok(stage)
    }

    /// Suppliers sell, until what they earned is released.
    async fn sold(&self) -> Result<(), String> {
        self.market.floors().await?;
        let now = SystemClock.now().to_rfc3339_millis();
        let earner = async || {
            let owner = self.supplier().await?;
            self.market.earn(&owner, &self.credential(), EARNED, &now).await?;
            Ok::<_, String>(owner)
        };
        for _ in 0..EARNERS / AT_ONCE {
            let four = futures::future::try_join_all((0..AT_ONCE).map(|_| earner())).await?;
            self.earners.lock().extend(four);
        }
        let pending = "select count(*) from supply_earnings where status = 'pending'";
        self.awaited("the earnings' release", RELEASED_WITHIN, async || {
            Ok(self.database.count(pending).await? == 0)
        })
        .await
    }

    /// Starts the servers again, with nothing that happens by itself.
    async fn stilled(&mut self, address: Option<&Address>) -> Result<(), String> {
        let first = self.folder.join("node-1");
        self.restart(End::InOrder).await?;
        if address.is_none() {
            return Ok(());
        }
        let folder = self.folder.join("node-2");
        let around = Around { provider: self.provider.address(), phone: self.phone.address() };
        let mut place = prepare(&folder, address, &around)?;
        let keys = |folder: &Path| folder.join("data").join(crate::wiring::KEYS);
        copied(&keys(&first), &keys(&folder))
            .map_err(|cause| format!("the keys can't be copied: {cause}"))?;
        let mut settings = listen(&place);
        settings.push(STILL.into());
        let node = Node::start(place.config.clone(), place.log.clone(), settings).await?;
        place.port = port(&node.base)?;
        self.second = watched(&node.base, &self.tape)?;
        self.places.push(place);
        self.nodes.lock().await.push(node);
        Ok(())
    }

    /// Ends the first server and starts it again at the same port, without a scheduler.
    ///
    /// # Errors
    /// It does not end or start.
    pub async fn restart(&self, end: End) -> Result<(), String> {
        let mut nodes = self.nodes.lock().await;
        let place = self.places.first().ok_or("there is no server")?;
        if !nodes.is_empty() {
            let first = nodes.remove(0);
            match end {
                End::InOrder => first.stop().await?,
                End::Killed => first.kill()?,
            }
        }
        let mut settings = listen(place);
        settings.push(STILL.into());
        nodes.insert(0, Node::start(place.config.clone(), place.log.clone(), settings).await?);
        Ok(())
    }

    /// Ends everything and drops the database.
    ///
    /// # Errors
    /// A server does not end well, or the database can't be dropped.
    pub async fn end(self) -> Result<(), String> {
        for node in self.nodes.into_inner() {
            node.stop().await?;
        }
        drop(self.database);
        if let Some((server, name)) = self.server {
            Database::postgres(&server).await?.run(&format!("drop database {name} with (force)")).await?;
        }
        Ok(())
    }

    /// A number that nothing else has.
    pub fn next(&self) -> usize {
        self.count.fetch_add(1, Ordering::SeqCst)
    }

    /// A credential that nobody mounted yet; the canary is in it.
    pub fn credential(&self) -> String {
        format!("sk-{}{:06}", self.canary, self.next())
    }

    /// A supplier who has nothing yet.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn supplier(&self) -> Result<Supplier, String> {
        self.market.supplier(&format!("supplier-{}", self.next())).await
    }

    /// A supplier who has earned.
    ///
    /// # Errors
    /// All were taken.
    pub fn earner(&self) -> Result<Supplier, String> {
        self.earners.lock().pop().ok_or_else(|| "no supplier is left who has earned".to_owned())
    }

    /// Waits until something is so.
    ///
    /// # Errors
    /// It is not within this time.
    pub async fn awaited(
        &self,
        what: &str,
        within: Duration,
        so: impl AsyncFn() -> Result<bool, String>,
    ) -> Result<(), String> {
        let since = Instant::now();
        while since.elapsed() < within {
            if so().await? {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(format!("{what} did not come within {} s", within.as_secs()))
    }

    /// Sends a call to the first server and notes it.
    ///
    /// # Errors
    /// No whole answer came.
    pub async fn send(&self, check: &mut Check, call: &Call) -> Result<Answer, String> {
        let answer = self.market.client.send(call).await?;
        self.noted(check, call, &answer).await?;
        Ok(answer)
    }

    /// Notes an answer: its request, and what the audit says of it.
    ///
    /// # Errors
    /// The audit can't be read.
    pub async fn noted(&self, check: &mut Check, call: &Call, answer: &Answer) -> Result<(), String> {
        check.sent(&answer.request_id, format!("{} {}", call.method, call.path), answer.code());
        self.sampled(check, &answer.request_id).await
    }

    /// Takes what the audit says of a request into the evidence.
    ///
    /// # Errors
    /// The audit can't be read.
    pub async fn sampled(&self, check: &mut Check, request_id: &str) -> Result<(), String> {
        if !check.wants_samples() || !request_id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        {
            return Ok(());
        }
        for row in self.redactor.audit(&self.database, request_id).await? {
            check.sample(row);
        }
        Ok(())
    }

    /// A text without what looks like a credential, for the evidence.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        self.redactor.guard().redact(text).into_owned()
    }

    /// Sends a request as it is written, and notes it.
    ///
    /// # Errors
    /// No answer came.
    pub async fn raw(&self, check: &mut Check, raw: &Raw) -> Result<Answer, String> {
        let answer = raw.send(&self.base()).await?;
        let path = raw.target.split(['?', ';']).next().unwrap_or_default();
        check.sent(&answer.request_id, format!("{} {path}", raw.method), answer.code());
        kept(&self.tape, path, &answer);
        Ok(answer)
    }

    /// The first server's address.
    #[must_use]
    pub fn base(&self) -> String {
        let port = self.places.first().map_or(0, |place| place.port);
        format!("http://127.0.0.1:{port}")
    }

    /// The servers' logs, whole.
    #[must_use]
    pub fn logs(&self) -> Vec<(String, Vec<u8>)> {
        let read = |(number, place): (usize, &Place)| {
            (format!("server log {}", number + 1), std::fs::read(&place.log).unwrap_or_default())
        };
        self.places.iter().enumerate().map(read).collect()
    }

    /// The folder of the first server's data.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.join("node-1").join("data")
    }

    /// The folder of everything.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// One more database on the server, if there is one.
    ///
    /// # Errors
    /// It can't be made.
    pub async fn another(&self) -> Result<Option<(Address, String)>, String> {
        database(self.server.as_ref().map(|(server, _)| server)).await
    }

    /// An answer of the operator API to the first server's operator.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn operator(&self, path: &str) -> Result<Answer, String> {
        // Each start of a server makes another token for the commands on its machine.
        let token = operator(&self.data())?;
        let call = Call { key: None, ..Call::get(format!("/api/v1/certify{path}"), &token) };
        self.market.client.send(&call).await?.done()
    }

    /// The folders that statements stand in.
    #[must_use]
    pub fn shelves(&self) -> Vec<PathBuf> {
        let shelf = |place: &Place| place.config.with_file_name("data").join(crate::wiring::DELIVERIES);
        self.places.iter().map(shelf).collect()
    }

    /// Clients of all servers.
    #[must_use]
    pub fn clients(&self) -> Vec<&Client> {
        match self.engine {
            Engine::Sqlite => vec![&self.market.client],
            Engine::Postgres => vec![&self.market.client, &self.second],
        }
    }

    /// What an operator reads at this address of the operator API, as JSON.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn operated(&self, path: &str) -> Result<Json, String> {
        Ok(self.operator(path).await?.json())
    }
}

/// How a server is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is told to.
    InOrder,
    /// As by a power cut.
    Killed,
}

fn kept(tape: &Tape, place: &str, answer: &Answer) {
    let mut bytes = Vec::new();
    for (name, value) in &answer.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(&answer.body);
    tape.lock().push((format!("answer of {place}"), bytes));
}

fn watched(base: &str, tape: &Tape) -> Result<Client, String> {
    let tape = Arc::clone(tape);
    Ok(Client::new(base)?.watched(Arc::new(move |call, answer| kept(&tape, &call.path, answer))))
}
