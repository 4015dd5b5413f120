//! What verification says: the verdict, the reason, and each check for a person to read.
//!
//! It decides nothing.

use std::fmt;

use crate::bundle::MAX_JSON_BYTES;
use crate::hash::{self, Digest};
use crate::jwks::Entry;
use crate::key::{self, KeyId};
use crate::run::{self, Mode};
use crate::{jcs, json, zip};

/// Longest text from inside a file that a reason repeats, in characters.
const SHOWN: usize = 160;

/// Which of the three served forms a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The archive with the four files.
    Zip,
    /// The one JSON text.
    Json,
    /// The page with the proof in its last line.
    Html,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => "ZIP",
            Self::Json => "JSON",
            Self::Html => "HTML",
        })
    }
}

/// The answer. Only [`Verdict::Valid`] is a plain yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Not changed, and signed by a trusted key in use.
    Valid,
    /// Not changed, and signed by a trusted key that is retired by now: the issue time is the signer's claim.
    ValidDateClaimed,
    /// Not changed since it was signed, by a key that isn't among the trusted ones.
    IntactSignerUnknown,
    /// Not a genuine certificate.
    Invalid(Reason),
}

impl Verdict {
    /// The stable name of the verdict; of an invalid file, the name of the reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::ValidDateClaimed => "valid_date_claimed",
            Self::IntactSignerUnknown => "intact_signer_unknown",
            Self::Invalid(reason) => reason.code(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid => f.write_str("valid"),
            Self::ValidDateClaimed => f.write_str("valid, but the date is only the signer's claim"),
            Self::IntactSignerUnknown => f.write_str("not changed, but the signer is unknown"),
            Self::Invalid(reason) => write!(f, "not valid: {reason}"),
        }
    }
}

/// Why a file is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// More than [`super::MAX_BYTES`].
    #[error("file is larger than {} bytes; certificates are smaller", super::MAX_BYTES)]
    TooLarge,
    /// A JSON file is more than [`crate::bundle::MAX_JSON_BYTES`].
    #[error("{file} is larger than {MAX_JSON_BYTES} bytes; those of certificates are smaller")]
    JsonTooLarge {
        /// Which file.
        file: &'static str,
    },
    /// Starts neither as ZIP nor as JSON nor as HTML.
    #[error("file is no ZIP, JSON or HTML of a certificate; give the file as it was delivered")]
    NotRecognised,
    /// The ZIP is not in its only accepted form.
    #[error(transparent)]
    Zip(zip::Error),
    /// The ZIP holds other files than the four.
    #[error(
        "archive does not hold exactly the four files of a certificate; give the ZIP as it was delivered"
    )]
    Files,
    /// The HTML does not end with the proof line.
    #[error("page does not end with its proof line; it was cut, changed at the end, or never sealed")]
    NoProof,
    /// The proof line is not unpadded base64url.
    #[error("proof line of the page is not unpadded base64url; get the file again")]
    ProofText,
    /// A file inside is not strict JSON.
    #[error("{file}: {cause}")]
    Json {
        /// Which file.
        file: &'static str,
        /// What is wrong.
        cause: json::Error,
    },
    /// A file inside holds what may not be signed, such as a float.
    #[error("{file}: {cause}")]
    Canonical {
        /// Which file.
        file: &'static str,
        /// What is wrong.
        cause: jcs::Error,
    },
    /// A file inside is spelt in another way than the canonical one.
    #[error("{file} is not in canonical form (RFC 8785); it was rewritten after sealing")]
    NotCanonical {
        /// Which file.
        file: &'static str,
    },
    /// A file inside has a missing, additional or mistyped member.
    #[error("{file} has another form than a certificate's: {what}")]
    Form {
        /// Which file.
        file: &'static str,
        /// What was found, cut to 160 characters.
        what: String,
    },
    /// The key or the signature is refused.
    #[error(transparent)]
    Key(key::Error),
    /// `kid` is not the thumbprint of the key beside it.
    #[error("key id and public key of the signature don't belong together")]
    KeyIdDiffers,
    /// The page is not the signed one.
    #[error("page is not the one that was signed; it was changed or belongs to another certificate")]
    PageDiffers,
    /// The metadata are not the signed ones.
    #[error("metadata are not those that were signed; they were changed or belong to another certificate")]
    MetadataDiffers,
    /// Recomputed and stated run hash differ.
    #[error("run hash is not the hash of the run; the certificate contradicts itself")]
    RunHashDiffers,
    /// The run has no hash.
    #[error(transparent)]
    Hash(hash::Error),
    /// The run lacks what every run has.
    #[error(transparent)]
    Run(run::Error),
    /// The certificate claims to be younger than its key's retirement.
    #[error(
        "certificate says issued at {issued_at}, but its key was retired at {retired_at}; ask the issuer"
    )]
    IssuedAfterRetirement {
        /// Claimed issue time, Unix seconds.
        issued_at: i64,
        /// Retirement, Unix seconds.
        retired_at: i64,
    },
}

