//! Who signs: anchor keys with their periods, and the secret behind slugs and mail digests.
//!
//! Private halves are PKCS#8 files in `keys/` (mode 0600, optionally under a passphrase); public halves
//! and periods are rows of `certify_keys`, so that all nodes agree. A server whose folder lacks the
//! active private key does not start.

use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use door::{AuditRow, Door};
use kernel::{Random, Time};
use seal::jwks::{Entry, Jwks, Status};
use seal::key::{FileSalt, KeyId, PublicKey, SigningKey};
use serde_json::json;
use store::{Query, Row, Write, values};
use zeroize::Zeroizing;

/// Passphrase of the private key files.
pub type Passphrase = Zeroizing<String>;

const SECRET_FILE: &str = "slug.secret";

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
        "the active anchor key {0} has no private key file in the keys folder; restore it with `onceseal keys restore`, or rotate on the node that has it"
    )]
    Missing(String),
    /// The rows of public keys.
    #[error(transparent)]
    Door(#[from] door::Failure),
    /// A public key in the store or a set that can't be made of them.
    #[error("the recorded public keys can't be used: {0}")]
    Recorded(String),
}

/// The keys of this node, as loaded.
#[derive(Debug)]
pub struct Keyring {
    active: SigningKey,
    entries: Vec<Entry>,
    secret: Secret,
}

/// 32 secret bytes, not shown.
struct Secret(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The folder of key files.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    passphrase: Option<Passphrase>,
}

impl Folder {
    /// The folder at `path`; files in it are under `passphrase` when one is given.
    #[must_use]
    pub const fn new(path: PathBuf, passphrase: Option<Passphrase>) -> Self {
        Self { path, passphrase }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Loads the keys, making the first ones when neither store nor folder has any.
    ///
    /// # Errors
    /// [`Error`]; nothing half-made stays behind.
    pub async fn load(&self, door: &Door) -> Result<Keyring, Error> {
        let rows = recorded(door).await?;
        let secret = self.secret(&*door.random(), !rows.is_empty())?;
        if rows.is_empty() {
            self.create(door, None).await?;
        }
        let rows = recorded(door).await?;
        let entries = rows.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        let active = entries
            .iter()
            .find(|entry| entry.status == Status::Active)
            .ok_or_else(|| Error::Recorded("none is active".into()))?;
        let active = self.private(active.key.id())?;
        Ok(Keyring { active, entries, secret })
    }

    /// Makes a new anchor key, retires the active one, keeps both on record. Old certificates stay valid.
    ///
    /// # Errors
    /// [`Error`]; the old key stays active then.
    pub async fn rotate(&self, door: &Door, operator: &str) -> Result<KeyId, Error> {
        self.create(door, Some(operator)).await
    }

    async fn create(&self, door: &Door, operator: Option<&str>) -> Result<KeyId, Error> {
        let random = door.random();
        let mut seed = Zeroizing::new([0; 32]);
        random.fill(&mut *seed);
        let key = SigningKey::from_seed(&seed);
        let (id, public) = (key.id(), *key.public_key().as_bytes());
        // The file first: a row without its private half would keep the server from starting.
        self.write_private(&key, &*random)?;
        let name = id.to_string();
        let operator = operator.unwrap_or("system").to_owned();
        door.maintain("keys.activate", Vec::new(), move |_, now| {
            let mut audit =
                AuditRow::system("certify.key.rotate", "anchor_key", name.clone(), format!("key:{name}"));
            audit.metadata = json!({ "by": operator });
            audit.after_state = json!({ "status": "active" });
            let writes = vec![
                Write::any("keys.retire", RETIRE, values![now]),
                Write::one("keys.insert", INSERT, values![&name, public, now]),
                audit.write(now, &*random),
            ];
            Ok((writes, ()))
        })
        .await?;
        Ok(id)
    }

    fn write_private(&self, key: &SigningKey, random: &dyn Random) -> Result<(), Error> {
        let file = self.file(key.id());
        let fail = |cause: seal::key::Error| Error::File { file: last(&file), cause: cause.to_string() };
        let pem = match &self.passphrase {
            None => key.to_pem().map_err(fail)?,
            Some(passphrase) => {
                let mut salt = FileSalt { salt: [0; 16], iv: [0; 16] };
                random.fill(&mut salt.salt);
                random.fill(&mut salt.iv);
                key.to_encrypted_pem(passphrase.as_bytes(), salt).map_err(fail)?
            }
        };
        write_secret(&file, pem.as_bytes())
    }

    fn private(&self, id: KeyId) -> Result<SigningKey, Error> {
        let file = self.file(id);
        let Some(pem) = read_secret(&file)? else { return Err(Error::Missing(id.to_string())) };
        let fail = |cause: seal::key::Error| Error::File { file: last(&file), cause: cause.to_string() };
        let key = match &self.passphrase {
            Some(passphrase) if pem.contains("ENCRYPTED") => {
                SigningKey::from_encrypted_pem(&pem, passphrase.as_bytes()).map_err(fail)?
            }
            None if pem.contains("ENCRYPTED") => {
                return Err(Error::File {
                    file: last(&file),
                    cause: "it is under a passphrase; set keys.passphrase".into(),
                });
            }
            _ => SigningKey::from_pem(&pem).map_err(fail)?,
        };
        if key.id() == id {
            Ok(key)
        } else {
            Err(Error::File { file: last(&file), cause: "it holds another key than its name says".into() })
        }
    }

    fn file(&self, id: KeyId) -> PathBuf {
        self.path.join(format!("anchor-{id}.pem"))
    }

    fn secret(&self, random: &dyn Random, must_exist: bool) -> Result<Secret, Error> {
        let file = self.path.join(SECRET_FILE);
        if let Some(text) = read_secret(&file)? {
            let mut secret = Zeroizing::new([0; 32]);
            hex::decode_to_slice(text.trim(), &mut *secret).map_err(|_| Error::File {
                file: SECRET_FILE.into(),
                cause: "it is not 64 hex digits".into(),
            })?;
            return Ok(Secret(secret));
        }
        if must_exist {
            let cause = "it is missing, and certificates were issued with it; restore it from a backup";
            return Err(Error::File { file: SECRET_FILE.into(), cause: cause.into() });
        }
        let mut secret = Zeroizing::new([0; 32]);
        random.fill(&mut *secret);
        write_secret(&file, hex::encode(*secret).as_bytes())?;
        Ok(Secret(secret))
    }
}

impl Keyring {
    /// Signs new certificates.
    #[must_use]
    pub const fn active(&self) -> &SigningKey {
        &self.active
    }

