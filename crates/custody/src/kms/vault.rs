//! The transit engine of HashiCorp Vault: the wrapping key never leaves it.
//!
//! `POST /v1/<mount>/encrypt|decrypt|rewrap/<key>`, `GET /v1/<mount>/keys/<key>`, `X-Vault-Token` and
//! `X-Vault-Namespace` as its API documentation has them. What is stored is Vault's own text,
//! `vault:v<version>:…`.
//!
//! A wrap is bound in one of two ways ([`Binding`]). With `associated_data` (Vault 1.9 and later) alias and
//! version are bound as the specification says; Vault's `rewrap` takes no associated data (hashicorp/vault
//! issues 29532 and 31791), so a rewrap decrypts and encrypts and the data key is in this server's memory
//! meanwhile. With a derived key and `context` Vault rewraps by itself; the version is bound by the key.
//!
//! Not here: where the token comes from and when it is renewed ([`Vault::set_token`]).

mod answer;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use kernel::Random;
use parking_lot::{Mutex, RwLock};
use reqwest::{Client, Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio::time::Instant;
use zeroize::Zeroizing;

use self::answer::{Ciphertext, Key, Plaintext, judge, version_of};
use super::{DataKey, Kms, KmsError, Wrapped};
use crate::breaker::{Breaker, BreakerSettings};
use crate::gcm::{self, KEY_BYTES};
use crate::wire::{self, Cause, Effort, Wrong};

/// First part of what is bound.
const WRAP: &[u8] = b"onceseal custody dek v1";
/// Bytes of an answer at most; a key with a thousand versions has about 40,000.
const ANSWER_MAX: usize = 256 * 1024;

/// What ties a wrapped data key to this use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// `associated_data`: for a key of an AEAD type that is not derived.
    AssociatedData,
    /// `context`: for a key made with `derived=true`.
    Context,
}

/// How to reach the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Like `https://vault.example:8200`. Plain HTTP is for loopback only (an agent on this machine).
    pub address: String,
    /// Where the engine is mounted.
    pub mount: String,
    /// The key's name.
    pub key: String,
    /// An enterprise namespace.
    pub namespace: Option<String>,
    /// Needs `update` on encrypt, decrypt (and rewrap), `read` on the key; not `create`.
    pub token: SecretString,
    /// How wraps are bound.
    pub binding: Binding,
    /// Roots to trust beside the public ones, as PEM.
    pub authority: Option<String>,
    /// For the connection.
    pub connect_within: Duration,
    /// Tries and total time of one operation.
    pub effort: Effort,
    /// When nothing is asked for a while.
    pub breaker: BreakerSettings,
    /// How long the current version is taken from memory: a rotation is noticed after that at the latest.
    pub remember: Duration,
}

impl Settings {
    /// Mount `transit`, associated data, 3 tries in 2 s, the version remembered for 60 s.
    #[must_use]
    pub fn new(address: impl Into<String>, key: impl Into<String>, token: SecretString) -> Self {
        Self {
            address: address.into(),
            mount: "transit".into(),
            key: key.into(),
            namespace: None,
            token,
            binding: Binding::AssociatedData,
            authority: None,
            connect_within: Duration::from_millis(1000),
            effort: Effort { tries: 3, budget: Duration::from_secs(2), pause: Duration::from_millis(50) },
            breaker: BreakerSettings::default(),
            remember: Duration::from_secs(60),
        }
    }
}

/// One key of one engine. `Debug` shows its alias.
pub struct Vault {
    alias: String,
    base: Url,
    settings: Settings,
    token: RwLock<SecretString>,
    client: Client,
    breaker: Breaker,
    current: Mutex<Option<(u32, Instant)>>,
    random: Arc<dyn Random>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("alias", &self.alias).finish_non_exhaustive()
    }
}

