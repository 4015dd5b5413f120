//! The claims of an access token, read strictly (domain specification, section 3.3; RFC 7519, section 4.1).
//! Each of them must be there in its one form: nothing is filled in, least of all operator 0 or tenant 0.
//!
//! Not here: the signature; the status at the token service. Claims beyond these are not looked at.

use std::time::Duration;

use kernel::Time;
use serde_json::{Map, Value};

use crate::access::{Role, UserType};
use crate::refusal::Refusal;
use crate::scope::Scopes;

/// How far the issuer's clock may be from ours.
pub const LEEWAY: Duration = Duration::from_secs(30);
/// Longest life of a token, from `iat` to `exp`: the longest that the issue interface gives.
pub const LIFE_MAX: Duration = Duration::from_secs(259_200);
/// Longest `iss` and `aud`, in bytes.
pub const NAME_MAX: usize = 256;
/// Longest `jti`, in characters.
pub const JTI_MAX: usize = 128;
/// Most audiences of one token.
const AUDIENCES_MAX: usize = 16;
/// Latest time that is read: the end of the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;

/// What a token says. Made from proven bytes only, by [`Verifier`](crate::Verifier).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// `iss`.
    pub issuer: String,
    /// `aud`; one or several.
    pub audiences: Vec<String>,
    /// Out of `sub`, `user:<id>`; positive.
    pub operator_id: i64,
    /// `tenant_id`; positive.
    pub tenant_id: i64,
    /// `role`.
    pub role: Role,
    /// `user_type`.
    pub user_type: UserType,
    /// `scope`.
    pub scopes: Scopes,
    /// `jti`.
    pub jti: String,
    /// `iat`.
    pub issued_at: Time,
    /// `nbf`.
    pub not_before: Time,
    /// `exp`.
    pub expires_at: Time,
}

impl Claims {
    /// Reads the members of a payload.
    ///
    /// # Errors
    /// [`Refusal::Claim`] with the claim's name.
    pub(crate) fn read(members: &Map<String, Value>) -> Result<Self, Refusal> {
        let text = |name: &'static str| {
            members
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .ok_or(Refusal::Claim(name))
        };
        // Numbers with a fraction or an exponent are no i64 to this reader.
        let number =
            |name: &'static str| members.get(name).and_then(Value::as_i64).ok_or(Refusal::Claim(name));
        let time = |name: &'static str| {
            let seconds = number(name)?;
            let fine = (0..=SECONDS_MAX).contains(&seconds);
            if fine { Ok(Time::from_seconds(seconds)) } else { Err(Refusal::Claim(name)) }
        };
        if text("token_type")? != "access" {
            return Err(Refusal::Claim("token_type"));
        }
        let claims = Self {
            issuer: text("iss")?.to_owned(),
            audiences: audiences(members).ok_or(Refusal::Claim("aud"))?,
            operator_id: operator(text("sub")?).ok_or(Refusal::Claim("sub"))?,
            tenant_id: Some(number("tenant_id")?).filter(|id| *id > 0).ok_or(Refusal::Claim("tenant_id"))?,
            role: Role::from_name(text("role")?).ok_or(Refusal::Claim("role"))?,
            user_type: UserType::from_name(text("user_type")?).ok_or(Refusal::Claim("user_type"))?,
            scopes: scopes(members).ok_or(Refusal::Claim("scope"))?,
            jti: text("jti").ok().filter(|jti| is_jti(jti)).ok_or(Refusal::Claim("jti"))?.to_owned(),
            issued_at: time("iat")?,
            not_before: time("nbf")?,
            expires_at: time("exp")?,
        };
        if claims.expires_at <= claims.issued_at.max(claims.not_before) {
            return Err(Refusal::Claim("exp"));
        }
        Ok(claims)
    }

    /// Whether the token is for this service and lives now.
    ///
    /// # Errors
    /// [`Refusal::Issuer`], [`Refusal::Audience`], [`Refusal::Life`], [`Refusal::IssuedAhead`],
    /// [`Refusal::NotYet`] or [`Refusal::Expired`].
    pub(crate) fn judge(&self, issuer: &str, audience: &str, now: Time) -> Result<(), Refusal> {
        if self.issuer != issuer {
            return Err(Refusal::Issuer);
        }
        if !self.audiences.iter().any(|named| named == audience) {
            return Err(Refusal::Audience);
        }
        if self.expires_at.since(self.issued_at) > LIFE_MAX {
            return Err(Refusal::Life);
        }
        if self.issued_at > now.plus(LEEWAY) {
            return Err(Refusal::IssuedAhead);
        }
        if self.not_before > now.plus(LEEWAY) {
            return Err(Refusal::NotYet);
        }
        // "On or after" `exp` it must not be taken (RFC 7519, section 4.1.4); the leeway moves that instant.
        if now >= self.expires_at.plus(LEEWAY) {
            return Err(Refusal::Expired);
        }
        Ok(())
    }
}

/// A text, or a list of texts (RFC 7519, section 4.1.3).
fn audiences(members: &Map<String, Value>) -> Option<Vec<String>> {
    let listed = match members.get("aud")? {
        Value::Array(listed) => listed.as_slice(),
        one => std::slice::from_ref(one),
    };
    if listed.is_empty() || listed.len() > AUDIENCES_MAX {
        return None;
    }
    let named = |value: &Value| value.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    listed.iter().map(named).collect()
}

/// `user:` and a positive 64-bit number in its one spelling: no sign, no zeros in front.
fn operator(sub: &str) -> Option<i64> {
    let digits = sub.strip_prefix("user:")?;
    let spelled = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|id: &i64| spelled && *id > 0)
}

fn scopes(members: &Map<String, Value>) -> Option<Scopes> {
    let listed = members.get("scope")?.as_array()?;
    let texts: Option<Vec<&str>> = listed.iter().map(Value::as_str).collect();
    Scopes::new(texts?).ok()
}

/// Whether a text can be a token's id: 1 to [`JTI_MAX`] visible ASCII characters.
fn is_jti(text: &str) -> bool {
    (1..=JTI_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}
