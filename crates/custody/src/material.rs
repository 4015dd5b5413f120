//! Key material of a local set-up: at least 32 random bytes from a file or a variable, refused when missing,
//! short, or not random (supply specification, section 13.1). The keyring's keys, the pepper and the SMS key
//! are all read here, each key proper being derived under a label of its own, so that even the same material
//! given twice by mistake never is the same key twice. It is refused all the same ([`distinct`]).
//!
//! A text is hex or base64 (standard or URL alphabet, padded or not). A file that is no text is taken as it
//! stands. Not here: what the keys are used for.

use std::path::PathBuf;
use std::{fmt, fs, io};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes that are wanted at least.
pub const BYTES_MIN: usize = 32;
/// Bytes that are taken at most: more is a file of another kind.
pub const BYTES_MAX: usize = 1024;
/// Bytes of a file that are read at most: [`BYTES_MAX`] in hex, and line ends.
const FILE_MAX: u64 = 4096;
/// Different byte values wanted in the material. Of 32 random bytes about 30 differ; fewer than 16 come
/// about once in 10^15 times.
const DISTINCT_MIN: usize = 16;

/// Keys that stand in standards and their test cases, in hex: SP 800-38A F.1.5, GCM test case 16, the first
/// of NIST's GCM test vectors for 256 bits. Those that count up (FIPS 197, RFC 8439) are refused as such.
const PUBLISHED: [&str; 3] = [
    "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
    "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
    "31bdadd96698c204aa9ce1448ea94ae1fb4a9a0b3c9d773b51bb1822666b8f22",
];
/// Words whose SHA-256 people take for a random key.
const HASHED: [&str; 14] = [
    "", "0", "123456", "admin", "changeme", "default", "demo", "dev", "key", "onceseal", "password",
    "sample", "secret", "test",
];

/// Where material is kept.
#[derive(Clone, Debug)]
pub enum Source {
    /// A mounted file: raw bytes, or a text in hex or base64.
    File(PathBuf),
    /// The value of a variable or of a secret store: a text in hex or base64.
    Value {
        /// Of the variable, for messages.
        name: String,
        /// Its value; `None` if it is not set.
        value: Option<SecretString>,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Value { name, .. } => f.write_str(name),
        }
    }
}

/// Why material is not taken. `name` is the variable or file as it was configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Not set, no such file, or empty.
    #[error("{name} holds no key; put the output of `openssl rand -base64 32` there")]
    Missing {
        /// Of the variable or file.
        name: String,
    },
    /// The file is there and can't be read.
    #[error("{name} can't be read ({kind}); check who may read it")]
    Unreadable {
        /// Of the file.
        name: String,
        /// The system's word for it.
        kind: io::ErrorKind,
    },
    /// A text in neither hex nor base64.
    #[error("{name} is a text in neither hex nor base64; use the output of `openssl rand -base64 32`")]
    Text {
        /// Of the variable or file.
        name: String,
    },
    /// Fewer than [`BYTES_MIN`] bytes or more than [`BYTES_MAX`].
    #[error("{name} holds {bytes} bytes; {BYTES_MIN} to {BYTES_MAX} random bytes are needed")]
    Length {
        /// Of the variable or file.
        name: String,
        /// After decoding.
        bytes: usize,
    },
    /// Equal bytes, a repeated half, a count, readable words, or a value that stands in public texts.
    #[error(
        "{name} is not random ({sign}); anybody could guess it, use the output of `openssl rand -base64 32`"
    )]
    Guessable {
        /// Of the variable or file.
        name: String,
        /// How it shows.
        sign: &'static str,
    },
    /// Two keys that must differ are the same.
    #[error("{name} and {other} are the same key; make a new one for {other}")]
    Same {
        /// Of the first.
        name: String,
        /// Of the second.
        other: String,
    },
}

/// Random bytes that passed the checks. `Debug` shows only their name; the memory is wiped on drop.
#[derive(Clone)]
pub struct Material {
    name: String,
    bytes: Zeroizing<Vec<u8>>,
}

impl Material {
    /// Reads and checks.
    ///
    /// # Errors
    /// [`Unfit`], naming the variable or file.
    pub fn read(source: &Source) -> Result<Self, Unfit> {
        let name = source.to_string();
        let bytes = match source {
            Source::File(path) => file(path, &name)?,
            Source::Value { value: Some(value), .. } => decoded(value.expose_secret().trim(), &name)?,
            Source::Value { value: None, .. } => return Err(Unfit::Missing { name }),
        };
        Self::checked(name, bytes)
    }

