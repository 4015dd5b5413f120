//! The supply side's keys: named one by one in `[supply.keys]`, or as files in a folder of their own beside the
//! anchor keys, made at the first start. Not here: what each is for (`custody`, `guard`, `onceseal-http`).

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use custody::Material;
use custody::material::{Source, distinct};
use kernel::Random;
use secrecy::{SecretSlice, SecretString};
use zeroize::Zeroizing;

use crate::config::policy::version;
use crate::config::secret::SecretRef;
use crate::config::supply::Keys;

/// Folder of the files, inside that of the anchor keys.
pub const FOLDER: &str = "supply";
/// The files of a new installation.
const FIRST: [&str; 6] = ["kek-1", "pepper", "idempotency", "sms-1", "guard", "buyer"];
/// Labels under which keys proper are derived from the material.
const IDEMPOTENCY: &str = "onceseal idempotency v1";
const LINKS: &str = "onceseal statement links v1";
const GUARD: &str = "onceseal guard v1";
const BUYER: &str = "onceseal buyer keys v1";
/// A key's bytes, as much as each purpose needs at most.
const BYTES: usize = 32;

/// Checked material, each different from all others.
#[derive(Debug)]
pub struct Secrets {
    /// By version, ascending.
    pub kek: Vec<(u32, Material)>,
    /// For fingerprints of secrets.
    pub pepper: Material,
    /// The one before.
    pub former_pepper: Option<Material>,
    /// By version, ascending; empty where nobody sends SMS.
    pub sms: Vec<(u32, Material)>,
    idempotency: Material,
    former_idempotency: Vec<Material>,
    guard: Material,
    buyer: Material,
}

impl Secrets {
    /// Reads what the configuration names.
    ///
    /// # Errors
    /// A key is missing, short or not random, or one stands for two: named by its setting.
    pub fn named(keys: &Keys) -> Result<Self, String> {
        let one = |setting: &str, place: &Option<SecretRef>| match place {
            Some(place) => read(setting, place),
            None => Err(format!("supply.keys.{setting} is not set")),
        };
        let many = |setting: &str, places: &BTreeMap<String, SecretRef>| {
            let numbered = places.iter().map(|(text, place)| {
                Ok((version(setting, text)?, read(&format!("{setting}.{text}"), place)?))
            });
            let mut numbered = numbered.collect::<Result<Vec<_>, String>>()?;
            numbered.sort_by_key(|(version, _)| *version);
            Ok::<_, String>(numbered)
        };
        let former = keys.former_idempotency.iter().map(|place| read("former_idempotency", place));
        Self {
            kek: many("kek", &keys.kek)?,
            pepper: one("pepper", &keys.pepper)?,
            former_pepper: keys
                .former_pepper
                .as_ref()
                .map(|place| read("former_pepper", place))
                .transpose()?,
            sms: many("sms", &keys.sms)?,
            idempotency: one("idempotency", &keys.idempotency)?,
            former_idempotency: former.collect::<Result<_, _>>()?,
            guard: one("guard", &keys.guard)?,
            buyer: one("buyer", &keys.buyer)?,
        }
        .distinct()
    }

    /// Reads the files of a folder.
    ///
    /// # Errors
    /// As [`Secrets::named`], by the file's name; one that others may read is refused, too.
    pub fn local(folder: &Path) -> Result<Self, String> {
        let one = |name: &str| local(&folder.join(name));
        let optional = |name: &str| folder.join(name).exists().then(|| one(name)).transpose();
        Self {
            kek: versions(folder, "kek-")?,
            pepper: one("pepper")?,
            former_pepper: optional("former-pepper")?,
            sms: versions(folder, "sms-")?,
            idempotency: one("idempotency")?,
            former_idempotency: optional("former-idempotency")?.into_iter().collect(),
            guard: one("guard")?,
            buyer: one("buyer")?,
        }
        .distinct()
    }

    /// Under which requests are compared: the current one, and those before.
    #[must_use]
    pub fn idempotency(&self) -> (SecretSlice<u8>, Vec<SecretSlice<u8>>) {
        self.versions(IDEMPOTENCY)
    }

    /// Under which links to statements are made, of the same material: the current one, and those before.
    #[must_use]
    pub fn links(&self) -> (SecretSlice<u8>, Vec<SecretSlice<u8>>) {
        self.versions(LINKS)
    }

    fn versions(&self, label: &str) -> (SecretSlice<u8>, Vec<SecretSlice<u8>>) {
        let former = self.former_idempotency.iter().map(|material| slice(material, label));
        (slice(&self.idempotency, label), former.collect())
    }

    /// The guard's.
    #[must_use]
    pub fn guard(&self) -> Zeroizing<[u8; BYTES]> {
        self.guard.key(GUARD)
    }

    /// Under which buyers' keys are hashed.
    #[must_use]
    pub fn buyer(&self) -> SecretSlice<u8> {
        slice(&self.buyer, BUYER)
    }

    fn distinct(self) -> Result<Self, String> {
        let numbered = self.kek.iter().chain(&self.sms).map(|(_, material)| material);
        let single = [&self.pepper, &self.idempotency, &self.guard, &self.buyer].into_iter();
        let former = self.former_pepper.iter().chain(&self.former_idempotency);
        let all: Vec<&Material> = numbered.chain(single).chain(former).collect();
        distinct(&all).map_err(|cause| format!("supply.keys: {cause}"))?;
        Ok(self)
    }
}

