//! Any sender with an HMAC-SHA256 over the body, described by a [`GenericRule`].
//!
//! `stable`: `type`, `time`, `amount`, `currency` as far as the rule points to them, and the SHA-256 of the body when it
//! points to no amount (then nothing else would show a difference).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::Sender;
use crate::body::{self, keep};
use crate::mac::MacKeys;
use crate::{
    Delivery, Encoding, Event, GenericRule, IdRule, Mode, Rejection, Settings, Subject, header, time,
};

pub(crate) struct Generic {
    rule: GenericRule,
    id: IdRule,
    keys: MacKeys,
    tolerance: i64,
}

impl Generic {
    pub(crate) fn new(settings: &Settings, tolerance: i64) -> Result<Self, String> {
        let rule = settings.generic.clone().ok_or("it has no rule for signature and id; set generic")?;
        let id = rule.id.clone().ok_or(
            "it has no id rule; say in which header or at which JSON pointer the event id is, or repeats can't \
             be told from new events",
        )?;
        let pointer = match &id {
            IdRule::Pointer(pointer) => Some(pointer),
            IdRule::Header(_) => None,
        };
        let others = [&rule.type_pointer, &rule.time_pointer, &rule.amount_pointer, &rule.currency_pointer];
        for pointer in others.into_iter().flatten().chain(pointer) {
            if !pointer.starts_with('/') {
                return Err(format!("the JSON pointer {pointer:?} does not start with '/'"));
            }
        }
        let headers = [Some(&rule.signature_header), rule.timestamp.as_ref().map(|time| &time.header)];
        let id_header = match &id {
            IdRule::Header(name) => Some(name),
            IdRule::Pointer(_) => None,
        };
        for name in headers.into_iter().flatten().chain(id_header) {
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
                return Err(format!("{name:?} is not a header name"));
            }
        }
        let keys = MacKeys::new(settings.secrets.iter().map(|s| s.expose().as_bytes()))?;
        Ok(Self { rule, id, keys, tolerance })
    }

    fn mac(&self, value: &str) -> Option<[u8; 32]> {
        let text = match &self.rule.prefix {
            Some(prefix) => value.strip_prefix(prefix.as_str())?,
            None => value,
        };
        match self.rule.encoding {
            Encoding::Hex => header::hex_mac(text),
            Encoding::Base64 => STANDARD.decode(text).ok()?.try_into().ok(),
        }
    }
}

impl Sender for Generic {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let value = header::required(delivery, &self.rule.signature_header)?;
        let mac = self
            .mac(value)
            .ok_or_else(|| Rejection::malformed("it does not have the configured form", "格式与配置不符"))?;
        let Some(rule) = &self.rule.timestamp else { return self.keys.verify(&[delivery.body], &[mac]) };
        let time = header::required(delivery, &rule.header)?;
        let seconds = header::seconds(time)?;
        self.keys.verify(&[time.as_bytes(), rule.separator.as_bytes(), delivery.body], &[mac])?;
        header::fresh(seconds, delivery.now, self.tolerance)
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        let root = Value::Object(body::object(delivery.body)?);
        let at = |pointer: &Option<String>| pointer.as_ref().and_then(|pointer| root.pointer(pointer));
        let id = match &self.id {
            IdRule::Header(name) => {
                body::id(header::one(delivery, name)?.ok_or_else(|| Rejection::id_missing(name))?, name)?
            }
            IdRule::Pointer(pointer) => match root.pointer(pointer) {
                None | Some(Value::Null) => return Err(Rejection::id_missing(pointer)),
                Some(Value::String(text)) => body::id(text, pointer)?,
                Some(Value::Number(number)) if number.is_i64() || number.is_u64() => number.to_string(),
                Some(_) => return Err(Rejection::id_invalid(pointer)),
            },
        };
        let kind = match at(&self.rule.type_pointer) {
            None | Some(Value::Null) => "unstated".to_owned(),
            Some(Value::String(text)) if body::is_id(text) => text.clone(),
            Some(_) => return Err(Rejection::field("type", "a text of 1 to 255 characters")),
        };
        let occurred_at = match at(&self.rule.time_pointer) {
            Some(Value::String(text)) => {
                Some(time::rfc3339(text).ok_or_else(|| Rejection::field("time", "an RFC 3339 time"))?)
            }
            other => body::unix_time(other, "time")?,
        };
        let amount_minor = body::amount(at(&self.rule.amount_pointer), "amount")?;
        let currency = body::currency(at(&self.rule.currency_pointer).cloned(), "currency")?;
        let mut stable = Map::new();
        keep(&mut stable, "type", Some(kind.as_str()));
        keep(&mut stable, "time", occurred_at);
        keep(&mut stable, "amount", amount_minor);
        keep(&mut stable, "currency", currency.clone());
        if amount_minor.is_none() {
            keep(&mut stable, "body_sha256", Some(hex::encode(Sha256::digest(delivery.body))));
        }
        let subject = Subject { amount_minor, currency, ..Subject::default() };
        let (mode, account, change) = (Mode::Unstated, None, None);
        Ok(Event { id, kind, mode, occurred_at, account, subject, change, stable })
    }
}
