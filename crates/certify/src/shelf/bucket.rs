//! Files in a bucket of S3 or a server that speaks its protocol. An object appears whole or not at all, and
//! is durable once its put is acknowledged; put-if-absent (`If-None-Match: *`) lets one of many nodes create
//! it, and `If-Match` replaces exactly the object that was looked at.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3;
use object_store::path::Path as Name;
use object_store::{
    GetResult, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use super::cause::Error;
use super::reach::{S3, client};
use super::{Pace, Place, Stands};

/// A whole put, get, remove or probe, with all that is sent again, may take this many time-outs.
pub(super) const PATIENCE: u32 = 3;
/// A put that finds other bytes, or whose answer was lost, looks and puts again this often: of eight nodes
/// that replace an object at once, each may lose seven times. More means that somebody keeps writing.
const ROUNDS_MAX: u32 = 16;
/// Largest object that is read, in bytes. A certificate's files have a few hundred thousand at most; a larger
/// object is not ours.
const FILE_MAX: u64 = 16 * 1024 * 1024;
/// How a refusal of the whole bucket begins.
const UNUSABLE: &str = "the bucket can't be used:";
/// The object with which the bucket is tried. It stays, so that a server's readiness can ask for it.
const MARKER: &str = ".onceseal";
/// What stands in it.
const MARKER_TEXT: &str = "Onceseal keeps certificates' files under this prefix; one installation a prefix\n";

/// What may become of other bytes under a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Replace,
    Leave,
}

pub(super) struct Bucket {
    objects: AmazonS3,
    bucket: String,
    prefix: Name,
    patience: Duration,
}

impl Bucket {
    pub(super) async fn open(settings: S3) -> Result<Self, Error> {
        let place = format!("s3://{}/{}", settings.bucket, settings.prefix);
        let objects = client(&settings).map_err(|cause| Error::new(UNUSABLE, place.clone(), cause))?;
        let patience = settings.timeout * PATIENCE;
        let bucket = Self { objects, bucket: settings.bucket, prefix: Name::from(settings.prefix), patience };
        bucket.within(UNUSABLE, &place, bucket.try_out(&place)).await?;
        Ok(bucket)
    }

    /// The second put of an object must be refused: else two nodes' files would overwrite each other.
    async fn try_out(&self, place: &str) -> Result<(), Error> {
        let fail = |cause: &object_store::Error| Error::bucket(UNUSABLE, place, cause);
        let marker = self.at(MARKER);
        let put = async || self.objects.put_opts(&marker, MARKER_TEXT.into(), PutMode::Create.into()).await;
        match put().await {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => {}
            Err(cause) => return Err(fail(&cause)),
        }
        match put().await {
            Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            Err(cause) => Err(fail(&cause)),
            Ok(_) => Err(Error::new(
                UNUSABLE,
                place,
                "its server replaced an object that it was told to put only if absent (If-None-Match: *); use one that honours this, or a shared folder",
            )),
        }
    }

    fn at(&self, name: &str) -> Name {
        self.prefix.clone().join(name)
    }

    async fn within<T>(
        &self,
        what: &'static str,
        name: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let late = |_| Error::new(what, name, format!("no answer within {} ms", self.patience.as_millis()));
        tokio::time::timeout(self.patience, work).await.unwrap_or_else(|over| Err(late(over)))
    }

