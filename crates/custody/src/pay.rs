//! A payout service behind HTTP: what it is told, what it is asked, and what its answers mean. A service with a shape
//! of its own is put behind a small gateway. `reference` is the settlement's number on every try, and the
//! `Idempotency-Key`.
//!
//! ```json
//! {"reference": "STL20260327…", "amount": "49.5", "amount_minor": "4950", "currency": "CNY",
//!  "method": "alipay", "account": "13800000000"}
//! ```
//!
//! `POST` to its address pays, `GET` of the address with `/<reference>` behind it asks. Both answer with one of
//!
//! ```json
//! {"status": "paid", "transaction_id": "2026…"}
//! {"status": "failed", "code": "ACCOUNT_CLOSED"}
//! {"status": "pending"}
//! ```
//!
//! and a question about a reference that it does not know with 404. Only `failed` is a refusal: whatever else comes
//! may have been paid. Not here: when it is told or asked again (crate `supply`).

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::header::HeaderValue;
use reqwest::{Client, RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value as Json, json};
use zeroize::Zeroizing;

use crate::payout::Method;
use crate::wire::{self, Cause, Wrong};

/// Bytes of an answer at most.
const ANSWER_MAX: usize = 64 * 1024;
/// Characters of a transaction's id, and of a code of failure.
const TRANSACTION_MAX: usize = 100;
const CODE_MAX: usize = 64;

/// A payout on its way. `Debug` does not show the account.
#[derive(Clone, Debug)]
pub struct Order {
    /// The settlement's number, on every try.
    pub reference: String,
    /// In major units: `49.5`.
    pub amount: String,
    /// In minor units: `4950`.
    pub amount_minor: String,
    /// ISO 4217.
    pub currency: &'static str,
    /// By which.
    pub method: Method,
    /// Where to.
    pub account: SecretString,
}

/// What the service says of a payout. No text holds the account or words of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is paid.
    Paid {
        /// The service's own number: letters, digits, `-`, `_`, `.`, `:`.
        transaction_id: String,
    },
    /// It is not paid and never will be.
    Failed {
        /// Why, in the service's word.
        code: String,
    },
    /// It is at work on it.
    Pending,
    /// It knows no such reference.
    Absent,
    /// It surely did not take it just now.
    NotTaken {
        /// A fixed word.
        cause: &'static str,
        /// Not before.
        after: Option<Duration>,
    },
    /// It may have been paid.
    Unknown {
        /// A fixed word.
        cause: &'static str,
    },
}

/// Whoever pays out. Called from the outbox, never inside a transaction.
pub trait PayoutService: Send + Sync + fmt::Debug {
    /// Tells it to pay, once. The same reference again is the same payout, as long as the service remembers it.
    fn pay<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Said>;

    /// Asks what became of a reference.
    fn ask<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Said>;
}

/// How to reach the service.
#[derive(Clone, Debug)]
pub struct HttpPayoutSettings {
    /// The whole address. Plain HTTP is for loopback only.
    pub address: String,
    /// The bearer token.
    pub token: SecretString,
    /// For the connection.
    pub connect_within: Duration,
    /// For one call as a whole.
    pub within: Duration,
}

impl HttpPayoutSettings {
    /// 2 s to connect, 15 s in all.
    #[must_use]
    pub fn new(address: impl Into<String>, token: SecretString) -> Self {
        let (connect_within, within) = (Duration::from_secs(2), Duration::from_secs(15));
        Self { address: address.into(), token, connect_within, within }
    }
}

/// One service.
pub struct HttpPayout {
    base: Url,
    token: SecretString,
    bearer: HeaderValue,
    within: Duration,
    client: Client,
}

