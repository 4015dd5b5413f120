//! Applies the schema's files to a PostgreSQL database: each in one transaction, under a lock that ends
//! with it, so that any number of nodes may start at once, through a pooler too.

use super::connection::Connection;
use super::fault::Fault;
use super::pool::Pool;
use super::settings::Postgres;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::migration::{Chain, File, Older, Registered, failed, missing};
use crate::statement::Query;

/// What the engine needs of its own, before all chains.
const ENGINE: Chain = Chain {
    name: "engine",
    files: &[File::new("postgres_functions_v1", include_str!("../../../sql/postgres_functions_v1.sql"))],
};

const REGISTRY: &str = "create table if not exists schema_migrations (
  name text primary key, checksum text not null, older_may_serve boolean not null, applied_at timestamptz not null)";
/// "onceseal" in ASCII: the lock that one node at a time changes the schema under.
const LOCK: &str = "select pg_advisory_xact_lock(8029123691098989932)";
/// Waits for the schema lock and for the tables that a file touches; others' statements queue behind such
/// a wait, so it is short and tried again.
const PATIENCE: &str = "set local lock_timeout = '3s'; set local statement_timeout = 0";
/// Rounds: each applies a file or waits for whoever does.
const ROUNDS_MAX: usize = 60;

/// A file and whether a database has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The file's name.
    pub name: String,
    /// Whether it was applied.
    pub applied: bool,
}

/// The files of `chains` and whether the database has them; changes nothing.
///
/// # Errors
/// [`Error::Setup`] and [`Error::Unavailable`], as when it is opened.
pub async fn steps(settings: &Postgres, chains: &[Chain]) -> Result<Vec<Step>, Error> {
    let pool = Pool::new(settings)?;
    let mut connection = pool.get().await?;
    let chains = with_engine(chains);
    let registered = registered(&mut connection).await.map_err(Fault::into_error)?;
    let missing = missing(&chains, registered)?;
    let files = chains.iter().flat_map(|chain| chain.files);
    Ok(files
        .map(|file| Step {
            name: file.name.to_owned(),
            applied: !missing.iter().any(|other| other.name == file.name),
        })
        .collect())
}

/// Brings the database up to all files of `chains`, in order. Running it again changes nothing.
///
/// # Errors
/// As [`missing`], or when a statement fails.
pub(super) async fn run(pool: &Pool, chains: &[Chain]) -> Result<(), Error> {
    let chains = with_engine(chains);
    let mut connection = pool.get().await?;
    // Without the lock and without any right to change the schema, where there is nothing to be done.
    if missing(&chains, registered(&mut connection).await.map_err(Fault::into_error)?)?.is_empty() {
        return Ok(());
    }
    drop(connection);
    for _ in 0..ROUNDS_MAX {
        let mut connection = pool.get().await?;
        connection.at_rest = false;
        let end = next(&mut connection, &chains).await;
        let rested = connection.simple(if end.is_ok() { "commit" } else { "rollback" }).await;
        connection.at_rest = rested.is_ok();
        match (end, rested) {
            (Ok(true), Ok(_)) => {}
            (Ok(false), _) => return Ok(()),
            (Ok(true), Err(fault)) | (Err(fault), _) => match fault {
                Fault::Again(_) => {
                    tracing::info!("waiting for the schema: another node changes it, or a table is in use");
                }
                fault => return Err(fault.into_error()),
            },
        }
    }
    Err(Error::Setup("the schema is not up to date and its lock was never free; look for long transactions, then start again".into()))
}

/// Applies the first file that is missing; `false` when none is.
async fn next(connection: &mut Connection, chains: &[Chain]) -> Result<bool, Fault> {
    connection
        .simple(&format!("begin; {PATIENCE}; {LOCK}; {REGISTRY}"))
        .await
        .map_err(setup("schema_migrations"))?;
    let registered = registered(connection).await?;
    let Some(file) = missing(chains, registered).map_err(Fault::Final)?.first().copied() else {
        return Ok(false);
    };
    let sql = Dialect::Postgres.render(file.sql);
    // Names and checksums are ours: letters, digits and underscores.
    let row = format!(
        "insert into schema_migrations values ('{}', '{}', {}, now())",
        file.name,
        file.checksum(),
        file.older == Older::MayServe
    );
    connection.simple(&format!("{sql}; {row}")).await.map_err(setup(file.name))?;
    tracing::info!(file = file.name, "schema file applied");
    Ok(true)
}

async fn registered(connection: &mut Connection) -> Result<Vec<Registered>, Fault> {
    let there = Query::new("schema.there", "select to_regclass('schema_migrations') is not null", vec![]);
    let kept =
        Query::new("schema.kept", "select name, checksum, older_may_serve from schema_migrations", vec![]);
    connection.ready([(there.name, &there.sql, None)].into_iter()).await?;
    let answer = connection.read(&there).await?;
    if !answer.rows.first().is_some_and(|row| row.flag(0).unwrap_or(false)) {
        return Ok(Vec::new());
    }
    connection.ready([(kept.name, &kept.sql, None)].into_iter()).await?;
    let rows = connection.read(&kept).await?.rows;
    let read = rows.iter().map(|row| {
        let older = if row.flag(2)? { Older::MayServe } else { Older::MustStop };
        Ok(Registered { name: row.text(0)?.to_owned(), checksum: row.text(1)?.to_owned(), older })
    });
    read.collect::<Result<_, Error>>().map_err(Fault::Final)
}

fn with_engine(chains: &[Chain]) -> Vec<Chain> {
    [&[ENGINE], chains].concat()
}

/// A statement of a schema file that fails is a matter of the set-up, except where waiting helps.
fn setup(name: &'static str) -> impl Fn(Fault) -> Fault {
    move |fault| match fault {
        Fault::Again(_) => fault,
        other => Fault::Final(failed(name, &other.into_error().to_string())),
    }
}
