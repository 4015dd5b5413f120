//! One walk over a table: what is new is added, or everything is compared and made equal. Both sides are read
//! in the order of the keys, a chunk at a time, so that no read of a living source is long. Not here: in which
//! order tables are walked, and when it is enough ([`super`]).

use std::collections::{BTreeMap, HashSet};

use super::canon::{self, Running, Side};
use super::sql::{self, Key, Range};
use super::table::Table;
use super::{Copy, Progress};
use crate::error::{Error, RaiseKind};
use crate::facade::Store;
use crate::statement::Write;
use crate::value::{Row, Value};

/// Rows of the source in one chunk.
const CHUNK: u32 = 1000;
/// Rows of the target read for a chunk: it may have some more, which are to be removed.
const CHUNK_THERE: u32 = 4 * CHUNK;
/// Rows that point forward in their own table, kept in mind until the table is walked through. They are rare:
/// what an event points at is nearly always older.
const FORWARD_MAX: usize = 100_000;

/// Name of its number and the highest one, for each table that has one, read at one moment: what was born later waits for the next
/// walk, and so does what points at it.
pub(super) type Bounds = BTreeMap<String, (String, i64)>;

/// What a walk over a table found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The table.
    pub table: String,
    /// Rows of the source.
    pub source: Side,
    /// Rows of the target, read again where something was written.
    pub target: Side,
    /// Rows that were written.
    pub written: u64,
}

impl Tally {
    /// Whether both sides have the same rows.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.source == self.target
    }
}

/// A row with its texts.
struct Read {
    key: Vec<u8>,
    text: Vec<u8>,
    values: Vec<Value>,
}

impl Copy {
    /// Adds what stands behind the target's last key. Quick, and blind for changes.
    pub(super) async fn append(
        &self,
        table: &Table,
        bounds: &Bounds,
        told: Progress<'_>,
    ) -> Result<u64, Error> {
        let last = self.target.query(sql::last(table)).await.map_err(|cause| failed(table, cause))?;
        let mut after = last.first().map(|row| row.values().to_vec());
        let (mut written, mut forward) = (0, Vec::new());
        loop {
            let range = Range { after: after.clone(), to: None, bounds: limits(table, bounds) };
            let rows = self.read(&self.source, table, &range, CHUNK).await?;
            let Some(last) = rows.last() else { break };
            after = Some(key_of(table, last));
            let plan = plan(table, rows.iter(), &mut forward)?;
            written += self.put(table, &plan, Some(bounds)).await?;
            told(&table.name, written);
        }
        self.point(table, forward, bounds).await?;
        Ok(written)
    }

    /// Compares all rows, and puts those that are missing or differ. Without bounds everything counts, up to
    /// the ends of both sides.
    pub(super) async fn compare(
        &self,
        table: &Table,
        bounds: Option<&Bounds>,
        told: Progress<'_>,
    ) -> Result<Tally, Error> {
        let filters = bounds.map_or_else(Vec::new, |bounds| limits(table, bounds));
        let here = async |after: Option<Key>| {
            let range = Range { after, to: None, bounds: filters.clone() };
            self.read(&self.source, table, &range, CHUNK).await
        };
        let (mut source, mut target) = (Running::default(), Running::default());
        let (mut written, mut forward) = (0, Vec::new());
        let (mut after, mut rows) = (None, here(None).await?);
        loop {
            let ends = rows.len() < CHUNK as usize;
            let to = rows.last().map(|last| key_of(table, last));
            // The end of a whole walk is the end of both sides.
            let upto = if ends && bounds.is_none() { None } else { to.clone() };
            let range = Range { after: after.clone(), to: upto, bounds: Vec::new() };
            let following = async { if ends { Ok(Vec::new()) } else { here(to.clone()).await } };
            let there = self.read(&self.target, table, &range, CHUNK_THERE);
            let (there, following) = futures::future::join(there, following).await;
            let (mut there, following) = (there?, following?);
            let known: HashSet<&[u8]> = there.iter().map(|row| row.text.as_slice()).collect();
            let plan =
                plan(table, rows.iter().filter(|row| !known.contains(row.text.as_slice())), &mut forward)?;
            if !plan.is_empty() {
                written += self.put(table, &plan, bounds).await?;
                there = self.read(&self.target, table, &range, CHUNK_THERE).await?;
            }
            rows.iter().for_each(|row| source.add(&row.text));
            there.iter().for_each(|row| target.add(&row.text));
            told(&table.name, source.rows());
            if ends {
                break;
            }
            (after, rows) = (to, following);
        }
        self.point(table, forward, bounds.unwrap_or(&Bounds::new())).await?;
        Ok(Tally { table: table.name.clone(), source: source.end(), target: target.end(), written })
    }

