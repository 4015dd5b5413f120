//! Canonical JSON, run hashes, Ed25519 signatures, the sealed certificate and its offline verification.
//!
//! What it is not: nothing here opens a file, asks for the time, draws random numbers or speaks HTTP. Whoever
//! calls brings bytes, keys, salts and trust, and gets bytes and verdicts back. So the same code runs in the
//! server, on the command line and in a verifier that trusts neither.
//!
//! Read the modules in this order:
//!
//! 1. [`json`]: one strict way to read JSON (I-JSON, RFC 7493, no name twice)
//! 2. [`jcs`]: one way to write it (RFC 8785)
//! 3. [`hash`]: SHA-256 and the run hash
//! 4. [`run`]: the three members that every run must have
//! 5. [`key`]: Ed25519 keys, key ids, signatures, each with one accepted spelling
//! 6. [`jwks`]: the published set of keys with their periods
//! 7. [`zip`]: an archive that is the same every time, and a reader that accepts no other
//! 8. [`bundle`]: the certificate's files, sealed or rebuilt
//! 9. [`verify`]: is this file genuine, and who says so
//!
//! ```
//! use seal::{bundle, bundle::Draft, key::SigningKey, verify::{Trust, Verdict, verify}};
//!
//! let key = SigningKey::from_seed(&[7; 32]);
//! let draft = Draft {
//!     html: b"<!doctype html><title>Receipt</title>".to_vec(),
//!     run: serde_json::json!({"v": 1, "issued_at": 1_767_225_600, "mode": "test", "amount": "5.00"}),
//!     reference: "av_evt_1".to_owned(),
//! };
//! let sealed = bundle::seal(&draft, &key)?;
//! let report = verify(&sealed.zip, &Trust::pinned(key.public_key()));
//! assert_eq!(report.verdict, Verdict::Valid);
//! assert_eq!(report.run_hash, Some(sealed.run_hash));
//! # Ok::<(), seal::bundle::Error>(())
//! ```

pub mod json;

pub mod jcs;

pub mod hash;

pub mod run;

pub mod key;

pub mod jwks;

pub mod zip;

pub mod bundle;

pub mod verify;
