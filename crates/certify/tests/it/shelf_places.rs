//! The places that files may stand in, each ready for a test of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use certify::shelf::{Access, Addressing, Form, S3, Shelf};
use futures::{StreamExt as _, TryStreamExt as _};
use source::Secret;
use tempfile::TempDir;
use testkit::CountingRandom;

use crate::s3_server::{BUCKET, Server};

pub(crate) const ID: &str = "AKIACANARYID";
pub(crate) const SECRET: &str = "CANARY+secret/of+the+bucket";

/// One place. Every opening is another server's shelf on it.
pub(crate) enum Place {
    /// A server's own folder.
    Own(TempDir),
    /// A folder that many servers share.
    Shared(TempDir, CountingRandom),
    /// A bucket of the server in this program.
    Bucket(Bucket),
    /// A bucket of the server that `ONCESEAL_TEST_S3` names.
    Foreign(S3),
}

/// The server in this program, with its settings.
pub(crate) struct Bucket {
    pub(crate) server: Server,
    pub(crate) settings: S3,
    pub(crate) folder: TempDir,
}

impl Place {
    pub(crate) async fn shelf(&self) -> Shelf {
        match self {
            Self::Own(folder) => Shelf::open(folder.path()).expect("a shelf"),
            Self::Shared(folder, random) => Shelf::open_shared(folder.path(), random).expect("a shelf"),
            Self::Bucket(bucket) => bucket.shelf().await,
            Self::Foreign(settings) => Shelf::open_s3(settings.clone()).await.expect("a shelf"),
        }
    }

    /// Lays empty files of many certificates there, all forms: more than a page of a list holds.
    pub(crate) async fn lay(&self, slugs: &[String]) {
        let folder = match self {
            Self::Own(folder) | Self::Shared(folder, _) => folder.path().to_owned(),
            Self::Bucket(bucket) => bucket.folder.path().join(BUCKET).join(&bucket.settings.prefix),
            Self::Foreign(_) => {
                let (shelf, empty) = (self.shelf().await, [const { Bytes::new() }; 3]);
                let puts = slugs.iter().map(async |slug| shelf.put_all(slug, &empty).await);
                let puts = futures::stream::iter(puts).buffer_unordered(8);
                return puts.try_collect().await.expect("put");
            }
        };
        let names =
            slugs.iter().flat_map(|slug| Form::ALL.map(|form| format!("{slug}.{}", form.extension())));
        names.for_each(|name| std::fs::write(folder.join(name), "").expect("a file"));
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Own(_) => "own folder",
            Self::Shared(..) => "shared folder",
            Self::Bucket(_) => "bucket",
            Self::Foreign(_) => "foreign bucket",
        }
    }
}

impl Bucket {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start("127.0.0.1:0", folder.path(), ID, SECRET).await;
        let endpoint = format!("http://{}", server.address);
        let settings = settings(endpoint, BUCKET, ID, SECRET);
        Self { server, settings, folder }
    }

    pub(crate) async fn shelf(&self) -> Shelf {
        Shelf::open_s3(self.settings.clone()).await.expect("a shelf")
    }
}

/// All places; the foreign bucket only where there is one.
pub(crate) async fn all() -> Vec<Place> {
    let folder = || tempfile::tempdir().expect("a folder");
    let mut places = vec![
        Place::Own(folder()),
        Place::Shared(folder(), CountingRandom::default()),
        Place::Bucket(Bucket::new().await),
    ];
    places.extend(foreign().map(Place::Foreign));
    places
}

/// `http://ID:SECRET@host:port/bucket`; every call is another prefix.
fn foreign() -> Option<S3> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let url = url::Url::parse(&std::env::var("ONCESEAL_TEST_S3").ok()?).expect("ONCESEAL_TEST_S3 is no URL");
    let endpoint = url.origin().ascii_serialization();
    let bucket = url.path().trim_matches('/');
    let mut settings = settings(endpoint, bucket, url.username(), url.password().expect("a secret key"));
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    settings.prefix = format!("test-{}-{count}", std::process::id());
    Some(settings)
}

fn settings(endpoint: String, bucket: &str, id: &str, secret: &str) -> S3 {
    let key = |text: &str| Secret::new(text).expect("a key");
    S3 {
        bucket: bucket.into(),
        prefix: "some/where".into(),
        endpoint: Some(endpoint),
        region: "us-east-1".into(),
        access: Access::Keys { id: key(id), secret: key(secret) },
        addressing: Addressing::Path,
        timeout: Duration::from_secs(5),
        authorities: None,
    }
}
