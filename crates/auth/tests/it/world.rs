//! A verifier that knows one RSA key and one P-256 key, and a hand that signs anything with them.

use std::sync::{Arc, LazyLock};

use auth::{Keys, Refusal, Token, Verified, Verifier};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::FutureExt as _;
use kernel::Time;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{RSA_PKCS1_SHA256, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};

pub(crate) const ISSUER: &str = "https://id.example.com";
pub(crate) const AUDIENCE: &str = "onceseal-supply";
/// 2026-09-21T14:13:20Z.
pub(crate) const NOW: i64 = 1_790_000_000;

pub(crate) fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The claims of a good token.
pub(crate) fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "user:31", "iat": NOW, "nbf": NOW, "exp": NOW + 900,
        "jti": "t-1", "tenant_id": 11, "role": "owner", "user_type": "supply", "token_type": "access",
        "scope": ["supply:account:read", "supply:account:write"],
    })
}

/// The claims of a good token, one of them replaced; `Null` takes it away.
pub(crate) fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => claims.as_object_mut().unwrap().remove(name),
        value => claims.as_object_mut().unwrap().insert(name.to_owned(), value),
    };
    claims
}

pub(crate) fn p256_key() -> SigningKey {
    SigningKey::from_slice(&[7; 32]).unwrap()
}

pub(crate) fn rsa_key() -> &'static RsaKeyPair {
    static KEY: LazyLock<RsaKeyPair> = LazyLock::new(|| {
        let pem = include_bytes!("../vectors/rsa-2048.pem");
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).unwrap();
        RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap()
    });
    &KEY
}

pub(crate) fn p256_jwk(kid: &str, key: &SigningKey) -> Value {
    let point = key.verifying_key().to_sec1_point(false);
    let (x, y) = point.as_bytes()[1..].split_at(32);
    json!({"kty": "EC", "crv": "P-256", "x": b64(x), "y": b64(y), "kid": kid, "use": "sig", "alg": "ES256"})
}

pub(crate) fn rsa_jwk(kid: &str) -> Value {
    let key: PublicKeyComponents<Vec<u8>> = rsa_key().public().into();
    json!({"kty": "RSA", "n": b64(key.n), "e": b64(key.e), "kid": kid, "use": "sig", "alg": "RS256"})
}

/// The set of both keys, `ec` and `rsa`.
pub(crate) fn set() -> String {
    json!({"keys": [p256_jwk("ec", &p256_key()), rsa_jwk("rsa")]}).to_string()
}

/// Header and payload, as any text, under a P-256 signature.
pub(crate) fn es256_raw(key: &SigningKey, header: &str, payload: &str) -> Token {
    let signed = format!("{}.{}", b64(header), b64(payload));
    let signature: Signature = key.sign(signed.as_bytes());
    Token::new(format!("{signed}.{}", b64(signature.to_bytes())))
}

pub(crate) fn es256(header: &Value, claims: &Value) -> Token {
    es256_raw(&p256_key(), &header.to_string(), &claims.to_string())
}

fn rsa_signed(how: &'static dyn RsaEncoding, header: &str, payload: &str) -> Token {
    let signed = format!("{}.{}", b64(header), b64(payload));
    let mut signature = vec![0; rsa_key().public().modulus_len()];
    rsa_key().sign(how, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
    Token::new(format!("{signed}.{}", b64(signature)))
}

/// Header and payload, as any text, under an RSA signature.
pub(crate) fn rs256_raw(header: &str, payload: &str) -> Token {
    rsa_signed(&RSA_PKCS1_SHA256, header, payload)
}

pub(crate) fn rs256(header: &Value, claims: &Value) -> Token {
    rs256_raw(&header.to_string(), &claims.to_string())
}

pub(crate) fn rs512(header: &Value, claims: &Value) -> Token {
    rsa_signed(&RSA_PKCS1_SHA512, &header.to_string(), &claims.to_string())
}

pub(crate) fn ps256(header: &Value, claims: &Value) -> Token {
    rsa_signed(&RSA_PSS_SHA256, &header.to_string(), &claims.to_string())
}

/// A good ES256 token with these claims.
pub(crate) fn token(claims: &Value) -> Token {
    es256(&json!({"alg": "ES256", "kid": "ec", "typ": "JWT"}), claims)
}

pub(crate) fn verifier() -> &'static Verifier {
    static VERIFIER: LazyLock<Verifier> =
        LazyLock::new(|| Verifier::new(ISSUER, AUDIENCE, Arc::new(Keys::parse(set().as_bytes()).unwrap())));
    &VERIFIER
}

/// What becomes of a token at [`NOW`].
pub(crate) fn verify(token: &Token) -> Result<Verified, Refusal> {
    verify_at(token, Time::from_seconds(NOW))
}

pub(crate) fn verify_at(token: &Token, now: Time) -> Result<Verified, Refusal> {
    verifier().verify(token, now).now_or_never().expect("keys at hand need no waiting")
}
