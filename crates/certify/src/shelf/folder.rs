//! Files in a folder: a server's own, or one that many share. A file is written aside and appears by a
//! rename; that is the only step that publishes.

use std::fs::{File, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Result as IoResult, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kernel::Random;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};

use super::cause::Error;
use super::{Form, Pace, Place, name};

/// Folder of unfinished files, inside a shared one.
const ASIDE: &str = ".part";
/// Age at which an unfinished file in a shared folder is nobody's. Far above every lease, which lasts
/// minutes, so that no pause of a server makes it lose a file that it is still to rename.
const LEFTOVER_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder of this server's own.
pub(super) struct Own {
    objects: LocalFileSystem,
    folder: PathBuf,
}

impl Own {
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        let fail = |cause: String| unusable(folder, cause);
        std::fs::create_dir_all(folder).map_err(|cause| fail(cause.to_string()))?;
        writable(folder).map_err(|cause| fail(cause.to_string()))?;
        let objects = LocalFileSystem::new_with_prefix(folder).map_err(|cause| fail(cause.to_string()))?;
        Ok(Self { objects, folder: folder.to_owned() })
    }
}

impl Place for Own {
    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let put = self.objects.put(&Name::from(name), PutPayload::from(bytes)).await;
            put.map(drop).map_err(|cause| Error::local("writing", name, &cause))
        })
    }

    /// Side by side they would only spin on the folder's lock.
    fn pace(&self) -> Pace {
        Pace::OneByOne
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, Error>> {
        Box::pin(get(&self.objects, name))
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(remove(&self.objects, name))
    }

    fn names(&self) -> BoxStream<'_, Result<(String, i64), Error>> {
        names(&self.objects)
    }

    fn sync(&self, slugs: Vec<String>) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        let folder = self.folder.clone();
        Box::pin(blocking("syncing", "deliveries", move || {
            let missing = each_file(&folder, &slugs, File::sync_all)?;
            File::open(folder)?.sync_all()?;
            Ok(missing)
        }))
    }

    fn sweep(&self) -> IoResult<u32> {
        let mut swept = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            // `LocalFileSystem` writes to `name#number` and renames.
            if entry.file_name().to_string_lossy().contains('#') {
                std::fs::remove_file(entry.path())?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Error>> {
        let folder = self.folder.clone();
        Box::pin(blocking("probing", "deliveries", move || writable(&folder)))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// A folder that many servers share.
pub(super) struct Shared {
    objects: LocalFileSystem,
    aside: Arc<Aside>,
}

/// Where a server keeps its unfinished files, and how it names them.
struct Aside {
    folder: PathBuf,
    /// Tells this server's unfinished files from all others': a name that two servers wrote to could be
    /// renamed by one while the other is half way.
    mark: String,
    count: AtomicU64,
}

impl Shared {
    pub(super) fn open(folder: &Path, random: &dyn Random) -> Result<Self, Error> {
        let fail = |cause: String| unusable(folder, cause);
        if !folder.is_dir() {
            return Err(fail("there is no such folder; mount it or make it, then start again".into()));
        }
        let mut mark = [0; 8];
        random.fill(&mut mark);
        let aside = Aside { folder: folder.to_owned(), mark: hex::encode(mark), count: AtomicU64::default() };
        aside.probe().map_err(|cause| fail(cause.to_string()))?;
        let objects = LocalFileSystem::new_with_prefix(folder).map_err(|cause| fail(cause.to_string()))?;
        Ok(Self { objects, aside: Arc::new(aside) })
    }

    /// Work on the folder, off the runtime's threads.
    fn blocking<'a, T: Send + 'static>(
        &self,
        what: &'static str,
        name: &'a str,
        work: impl FnOnce(&Aside) -> IoResult<T> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, Error>> {
        let aside = Arc::clone(&self.aside);
        Box::pin(blocking(what, name, move || work(&aside)))
    }
}

impl Place for Shared {
    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<(), Error>> {
        let owned = name.to_owned();
        self.blocking("writing", name, move |aside| aside.publish(&owned, &bytes))
    }

    /// Each waits for the disk; together they share its waits.
    fn pace(&self) -> Pace {
        Pace::Together
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, Error>> {
        Box::pin(get(&self.objects, name))
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(remove(&self.objects, name))
    }

    fn names(&self) -> BoxStream<'_, Result<(String, i64), Error>> {
        names(&self.objects)
    }

    /// Whoever wrote a file synced it: no other machine can. Here it is only missed.
    fn sync(&self, slugs: Vec<String>) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        self.blocking("looking up", "deliveries", move |aside| {
            // Servers may run for months; the leftovers of those that died must not wait for a start.
            aside.sweep()?;
            each_file(&aside.folder, &slugs, |_| Ok(()))
        })
    }

    fn sweep(&self) -> IoResult<u32> {
        self.aside.sweep()
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.blocking("probing", "deliveries", Aside::probe)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.aside.folder.join(name)
    }
}

impl Aside {
    /// A file that nobody else has or will ever have: mark and count make its name, and it must be new.
    fn create(&self, name: &str) -> IoResult<(File, PathBuf)> {
        let aside = self.folder.join(ASIDE);
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let path = aside.join(format!("{name}#{}-{count}", self.mark));
        let create = || OpenOptions::new().write(true).create_new(true).open(&path);
        let file = match create() {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                // Another server may make it at the same moment.
                match std::fs::create_dir(&aside) {
                    Err(cause) if cause.kind() != ErrorKind::AlreadyExists => return Err(cause),
                    _ => create()?,
                }
            }
            created => created?,
        };
        Ok((file, path))
    }

    fn publish(&self, name: &str, bytes: &[u8]) -> IoResult<()> {
        let (file, aside) = self.create(name)?;
        let target = self.folder.join(name);
        let published = write(file, bytes).and_then(|()| std::fs::rename(&aside, &target));
        match published {
            Ok(()) => {}
            // A file server that lost its answer says of a rename sent twice that the source is gone.
            Err(cause) if cause.kind() == ErrorKind::NotFound && stands(&target, bytes) => {}
            Err(cause) => {
                // What can't be removed is swept when it is old.
                let _ = std::fs::remove_file(&aside);
                return Err(cause);
            }
        }
        match File::open(&self.folder)?.sync_all() {
            // Such a file system syncs names with their files, or offers no way to.
            Err(cause) if matches!(cause.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            synced => synced,
        }
    }

    /// Ages are told by the folder's own clock: a server's may be off by hours.
    fn sweep(&self) -> IoResult<u32> {
        let (file, path) = self.create("clock")?;
        let now = file.metadata().and_then(|meta| meta.modified());
        std::fs::remove_file(path)?;
        let now = now?;
        let mut swept = 0;
        for entry in std::fs::read_dir(self.folder.join(ASIDE))? {
            let entry = entry?;
            // Whatever is gone by now was renamed or swept by another server.
            let Ok(changed) = entry.metadata().and_then(|meta| meta.modified()) else { continue };
            if now.duration_since(changed).is_ok_and(|age| age >= LEFTOVER_AFTER)
                && std::fs::remove_file(entry.path()).is_ok()
            {
                swept += 1;
            }
        }
        Ok(swept)
    }

    fn probe(&self) -> IoResult<()> {
        let (_, path) = self.create("probe")?;
        std::fs::remove_file(path)
    }
}

/// Synced before it is renamed: only the machine that wrote a file can sync it, and only a sync tells that a
/// file server didn't take it.
fn write(mut file: File, bytes: &[u8]) -> IoResult<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

fn stands(path: &Path, bytes: &[u8]) -> bool {
    std::fs::read(path).is_ok_and(|found| found == bytes)
}

fn writable(folder: &Path) -> IoResult<()> {
    let probe = folder.join(".writable");
    std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe))
}

/// Visits all files of certificates; gives the slugs of which one is not there.
fn each_file(
    folder: &Path,
    slugs: &[String],
    visit: impl Fn(&File) -> IoResult<()>,
) -> IoResult<Vec<String>> {
    let mut missing = Vec::new();
    for slug in slugs {
        let mut whole = true;
        for form in Form::ALL {
            match File::open(folder.join(name(slug, form))) {
                Ok(file) => visit(&file)?,
                Err(cause) if cause.kind() == ErrorKind::NotFound => whole = false,
                Err(cause) => return Err(cause),
            }
        }
        if !whole {
            missing.push(slug.clone());
        }
    }
    Ok(missing)
}

async fn get(objects: &LocalFileSystem, name: &str) -> Result<Option<Bytes>, Error> {
    let fail = |cause| Error::local("reading", name, &cause);
    match objects.get(&Name::from(name)).await {
        Ok(found) => found.bytes().await.map(Some).map_err(fail),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(cause) => Err(fail(cause)),
    }
}

async fn remove(objects: &LocalFileSystem, name: &str) -> Result<(), Error> {
    match objects.delete(&Name::from(name)).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(cause) => Err(Error::local("removing", name, &cause)),
    }
}

/// Direct children only.
fn names(objects: &LocalFileSystem) -> BoxStream<'_, Result<(String, i64), Error>> {
    let listed = objects.list(None).map_err(|cause| Error::local("listing", "deliveries", &cause));
    let child = |meta: object_store::ObjectMeta| {
        let name = (meta.location.parts_count() == 1).then(|| meta.location.as_ref().to_owned());
        std::future::ready(Ok(name.map(|name| (name, meta.last_modified.timestamp_micros()))))
    };
    listed.try_filter_map(child).boxed()
}

async fn blocking<T: Send + 'static>(
    what: &'static str,
    name: &str,
    work: impl FnOnce() -> IoResult<T> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await.unwrap_or_else(|cut| Err(IoError::other(cut)));
    done.map_err(|cause| Error::new(what, name, cause.to_string()))
}

fn unusable(folder: &Path, cause: String) -> Error {
    Error::new("the delivery folder can't be used", folder.display().to_string(), cause)
}
