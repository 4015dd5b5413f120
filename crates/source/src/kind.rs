//! The kinds of sender, their names in the configuration and the answer each expects.
//! Not here: how they sign (`senders`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which sender's rules an endpoint follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Stripe: `Stripe-Signature`, HMAC-SHA256 in hex over `t.body`.
    Stripe,
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`; HMAC or Ed25519.
    StandardWebhooks,
    /// GitHub: `X-Hub-Signature-256` over the raw body, id in `X-GitHub-Delivery`.
    Github,
    /// Paddle Billing: `Paddle-Signature`, HMAC-SHA256 in hex over `ts:body`.
    Paddle,
    /// Lemon Squeezy: `X-Signature` over the raw body, no id (a composed one, see `senders::lemon`).
    LemonSqueezy,
    /// WeChat Pay API v3: RSA over timestamp, nonce and body; encrypted resource.
    WechatPay,
    /// Alipay asynchronous notification: RSA2 over the sorted form fields.
    Alipay,
    /// Any other sender with an HMAC-SHA256 over the body, described by settings.
    GenericHmac,
    /// Our own tasks, with a bearer token (spec 2.2).
    Internal,
}

/// How a sender wants to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStyle {
    /// The status counts; the body is our JSON.
    Json,
    /// Status 200, `text/plain`, body exactly `success`; any other body means failure.
    AlipaySuccess,
    /// Success is 200 with an empty body; failure is 4xx or 5xx with `{"code":"FAIL","message":…}`.
    WechatPay,
}

impl Kind {
    /// All kinds, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Stripe,
        Self::StandardWebhooks,
        Self::Github,
        Self::Paddle,
        Self::LemonSqueezy,
        Self::WechatPay,
        Self::Alipay,
        Self::GenericHmac,
        Self::Internal,
    ];

    /// The name in the configuration, kebab-case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::StandardWebhooks => "standard-webhooks",
            Self::Github => "github",
            Self::Paddle => "paddle",
            Self::LemonSqueezy => "lemon-squeezy",
            Self::WechatPay => "wechat-pay",
            Self::Alipay => "alipay",
            Self::GenericHmac => "generic-hmac",
            Self::Internal => "internal",
        }
    }

    /// Accepted distance between the signed time and now, in seconds, both sides, limit included;
    /// used where the settings give none.
    ///
    /// Paddle's libraries use 5 s on one side only; behind a proxy and with two clocks that refuses
    /// real deliveries, and the id removes repeats anyway, so the default here is a minute.
    #[must_use]
    pub const fn default_tolerance_s(self) -> i64 {
        match self {
            Self::Paddle => 60,
            _ => 300,
        }
    }

    /// How this sender wants to be answered.
    #[must_use]
    pub const fn reply_style(self) -> ReplyStyle {
        match self {
            Self::Alipay => ReplyStyle::AlipaySuccess,
            Self::WechatPay => ReplyStyle::WechatPay,
            _ => ReplyStyle::Json,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown kind of source {0:?}; use one of stripe, standard-webhooks, github, paddle, lemon-squeezy, \
     wechat-pay, alipay, generic-hmac, internal"
)]
pub struct UnknownKind(pub String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownKind(text.chars().take(64).collect()))
    }
}