/// Makes the files that are missing, mode 0600, in a folder of mode 0700; gives the names of those made.
///
/// # Errors
/// The folder can't be written.
pub fn make(folder: &Path, random: &dyn Random) -> Result<Vec<&'static str>, String> {
    let fail = |cause: std::io::Error| unwritable(&cause);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fail)?;
    let mut made = Vec::new();
    for name in FIRST.into_iter().filter(|name| !folder.join(name).exists()) {
        written(folder, name, random)?;
        made.push(name);
    }
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
    Ok(made)
}

/// Makes the next version of the key that wraps data keys; gives the name of its file.
///
/// # Errors
/// There is none yet, or the folder can't be written.
pub fn make_kek(folder: &Path, random: &dyn Random) -> Result<String, String> {
    let last = numbered(folder, "kek-").into_keys().next_back();
    let last = last.ok_or("there is no file kek-1 yet; make the keys with `onceseal init --supply`")?;
    let name = format!("kek-{}", last.saturating_add(1));
    written(folder, &name, random)?;
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(|cause| unwritable(&cause))?;
    Ok(name)
}

fn unwritable(cause: &std::io::Error) -> String {
    format!("the folder of the supply side's keys can't be written: {cause}")
}

/// A key file of fresh random bytes. Written aside and then named, so that a crash leaves no short key.
fn written(folder: &Path, name: &str, random: &dyn Random) -> Result<(), String> {
    let fail = |cause: std::io::Error| unwritable(&cause);
    let mut bytes = Zeroizing::new([0; BYTES]);
    random.fill(&mut *bytes);
    let text = Zeroizing::new(hex::encode(bytes.as_slice()) + "\n");
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
    file.persist_noclobber(folder.join(name)).map_err(|refused| fail(refused.error))?;
    Ok(())
}

/// The first file of a new installation that is not there.
#[must_use]
pub fn missing(folder: &Path) -> Option<&'static str> {
    FIRST.into_iter().find(|name| match name.strip_suffix("-1") {
        // Any version does.
        Some(kind) => numbered(folder, &format!("{kind}-")).is_empty(),
        None => !folder.join(name).exists(),
    })
}

/// Whether a key of the built-in issuer is there.
#[must_use]
pub fn has_issuer(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| {
        name.starts_with("issuer-") && Path::new(&name).extension().is_some_and(|kind| kind == "pem")
    })
}

fn slice(material: &Material, label: &str) -> SecretSlice<u8> {
    SecretSlice::from(material.key(label).to_vec())
}

fn read(setting: &str, place: &SecretRef) -> Result<Material, String> {
    let source = match place {
        SecretRef::File(path) => Source::File(path.clone()),
        SecretRef::Env(name) => {
            let value = std::env::var(name).ok().map(SecretString::from);
            Source::Value { name: format!("the variable {name}"), value }
        }
    };
    Material::read(&source).map_err(|cause| format!("supply.keys.{setting}: {cause}"))
}

/// The versions of a key that have a file.
fn numbered(folder: &Path, prefix: &str) -> BTreeMap<u32, PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |entry: &std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_prefix(prefix)?.parse::<u32>().ok().filter(|number| *number > 0)
    };
    entries.filter_map(|entry| Some((number(&entry)?, entry.path()))).collect()
}

fn versions(folder: &Path, prefix: &str) -> Result<Vec<(u32, Material)>, String> {
    let files = numbered(folder, prefix);
    files.into_iter().map(|(version, path)| Ok((version, local(&path)?))).collect()
}

fn local(path: &Path) -> Result<Material, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let fail = |cause: &dyn std::fmt::Display| format!("key file keys/{FOLDER}/{name}: {cause}");
    let meta = std::fs::metadata(path).map_err(|cause| fail(&cause))?;
    // A mounted file of root's may be its group's, too.
    let allowed = if meta.uid() == 0 { 0o740 } else { 0o700 };
    if meta.mode() & 0o777 & !allowed != 0 {
        return Err(fail(&"others may read or write it; run chmod 600"));
    }
    Material::read(&Source::File(path.to_owned())).map_err(|cause| fail(&cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::OsRandom;

    #[test]
    fn keys_are_made_once_for_their_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join(FOLDER);
        assert_eq!(missing(&folder), Some("kek-1"));
        assert_eq!(make(&folder, &OsRandom).unwrap(), FIRST);
        assert_eq!((make(&folder, &OsRandom).unwrap().len(), missing(&folder)), (0, None));
        let secrets = Secrets::local(&folder).unwrap();
        assert_eq!((secrets.kek.len(), secrets.sms.len()), (1, 1));
        assert_eq!(make_kek(&folder, &OsRandom).unwrap(), "kek-2");
        let versions = Secrets::local(&folder).unwrap().kek.into_iter().map(|(version, _)| version);
        assert_eq!(versions.collect::<Vec<_>>(), [1, 2]);
        for name in FIRST {
            assert_eq!(std::fs::metadata(folder.join(name)).unwrap().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_key_that_is_short_or_stands_for_two_is_refused_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), &OsRandom).unwrap();
        std::fs::write(folder.path().join("pepper"), "00ff").unwrap();
        let told = Secrets::local(folder.path()).unwrap_err();
        assert!(told.contains("keys/supply/pepper") && told.contains("holds 2 bytes"), "{told}");
        std::fs::copy(folder.path().join("guard"), folder.path().join("pepper")).unwrap();
        let told = Secrets::local(folder.path()).unwrap_err();
        assert!(told.contains("the same key"), "{told}");
    }
}
