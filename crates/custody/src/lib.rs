//! Custody of secrets (凭证托管): what comes in is never shown again (supply specification, section 13).
//!
//! Modules in reading order: [`material`] (key material of a local set-up and what is refused as such),
//! [`kms`] (the port to a key service, a local keyring), [`envelope`] (seal, open, rewrap), [`fingerprint`]
//! (finding a credential that is mounted twice), [`format`] (the shape a provider's credential has),
//! [`payout`] (payout accounts and their masks).
//!
//! No error, `Debug` or log line of this crate shows a secret, a part of one, its length or its ciphertext;
//! a test plants one and looks. Not here: SQL, HTTP endpoints, and when any of this is done (crate `supply`,
//! outside of its transactions).

pub mod envelope;
pub mod fingerprint;
pub mod format;
pub mod kms;
pub mod material;
pub mod payout;

mod gcm;

pub use envelope::{Custody, EnvelopeError, Place, Sealed};
pub use fingerprint::{Fingerprint, Fingerprints, Subject};
pub use format::{AccountType, Mark, Provider};
pub use kms::{Kms, KmsError, LocalKeyring};
pub use material::{Material, Source, Unfit};
