//! Custody of secrets (凭证托管): what comes in is never shown again (supply specification, section 13).
//!
//! Modules in reading order: [`material`] (key material of a local set-up and what is refused as such),
//! [`kms`] (the port to a key service; a local keyring, HashiCorp Vault), [`envelope`] (seal, open, rewrap),
//! [`fingerprint`] (finding a credential that is mounted twice), [`mod@format`] (the shape a provider's
//! credential has), [`provider`] (asking the provider about it), [`payout`] (payout accounts and their
//! masks), [`pay`] (who pays out), [`sms`] (codes and who sends them), `wire` and `breaker` (HTTP with bounds).
//!
//! No error, `Debug` or log line of this crate shows a secret, a part of one, its length or its ciphertext;
//! a test plants one and looks. Not here: SQL, HTTP endpoints, and when any of this is done (crate `supply`,
//! outside of its transactions).

pub mod envelope;
pub mod fingerprint;
pub mod format;
pub mod kms;
pub mod material;
pub mod pay;
pub mod payout;
pub mod provider;
pub mod sms;

mod breaker;
mod gcm;
mod wire;

pub use breaker::BreakerSettings;
pub use envelope::{Custody, EnvelopeError, Place, Sealed};
pub use fingerprint::{Fingerprint, Fingerprints, Subject};
pub use format::{AccountType, Mark, Provider};
pub use kms::{Kms, KmsError, LocalKeyring};
pub use material::{Material, Source, Unfit};
pub use provider::verdict::{CheckItem, Item, Rejection, Verification, VerifyStatus};
pub use provider::{Credential, Unreachable, Verifier};
pub use wire::{Cause, Effort, Wrong};