    /// The public half of any key that ever signed.
    #[must_use]
    pub fn public(&self, key_id: &str) -> Option<&PublicKey> {
        self.entries.iter().map(|entry| &entry.key).find(|key| key.id().to_string() == key_id)
    }

    /// All keys with their periods, for `/.well-known/onceseal/keys.json`.
    ///
    /// # Errors
    /// When the recorded keys don't make a set.
    pub fn jwks(&self) -> Result<Jwks, Error> {
        Jwks::new(self.entries.clone()).map_err(|cause| Error::Recorded(cause.to_string()))
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

const SELECT: &str =
    "select key_id, public_key, active_from, retired_at from certify_keys order by active_from, key_id";
const RETIRE: &str = "update certify_keys set retired_at = $1 where retired_at is null";
const INSERT: &str = "insert into certify_keys (key_id, public_key, active_from) values ($1, $2, $3)";

async fn recorded(door: &Door) -> Result<Vec<Row>, Error> {
    Ok(door.store().query(Query::new("keys.all", SELECT, vec![])).await.map_err(door::Failure::Store)?)
}

fn entry(row: &Row) -> Result<Entry, Error> {
    let damaged = |cause: store::Error| Error::Recorded(cause.to_string());
    let bytes: [u8; 32] =
        row.bytes(1).map_err(damaged)?.try_into().map_err(|_| Error::Recorded("length".into()))?;
    let key = PublicKey::from_bytes(&bytes).map_err(|cause| Error::Recorded(cause.to_string()))?;
    let retired = row.time_or_null(3).map_err(damaged)?;
    let status = retired.map_or(Status::Active, |at: Time| Status::Retired { at: at.seconds() });
    Ok(Entry { key, status, not_before: Some(row.time(2).map_err(damaged)?.seconds()) })
}

fn last(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read_secret(file: &Path) -> Result<Option<Zeroizing<String>>, Error> {
    let fail = |cause: String| Error::File { file: last(file), cause };
    let mode = match std::fs::metadata(file) {
        Ok(meta) => meta.permissions().mode(),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(fail(cause.to_string())),
    };
    if mode & 0o077 != 0 {
        return Err(fail(format!("others may read it (mode {:o}); run chmod 600", mode & 0o777)));
    }
    std::fs::read_to_string(file)
        .map(|text| Some(Zeroizing::new(text)))
        .map_err(|cause| fail(cause.to_string()))
}

/// Writes a new file of mode 0600, synced, whole or not at all.
fn write_secret(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fail = |cause: std::io::Error| Error::File { file: last(file), cause: cause.to_string() };
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fail)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(fail)?;
    let aside = file.with_extension("new");
    let mut open = std::fs::OpenOptions::new();
    let mut aside_file =
        open.write(true).create(true).truncate(true).mode(0o600).open(&aside).map_err(fail)?;
    aside_file.write_all(bytes).and_then(|()| aside_file.sync_all()).map_err(fail)?;
    std::fs::rename(&aside, file).map_err(fail)?;
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)
}
