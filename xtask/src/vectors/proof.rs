//! The vectors behind the proof: canonical JSON (RFC 8785), Ed25519 (RFC 8032), the stored archive, key
//! sets and thumbprints (RFC 7517, RFC 7638, RFC 8037).

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use seal::hash::Digest;
use seal::jwks::Jwks;
use seal::key::{PublicKey, Signature, SigningKey};
use seal::zip::{Entry, read, write};
use seal::{jcs, json};
use serde_json::Value as Json;

const JCS: &str = include_str!("../../../crates/seal/tests/vectors/rfc8785.json");
const ED25519: &str = include_str!("../../../crates/seal/tests/vectors/ed25519.json");
const ZIP: &str = include_str!("../../../crates/seal/tests/vectors/zip.json");
const JWK: &str = include_str!("../../../crates/seal/tests/vectors/jwk.json");

/// What came of them.
#[derive(Default)]
pub(crate) struct Proofs {
    pub(crate) count: usize,
    pub(crate) wrong: Vec<String>,
}

impl Proofs {
    fn add(&mut self, name: &str, right: bool) {
        self.count += 1;
        if !right {
            self.wrong.push(name.to_owned());
        }
    }
}

/// Runs all of them.
///
/// # Errors
/// A file has another form than it is read with.
pub(crate) fn run() -> anyhow::Result<Proofs> {
    let mut proofs = Proofs::default();
    canonical(&mut proofs).context("rfc8785.json")?;
    signatures(&mut proofs).context("ed25519.json")?;
    archives(&mut proofs).context("zip.json")?;
    keys(&mut proofs).context("jwk.json")?;
    Ok(proofs)
}

fn canonical(proofs: &mut Proofs) -> anyhow::Result<()> {
    let file: Json = serde_json::from_str(JCS)?;
    for case in list(&file, "objects")? {
        let value: Json = serde_json::from_str(text(case, "input_utf8")?)?;
        let bytes = jcs::to_vec(&value)?;
        let right = bytes == unhex(case, "canonical_hex")?
            && Digest::of(&bytes).to_string() == text(case, "sha256_hex")?;
        proofs.add(&format!("jcs/{}", text(case, "id")?), right);
    }
    for case in list(&file, "numbers")? {
        let bytes = jcs::to_vec(&number(text(case, "ieee754_hex")?)?)?;
        proofs.add(&format!("jcs/{}", text(case, "json")?), bytes == text(case, "json")?.as_bytes());
    }
    for case in list(&file, "must_fail")? {
        let fails = if let Some(bits) = member(case, "ieee754_hex") {
            jcs::to_vec(&number(bits)?).is_err()
        } else if let Some(text) = member(case, "json_text") {
            json::parse(text.as_bytes()).is_err()
        } else {
            json::parse(&unhex(case, "bytes_hex")?).is_err()
        };
        proofs.add(&format!("jcs/must fail: {}", text(case, "what")?), fails);
    }
    Ok(())
}

fn signatures(proofs: &mut Proofs) -> anyhow::Result<()> {
    let file: Json = serde_json::from_str(ED25519)?;
    for case in list(&file, "valid")? {
        let key = SigningKey::from_seed(&array(case, "seed_hex")?);
        let message = unhex(case, "message_hex")?;
        let signature = key.sign(&message);
        let right = key.public_key().as_bytes().as_slice() == unhex(case, "public_hex")?
            && signature.as_bytes().as_slice() == unhex(case, "signature_hex")?
            && key.public_key().verify(&message, &signature).is_ok();
        proofs.add(&format!("ed25519/{}", text(case, "id")?), right);
    }
    for case in list(&file, "invalid")? {
        let message = unhex(case, "message_hex")?;
        let public = PublicKey::from_bytes(&array(case, "public_hex")?);
        let signature =
            unhex(case, "signature_hex")?.try_into().ok().and_then(|it| Signature::from_bytes(it).ok());
        let passes = public
            .is_ok_and(|key| signature.is_some_and(|signature| key.verify(&message, &signature).is_ok()));
        proofs.add(&format!("ed25519/{}", text(case, "id")?), !passes);
    }
    Ok(())
}

fn archives(proofs: &mut Proofs) -> anyhow::Result<()> {
    let file: Json = serde_json::from_str(ZIP)?;
    for name in ["stored", "utf8_name"] {
        let case = file.get(name).context("an archive")?;
        let mut contents = Vec::new();
        for file in list(case, "files")? {
            contents.push((text(file, "name")?, STANDARD.decode(text(file, "data_b64")?)?));
        }
        let files: Vec<_> = contents.iter().map(|(name, content)| Entry { name, content }).collect();
        let archive = write(&files)?;
        let right = archive == STANDARD.decode(text(case, "zip_b64")?)?
            && Digest::of(&archive).to_string() == text(case, "sha256_hex")?
            && read(&archive)? == files;
        proofs.add(&format!("zip/{name}"), right);
    }
    let empty = file.get("empty").context("an archive")?;
    proofs.add("zip/empty", write(&[])? == unhex(empty, "zip_hex")?);
    Ok(())
}

fn keys(proofs: &mut Proofs) -> anyhow::Result<()> {
    let file: Json = serde_json::from_str(JWK)?;
    let rfc = file.get("rfc8037").context("rfc8037")?;
    let key: PublicKey = text(rfc.get("private_jwk").context("private_jwk")?, "x")?.parse()?;
    proofs.add("jwks/RFC 8037 thumbprint", key.id().to_string() == text(rfc, "thumbprint_sha256")?);
    let own = file.get("own").context("own")?;
    let key = SigningKey::from_seed(&array(own, "seed_hex")?);
    proofs.add("jwks/own thumbprint", key.id().to_string() == text(own, "thumbprint_sha256")?);
    let der = der(&key.to_pem()?)?;
    proofs.add("jwks/PKCS#8", der == unhex(own, "pkcs8_der_hex")?);
    let set = own.get("jwks").context("jwks")?.to_string();
    let found = Jwks::parse(set.as_bytes()).is_ok_and(|set| set.find(key.id()).is_some());
    proofs.add("jwks/own set", found);
    // A private key in a published set is refused, whoever made it.
    let private = serde_json::json!({ "keys": [rfc.get("private_jwk")] }).to_string();
    proofs.add("jwks/private key refused", Jwks::parse(private.as_bytes()).is_err());
    Ok(())
}

fn der(pem: &str) -> anyhow::Result<Vec<u8>> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    Ok(STANDARD.decode(body)?)
}

fn number(hexadecimal: &str) -> anyhow::Result<f64> {
    Ok(f64::from_bits(u64::from_str_radix(hexadecimal, 16)?))
}

fn list<'a>(json: &'a Json, name: &str) -> anyhow::Result<&'a [Json]> {
    json.get(name).and_then(Json::as_array).map(Vec::as_slice).with_context(|| format!("{name} is no list"))
}

fn member<'a>(json: &'a Json, name: &str) -> Option<&'a str> {
    json.get(name).and_then(Json::as_str)
}

fn text<'a>(json: &'a Json, name: &str) -> anyhow::Result<&'a str> {
    member(json, name).with_context(|| format!("{name} is no text"))
}

fn unhex(json: &Json, name: &str) -> anyhow::Result<Vec<u8>> {
    Ok(hex::decode(text(json, name)?)?)
}

fn array<const N: usize>(json: &Json, name: &str) -> anyhow::Result<[u8; N]> {
    unhex(json, name)?.try_into().ok().with_context(|| format!("{name} has another length"))
}
