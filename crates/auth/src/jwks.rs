//! The keys of an outside issuer, fetched from the one configured address (never from one that a token
//! names) and held for a while.
//!
//! A key that is not held is asked for at once, but never sooner than `pause` after the last question: a
//! flood of invented names costs the issuer one request a pause. A set that can't be fetched or read
//! replaces nothing; the one that is held counts until it is `fresh` + `stale` old, and then nothing does
//! (fail closed). The fetch runs in a task of its own, so that clients who hang up can't keep it from ending.
//!
//! Not here: discovery documents; the address is configured.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kernel::{Clock, Time};
use parking_lot::RwLock;
use reqwest::{Client, Url};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::keys::{KeyRing, Keys, PublicKey, SET_MAX};
use crate::refusal::Refusal;

/// How long one fetch may take as a whole.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Longest time for which a set may be held after it should have been fetched again.
pub const STALE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the keys are, and how long they count. `Debug` does not show the address.
#[derive(Clone)]
pub struct Settings {
    /// `https://` and the rest; `http://` only to a loopback address. No user, no fragment.
    pub address: String,
    /// Certificates in PEM that are trusted in place of the public ones, for an issuer inside.
    pub authorities: Option<Vec<u8>>,
    /// How long a set counts without another look.
    pub fresh: Duration,
    /// Shortest time between two fetches; at least a second and at most `fresh`.
    pub pause: Duration,
    /// How much longer a set counts while no newer one can be had; at most [`STALE_MAX`].
    pub stale: Duration,
}

impl Settings {
    /// Fresh for 5 minutes, at least 10 s between fetches, 1 hour more while the issuer is out of reach.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            authorities: None,
            fresh: Duration::from_secs(300),
            pause: Duration::from_secs(10),
            stale: Duration::from_secs(3600),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("fresh", &self.fresh)
            .field("pause", &self.pause)
            .field("stale", &self.stale)
            .finish_non_exhaustive()
    }
}

/// A setting that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// Of the address, which is not repeated.
    #[error(
        "the issuer's key address must be like https://id.example.com/jwks.json, without user and fragment; plain http only to a loopback address"
    )]
    Address,
    /// Of the times.
    #[error("the times must be 1 s <= pause <= fresh and stale <= 24 h")]
    Times,
    /// Of the authorities.
    #[error("the issuer's authorities can't be used: {0}")]
    Authorities(String),
    /// Of the HTTP client.
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// An outside issuer's keys.
#[derive(Clone)]
pub struct Outside(Arc<Inner>);

struct Inner {
    client: Client,
    address: Url,
    settings: Settings,
    clock: Arc<dyn Clock>,
    held: RwLock<Held>,
    /// One fetch at a time; inside, when the last one began.
    turn: Arc<Mutex<Option<Time>>>,
}

#[derive(Default)]
struct Held {
    keys: Option<(Arc<Keys>, Time)>,
    /// Whether the last fetch failed: then an unknown name may be one that we could not learn.
    failed: bool,
}

impl Outside {
    /// Checks the settings and builds the client; nothing is fetched.
    ///
    /// # Errors
    /// [`Wrong`] names the setting.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, Wrong> {
        let address = address(&settings.address).ok_or(Wrong::Address)?;
        let times = settings.pause >= Duration::from_secs(1)
            && settings.pause <= settings.fresh
            && settings.stale <= STALE_MAX;
        if !times {
            return Err(Wrong::Times);
        }
        let client = client(&settings, &address)?;
        let (held, turn) = (RwLock::default(), Arc::default());
        Ok(Self(Arc::new(Inner { client, address, settings, clock, held, turn })))
    }

    /// Fetches the set once, for a start that should not leave it to the first request.
    ///
    /// # Errors
    /// [`Refusal::KeysUnavailable`] when no set is held afterwards; the cause was logged.
    pub async fn warm(&self) -> Result<(), Refusal> {
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        self.refresh(turn).await;
        if self.0.held.read().keys.is_some() { Ok(()) } else { Err(Refusal::KeysUnavailable) }
    }

    async fn look_up(&self, kid: &str) -> Result<Option<Arc<PublicKey>>, Refusal> {
        let inner = &self.0;
        if let Some(key) = inner.key(kid, inner.settings.fresh) {
            return Ok(Some(key));
        }
        let bound = inner.settings.fresh + inner.settings.stale;
        match (inner.key(kid, bound), Arc::clone(&inner.turn).try_lock_owned()) {
            // Somebody is at it; meanwhile the old key counts.
            (Some(key), Err(_)) => return Ok(Some(key)),
            (_, Ok(turn)) => self.refresh(turn).await,
            (None, Err(_)) => {
                let turn = Arc::clone(&inner.turn).lock_owned().await;
                self.refresh(turn).await;
            }
        }
        match inner.key(kid, bound) {
            Some(key) => Ok(Some(key)),
            None if inner.counts(bound) && !inner.held.read().failed => Ok(None),
            None => Err(Refusal::KeysUnavailable),
        }
    }

    /// Fetches unless that was done a moment ago.
    async fn refresh(&self, mut turn: OwnedMutexGuard<Option<Time>>) {
        let now = self.0.clock.now();
        if turn.is_some_and(|last| last <= now && now.since(last) < self.0.settings.pause) {
            return;
        }
        *turn = Some(now);
        let inner = Arc::clone(&self.0);
        let task = tokio::spawn(async move {
            let fetched = inner.fetch().await;
            inner.take(fetched, now);
            drop(turn);
        });
        if let Err(cause) = task.await {
            tracing::error!(%cause, "issuer_keys_fetch_broke_off");
        }
    }
}

