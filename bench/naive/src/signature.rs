//! Who sent it: Stripe's header, or our own tasks' bearer token.
//!
//! Scheme: <https://docs.stripe.com/webhooks#verify-manually>.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use hmac::digest::InvalidLength;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// How old or how far ahead a signed time may be, in seconds (Stripe's default).
const TOLERANCE: u64 = 300;

/// The secrets of the two sources.
pub(crate) struct Senders {
    stripe: Hmac<Sha256>,
    token: String,
}

impl Senders {
    /// # Errors
    /// Never with HMAC, which takes keys of every length.
    pub(crate) fn new(stripe_secret: &str, token: String) -> Result<Senders, InvalidLength> {
        Ok(Senders { stripe: Hmac::new_from_slice(stripe_secret.as_bytes())?, token })
    }

    /// Whether the delivery comes from the named source; `now` in Unix seconds.
    pub(crate) fn verified(&self, source: &str, headers: &HeaderMap, body: &[u8], now: i64) -> bool {
        match source {
            "stripe" => header(headers, "stripe-signature").is_some_and(|it| self.signed(it, body, now)),
            "internal" => header(headers, AUTHORIZATION.as_str())
                .and_then(|it| it.strip_prefix("Bearer "))
                .is_some_and(|it| it.as_bytes().ct_eq(self.token.as_bytes()).into()),
            _ => false,
        }
    }

    fn signed(&self, header: &str, body: &[u8], now: i64) -> bool {
        let pairs = || header.split(',').filter_map(|it| it.split_once('='));
        let Some((_, time)) = pairs().find(|(name, _)| *name == "t") else { return false };
        let Ok(seconds) = time.parse::<i64>() else { return false };
        if now.abs_diff(seconds) > TOLERANCE {
            return false;
        }
        let mac = self.stripe.clone().chain_update(time).chain_update(b".").chain_update(body);
        pairs()
            .filter(|(name, _)| *name == "v1")
            .filter_map(|(_, signature)| hex::decode(signature).ok())
            .any(|signature| mac.clone().verify_slice(&signature).is_ok())
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verified(time: &str, now: i64, body: &[u8]) -> bool {
        let senders = Senders::new("whsec_test", String::new()).unwrap();
        let mac = senders.stripe.clone().chain_update(time).chain_update(b".{}").finalize().into_bytes();
        let mut headers = HeaderMap::new();
        let value = format!("t={time},v1={}", hex::encode(mac));
        headers.insert("stripe-signature", value.parse().unwrap());
        senders.verified("stripe", &headers, body, now)
    }

    #[test]
    fn a_signed_body_is_taken() {
        assert!(verified("1767225040", 1_767_225_340, b"{}"));
    }

    #[test]
    fn a_changed_body_or_an_old_signature_is_refused() {
        assert!(!verified("1767225040", 1_767_225_040, b"{ }"));
        assert!(!verified("1767225040", 1_767_225_341, b"{}"));
    }

    #[test]
    fn the_bearer_token_must_be_the_whole_token() {
        let senders = Senders::new("whsec_test", "token".to_owned()).unwrap();
        let with = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())]);
            senders.verified("internal", &headers, b"{}", 0)
        };
        assert!(with("Bearer token"));
        assert!(!with("Bearer toke") && !with("Bearer ") && !with("token"));
    }
}
