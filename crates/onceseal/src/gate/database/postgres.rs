//! A database on a server, by sessions of the gate's own: made before, dropped after.

use std::fmt;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::Fault;

/// Where a database is, and the password that stands nowhere else.
#[derive(Clone)]
pub struct Address {
    config: Config,
    /// `postgres://user@host:port/name`: as a configuration has it.
    pub plain: String,
    /// The password, if there is one.
    pub password: Option<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plain)
    }
}

impl Address {
    /// From an address with everything in it.
    ///
    /// # Errors
    /// It is none; it is not repeated, since it may hold a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |_| "the database's address can't be read; write it like postgres://USER@HOST:PORT/NAME";
        let config: Config = text.parse().map_err(|cause: tokio_postgres::Error| wrong(cause).to_owned())?;
        let mut url = url::Url::parse(text).map_err(|_| "the database's address is no URL".to_owned())?;
        let password = url
            .password()
            .map(|word| percent_encoding::percent_decode_str(word).decode_utf8_lossy().into_owned());
        if url.set_password(None).is_err() {
            return Err("the database's address names no host".into());
        }
        Ok(Self { config, plain: url.to_string(), password })
    }

    /// With the password in it, as a driver takes it.
    ///
    /// # Errors
    /// The address names no host.
    pub fn whole(&self) -> Result<String, String> {
        let mut url = url::Url::parse(&self.plain).map_err(|cause| cause.to_string())?;
        if url.set_password(self.password.as_deref()).is_err() {
            return Err("the database's address names no host".into());
        }
        Ok(url.to_string())
    }

    /// Another database of the same server.
    ///
    /// # Errors
    /// The address has no path.
    pub fn named(&self, name: &str) -> Result<Self, String> {
        let mut url = url::Url::parse(&self.plain).map_err(|cause| cause.to_string())?;
        url.set_path(name);
        let mut config = self.config.clone();
        config.dbname(name);
        Ok(Self { config, plain: url.to_string(), password: self.password.clone() })
    }
}

/// A session; ended when dropped.
pub struct View {
    address: Address,
    client: Client,
    wire: JoinHandle<()>,
}

impl Drop for View {
    fn drop(&mut self) {
        self.wire.abort();
    }
}

impl View {
    pub(super) async fn open(address: &Address) -> Result<Self, String> {
        let fail = |cause: tokio_postgres::Error| format!("the database server can't be reached: {cause}");
        let (client, wire) = address.config.connect(NoTls).await.map_err(fail)?;
        let wire = tokio::spawn(async move {
            // What goes wrong is told by the statement that it happens to.
            let _ = wire.await;
        });
        Ok(Self { address: address.clone(), client, wire })
    }

    pub(super) async fn again(&self) -> Result<Self, String> {
        Self::open(&self.address).await
    }

    pub(super) async fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let told = self.client.simple_query(sql).await.map_err(|cause| worded(&cause))?;
        let rows = told.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).unwrap_or_default().to_owned()).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    pub(super) async fn run(&self, sql: &str) -> Result<(), String> {
        self.client.batch_execute(sql).await.map_err(|cause| worded(&cause))
    }
}

fn worded(cause: &tokio_postgres::Error) -> String {
    cause.as_db_error().map_or_else(|| cause.to_string(), |told| told.message().to_owned())
}

/// A trigger with this fault.
pub(super) fn trigger(verb: &str, table: &str, fault: Fault) -> String {
    let (body, kind, when) = match fault {
        Fault::Breaks => ("raise exception ''injected''", "trigger", "before"),
        Fault::Ignored => ("return null", "trigger", "before"),
        Fault::Hangs => ("perform pg_sleep(60); return new", "trigger", "before"),
        Fault::Slow => ("perform pg_sleep(0.02); return new", "trigger", "before"),
        Fault::AtCommit => ("raise exception ''injected''", "constraint trigger", "after"),
    };
    let deferred = if fault == Fault::AtCommit { "deferrable initially deferred" } else { "" };
    format!(
        "create or replace function gate_fault() returns trigger language plpgsql as 'begin {body}; end';
         create {kind} gate_fault {when} {verb} on {table} {deferred} for each row execute function gate_fault()"
    )
}
