//! All rows of one store into another, of another engine too, while the source goes on being written: its
//! tables are walked until little is new, then the source is fenced, everything is compared once more, and
//! what both sides hold is counted and hashed.
//!
//! Modules in reading order: [`table`] (what is copied, as the engines themselves describe it: there is no
//! list to keep), `canon` (a row as text that no engine changes), `sql`, [`pass`] (one walk over a table).
//!
//! A copy may end anywhere and is begun again: what stands in the target already is found by its keys. Until
//! it is finished, no program that serves opens the target.
//!
//! Not here: the fence ([`Store::fence`]); whoever copies puts it up between [`Copy::catch_up`] and
//! [`Copy::last`].

pub mod pass;
pub mod table;

mod canon;
mod sql;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Time};
use sha2::{Digest as _, Sha256};

pub use canon::Side;
pub use pass::Tally;
pub use table::{Column, Kind, Parent, Table};

use crate::error::{Error, RaiseKind};
use crate::facade::{Settings, Store};
use crate::migration::{COPYING, Chain, FENCED, File, missing};
use crate::statement::{Query, Write};
use crate::value::Row;
use crate::values;
use crate::work::Batch;
use pass::{Bounds, failed, foreign};

/// Stands in a target from the first row to the last.
const MARK: Chain = Chain {
    name: "copy",
    files: &[File::new(
        COPYING,
        "create table copy_mark (source text primary key, started_at {time} not null, touched_at {time} not null, finished_at {time}) {strict};",
    )],
};
/// Tables that say something about their own database.
const OWN: [&str; 2] = ["schema_migrations", "copy_mark"];
/// Tries of a read or write while the engine can't be reached.
const TRIES_MAX: u32 = 8;
/// Pause before the second try; each further one doubles it, up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// For the target's schema.
const SCHEMA_WITHIN: Duration = Duration::from_secs(60);
/// Walks under the fence: one is enough, except where rows had to be removed or pointed forward.
const WALKS_MAX: usize = 3;

/// Told of a table and how many of its rows are behind.
pub type Progress<'p> = &'p (dyn Fn(&str, u64) + Sync);

/// A copy on its way.
pub struct Copy {
    source: Store,
    target: Store,
    tables: Vec<Table>,
    clock: Arc<dyn Clock>,
    /// Which source.
    id: String,
}

impl std::fmt::Debug for Copy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copy").field("tables", &self.tables.len()).finish_non_exhaustive()
    }
}

/// What stands in the target.
#[derive(Debug)]
pub enum Begun {
    /// A copy can go on.
    Copy(Box<Copy>),
    /// It is finished since then.
    Finished(Time),
}

impl Copy {
    /// Looks at both sides and makes the schema of an empty target, or finds the copy that was begun.
    ///
    /// # Errors
    /// [`Error::Setup`] when the target holds anything else, the source is not of this program's schema, or
    /// one of them can't be reached.
    pub async fn begin(
        source: &Store,
        target: &Settings,
        chains: &[Chain],
        clock: Arc<dyn Clock>,
    ) -> Result<Begun, Error> {
        let id = identity(source, chains).await?;
        let there = Store::look(target).await?;
        match begun(&there).await? {
            Some((of, _)) if of != id => return Err(foreign("it holds the copy of another installation")),
            Some((_, Some(finished))) => return Ok(Begun::Finished(finished)),
            Some(_) => {}
            None => unused(source, &there).await?,
        }
        drop(there);
        let chains = [chains, &[MARK]].concat();
        let target = Store::open_within(target, &chains, Arc::clone(&clock), SCHEMA_WITHIN).await?;
        let tables = table::joined(&of_rows(source).await?, &of_rows(&target).await?)?;
        let copy = Self { source: source.clone(), target, tables, clock, id };
        copy.mark().await?;
        Ok(Begun::Copy(Box::new(copy)))
    }

    /// The tables, parents first.
    #[must_use]
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Walks once behind a source that may go on: adds what is new, or compares everything.
    ///
    /// # Errors
    /// The engines'; what was copied stays.
    pub async fn catch_up(&self, walk: Walk, told: Progress<'_>) -> Result<u64, Error> {
        let bounds = self.bounds().await?;
        let mut written = 0;
        for table in &self.tables {
            written += match walk {
                Walk::Append => self.append(table, &bounds, told).await?,
                Walk::Compare => self.compare(table, Some(&bounds), told).await?.written,
            };
        }
        Ok(written)
    }

