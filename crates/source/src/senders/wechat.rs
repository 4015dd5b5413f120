//! WeChat Pay API v3: RSA over `time LF nonce LF body LF`, and a resource under AES-256-GCM.
//!
//! `Wechatpay-Serial` names the key: a platform certificate's serial number or a public key id (`PUB_KEY_ID_…`).
//! Only the named key is tried. Probe signatures (`WECHATPAY/SIGNTEST/…`) fail like any other wrong one.
//! The resource is opened with the merchant's APIv3 key; its failure is a refusal, too.
//!
//! `stable`: `type`, `mchid`, `out_trade_no`, `transaction_id`, `status`, `currency`, `amount`, `success_time`,
//! `out_refund_no`, `refund_id`. `create_time` is the event's time. It states no mode.
//! The change key is type, object and, for refunds, the refund's number.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use serde_json::{Map, Value};

use super::Sender;
use crate::body::{amount, currency, keep, object, take_id, take_kind, take_map, take_text, take_word};
use crate::event::change_key;
use crate::rsa::RsaPublic;
use crate::{Delivery, Event, Mode, Rejection, Settings, Subject, header, time};

pub(crate) const SERIAL: &str = "Wechatpay-Serial";
pub(crate) const TIME: &str = "Wechatpay-Timestamp";
pub(crate) const NONCE: &str = "Wechatpay-Nonce";
pub(crate) const SIGNATURE: &str = "Wechatpay-Signature";
const TYPE: &str = "Wechatpay-Signature-Type";
const SCHEME: &str = "WECHATPAY2-SHA256-RSA2048";

pub(crate) struct Wechat {
    keys: Vec<(String, RsaPublic)>,
    resource: LessSafeKey,
    tolerance: i64,
}

impl Wechat {
    pub(crate) fn new(settings: &Settings, tolerance: i64) -> Result<Self, String> {
        let secret = settings.api_v3_key.as_ref().ok_or("it has no APIv3 key; set api_v3_key")?;
        let resource = UnboundKey::new(&AES_256_GCM, secret.expose().as_bytes())
            .map_err(|_| "its APIv3 key does not have exactly 32 characters; copy it again".to_owned())?;
        let keys = settings
            .public_keys
            .iter()
            .map(|key| named_key(key.id.trim(), &key.text))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() {
            return Err(
                "it has no public key; set the platform certificate or the WeChat Pay public key".into()
            );
        }
        Ok(Self { keys, resource: LessSafeKey::new(resource), tolerance })
    }
}

fn named_key(id: &str, text: &str) -> Result<(String, RsaPublic), String> {
    let key = RsaPublic::read(text)?;
    match &key.serial {
        Some(serial) if serial.trim_start_matches('0') != id.to_ascii_uppercase().trim_start_matches('0') => {
            Err(format!("the certificate's serial number is {serial}, its setting says {id:?}"))
        }
        _ if id.is_empty() => Err("a public key has no id; set its serial number or PUB_KEY_ID_…".into()),
        _ => Ok((id.to_owned(), key)),
    }
}