impl Vault {
    /// Checks the settings and builds the client; nothing is sent. The alias is `<mount>/<key>`.
    ///
    /// # Errors
    /// [`Wrong`], naming the setting.
    pub fn new(settings: Settings, random: Arc<dyn Random>) -> Result<Self, Wrong> {
        let base = wire::address(&settings.address)?;
        for name in
            [Some(&settings.mount), Some(&settings.key), settings.namespace.as_ref()].into_iter().flatten()
        {
            named(name)?;
        }
        let alias = format!("{}/{}", settings.mount, settings.key);
        usable(&settings.token, &alias)?;
        let client = wire::client(&base, settings.connect_within, settings.authority.as_deref())?;
        Ok(Self {
            alias,
            base,
            token: RwLock::new(settings.token.clone()),
            client,
            breaker: Breaker::new(settings.breaker),
            current: Mutex::new(None),
            random,
            settings,
        })
    }

    /// Takes a renewed token.
    ///
    /// # Errors
    /// [`Wrong::Token`]; the one before stays.
    pub fn set_token(&self, token: SecretString) -> Result<(), Wrong> {
        usable(&token, &self.alias)?;
        *self.token.write() = token;
        Ok(())
    }

    async fn latest(&self) -> Result<u32, KmsError> {
        let known = *self.current.lock();
        if let Some((version, at)) = known
            && at.elapsed() < self.settings.remember
        {
            return Ok(version);
        }
        let key: Key = self.call(Method::GET, "keys", None).await?;
        let version = key.usable(self.settings.binding).map_err(|what| self.unexpected(what))?;
        *self.current.lock() = Some((version, Instant::now()));
        Ok(version)
    }

    async fn encrypt(&self, key: &DataKey) -> Result<Wrapped, KmsError> {
        let version = self.latest().await?;
        let plaintext = Zeroizing::new(STANDARD.encode(key.expose()));
        let mut body = json!({ "plaintext": plaintext.as_str(), "key_version": version });
        self.bind(&mut body, version);
        let made = self.call(Method::POST, "encrypt", Some(body)).await;
        self.taken(made, version)
    }

    async fn decrypt(&self, wrapped: &Wrapped) -> Result<DataKey, KmsError> {
        let mut body = json!({ "ciphertext": self.text(wrapped)? });
        self.bind(&mut body, wrapped.version);
        let opened: Plaintext = self.call(Method::POST, "decrypt", Some(body)).await.map_err(|error| {
            // Which version is not in Vault's answer.
            match error {
                KmsError::UnknownVersion { alias, .. } => {
                    KmsError::UnknownVersion { alias, version: wrapped.version }
                }
                KmsError::Refused { alias, .. } => KmsError::Refused { alias, version: wrapped.version },
                other => other,
            }
        })?;
        let bytes = STANDARD.decode(opened.plaintext.expose_secret()).map(Zeroizing::new);
        let bytes = bytes.map_err(|_| self.unexpected("answers with a plaintext that is no base64"))?;
        let bytes = <&[u8; KEY_BYTES]>::try_from(bytes.as_slice());
        bytes.map(|bytes| DataKey::new(*bytes)).map_err(|_| self.refused(wrapped.version))
    }

    async fn rewrapped(&self, wrapped: &Wrapped) -> Result<Wrapped, KmsError> {
        if self.settings.binding == Binding::AssociatedData {
            let key = self.decrypt(wrapped).await?;
            return self.encrypt(&key).await;
        }
        let version = self.latest().await?;
        let mut body = json!({ "ciphertext": self.text(wrapped)?, "key_version": version });
        self.bind(&mut body, version);
        let made = self.call(Method::POST, "rewrap", Some(body)).await;
        self.taken(made, version)
    }

