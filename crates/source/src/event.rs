//! The projected event: what the rest of the product knows of a delivery.
//! Not here: how each sender's body becomes one (`senders`).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A verified delivery, projected to the fields that are needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The sender's id, the primary key within the account (spec 4.1). 1 to 255 characters, opaque: it may
    /// contain `/`, `..` or `%`, so it is never a file name.
    pub id: String,
    /// The sender's type, for instance `checkout.session.completed`; `unstated` where there is none.
    #[serde(rename = "type")]
    pub kind: String,
    /// Live or test.
    pub mode: Mode,
    /// The event's own signed time, Unix seconds. The same in all repeats.
    pub occurred_at: Option<i64>,
    /// Connected sub-account at the sender, for instance `acct_…`.
    pub account: Option<String>,
    /// What it is about.
    pub subject: Subject,
    /// Auxiliary key: object and transition, plus what tells the occurrences of a repeatable type apart. Two
    /// events of one account with the same text report the same change. `None` where the sender reports a
    /// change once, or where occurrences can't be told apart.
    pub change: Option<String>,
    /// The fields that every rendering of this event has in common: the fingerprint's input. Amounts are
    /// integers, absent and null are both left out.
    pub stable: Map<String, Value>,
}

/// Live or test money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Real money, the sender says.
    Live,
    /// A test, the sender says.
    Test,
    /// The sender doesn't say.
    Unstated,
}

impl Mode {
    /// `live`, `test` or `unstated`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
            Self::Unstated => "unstated",
        }
    }
}

/// What an event is about. `Debug` leaves out mail address and metadata, which may be personal.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The sender's kind of object, for instance `checkout.session`.
    pub object_kind: Option<String>,
    /// The object's id.
    pub object_id: Option<String>,
    /// Checkout session (spec 2.4).
    pub session_id: Option<String>,
    /// Payment: payment intent, transaction id, trade number.
    pub payment_id: Option<String>,
    /// Payment status where the sender has one, else the object's status; the sender's word.
    pub status: Option<String>,
    /// Currency code in lower case (ISO 4217 where it is one).
    pub currency: Option<String>,
    /// Buyer's mail address as sent.
    pub email: Option<String>,
    /// Product.
    pub product_id: Option<String>,
    /// Price.
    pub price_id: Option<String>,
    /// The merchant's own reference: order number, subscription.
    pub reference: Option<String>,
    /// Amount in the currency's smallest unit.
    pub amount_minor: Option<i64>,
    /// The merchant's own text fields.
    pub metadata: BTreeMap<String, String>,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("object_kind", &self.object_kind)
            .field("object_id", &self.object_id)
            .field("status", &self.status)
            .field("amount_minor", &self.amount_minor)
            .field("currency", &self.currency)
            .finish_non_exhaustive()
    }
}

/// Joins parts so that no two lists give the same text: `|` between, `\` before `|` and `\` inside.
pub(crate) fn change_key(parts: &[&str]) -> String {
    let mut key = String::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            key.push('|');
        }
        for c in part.chars() {
            if matches!(c, '|' | '\\') {
                key.push('\\');
            }
            key.push(c);
        }
    }
    key
}
