//! The acceptance gate of the supply side (supply specification, sections 6, 8 and 9): a server of its own on a fresh
//! database, spoken to over HTTP as by a stranger, with real faults in its database and real locks in its way; and a
//! report with all evidence, sealed.
//!
//! Modules in reading order: [`list`] (every check there is), [`check`] (one check and its evidence), [`database`] (the
//! database behind the product's back), [`node`] (a server), [`ground`] and [`stage`] (everything around it), [`desk`] (a supplier's
//! calls), [`raw`] (a request byte by byte), [`metrics`], [`scratch`], [`evidence`], [`proven`] (questions to which
//! nothing must be the answer), [`checks`] (what is checked, a file
//! a family), [`report`], [`sealed`].
//!
//! Not here: printing (`cli::gate`), and playing the market (`play`).

pub mod check;
pub mod checks;
pub mod database;
pub mod desk;
pub mod evidence;
pub mod ground;
pub mod list;
pub mod metrics;
pub mod node;
pub mod proven;
pub mod raw;
pub mod report;
pub mod scratch;
pub mod sealed;
pub mod stage;

use std::path::Path;

use check::{Book, Entry};
use database::{Address, Engine};
use stage::Stage;

/// What was found on one engine.
pub struct Held {
    /// All checks.
    pub entries: Vec<Entry>,
    /// The engine and its version.
    pub engine: String,
    /// What every mounted credential held.
    pub canary: String,
}

/// Holds the gate on one engine, in `folder`; on PostgreSQL in a database of its own on this server. Tells each family
/// of checks before it is made.
///
/// # Errors
/// The stage can't be set; whatever goes wrong later fails a check.
pub async fn hold(
    folder: &Path,
    server: Option<&Address>,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<Held, String> {
    tell("suppliers sell and earn");
    let stage = Stage::set(folder.to_owned(), server).await?;
    let version = match stage.engine {
        Engine::Sqlite => "select 'SQLite ' || sqlite_version()",
        Engine::Postgres => "select 'PostgreSQL ' || current_setting('server_version')",
    };
    let engine = stage.database.texts(version).await?.concat();
    let book = Book::new(stage.engine);
    for (name, family) in checks::FAMILIES {
        tell(name);
        family(&stage, &book).await;
    }
    let canary = stage.canary.clone();
    stage.end().await?;
    Ok(Held { entries: book.judged(), engine, canary })
}
