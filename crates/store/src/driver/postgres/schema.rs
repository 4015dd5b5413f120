//! Applies the schema's files to a PostgreSQL database while servers go on: each in one transaction, under
//! a lock that ends with it, so that any number of nodes may start at once, through a pooler too.

use std::time::Duration;

use tokio::time::Instant;

use super::connection::Connection;
use super::fault::Fault;
use super::pool::Pool;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::migration::{Chain, File, Older, Registered, failed, missing};
use crate::statement::Query;

/// What the engine needs of its own, before all chains.
pub(super) const ENGINE: Chain = Chain {
    name: "engine",
    files: &[File::new("postgres_functions_v1", include_str!("../../../sql/postgres_functions_v1.sql"))],
};

const REGISTRY: &str = "create table if not exists schema_migrations (
  name text primary key, checksum text not null, older_may_serve boolean not null, applied_at timestamptz not null)";
/// "onceseal" in ASCII: the lock that one node at a time changes the schema under.
const LOCK: &str = "select pg_advisory_xact_lock(8029123691098989932)";
/// For its turn: nobody's work queues behind this wait.
const TURN: &str = "set local lock_timeout = '3s'; set local statement_timeout = 0";
/// For the tables that a file touches: the statements of all servers queue behind this wait, so it is short,
/// and there is a pause before the next one.
const SHORT: &str = "set local lock_timeout = '500ms'";
/// What a file may take once it has its locks.
const FILE_WITHIN: Duration = Duration::from_secs(3600);
/// Between two tries: what queued behind the last one runs meanwhile.
const PAUSE: Duration = Duration::from_secs(1);

/// Brings the database up to all files of `chains`, in order, trying for as long as `patience` where others
/// are in the way. Running it again changes nothing.
///
/// # Errors
/// As [`missing`], when a statement fails, or when the patience is over.
pub(super) async fn run(pool: &Pool, chains: &[Chain], patience: Duration) -> Result<(), Error> {
    let chains = with_engine(chains);
    // Without the lock and without any right to change the schema, where there is nothing to be done.
    if missing(&chains, registered(pool).await?)?.is_empty() {
        return Ok(());
    }
    let end = Instant::now() + patience;
    loop {
        let mut connection = pool.get().await?;
        connection.at_rest = false;
        let step = next(&mut connection, &chains).await;
        let rested = connection.simple(if step.is_ok() { "commit" } else { "rollback" }).await;
        connection.at_rest = rested.is_ok();
        drop(connection);
        let fault = match (step, rested) {
            (Ok(true), Ok(_)) => continue,
            (Ok(false), _) => return Ok(()),
            (Ok(true), Err(fault)) | (Err(fault), _) => fault,
        };
        let Fault::Again(cause) = fault else { return Err(fault.into_error()) };
        if Instant::now() + PAUSE > end {
            return Err(gave_up(&cause, patience));
        }
        tracing::info!(%cause, "waiting for the schema: another node changes it, or a table is in use");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Applies the first file that is missing; `false` when none is.
async fn next(connection: &mut Connection, chains: &[Chain]) -> Result<bool, Fault> {
    connection
        .simple(&format!("begin; {TURN}; {LOCK}; {REGISTRY}; {SHORT}"))
        .await
        .map_err(setup("schema_migrations"))?;
    let registered = kept(connection).await?;
    let Some(file) = missing(chains, registered).map_err(Fault::Final)?.first().copied() else {
        return Ok(false);
    };
    let sql = Dialect::Postgres.render(file.sql);
    // Names and checksums are ours: letters, digits and underscores.
    let row = format!(
        "insert into schema_migrations values ('{}', '{}', {}, clock_timestamp())",
        file.name,
        file.checksum(),
        file.older == Older::MayServe
    );
    connection.simple_within(&format!("{sql}; {row}"), FILE_WITHIN).await.map_err(setup(file.name))?;
    tracing::info!(file = file.name, "schema file applied");
    Ok(true)
}

/// The files that the database has; changes nothing.
///
/// # Errors
/// As every read.
pub(super) async fn registered(pool: &Pool) -> Result<Vec<Registered>, Error> {
    let mut connection = pool.get().await?;
    let kept = kept(&mut connection).await;
    if let Err(fault) = &kept {
        pool.mind(&mut connection, fault);
    }
    kept.map_err(Fault::into_error)
}

async fn kept(connection: &mut Connection) -> Result<Vec<Registered>, Fault> {
    let there = Query::new("schema.there", "select to_regclass('schema_migrations') is not null", vec![]);
    let kept = Query::new(
        "schema.kept",
        "select name, checksum, older_may_serve, applied_at from schema_migrations",
        vec![],
    );
    connection.ready([(there.name, &there.sql, None)].into_iter()).await?;
    let answer = connection.read(&there).await?;
    if !answer.rows.first().is_some_and(|row| row.flag(0).unwrap_or(false)) {
        return Ok(Vec::new());
    }
    connection.ready([(kept.name, &kept.sql, None)].into_iter()).await?;
    let rows = connection.read(&kept).await?.rows;
    let read = rows.iter().map(|row| {
        let older = if row.flag(2)? { Older::MayServe } else { Older::MustStop };
        let (name, checksum) = (row.text(0)?.to_owned(), row.text(1)?.to_owned());
        Ok(Registered { name, checksum, older, applied_at: row.time(3)? })
    });
    read.collect::<Result<_, Error>>().map_err(Fault::Final)
}

pub(super) fn with_engine(chains: &[Chain]) -> Vec<Chain> {
    [&[ENGINE], chains].concat()
}

fn gave_up(cause: &Error, patience: Duration) -> Error {
    Error::Setup(format!(
        "the schema could not be brought up within {} s: {cause}; what was not applied is as it was. Another program changes the schema, or a long transaction uses a table: end it, then run this again",
        patience.as_secs()
    ))
}

/// A statement of a schema file that fails is a matter of the set-up, except where waiting helps.
fn setup(name: &'static str) -> impl Fn(Fault) -> Fault {
    move |fault| match fault {
        Fault::Again(_) => fault,
        other => Fault::Final(failed(name, &other.into_error().to_string())),
    }
}