    /// Makes both sides equal and says what they hold. Nobody may write to the source any more.
    ///
    /// # Errors
    /// The engines'; what was copied stays.
    pub async fn last(&self, told: Progress<'_>) -> Result<Vec<Tally>, Error> {
        let mut tallies: Vec<Option<Tally>> = vec![None; self.tables.len()];
        for _ in 0..WALKS_MAX {
            let mut differ = Vec::new();
            for (table, slot) in self.tables.iter().zip(&mut tallies) {
                if slot.as_ref().is_some_and(Tally::agrees) {
                    continue;
                }
                let tally = self.compare(table, None, told).await?;
                if !tally.agrees() {
                    differ.push(table);
                }
                let before = slot.take().map_or(0, |earlier| earlier.written);
                *slot = Some(Tally { written: before + tally.written, ..tally });
            }
            if differ.is_empty() {
                break;
            }
            // Children first.
            for table in differ.into_iter().rev() {
                self.prune(table).await?;
            }
        }
        Ok(tallies.into_iter().flatten().collect())
    }

    /// Sets the counters behind the highest numbers and opens the target for programs that serve.
    ///
    /// # Errors
    /// The engine's; the target stays closed then.
    pub async fn finish(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let mut writes: Vec<Write> =
            self.tables.iter().filter_map(|table| self.target.count_on(table)).collect();
        let done = "update copy_mark set finished_at = $1 where source = $2";
        writes.push(Write::one("copy.finish", done, values![now, &self.id]));
        writes.push(Write::one(
            "copy.open",
            "delete from schema_migrations where name = $1",
            values![COPYING],
        ));
        self.commit(writes).await
    }

    async fn bounds(&self) -> Result<Bounds, Error> {
        let numbered = || self.tables.iter().filter_map(|table| Some((table, table.number()?)));
        let queries: Vec<Query> = numbered().map(|(table, number)| sql::bound(table, number)).collect();
        // All at one moment.
        let answers = self.patiently(|| self.source.queries(queries.clone())).await?;
        let bound = |rows: Vec<Row>| rows.first().map_or(Ok(0), |row| row.int(0));
        let bounds = numbered().zip(answers);
        bounds
            .map(|((table, number), rows)| Ok((table.name.clone(), (number.to_owned(), bound(rows)?))))
            .collect()
    }

    async fn mark(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let sql = "insert into copy_mark (source, started_at, touched_at) values ($1, $2, $3) on conflict do nothing";
        let (batch, answered) = Batch::new(vec![Write::any("copy.mark", sql, values![&self.id, now, now])]);
        self.target.enqueue(batch);
        settled(answered.await).map(drop)
    }

    /// Writes rows of one table.
    pub(super) async fn write(&self, table: &Table, writes: Vec<Write>) -> Result<(), Error> {
        if writes.is_empty() {
            return Ok(());
        }
        self.commit(writes).await.map_err(|cause| failed(table, cause))
    }

    /// Commits writes, with the mark: once the copy is finished, nothing of it is written any more. All of
    /// them may be written twice, so that a commit whose end is not known is simply done again.
    async fn commit(&self, writes: Vec<Write>) -> Result<(), Error> {
        let touch = "update copy_mark set touched_at = $1 where source = $2 and finished_at is null";
        let touch = Write::one("copy.touch", touch, values![self.clock.now(), &self.id]);
        let writes = [vec![touch], writes].concat();
        let end = self
            .patiently(async || {
                let (batch, answered) = Batch::new(writes.clone());
                self.target.enqueue(batch);
                settled(answered.await)
            })
            .await;
        match end {
            Err(Error::Raised(raise))
                if raise.write == "copy.touch" && matches!(raise.kind, RaiseKind::Rows { .. }) =>
            {
                Err(Error::Setup("another `onceseal copy` has finished this copy meanwhile".into()))
            }
            end => end.map(drop),
        }
    }

