//! Is this file a genuine certificate, and who says so: the offline stage of verification.
//!
//! The verifier brings the trust (a pinned key, or a key set fetched from where the issuer publishes it); the
//! key inside the file proves only that the file was not changed since somebody signed it. Everything that
//! can be canonical must be, byte for byte, so that one certificate is one file in each form.
//!
//! | verdict | meaning |
//! | --- | --- |
//! | [`Verdict::Valid`] | not changed, signed by a trusted key that is in use |
//! | [`Verdict::ValidDateClaimed`] | not changed, signed by a trusted key that is retired: the issue time is only what the signer claims, because an old key in wrong hands can date back; a log entry or a time-stamp must say more |
//! | [`Verdict::IntactSignerUnknown`] | not changed since it was signed, by a key that the verifier doesn't know |
//! | [`Verdict::Invalid`] | changed, damaged, or never a certificate |
//!
//! An issue time **before** a key's `not_before` is no fault: an event may be delivered and certified days
//! after its own time. What it is not: no look into the log, no look at a clock, nothing fetched.

mod open;
mod report;

use crate::bundle::{
    HTML_NAME, MANIFEST_FORMAT, METADATA_NAME, Manifest, ManifestFile, SIGNATURE_NAME, SignatureFile,
};
use crate::hash::{self, Digest};
use crate::jwks::{Entry, Jwks, Status};
use crate::key::{ALGORITHM, PublicKey, Signature};
use crate::run::Head;

use open::Opened;
pub use report::{Check, Form, Outcome, Reason, Report, Verdict};

/// Largest file that is looked at, in bytes.
pub const MAX_BYTES: usize = crate::bundle::MAX_BYTES;

/// How far an issue time may lie after its key's retirement, in seconds: the sender's clock, which dates the
/// event, need not agree with the issuer's.
pub const RETIREMENT_SLACK: i64 = 300;

/// The keys that a verifier trusts, each with its period. May be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust(Vec<Entry>);

impl Trust {
    /// Trusts nobody: the best verdict is then [`Verdict::IntactSignerUnknown`].
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Trusts one key, known to the verifier from elsewhere, as being in use.
    #[must_use]
    pub fn pinned(key: PublicKey) -> Self {
        Self(vec![Entry { key, status: Status::Active, not_before: None }])
    }

    /// Trusts one key more.
    #[must_use]
    pub fn with(mut self, entry: Entry) -> Self {
        self.0.push(entry);
        self
    }

    /// The entry of this key. If several speak of it, one that says "retired" counts.
    fn find(&self, key: &PublicKey) -> Option<&Entry> {
        let known = || self.0.iter().filter(|entry| entry.key == *key);
        known().find(|entry| matches!(entry.status, Status::Retired { .. })).or_else(|| known().next())
    }
}

impl From<&Jwks> for Trust {
    fn from(set: &Jwks) -> Self {
        Self(set.entries().to_vec())
    }
}

/// Verifies one file: the ZIP, the JSON or the HTML of a certificate. Never fails; what is wrong is the verdict.
///
/// ```
/// use seal::verify::{Trust, Verdict, verify};
///
/// let report = verify(b"not a certificate", &Trust::none());
/// assert_eq!(report.verdict.code(), "not_recognised");
/// assert!(matches!(report.verdict, Verdict::Invalid(_)));
/// ```
#[must_use]
pub fn verify(file: &[u8], trust: &Trust) -> Report {
    let mut report = Report::new();
    let verdict = walk(file, trust, &mut report);
    report.verdict = verdict.unwrap_or_else(Verdict::Invalid);
    report
}

