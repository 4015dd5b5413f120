//! Events of our own tasks (spec 2.2): `Authorization: Bearer …`, a JSON object that says what happened.
//!
//! Fields: `id` and `type` (required), `created` (Unix seconds), `livemode`, `account`, `change` (the auxiliary key's text),
//! `object`, `object_id`, `session_id`, `payment_id`, `status`, `currency`, `email`, `product_id`, `price_id`, `reference`,
//! `amount` (smallest unit), `metadata` (text to text). A wrong type of any of them is refused: the body is our own.
//! `stable`: all of them but `email` and `metadata`.
//!
//! Tokens are compared by their SHA-256 in constant time; the token itself is not kept.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::Sender;
use crate::body::{
    amount, currency, keep, live_flag, metadata, object, take_id, take_map, take_word, unix_time,
};
use crate::event::change_key;
use crate::rejection::Present;
use crate::{Delivery, Event, Mode, Rejection, Settings, Subject, header};

pub(crate) const HEADER: &str = "Authorization";

/// Shortest token, in characters; it is all the proof there is.
const MIN_TOKEN: usize = 16;

pub(crate) struct Internal {
    digests: Vec<[u8; 32]>,
}

impl Internal {
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        if settings.secrets.is_empty() {
            return Err("it has no token; set at least one".into());
        }
        let short =
            |secret: &crate::Secret| secret.expose().len() < MIN_TOKEN || secret.expose().contains(' ');
        if settings.secrets.iter().any(short) {
            return Err("a token has fewer than 16 characters or a space inside; make a random one".into());
        }
        let digests = settings.secrets.iter().map(|s| Sha256::digest(s.expose()).into()).collect();
        Ok(Self { digests })
    }
}

impl Sender for Internal {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let value = header::one(delivery, HEADER)?.ok_or_else(|| Rejection::token(Present::No))?;
        let token = match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim_start_matches(' '),
            _ => return Err(Rejection::token(Present::No)),
        };
        let given: [u8; 32] = Sha256::digest(token).into();
        let mut found = Choice::from(0);
        for digest in &self.digests {
            found |= digest.ct_eq(&given);
        }
        if bool::from(found) { Ok(()) } else { Err(Rejection::token(Present::Yes)) }
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        let mut root = object(delivery.body)?;
        let id = take_id(&mut root, "id")?;
        let kind = take_word(&mut root, "type")?
            .ok_or_else(|| Rejection::field("type", "a text of 1 to 255 characters"))?;
        let mode = live_flag(root.get("livemode"), "livemode")?;
        let occurred_at = unix_time(root.get("created"), "created")?;
        let account = take_word(&mut root, "account")?;
        let change = take_word(&mut root, "change")?.map(|text| change_key(&["internal", &text]));
        let mut stable = Map::new();
        keep(&mut stable, "type", Some(kind.as_str()));
        keep(&mut stable, "created", occurred_at);
        keep(&mut stable, "livemode", Some(mode == Mode::Live).filter(|_| mode != Mode::Unstated));
        keep(&mut stable, "account", account.clone());
        keep(&mut stable, "change", change.clone());
        let subject = subject(&mut root, &mut stable)?;
        Ok(Event { id, kind, mode, occurred_at, account, subject, change, stable })
    }
}

fn subject(root: &mut Map<String, Value>, stable: &mut Map<String, Value>) -> Result<Subject, Rejection> {
    let mut word = |name: &str| -> Result<Option<String>, Rejection> {
        let text = take_word(root, name)?;
        keep(stable, name, text.clone());
        Ok(text)
    };
    let mut subject = Subject {
        object_kind: word("object")?,
        object_id: word("object_id")?,
        session_id: word("session_id")?,
        payment_id: word("payment_id")?,
        status: word("status")?,
        product_id: word("product_id")?,
        price_id: word("price_id")?,
        reference: word("reference")?,
        ..Subject::default()
    };
    subject.email = take_word(root, "email")?;
    subject.currency = currency(root.remove("currency"), "currency")?;
    subject.amount_minor = amount(root.get("amount"), "amount")?;
    keep(stable, "currency", subject.currency.clone());
    keep(stable, "amount", subject.amount_minor);
    let map = match root.get("metadata") {
        None | Some(Value::Object(_)) => take_map(root, "metadata"),
        Some(_) => return Err(Rejection::field("metadata", "an object of texts")),
    };
    if map.values().any(|value| !value.is_string()) {
        return Err(Rejection::field("metadata", "an object of texts"));
    }
    subject.metadata = metadata(map);
    Ok(subject)
}
