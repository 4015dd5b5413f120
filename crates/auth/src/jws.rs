//! A token's outer form: JWS in compact form (RFC 7515, section 7.1), read strictly and believed in nothing.
//!
//! The header is the attacker's until the signature was checked, so all that is taken from it is the name of
//! a key, by which a key of ours is looked up, and the algorithm, which must be that key's own. Members that
//! would bring a key along or point at one (`jwk`, `jku`, `x5u`, `x5c`), that change the rules (`crit`,
//! `b64`), or that we don't know, are refused (RFC 8725, sections 3.1, 3.9, 3.10; cases SEC-15).
//!
//! The two JSON parts are read by `seal`'s strict reader and the signature is checked by `ring`. JOSE
//! libraries are not used here: they read a repeated member as if it were one, take the time from the
//! system, and bring an RSA of their own; what would be left for them is the splitting at two dots.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::keys::Algorithm;
use crate::refusal::Refusal;
use crate::token::{TOKEN_MAX, Token};

/// Longest `kid`, in characters; a thumbprint has 43.
pub(crate) const KID_MAX: usize = 128;

/// Members that a header may have. `x5t` and `x5t#S256` name a certificate by its hash and are not looked at.
const MEMBERS: [&str; 5] = ["alg", "kid", "typ", "x5t", "x5t#S256"];

/// A token taken apart; nothing of it is proven.
pub(crate) struct Jws<'t> {
    /// Which key it names.
    pub(crate) kid: String,
    /// Which algorithm it names.
    pub(crate) algorithm: Algorithm,
    /// The bytes under the signature.
    pub(crate) signed: &'t [u8],
    /// The signature.
    pub(crate) signature: Vec<u8>,
    payload: &'t str,
}

impl<'t> Jws<'t> {
    pub(crate) fn read(token: &'t Token) -> Result<Self, Refusal> {
        let text = token.expose();
        if text.len() > TOKEN_MAX {
            return Err(Refusal::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(Refusal::Parts)?;
        let (header, payload) = signed.split_once('.').ok_or(Refusal::Parts)?;
        if payload.contains('.') || [header, payload, signature].contains(&"") {
            return Err(Refusal::Parts);
        }
        let header = object(&decode(header)?).ok_or(Refusal::Header)?;
        if !header.keys().all(|name| MEMBERS.contains(&name.as_str())) {
            return Err(Refusal::HeaderMember);
        }
        kind(header.get("typ"))?;
        Ok(Self {
            algorithm: header
                .get("alg")
                .and_then(Value::as_str)
                .and_then(Algorithm::from_name)
                .ok_or(Refusal::Algorithm)?,
            kid: header
                .get("kid")
                .and_then(Value::as_str)
                .filter(|kid| is_kid(kid))
                .ok_or(Refusal::KeyId)?
                .to_owned(),
            signed: signed.as_bytes(),
            signature: decode(signature)?,
            payload,
        })
    }

    /// The payload, to be read only once the signature was checked.
    pub(crate) fn payload(&self) -> Result<Map<String, Value>, Refusal> {
        object(&decode(self.payload)?).ok_or(Refusal::Payload)
    }
}

/// Whether a text can be a key's name: 1 to [`KID_MAX`] visible ASCII characters. It is only ever compared.
pub(crate) fn is_kid(text: &str) -> bool {
    (1..=KID_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// `typ` is often left out; where it stands, it must not name another kind of token.
fn kind(typ: Option<&Value>) -> Result<(), Refusal> {
    let Some(typ) = typ else { return Ok(()) };
    let typ = typ.as_str().ok_or(Refusal::Kind)?.to_ascii_lowercase();
    let typ = typ.strip_prefix("application/").unwrap_or(&typ);
    if matches!(typ, "jwt" | "at+jwt") { Ok(()) } else { Err(Refusal::Kind) }
}

fn decode(part: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Refusal::Encoding)
}

fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    match seal::json::parse(bytes) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}
