//! SQLite, the embedded default: WAL, `synchronous=FULL`, one writer thread with group commit, readers
//! on threads of their own, a lock on the folder.

mod connection;
mod layout;
mod look;
#[cfg(feature = "memory")]
pub(crate) mod memory;
mod reader;
mod schema;
mod writer;

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use kernel::Clock;

pub(crate) use self::look::Look;

use crate::copy::Table;
use crate::driver::Driver;
use crate::error::Error;
use crate::migration::{Chain, Registered};
use crate::statement::Query;
use crate::value::Row;
use crate::work::{Batch, Work};

/// Name of the database file in the data folder.
pub const FILE: &str = "state.db";
/// Name of the file whose lock says that a server uses the folder.
pub const LOCK: &str = "state.lock";

/// How to open the embedded store.
#[derive(Clone, Debug)]
pub struct Sqlite {
    /// Folder that holds [`FILE`] and [`LOCK`]. Made when missing.
    pub folder: PathBuf,
    /// Page cache of the writer in KiB; each reader takes a quarter of it.
    pub cache_kib: u32,
    /// Threads for reads, at least one.
    pub readers: usize,
}

impl Sqlite {
    /// The defaults for a folder: 24 MiB page cache for the writer, two readers with 6 MiB each.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), cache_kib: 24 * 1024, readers: 2 }
    }
}

/// The open engine. Closes its threads when it is dropped.
pub(crate) struct Engine {
    // Dropped in this order: the writer's connection goes last and takes the write-ahead file with it, so
    // that a stopped server leaves one whole file.
    readers: reader::Readers,
    writer: writer::Writer,
    path: PathBuf,
    clock: Arc<dyn Clock>,
    _lock: File,
}

impl Engine {
    pub(crate) fn open(settings: &Sqlite, chains: &[Chain], clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let folder = &settings.folder;
        std::fs::create_dir_all(folder)
            .map_err(|cause| setup(&format!("the data folder can't be made: {cause}"), folder))?;
        let lock = lock_folder(folder)?;
        let path = folder.join(FILE);
        let mut connection = connection::open_writer(&path, settings.cache_kib)?;
        schema::run(&mut connection, chains, clock.now())?;
        let readers = reader::Readers::start(&path, settings.readers.max(1), settings.cache_kib / 4)?;
        let writer = writer::Writer::start(connection, Arc::clone(&clock))?;
        Ok(Self { readers, writer, path, clock, _lock: lock })
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).finish_non_exhaustive()
    }
}

#[async_trait]
impl Driver for Engine {
    fn enqueue(&self, work: Box<dyn Work>) {
        self.writer.enqueue(work);
    }

    async fn queries(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        self.readers.run(queries).await
    }

    fn waiting(&self) -> usize {
        self.writer.waiting()
    }

    async fn copy_to(&self, target: PathBuf) -> Result<(), Error> {
        let path = self.path.clone();
        let copied = tokio::task::spawn_blocking(move || connection::copy(&path, &target)).await;
        copied.unwrap_or_else(|panic| Err(Error::Setup(format!("the copy stopped: {panic}"))))
    }

    async fn integrity(&self) -> Result<Vec<String>, Error> {
        let path = self.path.clone();
        // A connection of its own: the check reads the whole file, and the readers are for short reads.
        let checked = tokio::task::spawn_blocking(move || connection::check(&path)).await;
        let rows = checked.unwrap_or_else(|panic| Err(Error::Unavailable { cause: panic.to_string() }))?;
        let mut found = Vec::new();
        for row in rows {
            match row.text(0)? {
                "ok" => {}
                other => found.push(other.to_owned()),
            }
        }
        Ok(found)
    }

    fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.path.with_extension("db-wal")).map_or(0, |meta| meta.len())
    }

    async fn registered(&self) -> Result<Vec<Registered>, Error> {
        look::registered(&self.readers).await
    }

    async fn layout(&self) -> Result<Vec<Table>, Error> {
        layout::read(&self.readers.run(layout::queries()).await?)
    }

    async fn fence(&self) -> Result<(), Error> {
        let (mark, answered) = Batch::new(vec![schema::fence(self.clock.now())]);
        self.writer.close(mark);
        let end = answered.await.unwrap_or_else(|_| Err(stopped()));
        if !matches!(end, Ok(_) | Err(Error::Indeterminate { .. })) {
            self.writer.open();
        }
        end.map(drop)
    }

    async fn lift_fence(&self) -> Result<(), Error> {
        let (mark, answered) = Batch::new(vec![schema::unfence()]);
        self.writer.push(mark);
        answered.await.unwrap_or_else(|_| Err(stopped()))?;
        self.writer.open();
        Ok(())
    }

    fn is_fenced(&self) -> bool {
        self.writer.is_closed()
    }
}

/// Whether a server holds the folder's lock just now.
///
/// # Errors
/// [`Error::Setup`] when the lock file can't be opened.
pub fn is_locked(folder: &Path) -> Result<bool, Error> {
    if !folder.join(LOCK).exists() {
        return Ok(false);
    }
    match lock_folder(folder) {
        Ok(_) => Ok(false),
        Err(Error::Setup(text)) if text.contains(IN_USE) => Ok(true),
        Err(other) => Err(other),
    }
}

/// Lifts the fence of a folder that no server uses. Without a fence nothing happens.
///
/// # Errors
/// [`Error::Setup`] when a server uses the folder, or it can't be written.
pub fn lift_fence(folder: &Path) -> Result<(), Error> {
    let _lock = lock_folder(folder)?;
    let connection = connection::open_writer(&folder.join(FILE), 1024)?;
    connection::write(&connection, &schema::unfence())?;
    Ok(())
}

fn stopped() -> Error {
    Error::Indeterminate { cause: "the writer stopped".into() }
}

/// The lock of a data folder, free again when dropped: for a server whose store is elsewhere.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes it.
    ///
    /// # Errors
    /// [`Error::Setup`] when another server has it, or the folder can't be written.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        Ok(Self { _file: lock_folder(folder)? })
    }
}

const IN_USE: &str = "another server uses this data folder";

fn lock_folder(folder: &Path) -> Result<File, Error> {
    let open = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK));
    let file = open.map_err(|cause| setup(&format!("the data folder can't be written: {cause}"), folder))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(setup(&format!("{IN_USE}; stop it first, or give another folder"), folder))
        }
        Err(TryLockError::Error(cause)) => {
            Err(setup(&format!("the data folder can't be locked: {cause}"), folder))
        }
    }
}

fn setup(what: &str, folder: &Path) -> Error {
    Error::Setup(format!("{what} (storage.folder = {:?})", folder.display().to_string()))
}