impl fmt::Debug for HttpPayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpPayout").field("address", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl HttpPayout {
    /// Checks the settings and builds the client; nothing is sent.
    ///
    /// # Errors
    /// [`Wrong`], naming the setting.
    pub fn new(settings: HttpPayoutSettings) -> Result<Self, Wrong> {
        let HttpPayoutSettings { address, token, connect_within, within } = settings;
        let base = wire::address(&address)?;
        let bearer = wire::bearer(&token).ok_or_else(|| Wrong::Token("the payout service".into()))?;
        let client = wire::client(&base, connect_within, None)?;
        Ok(Self { base, token, bearer, within, client })
    }

    async fn told(&self, order: &Order) -> Said {
        let Ok(key) = HeaderValue::from_str(&order.reference) else {
            return Said::NotTaken { cause: "reference", after: None };
        };
        let body = json!({
            "reference": order.reference,
            "amount": order.amount,
            "amount_minor": order.amount_minor,
            "currency": order.currency,
            "method": order.method.as_str(),
            "account": order.account.expose_secret(),
        });
        let body = Bytes::from_owner(Zeroizing::new(body.to_string().into_bytes()));
        let request = self.client.post(self.base.as_str()).header("idempotency-key", key);
        let request = request.header("content-type", "application/json").body(body);
        match self.exchanged(request).await {
            Ok(answer) => self.judged(&answer, Some(&order.account)),
            Err(Cause::Connection) => Said::NotTaken { cause: Cause::Connection.as_str(), after: None },
            Err(cause) => Said::Unknown { cause: cause.as_str() },
        }
    }

    async fn asked(&self, reference: &str) -> Said {
        let request = self.client.get(wire::under(&self.base, &format!("/{reference}")));
        match self.exchanged(request).await {
            Ok(answer) if answer.status == 404 => Said::Absent,
            Ok(answer) => self.judged(&answer, None),
            Err(cause) => Said::Unknown { cause: cause.as_str() },
        }
    }

    async fn exchanged(&self, request: RequestBuilder) -> Result<wire::Answer, Cause> {
        let request = request.timeout(self.within).header("authorization", self.bearer.clone());
        wire::exchange(request, ANSWER_MAX).await
    }

    /// What an answer means; it must repeat neither account nor token.
    fn judged(&self, answer: &wire::Answer, account: Option<&SecretString>) -> Said {
        let body: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let text = |field: &str, most: usize| {
            let text = plain(body.get(field)?.as_str()?, most)?;
            // A part of an account is a number like any other.
            let repeats = account.is_some_and(|account| text.contains(account.expose_secret()))
                || wire::repeated(&self.token, text);
            (!repeats).then(|| text.to_owned())
        };
        let status = body.get("status").and_then(Json::as_str);
        match (answer.status, status) {
            (200..=299, Some("paid")) => match text("transaction_id", TRANSACTION_MAX) {
                Some(transaction_id) => Said::Paid { transaction_id },
                None => Said::Unknown { cause: "transaction_id" },
            },
            (200..=299 | 400 | 422, Some("failed")) => {
                Said::Failed { code: text("code", CODE_MAX).unwrap_or_else(|| "failed".into()) }
            }
            // The same reference is in work there.
            (200..=299, Some("pending")) | (409, _) => Said::Pending,
            (429, _) => Said::NotTaken { cause: Cause::RateLimited.as_str(), after: answer.retry_after() },
            (401 | 403, _) => Said::NotTaken { cause: "token_refused", after: None },
            (408 | 500..=599, _) => Said::Unknown { cause: Cause::OutOfOrder.as_str() },
            _ => Said::Unknown { cause: Cause::Unexpected.as_str() },
        }
    }
}

impl PayoutService for HttpPayout {
    fn pay<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Said> {
        Box::pin(self.told(order))
    }

    fn ask<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Said> {
        Box::pin(self.asked(reference))
    }
}

/// A word of the other side in plain letters.
fn plain(text: &str, most: usize) -> Option<&str> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (!text.is_empty() && text.len() <= most && text.chars().all(letter)).then_some(text)
}
