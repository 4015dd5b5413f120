//! Who signs: anchor keys with their periods, and the secret behind slugs and mail digests.
//!
//! Private halves are PKCS#8 files in a folder (mode 0600, optionally under a passphrase); public halves
//! and periods are rows of the store, so that all nodes agree. A node whose folder lacks the active private
//! key, or holds another secret, does not start; one that loses its right to sign while it runs answers
//! repeats and signs nothing.
//!
//! Modules in reading order: `folder` (the files), `rows` (the public halves), `first` (the first start,
//! of any number of nodes at once), `reload` (what the store says now), `rotation` (announce, activate,
//! withdraw, rotate), `nodes` (who has loaded what), `forgotten` (files whose rows a restore took away).

mod first;
mod folder;
mod forgotten;
mod nodes;
mod reload;
mod rotation;
mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::Digest;
use seal::jwks::{Entry, Jwks};
use seal::key::{KeyId, PublicKey, SigningKey};
use zeroize::Zeroizing;

pub use self::folder::{Folder, Passphrase};
pub use self::nodes::LIVE_FOR;
pub(crate) use self::reload::Tending;
use self::rows::{Anchor, Known, Stage};

/// What can go wrong with keys. Names files by their last part only, and never a secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A key file.
    #[error("key file {file}: {cause}; see `onceseal keys --help`")]
    File {
        /// Last part of its name.
        file: String,
        /// What is wrong.
        cause: String,
    },
    /// The active key's private half is not here.
    #[error(
        "the active anchor key {0} has no private key file in the keys folder; copy the keys folder of a node that has it (`onceseal keys backup` there, `onceseal keys restore` here), or mount that folder and set keys.folder"
    )]
    Missing(KeyId),
    /// The secret is not the one that the store was begun with.
    #[error(
        "slug.secret in the keys folder is another one than this database was begun with, and every new address would differ; put the keys folder of a node that works in its place (`onceseal keys backup` there, `onceseal keys restore` here), or mount that folder and set keys.folder"
    )]
    OtherSecret,
    /// A second announcement.
    #[error(
        "the key {0} is announced already; run `onceseal keys activate` or `onceseal keys withdraw` first"
    )]
    Announced(KeyId),
    /// Nothing to activate or withdraw.
    #[error("no key is announced; run `onceseal keys announce` first")]
    NotAnnounced,
    /// A node that works could not sign after the switch.
    #[error(
        "the key {key} is not loaded by {nodes}; put the file anchor-{key}.pem into the keys folder there (`onceseal keys status` says what each one lacks), or stop the node and try again {} s later", LIVE_FOR.as_secs()
    )]
    NotLoaded {
        /// The announced key.
        key: KeyId,
        /// Which nodes.
        nodes: String,
    },
    /// One command can't hand the new key to others.
    #[error(
        "other nodes work on this database ({0}) and have to load a new key before it signs; run `onceseal keys announce`, then `onceseal keys activate`"
    )]
    Shared(String),
    /// Somebody else was at the keys.
    #[error("the keys changed meanwhile; look with `onceseal keys status` and try again")]
    Changed,
    /// The store.
    #[error(transparent)]
    Door(#[from] door::Failure),
    /// What the store says of the keys can't be used.
    #[error("the recorded public keys can't be used: {0}")]
    Recorded(String),
}

impl Error {
    /// Stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            _ if self.is_refusal() => "KEYS_STATE",
            Self::Door(_) => "STORE_UNAVAILABLE",
            _ => "KEYS_UNUSABLE",
        }
    }

    /// Whether nothing is wrong but the moment for what was asked.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Announced(_)
                | Self::NotAnnounced
                | Self::NotLoaded { .. }
                | Self::Shared(_)
                | Self::Changed
        )
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Door(door::Failure::Store(error))
    }
}

/// The keys of this node, as loaded.
#[derive(Clone, Debug)]
pub struct Keyring {
    anchors: Vec<Anchor>,
    /// Private halves of the active and the announced key, as far as they are here.
    private: BTreeMap<KeyId, Arc<SigningKey>>,
    /// What could not be loaded.
    lacking: BTreeMap<KeyId, Error>,
    signer: Result<Arc<SigningKey>, Error>,
    secret: Secret,
}

/// 32 secret bytes, not shown.
#[derive(Clone, PartialEq, Eq)]
struct Secret(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// What the store keeps of it. The secret is random, so its digest tells nothing of it.
    fn digest(&self) -> Digest {
        Digest::of_fields(&[b"onceseal slug secret", &*self.0])
    }
}

impl Keyring {
    /// The ring of what the store says. Files are read for keys that `before` has not loaded.
    fn of(known: Known, folder: &Folder, secret: Secret, before: Option<&Self>) -> Result<Self, Error> {
        let Known { anchors, secret: begun } = known;
        let (mut private, mut lacking) = (BTreeMap::new(), BTreeMap::new());
        for anchor in anchors.iter().filter(|anchor| anchor.signs()) {
            let id = anchor.key.id();
            match before
                .and_then(|ring| ring.private.get(&id))
                .map_or_else(|| folder.private(id).map(Arc::new), |loaded| Ok(Arc::clone(loaded)))
            {
                Ok(key) => drop(private.insert(id, key)),
                Err(cause) => drop(lacking.insert(id, cause)),
            }
        }
        let active = anchors.iter().find(|anchor| anchor.stage == Stage::Active);
        let active = active.ok_or_else(|| Error::Recorded("none is active".into()))?.key.id();
        let signer = match private.get(&active) {
            _ if begun != Some(secret.digest()) => Err(Error::OtherSecret),
            Some(key) => Ok(Arc::clone(key)),
            None => Err(lacking.get(&active).cloned().unwrap_or(Error::Missing(active))),
        };
        Ok(Self { anchors, private, lacking, signer, secret })
    }

    /// Signs new certificates.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::OtherSecret`], [`Error::File`]: this node may not sign, and why.
    pub fn active(&self) -> Result<&SigningKey, &Error> {
        self.signer.as_deref()
    }

    /// The announced key, if there is one.
    #[must_use]
    pub fn announced(&self) -> Option<KeyId> {
        self.anchors.iter().find(|anchor| anchor.stage == Stage::Announced).map(|anchor| anchor.key.id())
    }

    /// Whether the private half is here.
    #[must_use]
    pub fn has_loaded(&self, id: KeyId) -> bool {
        self.private.contains_key(&id)
    }

    /// The public half of any key that ever signed, or is announced to.
    #[must_use]
    pub fn public(&self, key_id: &str) -> Option<&PublicKey> {
        self.anchors.iter().map(|anchor| &anchor.key).find(|key| key.id().to_string() == key_id)
    }

    /// All keys with their periods, for `/.well-known/onceseal/keys.json`. The announced one is among them,
    /// so that whoever verifies has it before its first signature.
    ///
    /// # Errors
    /// When the recorded keys don't make a set.
    pub fn jwks(&self) -> Result<Jwks, Error> {
        let entries = self.anchors.iter().map(Entry::from).collect();
        Jwks::new(entries).map_err(|cause| Error::Recorded(cause.to_string()))
    }

    /// Key of slugs.
    #[must_use]
    pub fn slug_key(&self) -> &[u8; 32] {
        &self.secret.0
    }

    /// Keyed digest of a mail address, without regard to case.
    #[must_use]
    pub fn mail_digest(&self, email: &str) -> [u8; 32] {
        crate::identity::keyed(&self.secret.0, &["mail", &email.trim().to_lowercase()])
    }
}
