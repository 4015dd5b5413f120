//! Takes the three served forms apart into the same four pieces, and reads those strictly.
//!
//! It decides nothing about signatures or hashes.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::report::{Form, Reason};
use crate::bundle::{
    CERTIFICATE_FORMAT, HTML_NAME, MANIFEST_NAME, METADATA_FORMAT, METADATA_NAME, SIGNATURE_NAME,
};
use crate::bundle::{MAX_BYTES, MAX_JSON_BYTES, TRAILER_END, TRAILER_START};
use crate::hash::Digest;
use crate::{jcs, json, zip};

/// What errors call the served JSON.
const CERTIFICATE: &str = "certificate";

/// The pieces of a certificate, whichever form they came in.
pub(super) struct Opened<'a> {
    pub(super) form: Form,
    /// The page; the JSON form has none.
    pub(super) page: Option<&'a [u8]>,
    pub(super) manifest: Cow<'a, [u8]>,
    pub(super) metadata: Cow<'a, [u8]>,
    pub(super) signature: Cow<'a, [u8]>,
}

/// Tells the form by the first bytes and takes it apart.
pub(super) fn open(file: &[u8]) -> Result<Opened<'_>, Reason> {
    if file.len() > MAX_BYTES {
        return Err(Reason::TooLarge);
    }
    match file {
        [b'P', b'K', ..] => open_zip(file),
        [b'{', ..] => open_json(file, Form::Json, None),
        [b'<', ..] => open_html(file),
        _ => Err(Reason::NotRecognised),
    }
}

fn open_zip(file: &[u8]) -> Result<Opened<'_>, Reason> {
    let entries = zip::read(file).map_err(Reason::Zip)?;
    let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
    match entries.as_slice() {
        [page, manifest, signature, metadata]
            if names == [HTML_NAME, MANIFEST_NAME, SIGNATURE_NAME, METADATA_NAME] =>
        {
            Ok(Opened {
                form: Form::Zip,
                page: Some(page.content),
                manifest: manifest.content.into(),
                metadata: metadata.content.into(),
                signature: signature.content.into(),
            })
        }
        _ => Err(Reason::Files),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Certificate {
    format: String,
    manifest: Value,
    metadata: Value,
    signature: Value,
}

fn open_json<'a>(file: &[u8], form: Form, page: Option<&'a [u8]>) -> Result<Opened<'a>, Reason> {
    let certificate: Certificate = typed(CERTIFICATE, file)?;
    if certificate.format != CERTIFICATE_FORMAT {
        return Err(Reason::form(CERTIFICATE, "format is another one"));
    }
    let manifest = written(MANIFEST_NAME, &certificate.manifest)?;
    let metadata = written(METADATA_NAME, &certificate.metadata)?;
    let signature = written(SIGNATURE_NAME, &certificate.signature)?;
    let rewritten = jcs::join(&[
        ("format", &declared(CERTIFICATE, &CERTIFICATE_FORMAT)?),
        ("manifest", &manifest),
        ("metadata", &metadata),
        ("signature", &signature),
    ]);
    if rewritten != file {
        return Err(Reason::NotCanonical { file: CERTIFICATE });
    }
    Ok(Opened {
        form,
        page,
        manifest: manifest.into(),
        metadata: metadata.into(),
        signature: signature.into(),
    })
}

/// The page is everything before the last line; the last line holds the JSON form.
fn open_html(file: &[u8]) -> Result<Opened<'_>, Reason> {
    let body = file.strip_suffix(TRAILER_END.as_bytes()).ok_or(Reason::NoProof)?;
    // Base64url has no "<", so the last one starts the line.
    let start = body.iter().rposition(|byte| *byte == b'<').ok_or(Reason::NoProof)?;
    let (page, line) = body.split_at_checked(start).ok_or(Reason::NoProof)?;
    let text = line.strip_prefix(TRAILER_START.as_bytes()).ok_or(Reason::NoProof)?;
    let proof = URL_SAFE_NO_PAD.decode(text).map_err(|_| Reason::ProofText)?;
    open_json(&proof, Form::Html, Some(page))
}

/// `metadata.json`, read.
pub(super) struct Metadata {
    pub(super) run: Value,
    pub(super) run_hash: Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetadataFile {
    format: String,
    run: Value,
    run_hash: Digest,
}

/// Reads `metadata.json` and demands its canonical form.
pub(super) fn metadata(bytes: &[u8]) -> Result<Metadata, Reason> {
    let file: MetadataFile = typed(METADATA_NAME, bytes)?;
    if file.format != METADATA_FORMAT {
        return Err(Reason::form(METADATA_NAME, "format is another one"));
    }
    let rewritten = jcs::join(&[
        ("format", &declared(METADATA_NAME, &METADATA_FORMAT)?),
        ("run", &written(METADATA_NAME, &file.run)?),
        ("run_hash", &declared(METADATA_NAME, &file.run_hash)?),
    ]);
    if rewritten != bytes {
        return Err(Reason::NotCanonical { file: METADATA_NAME });
    }
    Ok(Metadata { run: file.run, run_hash: file.run_hash })
}

/// Reads a file whose type declares its fields in canonical order, and demands its canonical form.
pub(super) fn canonical<T: DeserializeOwned + Serialize>(
    file: &'static str,
    bytes: &[u8],
) -> Result<T, Reason> {
    let read: T = typed(file, bytes)?;
    if declared(file, &read)? != bytes {
        return Err(Reason::NotCanonical { file });
    }
    Ok(read)
}

fn typed<T: DeserializeOwned>(file: &'static str, bytes: &[u8]) -> Result<T, Reason> {
    if bytes.len() > MAX_JSON_BYTES {
        return Err(Reason::JsonTooLarge { file });
    }
    let value = json::parse(bytes).map_err(|cause| Reason::Json { file, cause })?;
    if !value.is_object() {
        return Err(Reason::form(file, "not an object"));
    }
    serde_json::from_value(value).map_err(|e| Reason::form(file, &e.to_string()))
}

fn written(file: &'static str, value: &Value) -> Result<Vec<u8>, Reason> {
    jcs::exact(value).map_err(|cause| Reason::Canonical { file, cause })
}

fn declared<T: Serialize>(file: &'static str, value: &T) -> Result<Vec<u8>, Reason> {
    jcs::declared(value).map_err(|cause| Reason::Canonical { file, cause })
}
