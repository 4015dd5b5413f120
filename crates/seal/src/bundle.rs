//! The certificate's files: what is signed, and the three forms that are served.
//!
//! # Files
//!
//! All JSON here is canonical (RFC 8785) and holds exact numbers only.
//!
//! | file | content |
//! | --- | --- |
//! | `certificate.html` | the page, as the template made it |
//! | `metadata.json` | `{"format":"onceseal-metadata/1","run":{...},"run_hash":"<hex>"}` |
//! | `manifest.json` | `{"files":[{"name","sha256","size"}...],"format":"onceseal-manifest/1","ref","run_hash"}`; `files` are the two above, sorted by name |
//! | `manifest.sig` | `{"alg":"Ed25519","kid","public_key","signature"}`; the Ed25519 signature covers exactly the bytes of `manifest.json` |
//!
//! # Served forms
//!
//! - ZIP: the four files, in the form of [`crate::zip`].
//! - JSON: `{"format":"onceseal-certificate/1","manifest":{...},"metadata":{...},"signature":{...}}`, where the
//!   three members are the three JSON files. It verifies alone, but for the page, of which it names the hash.
//! - HTML: `certificate.html`, then one line `<!-- onceseal-proof:P -->` and a line feed, where P is the
//!   unpadded base64url of the JSON form. What is signed is everything before that line.
//!
//! All three are a pure function of page, run, reference and signature: [`rebuild`] makes the same bytes
//! without a private key. What it is not: it renders no page and stores no file.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::hash::{self, Digest};
use crate::jcs;
use crate::key::{self, ALGORITHM, KeyId, PublicKey, Signature, SigningKey};
use crate::run;
use crate::zip;

/// Name of the page in the ZIP and in the manifest.
pub const HTML_NAME: &str = "certificate.html";
/// Name of the manifest in the ZIP.
pub const MANIFEST_NAME: &str = "manifest.json";
/// Name of the signature in the ZIP.
pub const SIGNATURE_NAME: &str = "manifest.sig";
/// Name of the metadata in the ZIP and in the manifest.
pub const METADATA_NAME: &str = "metadata.json";

/// `format` of `manifest.json`. It is signed, so a signature over another kind of text never fits.
pub const MANIFEST_FORMAT: &str = "onceseal-manifest/1";
/// `format` of `metadata.json`.
pub const METADATA_FORMAT: &str = "onceseal-metadata/1";
/// `format` of the served JSON.
pub const CERTIFICATE_FORMAT: &str = "onceseal-certificate/1";

/// Start of the last line of the served HTML.
pub const TRAILER_START: &str = "<!-- onceseal-proof:";
/// End of the last line of the served HTML.
pub const TRAILER_END: &str = " -->\n";

/// Largest served file, in bytes.
pub const MAX_BYTES: usize = zip::MAX_BYTES;

/// Largest served JSON, in bytes. Parsed JSON takes many times its length in memory, and a verifier must bear
/// hostile files, so this is far less than [`MAX_BYTES`].
pub const MAX_JSON_BYTES: usize = 1024 * 1024;

/// Longest reference, in bytes.
pub const MAX_REFERENCE: usize = 512;

/// What a certificate is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The page. Starts with `<` and does not contain [`TRAILER_START`].
    pub html: Vec<u8>,
    /// The run: an object with the members of [`run::Head`] and any other, without floats.
    pub run: Value,
    /// The certificate's reference (`av_evt_...`): 1 to 512 visible ASCII characters.
    pub reference: String,
}

/// SHA-256 of the served files and of the signed manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digests {
    /// Of the served HTML, last line included.
    pub html: Digest,
    /// Of the served ZIP.
    pub zip: Digest,
    /// Of the served JSON.
    pub json: Digest,
    /// Of `manifest.json`.
    pub manifest: Digest,
}

