//! Where the certificates' files stand. A cache of the records: complete under their names before the
//! commit, durable soon after, rebuilt when missing or damaged. Not here: which bytes are right; that is the
//! record's word.
//!
//! Three places: a folder of this server's own ([`Shelf::open`]), a folder that many servers share
//! ([`Shelf::open_shared`]), a bucket ([`Shelf::open_s3`]).

mod bucket;
mod cause;
mod folder;
#[cfg(feature = "memory")]
pub mod memory;
mod reach;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use kernel::Random;

pub use cause::Error;
pub use reach::{Access, Addressing, S3};

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

/// What stands under a name after a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// The bytes that were put.
    Ours,
    /// Other bytes, as before.
    Others,
}

/// How the files of a certificate are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// One after the other.
    OneByOne,
    /// All at once.
    Together,
}

impl Pace {
    /// What all gave, in their order, or the first failure.
    async fn all<T>(self, puts: Vec<BoxFuture<'_, Result<T, Error>>>) -> Result<Vec<T>, Error> {
        if self == Self::Together {
            return futures::future::try_join_all(puts).await;
        }
        let mut all = Vec::with_capacity(puts.len());
        for put in puts {
            all.push(put.await?);
        }
        Ok(all)
    }
}

/// Where files stand: one of the three places.
trait Place: Send + Sync {
    /// Makes a file stand whole under its name, instead of whatever stands there.
    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<(), Error>>;

    /// As [`Place::put`], but where other bytes stand already, they stay. A place that can't ask replaces
    /// them.
    fn put_new<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<Stands, Error>> {
        Box::pin(async move { self.put(name, bytes).await.map(|()| Stands::Ours) })
    }

    /// How the files of a certificate are put.
    fn pace(&self) -> Pace;

    /// The bytes under a name.
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, Error>>;

    /// Removes a file; one that is not there counts as removed.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Names of all files with their last change (Unix microseconds).
    fn names(&self) -> BoxStream<'_, Result<(String, i64), Error>>;

    /// Makes the files of these slugs durable; gives the slugs that lack one.
    fn sync(&self, slugs: Vec<String>) -> BoxFuture<'_, Result<Vec<String>, Error>>;

    /// Removes what interrupted writes left aside.
    fn sweep(&self) -> std::io::Result<u32>;

    /// Whether the place can be used now.
    fn probe(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Where a file stands, for people.
    fn path(&self, name: &str) -> PathBuf;
}

/// The place of the certificates' files.
#[derive(Clone)]
pub struct Shelf {
    place: Arc<dyn Place>,
}

impl std::fmt::Debug for Shelf {
    /// Where it is, and nothing of how it is reached.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Shelf").field(&self.place.path("")).finish()
    }
}

