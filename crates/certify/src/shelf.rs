//! Where the certificates' files stand. A cache of the records: complete under their names before the
//! commit, synced afterwards by a worker, rebuilt when missing or damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};

/// One of the three served forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The page.
    Html,
    /// The archive.
    Zip,
    /// The machine-readable form.
    Json,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Html, Self::Zip, Self::Json];

    /// `html`, `zip` or `json`.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Zip => "zip",
            Self::Json => "json",
        }
    }

    /// Media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Zip => "application/zip",
            Self::Json => "application/json",
        }
    }

    /// From a file name's extension.
    #[must_use]
    pub fn from_extension(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.extension() == text)
    }
}

/// What can go wrong with a file.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what} {name}: {cause}")]
pub struct Error {
    what: &'static str,
    name: String,
    cause: String,
}

/// The delivery folder.
#[derive(Clone, Debug)]
pub struct Shelf {
    objects: Arc<dyn ObjectStore>,
    folder: PathBuf,
}

impl Shelf {
    /// A local folder, made when missing. Files are direct children of it.
    ///
    /// # Errors
    /// When the folder can't be made or written.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let fail = |cause: String| Error {
            what: "the delivery folder can't be used",
            name: folder.display().to_string(),
            cause,
        };
        std::fs::create_dir_all(folder).map_err(|cause| fail(cause.to_string()))?;
        let probe = folder.join(".writable");
        std::fs::write(&probe, b"")
            .and_then(|()| std::fs::remove_file(&probe))
            .map_err(|cause| fail(cause.to_string()))?;
        let objects = LocalFileSystem::new_with_prefix(folder).map_err(|cause| fail(cause.to_string()))?;
        Ok(Self { objects: Arc::new(objects), folder: folder.to_owned() })
    }

    /// Puts a file whole under its name: written aside, then renamed.
    ///
    /// # Errors
    /// Disk full, read-only, and so on; no part of the file stands under the name then.
    pub async fn put(&self, slug: &str, form: Form, bytes: Vec<u8>) -> Result<(), Error> {
        let name = name(slug, form);
        let put = self.objects.put(&Name::from(name.as_str()), PutPayload::from(bytes)).await;
        put.map(|_| ()).map_err(|cause| error("writing", &name, &cause))
    }

    /// The bytes under a name, `None` where there is no file.
    ///
    /// # Errors
    /// When the file is there and can't be read.
    pub async fn get(&self, slug: &str, form: Form) -> Result<Option<Bytes>, Error> {
        let name = name(slug, form);
        match self.objects.get(&Name::from(name.as_str())).await {
            Ok(found) => found.bytes().await.map(Some).map_err(|cause| error("reading", &name, &cause)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(cause) => Err(error("reading", &name, &cause)),
        }
    }

    /// Removes a file; one that is not there counts as removed.
    ///
    /// # Errors
    /// When it stands there and can't be removed.
    pub async fn remove(&self, slug: &str, form: Form) -> Result<(), Error> {
        let name = name(slug, form);
        match self.objects.delete(&Name::from(name.as_str())).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(cause) => Err(error("removing", &name, &cause)),
        }
    }

    /// Slugs of all files, one entry a file, with its last change (Unix microseconds), in no order.
    ///
    /// # Errors
    /// As an item, when the folder can't be read further.
    pub fn slugs(&self) -> impl Stream<Item = Result<(String, i64), Error>> + '_ {
        self.objects.list(None).map_err(|cause| error("listing", "deliveries", &cause)).try_filter_map(
            |meta| {
                let entry = meta.location.filename().and_then(|name| name.rsplit_once('.')).and_then(
                    |(slug, ext)| {
                        Form::from_extension(ext)?;
                        Some((slug.to_owned(), meta.last_modified.timestamp_micros()))
                    },
                );
                std::future::ready(Ok(entry))
            },
        )
    }

    /// Makes everything written so far durable: files of `slugs`, then the folder. Gives the slugs of which
    /// a file is not there.
    ///
    /// # Errors
    /// When a sync fails.
    pub async fn sync(&self, slugs: Vec<String>) -> Result<Vec<String>, Error> {
        let folder = self.folder.clone();
        let synced = tokio::task::spawn_blocking(move || sync_files(&folder, &slugs)).await;
        let synced = synced.unwrap_or_else(|panic| Err(std::io::Error::other(panic)));
        synced.map_err(|cause| Error { what: "syncing", name: "deliveries".into(), cause: cause.to_string() })
    }

    /// Removes what interrupted writes left aside. Only at start, when nobody writes.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn sweep(&self) -> std::io::Result<u32> {
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

    /// Where a file stands, for people.
    #[must_use]
    pub fn path(&self, slug: &str, form: Form) -> PathBuf {
        self.folder.join(name(slug, form))
    }
}

fn sync_files(folder: &Path, slugs: &[String]) -> std::io::Result<Vec<String>> {
    let mut missing = Vec::new();
    for slug in slugs {
        let mut whole = true;
        for form in Form::ALL {
            match std::fs::File::open(folder.join(name(slug, form))) {
                Ok(file) => file.sync_all()?,
                Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => whole = false,
                Err(cause) => return Err(cause),
            }
        }
        if !whole {
            missing.push(slug.clone());
        }
    }
    std::fs::File::open(folder)?.sync_all()?;
    Ok(missing)
}

fn name(slug: &str, form: Form) -> String {
    format!("{slug}.{}", form.extension())
}

fn error(what: &'static str, name: &str, cause: &object_store::Error) -> Error {
    // The cause of an object store's error carries the path; the innermost cause says what happened.
    let mut innermost: &dyn std::error::Error = cause;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Error { what, name: name.into(), cause: innermost.to_string() }
}
