//! A stranger's session with the database: it stays open, holds locks and transactions, and waits on its own
//! thread where it must not hold up the run.

use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// How long a log-in may take.
const LOGIN_WITHIN: Duration = Duration::from_secs(10);

/// Drives the conversations of all sessions; made at the first one.
static RUNTIME: LazyLock<std::io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build());

/// An open session; its transaction is rolled back when it is dropped.
pub(crate) struct Session {
    client: Client,
    conversation: JoinHandle<()>,
}

/// Statements on their way in a session of their own.
pub(crate) struct Sent(JoinHandle<Result<String>>);

fn runtime() -> Result<&'static Runtime> {
    RUNTIME.as_ref().map_err(|cause| anyhow::anyhow!("no runtime for sessions: {cause}"))
}

impl Session {
    /// Logs in at `url`.
    ///
    /// # Errors
    /// It is refused, or takes too long.
    pub(crate) fn open(url: &str) -> Result<Self> {
        let connecting = async {
            let (client, wire) = tokio_postgres::connect(url, NoTls).await?;
            let conversation = tokio::spawn(async move {
                // How it ends is seen by whoever asks next.
                let _ = wire.await;
            });
            Ok::<_, anyhow::Error>(Self { client, conversation })
        };
        let opened = runtime()?.block_on(async { tokio::time::timeout(LOGIN_WITHIN, connecting).await });
        opened.context("no log-in in time")?
    }

    /// Runs statements; gives the first column of the last row.
    ///
    /// # Errors
    /// The server's.
    pub(crate) fn run(&self, sql: &str) -> Result<String> {
        runtime()?.block_on(run(&self.client, sql))
    }

    /// Sends statements without waiting for their end.
    ///
    /// # Errors
    /// There is no runtime.
    pub(crate) fn send(self, sql: String) -> Result<Sent> {
        Ok(Sent(runtime()?.spawn(async move { run(&self.client, &sql).await })))
    }
}

impl Sent {
    /// Waits for their end.
    ///
    /// # Errors
    /// The server's.
    pub(crate) fn end(self) -> Result<String> {
        runtime()?.block_on(self.0)?
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.conversation.abort();
    }
}

async fn run(client: &Client, sql: &str) -> Result<String> {
    let mut last = String::new();
    for message in client.simple_query(sql).await.map_err(|cause| told(&cause))? {
        if let SimpleQueryMessage::Row(row) = message {
            last = row.get(0).unwrap_or_default().to_owned();
        }
    }
    Ok(last)
}

/// The server's own words; the library's say only that there are some.
fn told(cause: &tokio_postgres::Error) -> anyhow::Error {
    match cause.as_db_error() {
        Some(error) => anyhow::anyhow!("{} ({})", error.message(), error.code().code()),
        None => anyhow::anyhow!("{cause}"),
    }
}

/// Opens as many sessions as the server takes, at most `limit`; they end together.
///
/// # Errors
/// There is no runtime.
pub(crate) fn crowd(url: &str, limit: usize) -> Result<Vec<Session>> {
    let mut sessions = Vec::new();
    while sessions.len() < limit {
        match Session::open(url) {
            Ok(session) => sessions.push(session),
            Err(_) if sessions.is_empty() => bail!("the server takes no session at all"),
            Err(_) => break,
        }
    }
    Ok(sessions)
}