impl KeyRing for Outside {
    fn find<'a>(&'a self, kid: &'a str) -> BoxFuture<'a, Result<Option<Arc<PublicKey>>, Refusal>> {
        self.look_up(kid).boxed()
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("host", &self.0.address.host_str()).finish_non_exhaustive()
    }
}

impl Inner {
    /// The key of this name in a set of at most this age.
    fn key(&self, kid: &str, age: Duration) -> Option<Arc<PublicKey>> {
        if !self.counts(age) {
            return None;
        }
        self.held.read().keys.as_ref().and_then(|(keys, _)| keys.get(kid).cloned())
    }

    /// Whether a set of at most this age is held. A clock that went back makes a set old, not young.
    fn counts(&self, age: Duration) -> bool {
        let now = self.clock.now();
        self.held.read().keys.as_ref().is_some_and(|(_, at)| *at <= now && now.since(*at) < age)
    }

    fn take(&self, fetched: Result<Keys, String>, at: Time) {
        let mut held = self.held.write();
        held.failed = fetched.is_err();
        match fetched {
            Ok(keys) => {
                for (position, cause) in keys.left_out() {
                    tracing::debug!(position, %cause, "issuer_key_left_out");
                }
                held.keys = Some((Arc::new(keys), at));
            }
            Err(cause) => tracing::warn!(%cause, "issuer_keys_not_fetched"),
        }
    }

    async fn fetch(&self) -> Result<Keys, String> {
        let answered = tokio::time::timeout(ANSWER_WITHIN, self.ask()).await;
        let body =
            answered.map_err(|_| format!("no whole answer within {} s", ANSWER_WITHIN.as_secs()))??;
        Keys::parse(&body).map_err(|cause| cause.to_string())
    }

    async fn ask(&self) -> Result<Vec<u8>, String> {
        // The address may hold a path that is nobody's business.
        let fail = |cause: reqwest::Error| innermost(&cause.without_url());
        let sent = self
            .client
            .get(self.address.clone())
            .header("accept", "application/jwk-set+json, application/json");
        let mut answer = sent.send().await.map_err(fail)?;
        if answer.status() != reqwest::StatusCode::OK {
            return Err(format!("it answered with status {}", answer.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(fail)? {
            if body.len() + piece.len() > SET_MAX {
                return Err(format!("it is longer than {SET_MAX} bytes"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let own = url.host_str().is_some_and(|host| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    });
    let fine = (url.scheme() == "https" || url.scheme() == "http" && own)
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    fine.then_some(url)
}

fn client(settings: &Settings, address: &Url) -> Result<Client, Wrong> {
    let roots = match &settings.authorities {
        None => rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
        Some(pem) => authorities(pem).map_err(Wrong::Authorities)?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| Wrong::Client(cause.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = if address.scheme() == "http" { Client::builder().no_proxy() } else { Client::builder() };
    builder
        .tls_backend_preconfigured(tls)
        .timeout(ANSWER_WITHIN)
        // Who can redirect the fetch could give us their own keys.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .pool_max_idle_per_host(0)
        .user_agent("onceseal")
        .build()
        .map_err(|cause| Wrong::Client(cause.without_url().to_string()))
}

fn authorities(pem: &[u8]) -> Result<rustls::RootCertStore, String> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|cause| cause.to_string())?).map_err(|cause| cause.to_string())?;
    }
    if roots.is_empty() { Err("no certificate in PEM is in it; give one".into()) } else { Ok(roots) }
}