impl Shelf {
    /// A folder of this server's own, made when missing. Files are direct children of it.
    ///
    /// # Errors
    /// When the folder can't be made or written.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Ok(Self { place: Arc::new(folder::Own::open(folder)?) })
    }

    /// A folder that many servers share, such as an NFS mount. It must exist: one made here would hide that
    /// nothing is mounted. `random` gives this server's mark, with which the names of its unfinished files
    /// begin.
    ///
    /// # Errors
    /// When the folder is not there or can't be written.
    pub fn open_shared(folder: &Path, random: &dyn Random) -> Result<Self, Error> {
        Ok(Self { place: Arc::new(folder::Shared::open(folder, random)?) })
    }

    /// A bucket of S3 or a server that speaks its protocol. Whether it honours put-if-absent is tried first.
    ///
    /// # Errors
    /// When the bucket can't be reached or written, or replaces objects that it was told not to replace.
    pub async fn open_s3(settings: S3) -> Result<Self, Error> {
        Ok(Self { place: Arc::new(bucket::Bucket::open(settings).await?) })
    }

    /// Files in memory, for simulations.
    #[cfg(feature = "memory")]
    #[must_use]
    pub fn in_memory(files: Arc<memory::Files>, way: Arc<dyn memory::Way>) -> Self {
        Self { place: Arc::new(memory::Memory { files, way }) }
    }

    /// Puts a file whole under its name, instead of whatever stands there.
    ///
    /// # Errors
    /// Disk full, read-only, no answer, and so on; no part of the file stands under the name then.
    pub async fn put(&self, slug: &str, form: Form, bytes: Vec<u8>) -> Result<(), Error> {
        self.place.put(&name(slug, form), bytes.into()).await
    }

    /// Puts all files of a certificate whose record is known: what else stands under its names is damaged.
    ///
    /// # Errors
    /// As [`Shelf::put`]; some of the files may then stand there.
    pub async fn put_all(&self, slug: &str, files: &[Bytes; 3]) -> Result<(), Error> {
        let names = Form::ALL.map(|form| name(slug, form));
        let puts = names.iter().zip(files).map(|(name, bytes)| self.place.put(name, bytes.clone())).collect();
        self.place.pace().all(puts).await.map(drop)
    }

    /// Puts all files of a certificate that had no record when it was built. In a bucket other bytes under its
    /// names stay where they are, and their forms are given. If there is a record by now, they are another
    /// server's and must stay; else they are leftovers, and [`Shelf::put_all`] replaces them. A folder can't
    /// ask before it renames: there the newer files stand, and whoever finds that they aren't the record's
    /// rebuilds them.
    ///
    /// # Errors
    /// As [`Shelf::put`]; some of the files may then stand there.
    pub async fn put_new(&self, slug: &str, files: &[Bytes; 3]) -> Result<Vec<Form>, Error> {
        let names = Form::ALL.map(|form| name(slug, form));
        let puts =
            names.iter().zip(files).map(|(name, bytes)| self.place.put_new(name, bytes.clone())).collect();
        let stands = self.place.pace().all(puts).await?;
        let others = Form::ALL.into_iter().zip(stands).filter(|(_, stands)| *stands == Stands::Others);
        Ok(others.map(|(form, _)| form).collect())
    }

    /// Puts a file that is no certificate's whole under this name: letters, digits, `-`, `_`, `.`. It stands
    /// beside the certificates and is left alone by what looks after them.
    ///
    /// # Errors
    /// As [`Shelf::put`].
    pub async fn put_named(&self, name: &str, bytes: Bytes) -> Result<(), Error> {
        self.place.put(name, bytes).await
    }

    /// The bytes of such a file.
    ///
    /// # Errors
    /// As [`Shelf::get`].
    pub async fn get_named(&self, name: &str) -> Result<Option<Bytes>, Error> {
        self.place.get(name).await
    }

    /// The bytes under a name, `None` where there is no file.
    ///
    /// # Errors
    /// When the file is there and can't be read.
    pub async fn get(&self, slug: &str, form: Form) -> Result<Option<Bytes>, Error> {
        self.place.get(&name(slug, form)).await
    }

    /// Removes a file; one that is not there counts as removed.
    ///
    /// # Errors
    /// When it stands there and can't be removed.
    pub async fn remove(&self, slug: &str, form: Form) -> Result<(), Error> {
        self.place.remove(&name(slug, form)).await
    }

    /// Slugs of all files, one entry a file, with its last change (Unix microseconds), in no order. Files
    /// that are no certificate's by their names are left out: nobody here may touch them.
    ///
    /// # Errors
    /// As an item, when the place can't be read further.
    pub fn slugs(&self) -> impl Stream<Item = Result<(String, i64), Error>> + '_ {
        self.place.names().filter_map(|found| {
            std::future::ready(match found {
                Ok((name, at)) => slug(&name).map(|slug| Ok((slug.to_owned(), at))),
                Err(cause) => Some(Err(cause)),
            })
        })
    }

    /// Makes everything written so far durable: files of `slugs`, then the folder. Gives the slugs of which
    /// a file is not there. In a bucket what was acknowledged is durable already, and nothing is asked.
    ///
    /// # Errors
    /// When a sync fails.
    pub async fn sync(&self, slugs: Vec<String>) -> Result<Vec<String>, Error> {
        self.place.sync(slugs).await
    }

    /// Removes what interrupted writes left aside. In a folder of one's own only at start, when nobody
    /// writes; in a shared one at any time, and only what is too old to be anybody's work.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn sweep(&self) -> std::io::Result<u32> {
        self.place.sweep()
    }

    /// Whether files could be put now: for the readiness of a server.
    ///
    /// # Errors
    /// Says why not.
    pub async fn probe(&self) -> Result<(), Error> {
        self.place.probe().await
    }

    /// Where a file stands, for people: a path, or `s3://bucket/name`.
    #[must_use]
    pub fn path(&self, slug: &str, form: Form) -> PathBuf {
        self.place.path(&name(slug, form))
    }
}

fn name(slug: &str, form: Form) -> String {
    format!("{slug}.{}", form.extension())
}

/// The slug in a certificate's file name: 40 hex digits ([`crate::identity::Identity::slug`]).
fn slug(name: &str) -> Option<&str> {
    let (slug, extension) = name.rsplit_once('.')?;
    let digits = slug.len() == 40 && slug.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (digits && Form::from_extension(extension).is_some()).then_some(slug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_certificates_are_taken_for_certificates() {
        let ours = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(slug(&format!("{ours}.zip")), Some(ours));
        for other in [".onceseal", "index.html", "ABCDEF6789abcdef0123456789abcdef01234567.html"] {
            assert_eq!(slug(other), None, "{other}");
        }
        assert_eq!(slug(&format!("{ours}.html#mark-1")), None);
        assert_eq!(slug(&format!("{ours}0.html")), None);
    }
}
