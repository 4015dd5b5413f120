//! The folder of key files: `anchor-<id>.pem` and `slug.secret`. Not here: which of them count.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use kernel::Random;
use seal::key::{FileSalt, KeyId, SigningKey};
use zeroize::Zeroizing;

use super::{Error, Secret};

/// Passphrase of the private key files.
pub type Passphrase = Zeroizing<String>;

const SECRET_FILE: &str = "slug.secret";

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

    /// A new key, its private half on disk.
    pub(super) fn make(&self, random: &dyn Random) -> Result<SigningKey, Error> {
        let mut seed = Zeroizing::new([0; 32]);
        random.fill(&mut *seed);
        let key = SigningKey::from_seed(&seed);
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
        write_new(&file, pem.as_bytes())?;
        Ok(key)
    }

    /// Removes the file of a key that never signed.
    pub(super) fn remove(&self, id: KeyId) {
        discard(&self.file(id));
    }

    pub(super) fn private(&self, id: KeyId) -> Result<SigningKey, Error> {
        let file = self.file(id);
        let Some(pem) = read(&file)? else { return Err(Error::Missing(id)) };
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

    /// The secret, if its file is there.
    pub(super) fn secret(&self) -> Result<Option<Secret>, Error> {
        let Some(text) = read(&self.path.join(SECRET_FILE))? else { return Ok(None) };
        let mut secret = Zeroizing::new([0; 32]);
        hex::decode_to_slice(text.trim(), &mut *secret)
            .map_err(|_| Error::File { file: SECRET_FILE.into(), cause: "it is not 64 hex digits".into() })?;
        Ok(Some(Secret(secret)))
    }

    /// Makes the secret; `None` when another node that has this folder was faster.
    pub(super) fn make_secret(&self, random: &dyn Random) -> Result<Option<Secret>, Error> {
        let mut secret = Zeroizing::new([0; 32]);
        random.fill(&mut *secret);
        let text = Zeroizing::new(hex::encode(*secret));
        Ok(write_new(&self.path.join(SECRET_FILE), text.as_bytes())?.then_some(Secret(secret)))
    }

    /// Removes a secret that was never used.
    pub(super) fn remove_secret(&self) {
        discard(&self.path.join(SECRET_FILE));
    }

    /// What to say when it is missing and certificates were issued with it.
    pub(super) fn no_secret() -> Error {
        let cause = "it is missing, and certificates were issued with it; copy it from a node that works, or restore it from a backup";
        Error::File { file: SECRET_FILE.into(), cause: cause.into() }
    }

    fn file(&self, id: KeyId) -> PathBuf {
        self.path.join(file_name(id))
    }
}

/// Name of a private key's file.
pub(super) fn file_name(id: KeyId) -> String {
    format!("anchor-{id}.pem")
}

fn last(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Nobody but the owner may read it; a mounted file of root's may be its group's, too, as PostgreSQL has it.
fn read(file: &Path) -> Result<Option<Zeroizing<String>>, Error> {
    let fail = |cause: String| Error::File { file: last(file), cause };
    let meta = match std::fs::metadata(file) {
        Ok(meta) => meta,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(fail(cause.to_string())),
    };
    let (mode, allowed) = (meta.permissions().mode() & 0o777, if meta.uid() == 0 { 0o740 } else { 0o700 });
    if mode & !allowed != 0 {
        return Err(fail(format!("others may read or write it (mode {mode:o}); run chmod 600")));
    }
    std::fs::read_to_string(file)
        .map(|text| Some(Zeroizing::new(text)))
        .map_err(|cause| fail(cause.to_string()))
}

/// Writes a file of mode 0600, synced and whole; `false` when one of the name stood there, which then stays.
/// Nodes that share the folder may try at once.
fn write_new(file: &Path, bytes: &[u8]) -> Result<bool, Error> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let fail = |cause: std::io::Error| Error::File { file: last(file), cause: cause.to_string() };
    let folder = file.parent().unwrap_or(Path::new("."));
    if !folder.is_dir() {
        std::fs::create_dir_all(folder).map_err(fail)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(fail)?;
    }
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let aside = file.with_extension(format!("new-{}-{count}", std::process::id()));
    let mut open = std::fs::OpenOptions::new();
    let mut written = open.write(true).create(true).truncate(true).mode(0o600).open(&aside).map_err(fail)?;
    let put = written.write_all(bytes).and_then(|()| written.sync_all());
    // A link is never put over another file's name, as a rename would be.
    let put = put.and_then(|()| match std::fs::hard_link(&aside, file) {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(cause) => Err(cause),
    });
    discard(&aside);
    let put = put.map_err(fail)?;
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
    Ok(put)
}

/// What stays behind is only in the way of a person: it is named nowhere.
fn discard(file: &Path) {
    if let Err(cause) = std::fs::remove_file(file) {
        tracing::warn!(file = last(file), %cause, "key_file_not_removed");
    }
}
