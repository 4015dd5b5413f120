//! A folder read as it is, whoever holds its lock: nothing is written, nothing is brought up.

use std::path::PathBuf;

use async_trait::async_trait;

use super::reader::Readers;
use super::{FILE, Sqlite, layout, schema, setup};
use crate::copy::Table;
use crate::driver::Driver;
use crate::error::Error;
use crate::migration::Registered;
use crate::statement::Query;
use crate::value::Row;
use crate::work::Work;

/// Readers of a folder.
#[derive(Debug)]
pub(crate) struct Look {
    readers: Readers,
}

impl Look {
    pub(crate) fn open(settings: &Sqlite) -> Result<Self, Error> {
        let path: PathBuf = settings.folder.join(FILE);
        if !path.is_file() {
            return Err(setup("there is no database in the data folder", &settings.folder));
        }
        Ok(Self { readers: Readers::start(&path, settings.readers.max(1), settings.cache_kib / 4)? })
    }
}

#[async_trait]
impl Driver for Look {
    fn enqueue(&self, work: Box<dyn Work>) {
        work.settled(Err(Error::Unavailable { cause: "the store was opened for reading".into() }));
    }

    async fn queries(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        self.readers.run(queries).await
    }

    fn waiting(&self) -> usize {
        0
    }

    async fn registered(&self) -> Result<Vec<Registered>, Error> {
        registered(&self.readers).await
    }

    async fn layout(&self) -> Result<Vec<Table>, Error> {
        layout::read(&self.readers.run(layout::queries()).await?)
    }
}

/// The schema files that the database has.
pub(super) async fn registered(readers: &Readers) -> Result<Vec<Registered>, Error> {
    let there = Query::new(
        "schema.there",
        "select count(*) from sqlite_schema where type = 'table' and name = 'schema_migrations'",
        vec![],
    );
    let there = readers.run(vec![there]).await?;
    if !there.iter().flatten().any(|row| row.flag(0).unwrap_or(false)) {
        return Ok(Vec::new());
    }
    let kept = Query::new("schema.kept", schema::KEPT, vec![]);
    let rows = readers.run(vec![kept]).await?;
    rows.iter().flatten().map(schema::registered_row).collect()
}
