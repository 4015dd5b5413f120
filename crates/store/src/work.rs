//! One submission's life inside a transaction, without I/O: it names its reads, sees their rows, names
//! its writes. The driver runs both, so a driver may pipeline, group or repeat them.

use kernel::Time;

use crate::error::Error;
use crate::statement::{Query, Write};
use crate::value::Row;

/// What the driver runs: all reads, then all writes, in one transaction.
pub trait Work: Send {
    /// The reads. The first is the look-up of the key's record where there is a key.
    fn reads(&mut self) -> Vec<Query>;

    /// The writes, from the rows of each read and the store's time. May be empty.
    ///
    /// # Errors
    /// A damaged row, or the work's own refusal to go on; nothing is written then.
    fn writes(&mut self, rows: Vec<Vec<Row>>, now: Time) -> Result<Vec<Write>, Error>;

    /// Told once, after the commit or the failure. Must not block.
    fn settled(self: Box<Self>, end: Result<Written, Error>);
}

/// What committed: for each write, by its name, the rows it returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub(crate) returned: Vec<(&'static str, Vec<Row>)>,
}

impl Written {
    /// First row that the write called `name` returned.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.returned.iter().find(|(write, _)| *write == name).and_then(|(_, rows)| rows.first())
    }

    /// All rows that the write called `name` returned.
    #[must_use]
    pub fn rows(&self, name: &str) -> &[Row] {
        self.returned.iter().find(|(write, _)| *write == name).map_or(&[], |(_, rows)| rows)
    }
}