    /// The stored text, whose own version must be the row's.
    fn text<'a>(&self, wrapped: &'a Wrapped) -> Result<&'a str, KmsError> {
        let text = std::str::from_utf8(&wrapped.bytes).map_err(|_| self.refused(wrapped.version))?;
        if version_of(text) == Some(wrapped.version) { Ok(text) } else { Err(self.refused(wrapped.version)) }
    }

    /// A ciphertext under the version that was asked for.
    fn taken(&self, made: Result<Ciphertext, KmsError>, asked: u32) -> Result<Wrapped, KmsError> {
        let made = made.map_err(|error| match error {
            KmsError::UnknownVersion { alias, .. } => {
                // Vault no longer wraps under the version that we remember: ask anew next time.
                *self.current.lock() = None;
                KmsError::UnknownVersion { alias, version: asked }
            }
            KmsError::Refused { alias, .. } => KmsError::Refused { alias, version: asked },
            other => other,
        })?;
        match version_of(&made.ciphertext) {
            Some(version) if version == asked => Ok(Wrapped { version, bytes: made.ciphertext.into_bytes() }),
            _ => Err(self.unexpected("wraps under another version than it was asked for")),
        }
    }

    fn bind(&self, body: &mut Json, version: u32) {
        let alias = self.alias.as_bytes();
        let (field, bound) = match self.settings.binding {
            Binding::AssociatedData => {
                let version = version.to_string();
                ("associated_data", gcm::length_prefixed(&[WRAP, alias, version.as_bytes()]))
            }
            Binding::Context => ("context", gcm::length_prefixed(&[WRAP, alias])),
        };
        if let Some(fields) = body.as_object_mut() {
            fields.insert(field.into(), STANDARD.encode(bound).into());
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        operation: &str,
        body: Option<Json>,
    ) -> Result<T, KmsError> {
        let path = format!("/v1/{}/{operation}/{}", self.settings.mount, self.settings.key);
        let url = wire::under(&self.base, &path);
        let body = body.map(|body| Bytes::from_owner(Zeroizing::new(body.to_string().into_bytes())));
        let once = || {
            let request = self.request(method.clone(), &url, body.clone());
            async move {
                let Some(request) = request else { return ControlFlow::Break(Err(self.denied())) };
                match wire::exchange(request, ANSWER_MAX).await {
                    Ok(answer) => judge(&self.alias, &answer),
                    Err(Cause::Unexpected) => {
                        ControlFlow::Break(Err(self.unexpected("answers with more than it should")))
                    }
                    Err(cause) => ControlFlow::Continue(cause),
                }
            }
        };
        let found = wire::tried(&self.settings.effort, &self.breaker, &*self.random, once).await;
        found.unwrap_or_else(|cause| Err(KmsError::Unreachable { alias: self.alias.clone(), cause }))
    }

    fn request(&self, method: Method, url: &str, body: Option<Bytes>) -> Option<reqwest::RequestBuilder> {
        let token = wire::hidden(self.token.read().expose_secret())?;
        let mut request = self.client.request(method, url).header("x-vault-token", token);
        // Refuses a request that some page made this server send (Vault's own protection).
        request = request.header("x-vault-request", "true");
        if let Some(namespace) = &self.settings.namespace {
            request = request.header("x-vault-namespace", namespace);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        Some(request)
    }

    fn denied(&self) -> KmsError {
        KmsError::Denied { alias: self.alias.clone() }
    }

    fn refused(&self, version: u32) -> KmsError {
        KmsError::Refused { alias: self.alias.clone(), version }
    }

    fn unexpected(&self, what: &'static str) -> KmsError {
        KmsError::Unexpected { alias: self.alias.clone(), what }
    }
}

impl Kms for Vault {
    fn alias(&self) -> &str {
        &self.alias
    }

    fn current(&self) -> BoxFuture<'_, Result<u32, KmsError>> {
        Box::pin(self.latest())
    }

    fn wrap<'a>(&'a self, key: &'a DataKey) -> BoxFuture<'a, Result<Wrapped, KmsError>> {
        Box::pin(async move {
            match self.encrypt(key).await {
                // The remembered version was retired meanwhile; with the one asked anew it must go.
                Err(KmsError::UnknownVersion { .. }) => self.encrypt(key).await,
                end => end,
            }
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a Wrapped) -> BoxFuture<'a, Result<DataKey, KmsError>> {
        Box::pin(self.decrypt(wrapped))
    }

    fn rewrap<'a>(&'a self, wrapped: &'a Wrapped) -> BoxFuture<'a, Result<Wrapped, KmsError>> {
        Box::pin(self.rewrapped(wrapped))
    }
}

/// Names stand in paths: nothing that needs encoding, no empty or dot segment.
fn named(name: &str) -> Result<(), Wrong> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let segment = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(letter);
    let fine = name.len() <= 100 && name.split('/').all(segment);
    if fine { Ok(()) } else { Err(Wrong::Name(name.to_owned())) }
}

fn usable(token: &SecretString, alias: &str) -> Result<(), Wrong> {
    let token = token.expose_secret();
    let fine = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if fine { Ok(()) } else { Err(Wrong::Token(alias.to_owned())) }
}