/// A finished certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The served HTML.
    pub html: Vec<u8>,
    /// The served ZIP.
    pub zip: Vec<u8>,
    /// The served JSON.
    pub json: Vec<u8>,
    /// The run hash ([`hash::run_hash`]).
    pub run_hash: Digest,
    /// The signature over `manifest.json`. Keep it: [`rebuild`] needs it.
    pub signature: Signature,
    /// Who signed.
    pub key_id: KeyId,
    /// Hashes of what was made.
    pub digests: Digests,
}

/// Why a draft was not sealed or rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The page does not start with `<` or holds the mark of the last line.
    #[error("page can't be sealed: it must start with \"<\" and not contain {TRAILER_START:?}")]
    Page,
    /// The reference is empty, too long or holds other than visible ASCII.
    #[error("reference {reference:?} can't be sealed; use 1 to {MAX_REFERENCE} visible ASCII characters")]
    Reference {
        /// The reference.
        reference: String,
    },
    /// The run lacks a member that every run has.
    #[error("run can't be sealed: {0}")]
    Run(#[from] run::Error),
    /// The run has no hash.
    #[error(transparent)]
    Hash(#[from] hash::Error),
    /// A file has no canonical form.
    #[error(transparent)]
    Canonical(#[from] jcs::Error),
    /// The ZIP can't be made.
    #[error(transparent)]
    Zip(#[from] zip::Error),
    /// A served file is larger than [`MAX_BYTES`], or the JSON than [`MAX_JSON_BYTES`].
    #[error("certificate is too large; page and run may fill {MAX_BYTES} bytes, the run {MAX_JSON_BYTES}")]
    TooLarge,
    /// The stored signature is not one of this key over this draft.
    #[error("certificate can't be rebuilt: {0}; the draft, the signature or the key is not the recorded one")]
    Signature(key::Error),
}

impl Error {
    /// The stable name of this refusal.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Page => "bundle_page",
            Self::Reference { .. } => "bundle_reference",
            Self::Run(_) => "bundle_run",
            Self::Hash(error) => error.code(),
            Self::Canonical(error) => error.code(),
            Self::Zip(error) => error.code(),
            Self::TooLarge => "bundle_too_large",
            Self::Signature(error) => error.code(),
        }
    }
}

/// `manifest.json`. Fields stand in canonical order.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) files: Vec<ManifestFile>,
    pub(crate) format: String,
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    pub(crate) run_hash: Digest,
}

/// One line of the manifest. Fields stand in canonical order.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManifestFile {
    pub(crate) name: String,
    pub(crate) sha256: Digest,
    pub(crate) size: u64,
}

/// `manifest.sig`. Fields stand in canonical order.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignatureFile {
    pub(crate) alg: String,
    pub(crate) kid: String,
    pub(crate) public_key: String,
    pub(crate) signature: String,
}

/// Seals a draft: hashes, signs and packs it. The cost is one signature, and four SHA-256 over about the page.
///
/// # Errors
/// [`Error`] when the draft breaks a rule of [`Draft`] or grows too large.
pub fn seal(draft: &Draft, key: &SigningKey) -> Result<Sealed, Error> {
    let unsigned = Unsigned::of(draft)?;
    let signature = key.sign(&unsigned.manifest);
    unsigned.finish(draft, &signature, key.public())
}

/// Makes the files of a recorded certificate again, byte for byte, without the private key.
///
/// ```
/// use seal::{bundle::{Draft, rebuild, seal}, key::SigningKey};
///
/// let key = SigningKey::from_seed(&[7; 32]);
/// let draft = Draft {
///     html: b"<p>5.00</p>".to_vec(),
///     run: serde_json::json!({"v": 1, "issued_at": 1_767_225_600, "mode": "live"}),
///     reference: "av_evt_1".to_owned(),
/// };
/// let first = seal(&draft, &key)?;
/// assert_eq!(rebuild(&draft, &first.signature, &key.public_key())?, first);
/// # Ok::<(), seal::bundle::Error>(())
/// ```
///
/// # Errors
/// As [`seal`], and [`Error::Signature`] when the signature does not belong to this draft and key.
pub fn rebuild(draft: &Draft, signature: &Signature, key: &PublicKey) -> Result<Sealed, Error> {
    let unsigned = Unsigned::of(draft)?;
    key.verify(&unsigned.manifest, signature).map_err(Error::Signature)?;
    unsigned.finish(draft, signature, key)
}

