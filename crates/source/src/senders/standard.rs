//! Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,… [v1a,…]`, over `id.time.body`.
//!
//! `v1` is HMAC-SHA256 under the base64-decoded part of `whsec_…`; `v1a` is Ed25519 under `whpk_…`. Unknown versions
//! are skipped, one match is enough. Neither id nor time may contain a dot, or bytes could move from one field
//! into the next. The id stays the same over all repeats.
//!
//! The specification leaves `data` to the sender. Taken where they have the usual form: `id`, `object`, `status`,
//! `amount` (a number must be an integer, in the smallest unit), `currency`, `email`, `reference`, `metadata`.
//! `stable`: `type`, `timestamp` (the event's own, as sent), `object_id`, `status`, `amount`, `currency`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::{Map, Value};

use super::Sender;
use crate::body::{amount, currency, id, keep, metadata, object, take_kind, take_map, take_text};
use crate::mac::MacKeys;
use crate::{Delivery, Event, Mode, Rejection, Settings, Subject, header, time};

pub(crate) const ID: &str = "webhook-id";
pub(crate) const TIME: &str = "webhook-timestamp";
pub(crate) const SIGNATURE: &str = "webhook-signature";

/// Most Ed25519 signatures that are tried; each costs as much as a hundred MACs, and anyone may send them.
const MAX_SIGNATURES: usize = 16;

pub(crate) struct Standard {
    shared: Option<MacKeys>,
    public: Vec<VerifyingKey>,
    tolerance: i64,
}

impl Standard {
    pub(crate) fn new(settings: &Settings, tolerance: i64) -> Result<Self, String> {
        let mut shared = Vec::new();
        let mut public = Vec::new();
        let texts = settings.secrets.iter().map(crate::Secret::expose);
        for text in texts.chain(settings.public_keys.iter().map(|key| key.text.trim())) {
            match text.strip_prefix("whpk_") {
                Some(key) => public.push(public_key(key)?),
                None => shared.push(shared_key(text)?),
            }
        }
        if shared.is_empty() && public.is_empty() {
            return Err("it has no secret; set a whsec_ secret or a whpk_ public key".into());
        }
        let shared = match shared.as_slice() {
            [] => None,
            keys => Some(MacKeys::new(keys.iter().map(|key| key.as_slice()))?),
        };
        Ok(Self { shared, public, tolerance })
    }
}

/// The HMAC key: base64 (standard alphabet, padded) of 24 to 64 bytes, with or without `whsec_` in front.
pub(crate) fn shared_key(text: &str) -> Result<zeroize::Zeroizing<Vec<u8>>, String> {
    if text.starts_with("whsk_") {
        return Err("a secret is the sender's private key (whsk_); the receiver needs the whpk_ one".into());
    }
    if text.contains(',') {
        return Err("a secret has a version in front; remove everything before whsec_".into());
    }
    let key = STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).map_err(|_| {
        "a secret is not whsec_ and padded base64; copy it again (Stripe's secrets do not belong here)"
            .to_owned()
    })?;
    if (24..=64).contains(&key.len()) {
        Ok(key.into())
    } else {
        Err(format!("a secret has {} bytes after base64 decoding; 24 to 64 are needed", key.len()))
    }
}

fn public_key(base64: &str) -> Result<VerifyingKey, String> {
    let fault = || "a public key is not whpk_ and base64 of a valid Ed25519 key; copy it again".to_owned();
    let bytes = STANDARD.decode(base64).map_err(|_| fault())?;
    let bytes: [u8; 32] = bytes.try_into().map_err(|_| fault())?;
    let key = VerifyingKey::from_bytes(&bytes).map_err(|_| fault())?;
    if key.is_weak() { Err(fault()) } else { Ok(key) }
}

impl Sender for Standard {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let list = header::required(delivery, SIGNATURE)?;
        let id = header::required(delivery, ID)?;
        let time = header::required(delivery, TIME)?;
        if id.contains('.') {
            return Err(Rejection::malformed("webhook-id contains a dot", "webhook-id 含有句点"));
        }
        let seconds = header::seconds(time)?;
        let parts: [&[u8]; 5] = [id.as_bytes(), b".", time.as_bytes(), b".", delivery.body];
        let mut macs = Vec::new();
        let mut signatures = Vec::new();
        for entry in list.split(' ') {
            match entry.split_once(',') {
                Some(("v1", text)) => macs.extend(decode::<32>(text)),
                Some(("v1a", text)) => signatures.extend(decode::<64>(text)),
                _ => {}
            }
        }
        if macs.is_empty() && signatures.is_empty() {
            return Err(Rejection::malformed(
                "no entry is v1, or v1a, and base64",
                "没有可用的 v1 或 v1a 签名",
            ));
        }
        if signatures.len() > MAX_SIGNATURES {
            return Err(Rejection::malformed("it has over 16 v1a entries", "v1a 签名超过 16 个"));
        }
        let shared = self.shared.as_ref().is_some_and(|keys| keys.verify(&parts, &macs).is_ok());
        if !shared && !self.public_match(&parts, &signatures) {
            return Err(Rejection::mismatch());
        }
        header::fresh(seconds, delivery.now, self.tolerance)
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        let id = id(header::one(delivery, ID)?.ok_or_else(|| Rejection::id_missing(ID))?, ID)?;
        let mut root = object(delivery.body)?;
        let kind = take_kind(&mut root, "type")?;
        let occurred_at = match root.get("timestamp") {
            None | Some(Value::Null) => None,
            Some(value) => Some(
                value
                    .as_str()
                    .and_then(time::rfc3339)
                    .ok_or_else(|| Rejection::field("timestamp", "an RFC 3339 time"))?,
            ),
        };
        let mut payload = take_map(&mut root, "data");
        let subject = Subject {
            amount_minor: amount(payload.get("amount").filter(|value| value.is_number()), "data.amount")?,
            currency: currency(payload.remove("currency"), "data.currency").ok().flatten(),
            status: take_text(&mut payload, "status"),
            object_id: take_text(&mut payload, "id"),
            object_kind: take_text(&mut payload, "object"),
            email: take_text(&mut payload, "email"),
            reference: take_text(&mut payload, "reference"),
            metadata: metadata(take_map(&mut payload, "metadata")),
            ..Subject::default()
        };
        let mut stable = Map::new();
        keep(&mut stable, "type", Some(kind.as_str()));
        keep(&mut stable, "timestamp", take_text(&mut root, "timestamp"));
        keep(&mut stable, "object_id", subject.object_id.clone());
        keep(&mut stable, "amount", subject.amount_minor);
        keep(&mut stable, "currency", subject.currency.clone());
        keep(&mut stable, "status", subject.status.clone());
        Ok(Event {
            id,
            kind,
            mode: Mode::Unstated,
            occurred_at,
            account: None,
            subject,
            change: None,
            stable,
        })
    }
}

impl Standard {
    fn public_match(&self, parts: &[&[u8]], signatures: &[[u8; 64]]) -> bool {
        if self.public.is_empty() || signatures.is_empty() {
            return false;
        }
        let signed = parts.concat();
        signatures.iter().any(|bytes| {
            let signature = Signature::from_bytes(bytes);
            self.public.iter().any(|key| key.verify_strict(&signed, &signature).is_ok())
        })
    }
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}
