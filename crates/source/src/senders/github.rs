//! GitHub: `X-Hub-Signature-256: sha256=…`, HMAC-SHA256 over the raw body; no time in the signature.
//!
//! Only the delivery GUID protects against a replay, and no header is covered by the MAC. `X-Hub-Signature` (SHA-1) is
//! ignored. Form-encoded hooks send `payload=<JSON>`; the MAC covers the form as it came.
//! The type is the event's name, with `.action` where the body has one. `stable`: `type`, `repository`, and the
//! SHA-256 of the JSON text (GitHub repeats a delivery byte by byte).

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Sender, form};
use crate::body::{id, is_id, keep, object, take_map, take_text, take_word};
use crate::mac::MacKeys;
use crate::{Delivery, Event, Mode, Rejection, Settings, Subject, header};

pub(crate) const SIGNATURE: &str = "X-Hub-Signature-256";
pub(crate) const DELIVERY: &str = "X-GitHub-Delivery";
pub(crate) const EVENT: &str = "X-GitHub-Event";

pub(crate) struct Github {
    keys: MacKeys,
}

impl Github {
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        let keys = MacKeys::new(settings.secrets.iter().map(|s| s.expose().as_bytes()))?;
        Ok(Self { keys })
    }
}

impl Sender for Github {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let value = header::required(delivery, SIGNATURE)?;
        let mac = value.strip_prefix("sha256=").and_then(header::hex_mac).ok_or_else(|| {
            Rejection::malformed(
                "it is not sha256= and 64 lower-case hex digits",
                "不是 sha256= 加 64 位小写十六进制",
            )
        })?;
        self.keys.verify(&[delivery.body], &[mac])
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        let guid = header::one(delivery, DELIVERY)?.ok_or_else(|| Rejection::id_missing(DELIVERY))?;
        let id = id(guid, DELIVERY)?;
        let payload = match delivery.body.first() {
            Some(b'p') => Some(form::field(delivery.body, "payload")?.ok_or_else(|| {
                Rejection::body("BODY_NOT_JSON", "the form has no payload", "表单缺少 payload 字段")
            })?),
            _ => None,
        };
        let text = payload.as_deref().unwrap_or(delivery.body);
        let mut root = object(text)?;
        let name = header::one(delivery, EVENT)?.unwrap_or("unstated");
        let action = take_word(&mut root, "action")?;
        let kind = action.as_ref().map_or_else(|| name.to_owned(), |action| format!("{name}.{action}"));
        if !is_id(&kind) {
            return Err(Rejection::field(EVENT, "a name of 1 to 255 characters"));
        }
        let mut repository = take_map(&mut root, "repository");
        let subject = Subject {
            object_kind: Some(name.to_owned()),
            reference: take_text(&mut repository, "full_name"),
            status: action,
            ..Subject::default()
        };
        let mut stable = Map::new();
        keep(&mut stable, "type", Some(kind.as_str()));
        keep(&mut stable, "repository", subject.reference.clone());
        keep(&mut stable, "body_sha256", Some(Value::String(hex::encode(Sha256::digest(text)))));
        Ok(Event {
            id,
            kind,
            mode: Mode::Unstated,
            occurred_at: None,
            account: None,
            subject,
            change: None,
            stable,
        })
    }
}
