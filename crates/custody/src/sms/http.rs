//! An SMS service behind HTTP: `POST` of one JSON object, a bearer token, the outbox row's id as
//! `Idempotency-Key`. A service with a shape of its own is put behind a small gateway, as most have one.
//!
//! ```json
//! {"to": "+8613800000000", "template": "withdraw_code", "reference": "<event id>",
//!  "params": {"code": "246810", "minutes": "5"}}
//! ```
//!
//! Any 2xx means taken; `id` or `message_id` of the answer is kept as receipt.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::Client;
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value as Json, json};
use zeroize::Zeroizing;

use super::{Sent, Sms, SmsSender};
use crate::wire::{self, Cause, Wrong};

/// Bytes of an answer at most.
const ANSWER_MAX: usize = 64 * 1024;
/// Characters of a receipt that are kept.
const RECEIPT_MAX: usize = 64;

/// Whether the service removes repeats with the same idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// It does: a lost answer is simply tried again.
    Removed,
    /// It does not: a lost answer is held for a person.
    Shown,
}

/// How to reach the service.
#[derive(Clone, Debug)]
pub struct HttpSmsSettings {
    /// The whole address. Plain HTTP is for loopback only.
    pub address: String,
    /// The bearer token.
    pub token: SecretString,
    /// The template's name at the service.
    pub template: String,
    /// What it does with repeats.
    pub repeats: Repeats,
    /// For the connection.
    pub connect_within: Duration,
    /// For one send as a whole.
    pub within: Duration,
}

impl HttpSmsSettings {
    /// 2 s to connect, 5 s in all; repeats are shown unless the service is known to remove them.
    #[must_use]
    pub fn new(address: impl Into<String>, token: SecretString, template: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            token,
            template: template.into(),
            repeats: Repeats::Shown,
            connect_within: Duration::from_secs(2),
            within: Duration::from_secs(5),
        }
    }
}

/// One service.
pub struct HttpSms {
    settings: HttpSmsSettings,
    token: HeaderValue,
    client: Client,
}

impl fmt::Debug for HttpSms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSms").field("address", &self.settings.address).finish_non_exhaustive()
    }
}

impl HttpSms {
    /// Checks the settings and builds the client; nothing is sent.
    ///
    /// # Errors
    /// [`Wrong`], naming the setting.
    pub fn new(settings: HttpSmsSettings) -> Result<Self, Wrong> {
        let base = wire::address(&settings.address)?;
        let token = wire::bearer(&settings.token).ok_or_else(|| Wrong::Token("the SMS service".into()))?;
        let client = wire::client(&base, settings.connect_within, None)?;
        Ok(Self { settings, token, client })
    }

    async fn deliver(&self, sms: &Sms) -> Sent {
        let Ok(key) = HeaderValue::from_str(&sms.event_id) else {
            return Sent::Refused { cause: "the event's id fits in no header" };
        };
        let body = json!({
            "to": sms.to.secret().expose_secret(),
            "template": self.settings.template,
            "reference": sms.event_id,
            "params": {
                "code": sms.code.expose_secret(),
                "minutes": sms.holds.as_secs().div_ceil(60).to_string(),
            },
        });
        let body = Bytes::from_owner(Zeroizing::new(body.to_string().into_bytes()));
        let request = self
            .client
            .post(&self.settings.address)
            .timeout(self.settings.within)
            .header("content-type", "application/json")
            .header("authorization", self.token.clone())
            .header("idempotency-key", key)
            .body(body);
        match wire::exchange(request, ANSWER_MAX).await {
            Ok(answer) => self.judged(sms, &answer),
            Err(Cause::Connection) => Sent::Retry { cause: "no connection to the SMS service", after: None },
            Err(_) => self.unclear("no whole answer from the SMS service; the message may have been sent"),
        }
    }

    fn judged(&self, sms: &Sms, answer: &wire::Answer) -> Sent {
        match answer.status {
            200..=299 => Sent::Accepted { receipt: receipt(&answer.body, sms, &self.settings.token) },
            429 => Sent::Retry { cause: "the SMS service wants fewer messages", after: answer.retry_after() },
            503 => Sent::Retry { cause: "the SMS service is out of order", after: answer.retry_after() },
            401 | 403 => Sent::Refused { cause: "the SMS service refuses our token; renew it" },
            // The same key is in work there.
            409 if self.settings.repeats == Repeats::Removed => Sent::Retry {
                cause: "the SMS service is at work on this message",
                after: answer.retry_after(),
            },
            408 | 500..=599 => self.unclear("the SMS service failed; the message may have been sent"),
            300..=399 => {
                Sent::Refused { cause: "the SMS service answers with a redirect; correct its address" }
            }
            _ => Sent::Refused { cause: "the SMS service refuses the message; look at number and template" },
        }
    }

    const fn unclear(&self, cause: &'static str) -> Sent {
        match self.settings.repeats {
            Repeats::Removed => Sent::Retry { cause, after: None },
            Repeats::Shown => Sent::Uncertain { cause },
        }
    }
}

impl SmsSender for HttpSms {
    fn send<'a>(&'a self, sms: &'a Sms) -> BoxFuture<'a, Sent> {
        Box::pin(self.deliver(sms))
    }
}

/// An id in plain letters that repeats no part of code, number or token: a service may send back anything.
fn receipt(body: &[u8], sms: &Sms, token: &SecretString) -> Option<String> {
    let body: Json = serde_json::from_slice(body).ok()?;
    let text = ["id", "message_id"].iter().find_map(|field| body.get(field)?.as_str())?;
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let repeats = [&sms.code, sms.to.secret(), token].iter().any(|secret| wire::repeated(secret, text));
    let fine = !text.is_empty() && text.len() <= RECEIPT_MAX && text.chars().all(letter) && !repeats;
    fine.then(|| text.to_owned())
}