impl Sender for Wechat {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let signature = header::required(delivery, SIGNATURE)?;
        let time = header::required(delivery, TIME)?;
        let nonce = header::required(delivery, NONCE)?;
        let serial = header::required(delivery, SERIAL)?;
        if header::one(delivery, TYPE)?.is_some_and(|scheme| scheme != SCHEME) {
            return Err(Rejection::malformed(
                "its type is another than RSA with SHA-256",
                "签名类型不受支持",
            ));
        }
        let seconds = header::seconds(time)?;
        let (_, key) = self
            .keys
            .iter()
            .find(|(id, _)| id.eq_ignore_ascii_case(serial))
            .ok_or_else(Rejection::key_unknown)?;
        // A probe's value is not base64; it gets the answer of a wrong signature, not one of its own.
        let bytes = STANDARD.decode(signature).unwrap_or_default();
        let parts: [&[u8]; 6] = [time.as_bytes(), b"\n", nonce.as_bytes(), b"\n", delivery.body, b"\n"];
        if !key.verify(&parts.concat(), &bytes) {
            return Err(Rejection::mismatch());
        }
        header::fresh(seconds, delivery.now, self.tolerance)
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        let mut root = object(delivery.body)?;
        let id = take_id(&mut root, "id")?;
        let kind = take_kind(&mut root, "event_type")?;
        let occurred_at = match take_word(&mut root, "create_time")? {
            None => None,
            Some(text) => Some(
                time::rfc3339(&text).ok_or_else(|| Rejection::field("create_time", "an RFC 3339 time"))?,
            ),
        };
        let mut resource = take_map(&mut root, "resource");
        let mut content = object(&self.decrypt(&mut resource)?)?;
        let mut stable = Map::new();
        keep(&mut stable, "type", Some(kind.as_str()));
        let object_kind = take_text(&mut resource, "original_type");
        let subject = subject(object_kind, &mut content, &mut stable)?;
        let change = subject.object_id.as_ref().map(|object| {
            let status = subject.status.as_deref().unwrap_or_default();
            change_key(&["wechat-pay", &kind, object, status])
        });
        Ok(Event { id, kind, mode: Mode::Unstated, occurred_at, account: None, subject, change, stable })
    }
}

impl Wechat {
    fn decrypt(&self, resource: &mut Map<String, Value>) -> Result<Vec<u8>, Rejection> {
        if take_text(resource, "algorithm").as_deref() != Some("AEAD_AES_256_GCM") {
            return Err(Rejection::field("resource.algorithm", "AEAD_AES_256_GCM"));
        }
        let nonce = take_text(resource, "nonce").unwrap_or_default();
        let nonce = Nonce::try_assume_unique_for_key(nonce.as_bytes())
            .map_err(|_| Rejection::field("resource.nonce", "12 characters"))?;
        let aad = take_text(resource, "associated_data").unwrap_or_default();
        let mut bytes = take_text(resource, "ciphertext")
            .and_then(|text| STANDARD.decode(text).ok())
            .ok_or_else(|| Rejection::field("resource.ciphertext", "base64"))?;
        let opened = self
            .resource
            .open_in_place(nonce, Aad::from(aad.as_bytes()), &mut bytes)
            .map_err(|_| Rejection::decrypt())?
            .len();
        bytes.truncate(opened);
        Ok(bytes)
    }
}

fn subject(
    object_kind: Option<String>,
    content: &mut Map<String, Value>,
    stable: &mut Map<String, Value>,
) -> Result<Subject, Rejection> {
    let trade_state = take_word(content, "trade_state")?;
    let refund_status = take_word(content, "refund_status")?;
    let refund = take_word(content, "refund_id")?;
    let payment = take_word(content, "transaction_id")?;
    let mut money = take_map(content, "amount");
    let figure = if refund.is_some() { "refund" } else { "total" };
    let subject = Subject {
        object_kind,
        object_id: refund.clone().or_else(|| payment.clone()),
        payment_id: payment,
        status: refund_status.or(trade_state),
        amount_minor: amount(money.get(figure), "amount")?,
        currency: currency(money.remove("currency"), "amount.currency")?,
        reference: take_word(content, "out_trade_no")?,
        ..Subject::default()
    };
    keep(stable, "mchid", take_text(content, "mchid"));
    keep(stable, "out_trade_no", subject.reference.clone());
    keep(stable, "transaction_id", subject.payment_id.clone());
    keep(stable, "status", subject.status.clone());
    keep(stable, "currency", subject.currency.clone());
    keep(stable, "amount", subject.amount_minor);
    keep(stable, "success_time", take_text(content, "success_time"));
    keep(stable, "out_refund_no", take_text(content, "out_refund_no"));
    keep(stable, "refund_id", refund);
    Ok(subject)
}