    /// Puts; says whether other bytes stand under the name and were left there.
    async fn settle(&self, name: &str, bytes: Bytes, others: Others) -> Result<Stands, Error> {
        let at = self.at(name);
        let fail = |cause: &object_store::Error| Error::bucket("writing", name, cause);
        let mut mode = PutMode::Create;
        let mut lost = None;
        for _ in 0..ROUNDS_MAX {
            let payload = PutPayload::from(bytes.clone());
            match self.objects.put_opts(&at, payload, PutOptions::from(mode)).await {
                Ok(_) => return Ok(Stands::Ours),
                // Somebody was faster. Whether with the same bytes, the object itself tells.
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                }
                // It may have been done, and only its answer lost; the object itself tells. Once.
                Err(cause @ object_store::Error::Generic { .. }) if lost.is_none() => lost = Some(cause),
                Err(cause) => return Err(fail(&cause)),
            }
            mode = match self.objects.get(&at).await {
                Err(object_store::Error::NotFound { .. }) => PutMode::Create,
                Err(cause) => return Err(fail(&cause)),
                Ok(found) => {
                    let version = UpdateVersion {
                        e_tag: found.meta.e_tag.clone(),
                        version: found.meta.version.clone(),
                    };
                    let stands = read(found).await.map_err(|cause| fail(&cause))?;
                    if stands.as_ref() == Some(&bytes) {
                        return Ok(Stands::Ours);
                    }
                    if others == Others::Leave {
                        return Ok(Stands::Others);
                    }
                    replacing(version)
                }
            };
        }
        Err(lost.map_or_else(
            || {
                Error::new(
                    "writing",
                    name,
                    "somebody keeps writing other bytes there; look who shares the prefix",
                )
            },
            |cause| fail(&cause),
        ))
    }
}

/// Exactly the version that was looked at; a server without entity tags can't be asked for that.
fn replacing(version: UpdateVersion) -> PutMode {
    if version.e_tag.is_some() { PutMode::Update(version) } else { PutMode::Overwrite }
}

/// The bytes of an object; `None` for one that is too large to be ours.
async fn read(found: GetResult) -> object_store::Result<Option<Bytes>> {
    if found.meta.size > FILE_MAX {
        return Ok(None);
    }
    found.bytes().await.map(Some)
}

impl Place for Bucket {
    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<(), Error>> {
        let settled = async move { self.settle(name, bytes, Others::Replace).await.map(drop) };
        Box::pin(self.within("writing", name, settled))
    }

    fn put_new<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<Stands, Error>> {
        Box::pin(self.within("writing", name, self.settle(name, bytes, Others::Leave)))
    }

    /// Each is a journey; together they are one.
    fn pace(&self) -> Pace {
        Pace::Together
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, Error>> {
        let fail = move |cause| Error::bucket("reading", name, &cause);
        Box::pin(self.within("reading", name, async move {
            match self.objects.get(&self.at(name)).await {
                Ok(found) => match read(found).await.map_err(fail)? {
                    Some(bytes) => Ok(Some(bytes)),
                    None => Err(Error::new("reading", name, format!("it has more than {FILE_MAX} bytes"))),
                },
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(cause) => Err(fail(cause)),
            }
        }))
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.within("removing", name, async move {
            match self.objects.delete(&self.at(name)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(cause) => Err(Error::bucket("removing", name, &cause)),
            }
        }))
    }

    /// In pages, each of which may take a time-out; direct children of the prefix only.
    fn names(&self) -> BoxStream<'_, Result<(String, i64), Error>> {
        let prefix = Some(&self.prefix).filter(|prefix| !prefix.is_root());
        let depth = self.prefix.parts_count() + 1;
        let listed = self.objects.list(prefix);
        let child = move |meta: object_store::ObjectMeta| {
            let name = meta.location.filename().filter(|_| meta.location.parts_count() == depth);
            std::future::ready(Ok(name.map(|name| (name.to_owned(), meta.last_modified.timestamp_micros()))))
        };
        listed.map_err(|cause| Error::bucket("listing", "deliveries", &cause)).try_filter_map(child).boxed()
    }

    /// An acknowledged put is durable. A file that is gone all the same is rebuilt when it is asked for; to ask
    /// for each here would cost as much as putting it.
    fn sync(&self, _slugs: Vec<String>) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// A put that was cut leaves nothing.
    fn sweep(&self) -> std::io::Result<u32> {
        Ok(0)
    }

    /// Reads only: it is asked every few seconds, and a put costs twelve times as much.
    fn probe(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.within("probing", "deliveries", async move {
            match self.objects.head(&self.at(MARKER)).await {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(cause) => Err(Error::bucket("probing", "deliveries", &cause)),
            }
        }))
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("s3://{}/{}", self.bucket, self.at(name)))
    }
}