    /// Takes raw bytes, for instance from a key service.
    ///
    /// # Errors
    /// As [`Material::read`].
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<Self, Unfit> {
        Self::checked(name.into(), Zeroizing::new(bytes.to_vec()))
    }

    /// Of the variable or file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn checked(name: String, bytes: Zeroizing<Vec<u8>>) -> Result<Self, Unfit> {
        if bytes.is_empty() {
            return Err(Unfit::Missing { name });
        }
        if !(BYTES_MIN..=BYTES_MAX).contains(&bytes.len()) {
            return Err(Unfit::Length { name, bytes: bytes.len() });
        }
        match guessable(&bytes) {
            Some(sign) => Err(Unfit::Guessable { name, sign }),
            None => Ok(Self { name, bytes }),
        }
    }

    /// The key for one purpose: HMAC-SHA256 under the material over the label. 32 bytes.
    #[must_use]
    pub fn key(&self, label: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(mac(&self.bytes, &[label.as_bytes()]))
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Material").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Refuses material that was given twice: keys, peppers and SMS keys must all differ.
///
/// # Errors
/// [`Unfit::Same`], naming both.
pub fn distinct(materials: &[&Material]) -> Result<(), Unfit> {
    for (place, one) in materials.iter().enumerate() {
        for other in materials.iter().skip(place + 1) {
            if bool::from(one.bytes.ct_eq(&other.bytes)) {
                return Err(Unfit::Same { name: one.name.clone(), other: other.name.clone() });
            }
        }
    }
    Ok(())
}

/// HMAC-SHA256 over the parts, one after the other.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // A key of any length is taken (RFC 2104), so the error can't come; without one the MAC would be unkeyed.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn file(path: &std::path::Path, name: &str) -> Result<Zeroizing<Vec<u8>>, Unfit> {
    let unreadable = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound => Unfit::Missing { name: name.to_owned() },
        kind => Unfit::Unreadable { name: name.to_owned(), kind },
    };
    let length = fs::metadata(path).map_err(unreadable)?.len();
    if length > FILE_MAX {
        return Err(Unfit::Length {
            name: name.to_owned(),
            bytes: usize::try_from(length).unwrap_or(usize::MAX),
        });
    }
    let bytes = Zeroizing::new(fs::read(path).map_err(unreadable)?);
    match std::str::from_utf8(&bytes) {
        Ok(text) if text.chars().all(|c| !c.is_control() || c.is_whitespace()) => decoded(text.trim(), name),
        _ => Ok(bytes),
    }
}

fn decoded(text: &str, name: &str) -> Result<Zeroizing<Vec<u8>>, Unfit> {
    if text.is_empty() {
        return Err(Unfit::Missing { name: name.to_owned() });
    }
    // Hex first: a text of hex digits is base64, too, and means hex.
    if text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && let Ok(bytes) = hex::decode(text)
    {
        return Ok(Zeroizing::new(bytes));
    }
    let either = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    for alphabet in [alphabet::STANDARD, alphabet::URL_SAFE] {
        if let Ok(bytes) = GeneralPurpose::new(&alphabet, either).decode(text) {
            return Ok(Zeroizing::new(bytes));
        }
    }
    Err(Unfit::Text { name: name.to_owned() })
}