impl Reason {
    pub(super) fn form(file: &'static str, what: &str) -> Self {
        Self::Form { file, what: what.chars().take(SHOWN).collect() }
    }

    /// The stable name of the reason.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::JsonTooLarge { .. } => "json_too_large",
            Self::NotRecognised => "not_recognised",
            Self::Zip(error) => error.code(),
            Self::Files => "zip_files",
            Self::NoProof => "html_no_proof",
            Self::ProofText => "html_proof_text",
            Self::Json { cause, .. } => cause.code(),
            Self::Canonical { cause, .. } => cause.code(),
            Self::NotCanonical { .. } => "not_canonical",
            Self::Form { .. } => "form",
            Self::Key(error) => error.code(),
            Self::KeyIdDiffers => "key_id_differs",
            Self::PageDiffers => "page_differs",
            Self::MetadataDiffers => "metadata_differs",
            Self::RunHashDiffers => "run_hash_differs",
            Self::Hash(error) => error.code(),
            Self::Run(_) => "run_members",
            Self::IssuedAfterRetirement { .. } => "issued_after_retirement",
        }
    }
}

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// As it must be.
    Passed,
    /// Not as it must be.
    Failed,
    /// This form does not carry what the check looks at.
    NotInFile,
}

/// One check, for printing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Stable name: `file`, `manifest`, `signature`, `page`, `metadata`, `run` or `signer`, in this order.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What was found, in a few words.
    pub detail: String,
}

/// The verdict with what led to it. Members other than verdict, form and checks are there only if the
/// signature in the file covers them; that the signer is trusted is the verdict's to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The answer.
    pub verdict: Verdict,
    /// Which form the file is.
    pub form: Option<Form>,
    /// The certificate's reference.
    pub reference: Option<String>,
    /// The run hash.
    pub run_hash: Option<Digest>,
    /// Name of the key that signed.
    pub key_id: Option<KeyId>,
    /// The trusted key that signed, with its period.
    pub signer: Option<Entry>,
    /// Issue time, Unix seconds (`run.issued_at`).
    pub issued_at: Option<i64>,
    /// Live or test (`run.mode`). A valid certificate of a test certifies no payment.
    pub mode: Option<Mode>,
    /// Every check made, up to the first that failed.
    pub checks: Vec<Check>,
}

impl Report {
    pub(super) const fn new() -> Self {
        Self {
            verdict: Verdict::Invalid(Reason::NotRecognised),
            form: None,
            reference: None,
            run_hash: None,
            key_id: None,
            signer: None,
            issued_at: None,
            mode: None,
            checks: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, name: &'static str, outcome: Outcome, detail: String) {
        self.checks.push(Check { name, outcome, detail });
    }

    /// Notes how a check ended and hands its result on.
    pub(super) fn step<T>(
        &mut self,
        name: &'static str,
        result: Result<T, Reason>,
        detail: impl FnOnce(&T) -> String,
    ) -> Result<T, Reason> {
        match &result {
            Ok(found) => self.note(name, Outcome::Passed, detail(found)),
            Err(reason) => self.note(name, Outcome::Failed, reason.to_string()),
        }
        result
    }
}
