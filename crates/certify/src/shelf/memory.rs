//! Files in memory that several nodes of one process share, reached by a way that may fail before and after
//! each access: for simulations. Not for servers: nothing is ever durable.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use kernel::Time;
use parking_lot::Mutex;

use super::cause::Error;
use super::{Form, Pace, Place, Stands, name};

/// How one node reaches the files.
pub trait Way: Send + Sync {
    /// Before an access.
    ///
    /// # Errors
    /// Why it does not take place.
    fn there(&self) -> BoxFuture<'_, Result<(), String>>;

    /// After an access.
    ///
    /// # Errors
    /// Why its answer is lost, though it took place.
    fn back(&self) -> BoxFuture<'_, Result<(), String>>;

    /// The time by the clock of whoever keeps the files.
    fn now(&self) -> Time;
}

/// The files, by name, each with its last change.
#[derive(Debug, Default)]
pub struct Files(Mutex<BTreeMap<String, (Bytes, Time)>>);

impl Files {
    /// Names of all files, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    /// Puts other bytes there past all rules, or takes the file away.
    pub fn damage(&self, name: &str, bytes: Option<Bytes>) {
        let mut files = self.0.lock();
        match (bytes, files.get_mut(name)) {
            (Some(bytes), Some(file)) => file.0 = bytes,
            (None, _) => drop(files.remove(name)),
            (Some(_), None) => {}
        }
    }
}

/// The files as one node reaches them.
pub(super) struct Memory {
    pub(super) files: Arc<Files>,
    pub(super) way: Arc<dyn Way>,
}

impl Memory {
    async fn reach<T>(
        &self,
        (what, name): (&'static str, &str),
        access: impl FnOnce(&mut BTreeMap<String, (Bytes, Time)>) -> T + Send,
    ) -> Result<T, Error> {
        let fail = |cause| Error::new(what, name, cause);
        self.way.there().await.map_err(fail)?;
        let done = access(&mut self.files.0.lock());
        self.way.back().await.map_err(fail)?;
        Ok(done)
    }
}

impl Place for Memory {
    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let file = (bytes, self.way.now());
            self.reach(("writing", name), |files| drop(files.insert(name.to_owned(), file))).await
        })
    }

    fn put_new<'a>(&'a self, name: &'a str, bytes: Bytes) -> BoxFuture<'a, Result<Stands, Error>> {
        Box::pin(async move {
            let file = (bytes, self.way.now());
            self.reach(("writing", name), |files| {
                let stands = files.entry(name.to_owned()).or_insert_with(|| file.clone());
                if stands.0 == file.0 { Stands::Ours } else { Stands::Others }
            })
            .await
        })
    }

    fn pace(&self) -> Pace {
        Pace::OneByOne
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, Error>> {
        Box::pin(async move {
            self.reach(("reading", name), |files| files.get(name).map(|file| file.0.clone())).await
        })
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.reach(("removing", name), |files| drop(files.remove(name))).await })
    }

    fn names(&self) -> BoxStream<'_, Result<(String, i64), Error>> {
        let listing = self.reach(("listing", "deliveries"), |files| {
            files.iter().map(|(name, file)| Ok((name.clone(), file.1.micros()))).collect::<Vec<_>>()
        });
        let listed = async move { stream::iter(listing.await.unwrap_or_else(|cause| vec![Err(cause)])) };
        stream::once(listed).flatten().boxed()
    }

    fn sync(&self, slugs: Vec<String>) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        Box::pin(async move {
            self.reach(("syncing", "deliveries"), |files| {
                let whole =
                    |slug: &String| Form::ALL.iter().all(|form| files.contains_key(&name(slug, *form)));
                slugs.into_iter().filter(|slug| !whole(slug)).collect()
            })
            .await
        })
    }

    fn sweep(&self) -> std::io::Result<u32> {
        Ok(0)
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.reach(("asking for", "deliveries"), |_| ()).await })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(name)
    }
}
