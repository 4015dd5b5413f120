//! Paddle Billing: `Paddle-Signature: ts=…;h1=…[;h1=…]`, HMAC-SHA256 over `ts:body`. Every `h1` is tried.
//!
//! The id is `event_id`, the same for all destinations; `notification_id` is one per destination and not used.
//! Amounts are text in the smallest unit. `stable`: `type`, `occurred_at` (text as sent), `object_id`, `status`,
//! `currency`, `amount`. Paddle reports a change once, so there is no change key. It states no mode.

use serde_json::{Map, Value};

use super::Sender;
use crate::body::{
    currency, keep, metadata, object, take_first, take_id, take_kind, take_map, take_ref, take_text,
    take_word,
};
use crate::header::{self, Shape};
use crate::mac::MacKeys;
use crate::{Delivery, Event, Mode, Rejection, Settings, Subject, time};

pub(crate) const HEADER: &str = "Paddle-Signature";
const SHAPE: Shape = Shape { separator: ';', time: "ts", mac: "h1" };

pub(crate) struct Paddle {
    keys: MacKeys,
    tolerance: i64,
}

impl Paddle {
    pub(crate) fn new(settings: &Settings, tolerance: i64) -> Result<Self, String> {
        let api = |secret: &&crate::Secret| {
            secret.expose().starts_with("pdl_") && secret.expose().contains("_apikey_")
        };
        if settings.secrets.iter().any(|secret| api(&secret)) {
            return Err("a secret is an API key; use the destination's secret (pdl_ntfset_…)".into());
        }
        let keys = MacKeys::new(settings.secrets.iter().map(|s| s.expose().as_bytes()))?;
        Ok(Self { keys, tolerance })
    }
}

impl Sender for Paddle {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let parts = header::elements(header::required(delivery, HEADER)?, &SHAPE)?;
        self.keys.verify(&[parts.time_text.as_bytes(), b":", delivery.body], &parts.macs)?;
        header::fresh(parts.time, delivery.now, self.tolerance)
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        let mut root = object(delivery.body)?;
        let id = take_id(&mut root, "event_id")?;
        let kind = take_kind(&mut root, "event_type")?;
        let written = take_word(&mut root, "occurred_at")?;
        let occurred_at = match &written {
            None => None,
            Some(text) => {
                Some(time::rfc3339(text).ok_or_else(|| Rejection::field("occurred_at", "an RFC 3339 time"))?)
            }
        };
        let subject = subject(&kind, take_map(&mut root, "data"))?;
        let mut stable = Map::new();
        keep(&mut stable, "type", Some(kind.as_str()));
        keep(&mut stable, "occurred_at", written);
        keep(&mut stable, "object_id", subject.object_id.clone());
        keep(&mut stable, "status", subject.status.clone());
        keep(&mut stable, "currency", subject.currency.clone());
        keep(&mut stable, "amount", subject.amount_minor);
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

fn subject(kind: &str, mut payload: Map<String, Value>) -> Result<Subject, Rejection> {
    let object_kind = kind.split_once('.').map(|(object, _)| object.to_owned());
    let object_id = take_word(&mut payload, "id")?;
    let transaction = match object_kind.as_deref() {
        Some("transaction") => object_id.clone(),
        _ => take_ref(&mut payload, "transaction_id"),
    };
    let mut totals = take_map(&mut take_map(&mut payload, "details"), "totals");
    if totals.is_empty() {
        totals = take_map(&mut payload, "totals");
    }
    let amount_minor = match totals.remove("grand_total").or_else(|| totals.remove("total")) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(whole(&text)?),
        Some(_) => return Err(Rejection::field("totals.total", "an integer as text")),
    };
    let mut price = take_map(&mut take_first(&mut payload, "items"), "price");
    Ok(Subject {
        session_id: None,
        payment_id: transaction,
        status: take_word(&mut payload, "status")?,
        currency: currency(payload.remove("currency_code"), "currency_code")?,
        email: None,
        product_id: take_ref(&mut price, "product_id"),
        price_id: take_text(&mut price, "id"),
        reference: take_ref(&mut payload, "subscription_id"),
        amount_minor,
        metadata: metadata(take_map(&mut payload, "custom_data")),
        object_kind,
        object_id,
    })
}

fn whole(text: &str) -> Result<i64, Rejection> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain).ok_or_else(|| Rejection::field("totals.total", "an integer as text"))
}