    /// Removes what the source does not have. Only where nobody writes to the source any more.
    pub(super) async fn prune(&self, table: &Table) -> Result<u64, Error> {
        let positions = table.key_positions();
        let (mut after, mut removed) = (None, 0);
        loop {
            let range = Range { after: after.clone(), to: None, bounds: Vec::new() };
            let there = self.read(&self.target, table, &range, CHUNK).await?;
            let Some(last) = there.last() else { return Ok(removed) };
            let to = Some(key_of(table, last));
            let range = Range { after, to: to.clone(), bounds: Vec::new() };
            let here = self.read(&self.source, table, &range, CHUNK_THERE).await?;
            let known: HashSet<&[u8]> = here.iter().map(|row| row.key.as_slice()).collect();
            let surplus = there.iter().filter(|row| !known.contains(row.key.as_slice()));
            let writes: Vec<Write> =
                surplus.map(|row| sql::remove(table, &taken(&row.values, &positions))).collect();
            if !writes.is_empty() {
                if table.append_only {
                    return Err(foreign(&format!("{} has rows that the source does not have", table.name)));
                }
                removed += writes.len() as u64;
                self.write(table, writes).await?;
            }
            after = to;
        }
    }

    /// Puts rows and gives their number. While the source goes on, a chunk with a row whose parent came too
    /// late for this walk is left to the next one.
    async fn put(&self, table: &Table, rows: &[Vec<Value>], bounds: Option<&Bounds>) -> Result<u64, Error> {
        match self.commit(sql::put(table, rows)).await {
            Ok(()) => Ok(rows.len() as u64),
            Err(Error::Raised(raise)) if bounds.is_some() && raise.kind == RaiseKind::Rule => {
                tracing::info!(table = table.name, rows = rows.len(), "rows wait for the next walk");
                Ok(0)
            }
            Err(cause) => Err(failed(table, cause)),
        }
    }

    /// Points rows at those of their own table that came after them.
    async fn point(
        &self,
        table: &Table,
        forward: Vec<(String, i64, Key)>,
        bounds: &Bounds,
    ) -> Result<(), Error> {
        let bound = bounds.get(&table.name).map_or(i64::MAX, |(_, bound)| *bound);
        let there = forward.into_iter().filter(|(_, value, _)| *value <= bound);
        let writes: Vec<Write> =
            there.map(|(column, value, key)| sql::point(table, &column, value, &key)).collect();
        for writes in writes.chunks(CHUNK as usize) {
            self.write(table, writes.to_vec()).await?;
        }
        Ok(())
    }

    async fn read(
        &self,
        store: &Store,
        table: &Table,
        range: &Range,
        limit: u32,
    ) -> Result<Vec<Read>, Error> {
        let rows = self.patiently(|| store.query(sql::read(table, range, limit))).await;
        let positions = table.key_positions();
        let read = |row: Row| {
            let values = row.values();
            Read {
                key: canon::key(table, &positions, values),
                text: canon::row(table, values),
                values: values.to_vec(),
            }
        };
        Ok(rows.map_err(|cause| failed(table, cause))?.into_iter().map(read).collect())
    }
}

/// Rows as they are put: what points forward into the own table points nowhere at first.
fn plan<'r>(
    table: &Table,
    rows: impl Iterator<Item = &'r Read>,
    forward: &mut Vec<(String, i64, Key)>,
) -> Result<Vec<Vec<Value>>, Error> {
    let own: Vec<usize> = table.own_parents().collect();
    let number = table.number().and_then(|name| table.position(name));
    let mut plan = Vec::new();
    for row in rows {
        let mut values = row.values.clone();
        for position in &own {
            let this = number.and_then(|at| int(values.get(at)));
            let Some(value) =
                int(values.get(*position)).filter(|value| this.is_none_or(|this| *value > this))
            else {
                continue;
            };
            if let (Some(slot), Some(column)) = (values.get_mut(*position), table.columns.get(*position)) {
                *slot = Value::Null;
                forward.push((column.name.clone(), value, key_of(table, row)));
            }
        }
        plan.push(values);
    }
    if forward.len() > FORWARD_MAX {
        return Err(Error::Setup(format!(
            "{}: more than {FORWARD_MAX} rows point at later ones",
            table.name
        )));
    }
    Ok(plan)
}

fn int(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Int(int)) => Some(*int),
        _ => None,
    }
}

fn key_of(table: &Table, row: &Read) -> Key {
    taken(&row.values, &table.key_positions())
}

fn taken(values: &[Value], positions: &[usize]) -> Key {
    positions.iter().filter_map(|position| values.get(*position).cloned()).collect()
}

/// What a table's rows must not exceed for a walk.
fn limits(table: &Table, bounds: &Bounds) -> Vec<(String, i64)> {
    let own = table.number().and_then(|number| Some((number.to_owned(), bounds.get(&table.name)?.1)));
    let others = table.parents.iter().filter(|parent| parent.table != table.name);
    let bounded = others.filter_map(|parent| {
        let (number, bound) = bounds.get(&parent.table)?;
        (*number == parent.to).then(|| (parent.column.clone(), *bound))
    });
    let mut limits: Vec<_> = own.into_iter().chain(bounded).collect();
    limits.sort();
    limits.dedup();
    limits
}

pub(super) fn failed(table: &Table, cause: Error) -> Error {
    match cause {
        known @ Error::Setup(_) => known,
        Error::Raised(raise) => Error::Setup(format!(
            "{}: the target refuses rows of the source ({raise}); run `onceseal check` on the source, and copy into an empty database",
            table.name
        )),
        other => Error::Setup(format!(
            "{}: {other}; what was copied stays, run `onceseal copy` again to go on",
            table.name
        )),
    }
}

pub(super) fn foreign(what: &str) -> Error {
    Error::Setup(format!(
        "the target is not empty and holds no copy of this source: {what}; give an empty database"
    ))
}