    /// Again, bounded, while an engine can't be reached.
    pub(super) async fn patiently<T>(&self, work: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
        let mut pause = PAUSE;
        for _ in 1..TRIES_MAX {
            match work().await {
                Err(Error::Unavailable { cause } | Error::Indeterminate { cause }) => {
                    tracing::info!(%cause, "the copy waits for the database");
                    tokio::time::sleep(pause).await;
                    pause = PAUSE_MAX.min(pause * 2);
                }
                end => return end,
            }
        }
        work().await
    }
}

/// How a source is walked that may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Behind the last key that was copied.
    Append,
    /// All of it.
    Compare,
}

/// Whether a store is fenced.
///
/// # Errors
/// As every read.
pub async fn is_fenced(store: &Store) -> Result<bool, Error> {
    Ok(store.registered().await?.iter().any(|kept| kept.name == FENCED))
}

/// Which installation this is: when its schema was made, to the microsecond, goes with every copy of it.
async fn identity(source: &Store, chains: &[Chain]) -> Result<String, Error> {
    let mut registered = source.registered().await?;
    let files: BTreeSet<&str> = chains.iter().flat_map(|chain| chain.files).map(|file| file.name).collect();
    let first = registered.iter().filter(|kept| files.contains(kept.name.as_str()));
    let first = first.min_by_key(|kept| (kept.applied_at, kept.name.clone()));
    let first = first.map(|kept| format!("{}\n{}", kept.name, kept.applied_at.micros()));
    registered.retain(|kept| kept.name != FENCED);
    match (first, missing(&source.chains(chains), registered)?.first()) {
        (Some(first), None) => Ok(hex::encode(Sha256::digest(first))),
        (None, _) => Err(Error::Setup("the source has no schema of ours; there is nothing to copy".into())),
        (_, Some(file)) => Err(Error::Setup(format!(
            "the source lacks the schema file {}; bring it up first with this program (`onceseal migrate up`)",
            file.name
        ))),
    }
}

/// The copy that was begun in a database, and when it was finished.
async fn begun(there: &Store) -> Result<Option<(String, Option<Time>)>, Error> {
    if !there.layout().await?.iter().any(|table| table.name == "copy_mark") {
        return Ok(None);
    }
    let query = Query::new("copy.marks", "select source, finished_at from copy_mark", Vec::new());
    let rows = there.query(query).await?;
    // Without a row, it ended between the schema and its mark.
    rows.first().map(|row| Ok((row.text(0)?.to_owned(), row.time_or_null(1)?))).transpose()
}

/// Nothing stands in the target but what the schema's own files put there, and what the source has as well.
async fn unused(source: &Store, there: &Store) -> Result<(), Error> {
    let tables = there.layout().await?;
    if tables.is_empty() {
        return Ok(());
    }
    if !tables.iter().any(|table| table.name == "schema_migrations") {
        let names: Vec<_> = tables.iter().take(3).map(|table| table.name.as_str()).collect();
        return Err(foreign(&format!("it has tables of another program ({})", names.join(", "))));
    }
    let ours = of_rows(source).await?;
    let only_ours = tables.iter().filter(|table| !OWN.contains(&table.name.as_str()));
    for theirs in only_ours {
        let Some(table) = ours.iter().find(|table| table.name == theirs.name) else {
            return Err(foreign(&format!("it has the table {}, which the source has not", theirs.name)));
        };
        let table = &table::join(table, theirs)?;
        let first = sql::read(table, &sql::Range::default(), 2);
        let (here, there) = (source.query(first.clone()).await?, there.query(first).await?);
        let texts = |rows: &[Row]| rows.iter().map(|row| canon::row(table, row.values())).collect::<Vec<_>>();
        let (here, there) = (texts(&here), texts(&there));
        if there.len() > 1 || there.iter().any(|row| !here.contains(row)) {
            return Err(foreign(&format!("its table {} has rows of its own", table.name)));
        }
    }
    Ok(())
}

/// The tables that hold what is copied.
async fn of_rows(store: &Store) -> Result<Vec<Table>, Error> {
    let mut tables = store.layout().await?;
    tables.retain(|table| !OWN.contains(&table.name.as_str()));
    Ok(tables)
}

fn settled<T>(
    answered: Result<Result<T, Error>, tokio::sync::oneshot::error::RecvError>,
) -> Result<T, Error> {
    answered.unwrap_or_else(|_| Err(Error::Indeterminate { cause: "the writer stopped".into() }))
}
