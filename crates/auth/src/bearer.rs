//! The `Authorization` header, to the letter (RFC 6750, section 2.1; domain specification, 3.3): one header,
//! one scheme, one token. What a vendor would accept, or a buyer's key, is told apart here, before anything
//! looks into it.
//!
//! Not here: credentials in the query, which are refused before this (section 14).

use crate::refusal::Refusal;
use crate::token::{TOKEN_MAX, Token};

/// Prefix of buyers' keys.
pub const BUYER_KEY: &str = "lgw_";

/// How vendors' keys begin (domain specification, 13.4 and 15.2). Data, because vendors move them. A token
/// of ours begins with `eyJ`, so none of these can hit one.
const VENDORS: [&str; 10] =
    ["sk-", "sess-", "AIza", "AQ.", "ya29.", "GOCSPX-", "1//0", "AKID", "ALTAK", "bce-v3/"];

/// Takes the token out of the values of all `Authorization` headers of a request, in any order.
///
/// ```
/// use auth::{Code, bearer};
///
/// let token = bearer::read([b"Bearer eyJhbGciOiJFUzI1NiJ9.e30.c2ln".as_slice()]).expect("well formed");
/// assert_eq!(token.expose(), "eyJhbGciOiJFUzI1NiJ9.e30.c2ln");
/// let refusal = bearer::read([b"Basic dXNlcjpwYXNz".as_slice()]).expect_err("another scheme");
/// assert_eq!(refusal.code(), Code::InvalidFormat);
/// ```
///
/// # Errors
/// [`Refusal::NoBearer`], [`Refusal::Repeated`], [`Refusal::Scheme`], [`Refusal::Malformed`],
/// [`Refusal::Upstream`], [`Refusal::BuyerKey`] or [`Refusal::TooLong`].
pub fn read<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Token, Refusal> {
    let mut values = values.into_iter();
    let value = values.next().ok_or(Refusal::NoBearer)?;
    if values.next().is_some() {
        return Err(Refusal::Repeated);
    }
    let value = value.trim_ascii();
    if value.is_empty() {
        return Err(Refusal::NoBearer);
    }
    let text = std::str::from_utf8(value).map_err(|_| Refusal::Malformed)?;
    let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
    // Names of schemes have no case (RFC 9110, section 11.1).
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Scheme);
    }
    one(rest.trim_start_matches(' '))
}

fn one(token: &str) -> Result<Token, Refusal> {
    if token.starts_with(BUYER_KEY) {
        return Err(Refusal::BuyerKey);
    }
    // Before the alphabet: pairs of two vendors have a colon.
    if is_vendors(token) {
        return Err(Refusal::Upstream);
    }
    let body = token.trim_end_matches('=');
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
    if body.is_empty() || !body.bytes().all(fine) {
        return Err(Refusal::Malformed);
    }
    if token.len() > TOKEN_MAX {
        return Err(Refusal::TooLong);
    }
    Ok(Token::new(token))
}

fn is_vendors(token: &str) -> bool {
    VENDORS.iter().any(|prefix| token.starts_with(prefix)) || is_pair(token) || is_baidu_token(token)
}

/// `id:secret`, as two vendors write it: 20 to 40 letters and digits, a colon, 20 characters or more.
fn is_pair(token: &str) -> bool {
    token.split_once(':').is_some_and(|(id, secret)| {
        (20..=40).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric())
            && secret.len() >= 20
            && !secret.contains(' ')
    })
}

/// `24.` or `25.`, 32 hex digits, and more behind a dot.
fn is_baidu_token(token: &str) -> bool {
    let rest = token.strip_prefix("24.").or_else(|| token.strip_prefix("25."));
    rest.and_then(|rest| rest.split_once('.'))
        .is_some_and(|(hex, _)| hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}
