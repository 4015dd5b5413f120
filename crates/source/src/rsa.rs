//! RSA (PKCS#1 v1.5, SHA-256, 2048 to 8192 bits): public keys out of PEM, certificates or bare base64; verify; sign.
//! Not here: whether a certificate is trusted. The operator configured it, and nothing else is believed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pkcs8::der::asn1::{AnyRef, UintRef};
use pkcs8::der::{Decode, Document, Reader, SliceReader};
use pkcs8::spki::SubjectPublicKeyInfoRef;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents};

/// A public key that was checked when it was read.
pub(crate) struct RsaPublic {
    modulus: Vec<u8>,
    exponent: Vec<u8>,
    /// Upper-case hex of the certificate's serial number, when it came in one.
    pub(crate) serial: Option<String>,
}

impl RsaPublic {
    /// Reads `PUBLIC KEY` or `CERTIFICATE` PEM, or base64 of a `SubjectPublicKeyInfo` without PEM lines.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let fault = || "a public key is not PEM (PUBLIC KEY or CERTIFICATE) of an RSA key".to_owned();
        if !text.starts_with("-----") {
            let bare: String = text.split_ascii_whitespace().collect();
            return key(&STANDARD.decode(bare).map_err(|_| fault())?, None).ok_or_else(fault)?;
        }
        if text.contains("PRIVATE KEY-----") {
            return Err("a public key is a private key; put the sender's public key there".into());
        }
        let (label, document) = Document::from_pem(text).map_err(|_| fault())?;
        match label {
            "PUBLIC KEY" => key(document.as_bytes(), None).ok_or_else(fault)?,
            "CERTIFICATE" => {
                let (serial, spki) = certificate(document.as_bytes()).ok_or_else(fault)?;
                key(&spki, Some(serial)).ok_or_else(fault)?
            }
            _ => Err(fault()),
        }
    }

    /// Whether the signature is this key's over these bytes.
    pub(crate) fn verify(&self, signed: &[u8], signature: &[u8]) -> bool {
        let key = RsaPublicKeyComponents { n: &self.modulus, e: &self.exponent };
        key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature).is_ok()
    }
}

/// `None`: not an RSA key. `Some(Err)`: one that is too short or too long.
fn key(spki: &[u8], serial: Option<String>) -> Option<Result<RsaPublic, String>> {
    let info = SubjectPublicKeyInfoRef::from_der(spki).ok()?;
    let pair = AnyRef::from_der(info.subject_public_key.as_bytes()?).ok()?;
    let (n, e): (UintRef<'_>, UintRef<'_>) =
        pair.sequence(|reader| Ok::<_, pkcs8::der::Error>((reader.decode()?, reader.decode()?))).ok()?;
    let bits = n.as_bytes().len() * 8;
    if !(2048..=8192).contains(&bits) {
        return Some(Err(format!("a public key has {bits} bits; 2048 to 8192 are needed")));
    }
    Some(Ok(RsaPublic { modulus: n.as_bytes().to_vec(), exponent: e.as_bytes().to_vec(), serial }))
}

/// Serial number and public key of an X.509 certificate (RFC 5280, 4.1), taken by position.
fn certificate(der: &[u8]) -> Option<(String, Vec<u8>)> {
    let outer = AnyRef::from_der(der).ok()?;
    let mut fields = SliceReader::new(outer.value()).ok()?;
    let tbs: AnyRef<'_> = fields.decode().ok()?;
    let mut fields = SliceReader::new(tbs.value()).ok()?;
    let _version: AnyRef<'_> = fields.decode().ok()?;
    let serial: UintRef<'_> = fields.decode().ok()?;
    for _ in ["signature", "issuer", "validity", "subject"] {
        let _skipped: AnyRef<'_> = fields.decode().ok()?;
    }
    let spki = fields.tlv_bytes().ok()?;
    Some((hex::encode_upper(serial.as_bytes()), spki.to_vec()))
}

/// A private key that plays the sender.
pub(crate) struct RsaSigner(RsaKeyPair);

impl RsaSigner {
    /// Reads PKCS#8 PEM (`PRIVATE KEY`).
    pub(crate) fn read(pem: &str) -> Result<Self, String> {
        let fault = || "the private key is not PKCS#8 PEM of an RSA key with 2048 bits or more".to_owned();
        let (label, document) = pkcs8::SecretDocument::from_pem(pem.trim()).map_err(|_| fault())?;
        if label != "PRIVATE KEY" {
            return Err(fault());
        }
        RsaKeyPair::from_pkcs8(document.as_bytes()).map(Self).map_err(|_| fault())
    }

    /// The signature in base64; `None` when the library fails. The generator only blinds the computation:
    /// the result depends on key and bytes alone.
    pub(crate) fn sign(&self, signed: &[u8]) -> Option<String> {
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed, &mut signature).ok()?;
        Some(STANDARD.encode(signature))
    }
}
