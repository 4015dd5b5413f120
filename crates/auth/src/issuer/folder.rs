//! The issuer's private keys as files, `issuer-<name>.pem`, readable by their owner only. In the order of
//! their names the last one signs, unless the configuration names another.
//!
//! A file is written whole or not at all; of several nodes that make the first key of a shared folder at
//! once, one wins and all use its key. Not here: the keys of certificates, which have a rotation of their own.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use kernel::Random;
use zeroize::Zeroizing;

use super::{Error, IssuerKey, KEYS_MAX};

/// Longest file that is read; a key has about 240 bytes.
const FILE_MAX: u64 = 8 * 1024;
/// Name of the first key's file.
const FIRST: &str = "issuer-0001.pem";

/// The keys of a folder in the order of their files; makes folder and first key where there are none.
///
/// # Errors
/// [`Error::File`] for a file that can't be read, is open to others, or holds no key; [`Error::Count`] for
/// more than [`KEYS_MAX`].
pub fn open(folder: &Path, random: &dyn Random) -> Result<Vec<IssuerKey>, Error> {
    let keys = load(folder)?;
    if !keys.is_empty() {
        return Ok(keys);
    }
    let pem = IssuerKey::random(random)?.to_pem()?;
    write_new(folder, FIRST, pem.as_bytes())?;
    // Another node may have been faster: what stands there counts.
    load(folder)
}

/// Adds a key behind the others and returns it. It is published from now on by nodes that open the folder
/// again, and signs there unless they are told to sign with another.
///
/// # Errors
/// As [`open`]; also when another node adds one at the same time.
pub fn add(folder: &Path, random: &dyn Random) -> Result<IssuerKey, Error> {
    let last = files(folder)?.last().map(|file| name(file)).unwrap_or_default();
    let number = last.trim_start_matches("issuer-").trim_end_matches(".pem").parse().unwrap_or(0_u32);
    let file = format!("issuer-{:04}.pem", number.saturating_add(1));
    let key = IssuerKey::random(random)?;
    if !write_new(folder, &file, key.to_pem()?.as_bytes())? {
        return Err(Error::File {
            file,
            cause: "another node has just written it; look, and try again".into(),
        });
    }
    Ok(key)
}

fn load(folder: &Path) -> Result<Vec<IssuerKey>, Error> {
    let files = files(folder)?;
    if files.len() > KEYS_MAX {
        return Err(Error::Count(files.len()));
    }
    files.iter().map(|file| read(file)).collect()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail = |cause: std::io::Error| failed(folder, &cause);
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(fail(cause)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(fail)?.path();
        let name = name(&path);
        if name.starts_with("issuer-") && name.ends_with(".pem") {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Nobody but the owner may read it; a mounted file of root's may be its group's, too.
fn read(file: &Path) -> Result<IssuerKey, Error> {
    let meta = std::fs::metadata(file).map_err(|cause| failed(file, &cause))?;
    let (mode, allowed) = (meta.permissions().mode() & 0o777, if meta.uid() == 0 { 0o740 } else { 0o700 });
    let fail = |cause: String| Error::File { file: name(file), cause };
    if mode & !allowed != 0 {
        return Err(fail(format!("others may read or write it (mode {mode:o}); run chmod 600")));
    }
    if meta.len() > FILE_MAX {
        return Err(fail(format!("it is longer than {FILE_MAX} bytes, which no key is")));
    }
    let pem = Zeroizing::new(std::fs::read_to_string(file).map_err(|cause| failed(file, &cause))?);
    IssuerKey::from_pem(&pem).map_err(|cause| fail(cause.to_string()))
}

/// Writes a file of mode 0600, synced and whole; `false` when one of the name stands there, which then stays.
fn write_new(folder: &Path, file: &str, bytes: &[u8]) -> Result<bool, Error> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let fail = |cause: std::io::Error| Error::File { file: file.to_owned(), cause: cause.to_string() };
    if !folder.is_dir() {
        std::fs::create_dir_all(folder).map_err(fail)?;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(fail)?;
    }
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let aside = folder.join(format!("{file}.new-{}-{count}", std::process::id()));
    let mut open = std::fs::OpenOptions::new();
    let mut written = open.write(true).create(true).truncate(true).mode(0o600).open(&aside).map_err(fail)?;
    let put = written.write_all(bytes).and_then(|()| written.sync_all());
    // A link is never put over another file's name, as a rename would be.
    let put = put.and_then(|()| match std::fs::hard_link(&aside, folder.join(file)) {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(cause) => Err(cause),
    });
    if let Err(cause) = std::fs::remove_file(&aside) {
        tracing::warn!(file, %cause, "key_file_not_removed");
    }
    let put = put.map_err(fail)?;
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
    Ok(put)
}

fn failed(file: &Path, cause: &std::io::Error) -> Error {
    Error::File { file: name(file), cause: cause.to_string() }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