/// How bytes show that they are not random.
fn guessable(bytes: &[u8]) -> Option<&'static str> {
    let step = |pair: &[u8]| match pair {
        [left, right] => right.wrapping_sub(*left),
        _ => 0,
    };
    let mut steps = bytes.windows(2).map(step);
    let first = steps.next().unwrap_or(0);
    if steps.all(|step| step == first) {
        return Some(if first == 0 { "all its bytes are equal" } else { "its bytes count up or down" });
    }
    if bytes.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        return Some("it is readable text");
    }
    let (left, right) = bytes.split_at(bytes.len() / 2);
    if left == right {
        return Some("its halves are equal");
    }
    let published =
        PUBLISHED.iter().any(|known| hex::decode(known).is_ok_and(|known| bytes.starts_with(&known)));
    let hashed = HASHED.iter().any(|word| bytes.starts_with(&Sha256::digest(word.as_bytes())));
    if published || hashed {
        return Some("it is a known sample value");
    }
    let mut seen = [false; 256];
    bytes.iter().for_each(|byte| {
        if let Some(seen) = seen.get_mut(usize::from(*byte)) {
            *seen = true;
        }
    });
    (seen.iter().filter(|seen| **seen).count() < DISTINCT_MIN).then_some("few of its bytes differ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 32 bytes that look random and are no sample.
    const GOOD: &str = "9f3a1c77e4b05d286af1930c4de875b2217fc6a85b0e94d3f6183c6e7ad5b04f";

    fn value(text: &str) -> Source {
        Source::Value { name: "ONCESEAL_KEK".into(), value: Some(SecretString::from(text)) }
    }

    fn sign(text: &str) -> &'static str {
        match Material::read(&value(text)) {
            Err(Unfit::Guessable { sign, .. }) => sign,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hex_and_every_base64_are_the_same_key() {
        let bytes = hex::decode(GOOD).unwrap();
        let key = Material::from_bytes("raw", &bytes).unwrap().key("x");
        let padded = base64::engine::general_purpose::STANDARD.encode(&bytes);
        let bare = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&bytes);
        for text in [GOOD, &GOOD.to_uppercase(), &padded, &bare, &format!(" {padded}\n")] {
            assert_eq!(Material::read(&value(text)).unwrap().key("x"), key, "{text}");
        }
        assert_ne!(Material::from_bytes("raw", &bytes).unwrap().key("y"), key);
    }

    #[test]
    fn a_file_may_be_raw_bytes_or_text() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = hex::decode(GOOD).unwrap();
        let read = |content: &[u8]| {
            let path = folder.path().join("kek");
            fs::write(&path, content).unwrap();
            Material::read(&Source::File(path))
        };
        assert_eq!(read(&bytes).unwrap().key("x"), read(format!("{GOOD}\n").as_bytes()).unwrap().key("x"));
        assert!(matches!(read(b"\n"), Err(Unfit::Missing { .. })));
        assert!(matches!(read(&[7; 5000]), Err(Unfit::Length { bytes: 5000, .. })));
        let absent = Source::File(folder.path().join("absent"));
        assert!(matches!(Material::read(&absent), Err(Unfit::Missing { .. })));
        assert!(matches!(Material::read(&Source::File(folder.path().into())), Err(Unfit::Unreadable { .. })));
    }

    #[test]
    fn what_is_missing_short_or_no_encoding_is_refused() {
        let none = Source::Value { name: "ONCESEAL_KEK".into(), value: None };
        assert!(matches!(Material::read(&none), Err(Unfit::Missing { .. })));
        assert!(matches!(Material::read(&value(" \n")), Err(Unfit::Missing { .. })));
        assert!(matches!(Material::read(&value(&GOOD[..62])), Err(Unfit::Length { bytes: 31, .. })));
        for text in ["correct horse battery staple and so on", "päßword-päßword-päßword-päßword"] {
            assert!(matches!(Material::read(&value(text)), Err(Unfit::Text { .. })), "{text}");
        }
    }

    #[test]
    fn what_is_not_random_is_refused_with_its_sign() {
        assert_eq!(sign(&"00".repeat(32)), "all its bytes are equal");
        assert_eq!(sign(&hex::encode((0..32).collect::<Vec<u8>>())), "its bytes count up or down");
        assert_eq!(sign(&hex::encode(b"0123456789abcdef0123456789abcdef")), "it is readable text");
        assert_eq!(sign(&GOOD[..32].repeat(2)), "its halves are equal");
        assert_eq!(sign(&hex::encode(Sha256::digest("changeme"))), "it is a known sample value");
        assert_eq!(sign(PUBLISHED[0]), "it is a known sample value");
        let few: Vec<u8> = (0..40u32).map(|n| u8::try_from(n * n % 7).unwrap()).collect();
        assert_eq!(sign(&hex::encode(few)), "few of its bytes differ");
    }

    #[test]
    fn the_same_material_twice_is_refused_and_never_shown() {
        let one = Material::read(&value(GOOD)).unwrap();
        let other = Material::from_bytes("pepper", &hex::decode(GOOD).unwrap()).unwrap();
        let error = distinct(&[&one, &other]).unwrap_err();
        assert_eq!(error, Unfit::Same { name: "ONCESEAL_KEK".into(), other: "pepper".into() });
        assert!(distinct(&[&one]).is_ok());
        assert!(!format!("{one:?} {error:?} {error} {:?}", value(GOOD)).contains(&GOOD[..8]));
    }
}
