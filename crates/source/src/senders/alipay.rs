//! Alipay asynchronous notification: RSA2 over the sorted form fields, answered with `success`.
//!
//! The signed text: fields without `sign` and `sign_type`, values URL-decoded exactly once, sorted by name as
//! bytes, `name=value` joined with `&`; empty values stay in. Notifications that sign `sign_type`, too (some account
//! products), are refused: trying both forms would accept two readings of one body.
//!
//! The id is `notify_id`. `notify_time` changes with every repeat, so it is neither the event's time nor in the
//! fingerprint. A refund comes under the same `notify_type`, a partial one even with `TRADE_SUCCESS`; its type here is
//! `notify_type.refund`, so that no policy takes it for a payment. Amounts are yuan with at most two decimals.
//! `stable`: `type`, `app_id`, `seller_id`, `trade_no`, `out_trade_no`, `status`, `total_amount`, `refund_fee`, `out_biz_no`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Map;

use super::{Sender, form};
use crate::body::{self, keep};
use crate::event::change_key;
use crate::rsa::RsaPublic;
use crate::{Delivery, Event, Mode, Rejection, Settings, Subject, time};

pub(crate) struct Alipay {
    keys: Vec<RsaPublic>,
}

type Fields = BTreeMap<Vec<u8>, Vec<u8>>;

impl Alipay {
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        let keys = settings
            .public_keys
            .iter()
            .map(|key| RsaPublic::read(&key.text))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err("it has no public key; set Alipay's public key (not the application's)".into());
        }
        Ok(Self { keys })
    }
}

/// The fields, each name once.
fn fields(body: &[u8]) -> Result<Fields, Rejection> {
    let mut fields = Fields::new();
    for (name, value) in form::pairs(body)? {
        if fields.insert(name, value).is_some() {
            return Err(form::twice());
        }
    }
    Ok(fields)
}

/// The bytes that a sender signs for a form; `None` when a field stands twice.
pub(crate) fn signed_form(body: &[u8]) -> Option<Vec<u8>> {
    Some(signed_text(&fields(body).ok()?))
}

/// The bytes that are signed.
fn signed_text(fields: &Fields) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, value) in fields {
        if matches!(name.as_slice(), b"sign" | b"sign_type") {
            continue;
        }
        if !text.is_empty() {
            text.push(b'&');
        }
        text.extend_from_slice(name);
        text.push(b'=');
        text.extend_from_slice(value);
    }
    text
}

