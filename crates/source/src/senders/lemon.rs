//! Lemon Squeezy: `X-Signature`, HMAC-SHA256 in hex over the raw body; neither time nor id is sent.
//!
//! # The composed id
//! `ls_` and the SHA-256 (hex) over four parts: `meta.event_name`, `data.type`, `data.id`,
//! `data.attributes.updated_at`; each part with its length in bytes as 8 bytes big-endian in front, so that nothing
//! can move from one part into the next. All four must be there: a hash of the body in their place would join
//! two true events of equal content, and split a repeat that was rendered anew.
//!
//! `stable`: `type`, `test_mode`, `object_kind`, `object_id`, `updated_at`, `status`, `currency`, `amount`.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Sender;
use crate::body::{amount, currency, keep, live_flag, metadata, object, take_map, take_text, take_word};
use crate::mac::MacKeys;
use crate::{Delivery, Event, Mode, Rejection, Settings, Subject, header, time};

pub(crate) const SIGNATURE: &str = "X-Signature";
pub(crate) const EVENT: &str = "X-Event-Name";

pub(crate) struct Lemon {
    keys: MacKeys,
}

impl Lemon {
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        let keys = MacKeys::new(settings.secrets.iter().map(|s| s.expose().as_bytes()))?;
        Ok(Self { keys })
    }
}

impl Sender for Lemon {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let mac = header::hex_mac(header::required(delivery, SIGNATURE)?).ok_or_else(|| {
            Rejection::malformed("it is not 64 lower-case hex digits", "不是 64 位小写十六进制")
        })?;
        self.keys.verify(&[delivery.body], &[mac])
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        let mut root = object(delivery.body)?;
        let mut meta = take_map(&mut root, "meta");
        let mut resource = take_map(&mut root, "data");
        let mut attributes = take_map(&mut resource, "attributes");
        let kind = part(&mut meta, "event_name")?;
        let object_kind = part(&mut resource, "type")?;
        let object_id = part(&mut resource, "id")?;
        let updated_at = part(&mut attributes, "updated_at")?;
        let occurred_at = time::rfc3339(&updated_at)
            .ok_or_else(|| Rejection::field("data.attributes.updated_at", "an RFC 3339 time"))?;
        let mode = match live_flag(meta.get("test_mode"), "meta.test_mode")? {
            Mode::Live => Mode::Test,
            Mode::Test => Mode::Live,
            Mode::Unstated => Mode::Unstated,
        };
        let subject = Subject {
            status: take_word(&mut attributes, "status")?,
            amount_minor: amount(attributes.get("total"), "data.attributes.total")?,
            currency: currency(attributes.remove("currency"), "data.attributes.currency")?,
            email: take_text(&mut attributes, "user_email"),
            payment_id: take_text(&mut attributes, "identifier"),
            metadata: metadata(take_map(&mut meta, "custom_data")),
            object_kind: Some(object_kind),
            object_id: Some(object_id),
            ..Subject::default()
        };
        let mut stable = Map::new();
        keep(&mut stable, "type", Some(kind.as_str()));
        keep(&mut stable, "test_mode", meta.remove("test_mode"));
        keep(&mut stable, "object_kind", subject.object_kind.clone());
        keep(&mut stable, "object_id", subject.object_id.clone());
        keep(&mut stable, "updated_at", Some(updated_at.as_str()));
        keep(&mut stable, "status", subject.status.clone());
        keep(&mut stable, "currency", subject.currency.clone());
        keep(&mut stable, "amount", subject.amount_minor);
        let parts =
            [Some(&kind), subject.object_kind.as_ref(), subject.object_id.as_ref(), Some(&updated_at)];
        let id = composed(parts.into_iter().flatten().map(String::as_str));
        Ok(Event {
            id,
            kind,
            mode,
            occurred_at: Some(occurred_at),
            account: None,
            subject,
            change: None,
            stable,
        })
    }
}

fn part(map: &mut Map<String, Value>, name: &str) -> Result<String, Rejection> {
    take_word(map, name)?.ok_or_else(|| Rejection::id_missing(name))
}

fn composed<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    format!("ls_{}", hex::encode(hash.finalize()))
}