/// All of a certificate that does not depend on the signature.
struct Unsigned {
    run_hash: Digest,
    metadata: Vec<u8>,
    manifest: Vec<u8>,
    /// SHA-256 over the page, ready to go on with the last line.
    page: Sha256,
}

impl Unsigned {
    fn of(draft: &Draft) -> Result<Self, Error> {
        check(draft)?;
        run::Head::read(&draft.run)?;
        let run = hash::run_bytes(&draft.run)?;
        let run_hash = Digest::of(&run);
        let metadata = jcs::join(&[
            ("format", &jcs::declared(&METADATA_FORMAT)?),
            ("run", &run),
            ("run_hash", &jcs::declared(&run_hash)?),
        ]);
        let page = Sha256::new_with_prefix(&draft.html);
        let manifest = Manifest {
            files: vec![
                line(HTML_NAME, Digest::from_bytes(page.clone().finalize().into()), draft.html.len()),
                line(METADATA_NAME, Digest::of(&metadata), metadata.len()),
            ],
            format: MANIFEST_FORMAT.to_owned(),
            reference: draft.reference.clone(),
            run_hash,
        };
        Ok(Self { run_hash, metadata, manifest: jcs::declared(&manifest)?, page })
    }

    fn finish(self, draft: &Draft, signature: &Signature, key: &PublicKey) -> Result<Sealed, Error> {
        let block = jcs::declared(&SignatureFile {
            alg: ALGORITHM.to_owned(),
            kid: key.id().to_string(),
            public_key: key.to_string(),
            signature: signature.to_string(),
        })?;
        let json = jcs::join(&[
            ("format", &jcs::declared(&CERTIFICATE_FORMAT)?),
            ("manifest", &self.manifest),
            ("metadata", &self.metadata),
            ("signature", &block),
        ]);
        let trailer = format!("{TRAILER_START}{}{TRAILER_END}", URL_SAFE_NO_PAD.encode(&json));
        let html = [draft.html.as_slice(), trailer.as_bytes()].concat();
        if html.len() > MAX_BYTES || json.len() > MAX_JSON_BYTES {
            return Err(Error::TooLarge);
        }
        let zip = zip::write(&[
            zip::Entry { name: HTML_NAME, content: &draft.html },
            zip::Entry { name: MANIFEST_NAME, content: &self.manifest },
            zip::Entry { name: SIGNATURE_NAME, content: &block },
            zip::Entry { name: METADATA_NAME, content: &self.metadata },
        ])?;
        let digests = Digests {
            html: Digest::from_bytes(self.page.chain_update(&trailer).finalize().into()),
            zip: Digest::of(&zip),
            json: Digest::of(&json),
            manifest: Digest::of(&self.manifest),
        };
        let (run_hash, signature, key_id) = (self.run_hash, *signature, key.id());
        Ok(Sealed { html, zip, json, run_hash, signature, key_id, digests })
    }
}

fn line(name: &str, sha256: Digest, size: usize) -> ManifestFile {
    // A length in memory fits 64 bits on every machine Rust knows.
    ManifestFile { name: name.to_owned(), sha256, size: size as u64 }
}

fn check(draft: &Draft) -> Result<(), Error> {
    if draft.html.len() > MAX_BYTES {
        return Err(Error::TooLarge);
    }
    if !draft.html.starts_with(b"<") || contains(&draft.html, TRAILER_START.as_bytes()) {
        return Err(Error::Page);
    }
    let reference = &draft.reference;
    let plain =
        (1..=MAX_REFERENCE).contains(&reference.len()) && reference.bytes().all(|b| b.is_ascii_graphic());
    if plain {
        Ok(())
    } else {
        Err(Error::Reference { reference: reference.chars().take(MAX_REFERENCE).collect() })
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