impl Sender for Alipay {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let fields = fields(delivery.body)?;
        let sign = fields
            .get(b"sign".as_slice())
            .filter(|sign| !sign.is_empty())
            .ok_or_else(|| Rejection::missing("sign"))?;
        if fields.get(b"sign_type".as_slice()).is_none_or(|kind| kind != b"RSA2") {
            return Err(Rejection::malformed("sign_type is not RSA2", "sign_type 不是 RSA2"));
        }
        let signature = STANDARD
            .decode(sign)
            .map_err(|_| Rejection::malformed("sign is not base64", "sign 不是 base64"))?;
        let signed = signed_text(&fields);
        let matched = self.keys.iter().any(|key| key.verify(&signed, &signature));
        if matched { Ok(()) } else { Err(Rejection::mismatch()) }
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        let mut fields = texts(delivery.body)?;
        if fields.get("charset").is_some_and(|charset| !charset.eq_ignore_ascii_case("utf-8")) {
            return Err(Rejection::field("charset", "utf-8"));
        }
        let id = match fields.remove("notify_id") {
            None => return Err(Rejection::id_missing("notify_id")),
            Some(text) => body::id(&text, "notify_id")?,
        };
        let total = yuan(fields.get("total_amount"), "total_amount")?;
        let refund = yuan(fields.get("refund_fee"), "refund_fee")?;
        let refunded = fields.contains_key("gmt_refund") || refund.is_some();
        let mut kind = fields.remove("notify_type").unwrap_or_else(|| "unstated".into());
        let occurred_at = occurred(&fields, if refunded { "gmt_refund" } else { "gmt_payment" })?;
        if refunded {
            kind.push_str(".refund");
        }
        if !body::is_id(&kind) {
            return Err(Rejection::field("notify_type", "a text of 1 to 255 characters"));
        }
        let trade = fields.remove("trade_no").filter(|text| !text.is_empty());
        let subject = Subject {
            object_kind: Some("trade".into()),
            object_id: trade.clone(),
            payment_id: trade,
            status: fields.remove("trade_status").filter(|text| !text.is_empty()),
            currency: total.map(|_| "cny".into()),
            amount_minor: if refunded { refund } else { total },
            reference: fields.remove("out_trade_no").filter(|text| !text.is_empty()),
            ..Subject::default()
        };
        let occurrence = fields.remove("out_biz_no").unwrap_or_default();
        let mut stable = Map::new();
        keep(&mut stable, "type", Some(kind.as_str()));
        keep(&mut stable, "app_id", fields.remove("app_id"));
        keep(&mut stable, "seller_id", fields.remove("seller_id"));
        keep(&mut stable, "trade_no", subject.object_id.clone());
        keep(&mut stable, "out_trade_no", subject.reference.clone());
        keep(&mut stable, "status", subject.status.clone());
        keep(&mut stable, "total_amount", total);
        keep(&mut stable, "refund_fee", refund);
        keep(&mut stable, "out_biz_no", Some(occurrence.as_str()).filter(|text| !text.is_empty()));
        let change = subject.object_id.as_ref().map(|trade| {
            let fee = refund.map_or_else(String::new, |fee| fee.to_string());
            let status = subject.status.as_deref().unwrap_or_default();
            change_key(&["alipay", &kind, trade, status, &fee, &occurrence])
        });
        Ok(Event { id, kind, mode: Mode::Unstated, occurred_at, account: None, subject, change, stable })
    }
}

fn texts(body: &[u8]) -> Result<BTreeMap<String, String>, Rejection> {
    let text = |bytes| {
        String::from_utf8(bytes)
            .map_err(|_| Rejection::body("BODY_NOT_UTF8", "the form is not UTF-8", "表单不是 UTF-8"))
    };
    fields(body)?.into_iter().map(|(name, value)| Ok((text(name)?, text(value)?))).collect()
}

fn occurred(fields: &BTreeMap<String, String>, first: &str) -> Result<Option<i64>, Rejection> {
    for name in [first, "gmt_close", "gmt_create"] {
        if let Some(text) = fields.get(name).filter(|text| !text.is_empty()) {
            return match time::beijing(text) {
                Some(seconds) => Ok(Some(seconds)),
                None => Err(Rejection::field(name, "a time such as 2026-01-01 08:00:00")),
            };
        }
    }
    Ok(None)
}

/// Yuan as decimal text with at most two decimals, in fen; exact, no float.
fn yuan(text: Option<&String>, name: &str) -> Result<Option<i64>, Rejection> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    fen(text).map(Some).ok_or_else(|| Rejection::field(name, "yuan with at most two decimals"))
}

fn fen(text: &str) -> Option<i64> {
    let (whole, cents) = text.split_once('.').unwrap_or((text, "00"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(cents) || cents.len() > 2 {
        return None;
    }
    let cents: i64 = format!("{cents:0<2}").parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(100)?.checked_add(cents)
}

#[cfg(test)]
mod tests {
    use super::fen;

    #[test]
    fn yuan_become_fen_exactly_or_not_at_all() {
        assert_eq!(fen("88.88"), Some(8888));
        assert_eq!(fen("0.29"), Some(29));
        assert_eq!(fen("9.9"), Some(990));
        assert_eq!(fen("100"), Some(10_000));
        for odd in ["", ".5", "1.", "1.005", "-1.00", "1e2", "1,00", " 1.00", "１.00", "92233720368547758.08"]
        {
            assert_eq!(fen(odd), None, "{odd}");
        }
    }
}