/// The checks in their order; the first failure ends them. Members of the report are filled as soon as they
/// are covered by a checked signature, not before.
fn walk(file: &[u8], trust: &Trust, report: &mut Report) -> Result<Verdict, Reason> {
    let opened = report.step("file", open::open(file), |o| format!("a {} of a certificate", o.form))?;
    report.form = Some(opened.form);
    let manifest =
        report.step("manifest", read_manifest(&opened), |m| format!("lists {} files", m.files.len()))?;
    let signer = report.step("signature", check_signature(&opened), |key| format!("by key {}", key.id()))?;
    report.key_id = Some(signer.id());
    report.reference = Some(manifest.reference.clone());
    report.run_hash = Some(manifest.run_hash);

    let [page, metadata] = manifest.files.as_slice() else {
        return Err(Reason::form("manifest.json", "files are not the two expected"));
    };
    match opened.page {
        Some(bytes) => {
            report.step("page", check_page(page, bytes), |()| format!("SHA-256 {}", page.sha256))?;
        }
        None => report.note("page", Outcome::NotInFile, format!("must have SHA-256 {}", page.sha256)),
    }
    let same = check_metadata(metadata, &opened.metadata);
    report.step("metadata", same, |()| format!("SHA-256 {}", metadata.sha256))?;
    let head = report.step("run", check_run(&opened, &manifest), |head| {
        format!("run hash recomputed, version {}, {} mode", head.version, head.mode)
    })?;
    report.issued_at = Some(head.issued_at);
    report.mode = Some(head.mode);
    let Some(entry) = trust.find(&signer) else {
        report.note("signer", Outcome::Failed, format!("key {} is not among the trusted keys", signer.id()));
        return Ok(Verdict::IntactSignerUnknown);
    };
    report.signer = Some(entry.clone());
    report.step("signer", judge(entry, &head), |verdict| match verdict {
        Verdict::ValidDateClaimed => "trusted, but retired: the issue time is only claimed".to_owned(),
        _ => format!("trusted, {}", entry.status),
    })
}

fn read_manifest(opened: &Opened<'_>) -> Result<Manifest, Reason> {
    let file = crate::bundle::MANIFEST_NAME;
    let manifest: Manifest = open::canonical(file, &opened.manifest)?;
    if manifest.format != MANIFEST_FORMAT {
        return Err(Reason::form(file, "format is another one"));
    }
    let names: Vec<&str> = manifest.files.iter().map(|line| line.name.as_str()).collect();
    if names != [HTML_NAME, METADATA_NAME] {
        return Err(Reason::form(file, "files are not the two expected"));
    }
    Ok(manifest)
}

/// Checks the signature against the key in the file. That the key is anybody's is no part of it.
fn check_signature(opened: &Opened<'_>) -> Result<PublicKey, Reason> {
    let block: SignatureFile = open::canonical(SIGNATURE_NAME, &opened.signature)?;
    if block.alg != ALGORITHM {
        return Err(Reason::form(SIGNATURE_NAME, "alg is not \"Ed25519\""));
    }
    let key: PublicKey = block.public_key.parse().map_err(Reason::Key)?;
    if block.kid != key.id().to_string() {
        return Err(Reason::KeyIdDiffers);
    }
    let signature: Signature = block.signature.parse().map_err(Reason::Key)?;
    key.verify(&opened.manifest, &signature).map_err(Reason::Key)?;
    Ok(key)
}

fn listed(line: &ManifestFile, bytes: &[u8]) -> bool {
    line.size == bytes.len() as u64 && line.sha256 == Digest::of(bytes)
}

fn check_page(line: &ManifestFile, bytes: &[u8]) -> Result<(), Reason> {
    if listed(line, bytes) { Ok(()) } else { Err(Reason::PageDiffers) }
}

fn check_metadata(line: &ManifestFile, bytes: &[u8]) -> Result<(), Reason> {
    if listed(line, bytes) { Ok(()) } else { Err(Reason::MetadataDiffers) }
}

fn check_run(opened: &Opened<'_>, manifest: &Manifest) -> Result<Head, Reason> {
    let metadata = open::metadata(&opened.metadata)?;
    let run_hash = hash::run_hash(&metadata.run).map_err(Reason::Hash)?;
    if run_hash != metadata.run_hash || run_hash != manifest.run_hash {
        return Err(Reason::RunHashDiffers);
    }
    Head::read(&metadata.run).map_err(Reason::Run)
}

fn judge(entry: &Entry, head: &Head) -> Result<Verdict, Reason> {
    match entry.status {
        Status::Announced | Status::Active => Ok(Verdict::Valid),
        Status::Retired { at } if head.issued_at > at.saturating_add(RETIREMENT_SLACK) => {
            Err(Reason::IssuedAfterRetirement { issued_at: head.issued_at, retired_at: at })
        }
        Status::Retired { .. } => Ok(Verdict::ValidDateClaimed),
    }
}
