//! Where a secret stands: in a variable or in a file, never in the configuration itself, which is read by
//! more people, printed by `config show` and copied into tickets.

use std::fmt;
use std::path::PathBuf;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use source::Secret;

/// Largest secret file that is read, in bytes: a key in PEM has a few thousand.
const FILE_MAX: u64 = 64 * 1024;

/// A reference to a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretRef {
    /// In an environment variable of this name.
    Env(String),
    /// In the file at this path.
    File(PathBuf),
}

/// How the text of a secret is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One line; a single line end after it is dropped.
    Line,
    /// Several lines (PEM).
    Pem,
}

impl SecretRef {
    /// Reads the secret.
    ///
    /// # Errors
    /// The variable is not set, the file can't be read, or the text is no usable secret. Names the place,
    /// never the text.
    pub fn read(&self, layout: Layout) -> Result<Secret, String> {
        let text = match self {
            Self::Env(name) => {
                let text = std::env::var(name).map_err(|cause| match cause {
                    std::env::VarError::NotPresent => format!("the variable {name} is not set"),
                    std::env::VarError::NotUnicode(_) => format!("the variable {name} is not UTF-8"),
                })?;
                zeroize::Zeroizing::new(text)
            }
            Self::File(path) => zeroize::Zeroizing::new(self.file(path)?),
        };
        let secret = match layout {
            Layout::Line => Secret::new(text.as_str()),
            Layout::Pem => Secret::pem(text.as_str()),
        };
        secret.map_err(|cause| format!("{self}: {cause}"))
    }

    fn file(&self, path: &PathBuf) -> Result<String, String> {
        let length = std::fs::metadata(path).map_err(|cause| format!("{self}: {cause}"))?.len();
        if length > FILE_MAX {
            return Err(format!("{self} has {length} bytes; a secret has at most {FILE_MAX}"));
        }
        std::fs::read_to_string(path).map_err(|cause| format!("{self}: {cause}"))
    }

    /// Whether the variable is set or the file is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        match self {
            Self::Env(name) => std::env::var_os(name).is_some(),
            Self::File(path) => path.is_file(),
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "variable {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

const EXPECTED: &str = "{ env = \"NAME\" } or { file = \"/path\" }";

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = SecretRef;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    /// The text may be the secret itself, so the message must not repeat it.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<SecretRef, E> {
        Err(E::custom(format_args!(
            "a secret's value doesn't belong into the configuration; write {EXPECTED}"
        )))
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<SecretRef, E> {
        self.visit_str("")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretRef, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            let reference = match key.as_str() {
                "env" => SecretRef::Env(map.next_value()?),
                "file" => SecretRef::File(map.next_value()?),
                other => {
                    let _: IgnoredAny = map.next_value()?;
                    return Err(A::Error::unknown_field(other, &["env", "file"]));
                }
            };
            if found.replace(reference).is_some() {
                return Err(A::Error::custom(format_args!("both are given; write either {EXPECTED}")));
            }
        }
        match found {
            Some(SecretRef::Env(name)) if name.trim().is_empty() => {
                Err(A::Error::custom("env is blank; name a variable"))
            }
            Some(reference) => Ok(reference),
            None => Err(A::Error::custom(format_args!("it is empty; write {EXPECTED}"))),
        }
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}
