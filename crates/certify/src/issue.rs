//! From an event's facts to a certificate's files, and the same files again from its record.

use bytes::Bytes;
use kernel::{Digest, Time};
use seal::bundle::{self, Draft, Sealed};
use seal::key::{PublicKey, Signature, SigningKey};
use serde_json::Value;

use crate::page;
use crate::shelf::{self, Form, Shelf};

/// Why a certificate could not be made or made again.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The page.
    #[error(transparent)]
    Page(#[from] page::Error),
    /// Hashing, signing or packing.
    #[error(transparent)]
    Seal(#[from] bundle::Error),
    /// The run has no hash.
    #[error(transparent)]
    Hash(#[from] seal::hash::Error),
    /// A file.
    #[error(transparent)]
    Shelf(#[from] shelf::Error),
    /// What was rebuilt is not what the record says.
    #[error("the rebuilt {form} has another hash than its record; a person must look (`onceseal inspect`)")]
    Differs {
        /// Which form.
        form: &'static str,
    },
}

/// A certificate as its record keeps it: enough to make every file again.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Name of its files.
    pub slug: String,
    /// What it says.
    pub run: Value,
    /// Hash of that.
    pub run_hash: Digest,
    /// Who signed.
    pub key_id: String,
    /// The signature over the manifest.
    pub signature: [u8; 64],
    /// SHA-256 of the served forms, in the order of [`Form::ALL`].
    pub hashes: [Digest; 3],
    /// Issue time.
    pub issued_at: Time,
}

/// A certificate just made, with its files.
#[derive(Clone, Debug)]
pub struct Issued {
    /// What the record will keep.
    pub recorded: Recorded,
    /// The served forms, in the order of [`Form::ALL`].
    pub files: [Vec<u8>; 3],
}

/// Makes a certificate of a run.
///
/// # Errors
/// [`Error`], when the page or the bundle can't be made.
pub fn issue(slug: String, run: Value, issued_at: Time, key: &SigningKey) -> Result<Issued, Error> {
    let draft = draft(run)?;
    let sealed = bundle::seal(&draft, key)?;
    Ok(issued(slug, draft.run, issued_at, sealed))
}

/// Makes the files of a record again, without a private key, and compares them with its hashes.
///
/// # Errors
/// [`Error::Differs`] when the record and what it gives disagree; others as [`issue`].
pub fn rebuild(recorded: &Recorded, key: &PublicKey) -> Result<[Vec<u8>; 3], Error> {
    let signature = Signature::from_bytes(recorded.signature).map_err(bundle::Error::Signature)?;
    let draft = draft(recorded.run.clone())?;
    let made = issued(
        recorded.slug.clone(),
        Value::Null,
        recorded.issued_at,
        bundle::rebuild(&draft, &signature, key)?,
    );
    for (form, (made, kept)) in Form::ALL.iter().zip(made.recorded.hashes.iter().zip(&recorded.hashes)) {
        if made != kept {
            return Err(Error::Differs { form: form.extension() });
        }
    }
    Ok(made.files)
}

/// The record of a certificate whose files survived and whose record did not.
///
/// # Errors
/// [`Error`], when run and signature don't belong together.
pub fn restored(
    slug: &str,
    run: Value,
    issued_at: Time,
    signature: &Signature,
    key: &PublicKey,
) -> Result<Recorded, Error> {
    let draft = draft(run)?;
    let sealed = bundle::rebuild(&draft, signature, key)?;
    Ok(issued(slug.to_owned(), draft.run, issued_at, sealed).recorded)
}

/// Puts all files of a certificate on the shelf, instead of whatever stands under their names: the record
/// says that they are right.
///
/// # Errors
/// [`Error::Shelf`]; some of the files may then stand there.
pub async fn put(shelf: &Shelf, slug: &str, files: [Vec<u8>; 3]) -> Result<(), Error> {
    Ok(shelf.put_all(slug, &files.map(Bytes::from)).await?)
}

fn draft(run: Value) -> Result<Draft, Error> {
    let run_hash = seal::hash::run_hash(&run)?;
    let html = page::render(&run, &hex::encode(run_hash.as_bytes()))?;
    let reference = run.get("ref").and_then(Value::as_str).ok_or(page::Error::Member("ref"))?.to_owned();
    Ok(Draft { html, run, reference })
}

fn issued(slug: String, run: Value, issued_at: Time, sealed: Sealed) -> Issued {
    let hash =
        |digest: seal::hash::Digest| Digest::from_slice(digest.as_bytes()).unwrap_or_else(|| Digest::of(b""));
    let recorded = Recorded {
        slug,
        run,
        run_hash: hash(sealed.run_hash),
        key_id: sealed.key_id.to_string(),
        signature: *sealed.signature.as_bytes(),
        hashes: [hash(sealed.digests.html), hash(sealed.digests.zip), hash(sealed.digests.json)],
        issued_at,
    };
    Issued { recorded, files: [sealed.html, sealed.zip, sealed.json] }
}
