//! What is certified, under which condition, and what may appear (AuditVisa specification 13.1).
//!
//! Pure: event in, verdict out. The target is judged by its text and never fetched.

mod target;

use serde::{Deserialize, Serialize};
use source::{Event, Kind, Mode};

pub use target::Target;

/// The policy as configured. An unknown setting is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Name of this version of the policy; part of every certificate.
    pub version: String,
    /// What is certified. When given, it replaces the built-in list ([`Rule::defaults`]).
    pub certify: Vec<Rule>,
    /// Modes that are certified: `live`, `test`. A test-mode certificate says TEST on every page.
    pub modes: Vec<CertifiedMode>,
    /// Where the target stands, and which are allowed.
    pub target: Target,
    /// Keys of the sender's own metadata that hold product and price id, where the event has none.
    pub metadata: MetadataKeys,
    /// What must hold of an event's parameters.
    pub checks: Checks,
    /// What happens when one change is reported under a second event id.
    pub second_report: SecondReport,
    /// What of a person may appear in a certificate.
    pub email: Shown,
    /// Who may fetch certificates.
    pub delivery: Access,
    /// Days that raw payloads are kept; 0 keeps none. At most 400.
    pub keep_payload_days: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            version: "1".into(),
            certify: Vec::new(),
            modes: vec![CertifiedMode::Live, CertifiedMode::Test],
            target: Target::default(),
            metadata: MetadataKeys::default(),
            checks: Checks::default(),
            second_report: SecondReport::Reuse,
            email: Shown::Masked,
            delivery: Access::Link,
            keep_payload_days: 0,
        }
    }
}

/// One kind of event that is certified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Only events of this source; any when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Only events of this kind of sender; any when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The sender's types.
    pub types: Vec<String>,
    /// Statuses that fulfil the condition, compared without case; any when empty.
    #[serde(default)]
    pub status: Vec<String>,
}

impl Rule {
    /// What is certified without a `certify` list: money that arrived.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        let rule = |kind, types: &[&str], status: &[&str]| Self {
            source: None,
            kind: Some(kind),
            types: types.iter().map(ToString::to_string).collect(),
            status: status.iter().map(ToString::to_string).collect(),
        };
        vec![
            rule(
                Kind::Stripe,
                &["checkout.session.completed", "checkout.session.async_payment_succeeded"],
                &["paid"],
            ),
            rule(Kind::Paddle, &["transaction.completed"], &["completed"]),
            rule(Kind::LemonSqueezy, &["order_created"], &["paid"]),
            rule(Kind::WechatPay, &["TRANSACTION.SUCCESS"], &["SUCCESS"]),
            rule(Kind::Alipay, &["trade_status_sync"], &["TRADE_SUCCESS", "TRADE_FINISHED"]),
        ]
    }

    fn names(&self, source: &str, kind: Kind, event: &Event) -> bool {
        self.source.as_ref().is_none_or(|wanted| wanted == source)
            && self.kind.is_none_or(|wanted| wanted == kind)
            && self.types.contains(&event.kind)
    }
}

/// A mode that may be certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CertifiedMode {
    /// Real money.
    Live,
    /// The sender's test mode.
    Test,
}

impl CertifiedMode {
    /// `live` or `test`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }

    /// The event's own word; where the sender doesn't say, what the source's setting says.
    #[must_use]
    pub const fn of(event: Mode, unstated: Self) -> Self {
        match event {
            Mode::Live => Self::Live,
            Mode::Test => Self::Test,
            Mode::Unstated => unstated,
        }
    }
}

/// Keys in the sender's metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetadataKeys {
    /// Product id.
    pub product: String,
    /// Price id.
    pub price: String,
}

impl Default for MetadataKeys {
    fn default() -> Self {
        Self { product: "product_id".into(), price: "price_id".into() }
    }
}

/// What must hold of an event's parameters. What breaks one fails for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Checks {
    /// Currencies allowed, in either case; any when empty.
    pub currencies: Vec<String>,
    /// Smallest amount, in the currency's smallest unit.
    pub amount_min: Option<i64>,
    /// Largest amount, in the currency's smallest unit.
    pub amount_max: Option<i64>,
    /// Metadata keys that must be there and not be blank.
    pub metadata: Vec<String>,
}

/// One change reported under two event ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecondReport {
    /// The second id points at the first certificate.
    Reuse,
    /// The second id gets a certificate of its own.
    Certify,
}

/// How a mail address appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shown {
    /// Not at all.
    Omit,
    /// First letter and domain.
    Masked,
    /// In full.
    Full,
}

/// Who may fetch certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Whoever has the link.
    Link,
    /// Whoever has an operator's token.
    Token,
}

/// What the policy says of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Certify, with these terms.
    Certify(Terms),
    /// Keep the event and its reason, without a certificate.
    Record {
        /// Why not.
        reason: String,
    },
    /// Failed for good: the content breaks a rule.
    Refuse {
        /// Which rule and which value.
        reason: String,
    },
}

/// What the policy read out of an event for its certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The target's address, as judged.
    pub target: Option<String>,
    /// Product id.
    pub product: Option<String>,
    /// Price id.
    pub price: Option<String>,
}

impl Policy {
    /// Judges an event of a source.
    #[must_use]
    pub fn judge(&self, source: &str, kind: Kind, event: &Event, mode: CertifiedMode) -> Verdict {
        let defaults;
        let rules = if self.certify.is_empty() {
            defaults = Rule::defaults();
            &defaults
        } else {
            &self.certify
        };
        let Some(rule) = rules.iter().find(|rule| rule.names(source, kind, event)) else {
            return Verdict::Record { reason: format!("type {:?} is not certified", event.kind) };
        };
        if !self.modes.contains(&mode) {
            return Verdict::Record { reason: format!("mode {:?} is not certified", mode.as_str()) };
        }
        let status = event.subject.status.as_deref().unwrap_or("none");
        if !rule.status.is_empty() && !rule.status.iter().any(|wanted| wanted.eq_ignore_ascii_case(status)) {
            let wanted = rule.status.join(" or ");
            return Verdict::Record { reason: format!("status is {status:?}; certified is {wanted}") };
        }
        match self.checks.broken(event) {
            Some(reason) => Verdict::Refuse { reason },
            None => self.terms(event),
        }
    }

    fn terms(&self, event: &Event) -> Verdict {
        let subject = &event.subject;
        let named = |key: &str| subject.metadata.get(key).filter(|text| !text.trim().is_empty()).cloned();
        match self.target.judge(named(&self.target.metadata_key).as_deref()) {
            Err(reason) => Verdict::Refuse { reason },
            Ok(target) => Verdict::Certify(Terms {
                target,
                product: subject.product_id.clone().or_else(|| named(&self.metadata.product)),
                price: subject.price_id.clone().or_else(|| named(&self.metadata.price)),
            }),
        }
    }
}

impl Checks {
    fn broken(&self, event: &Event) -> Option<String> {
        let subject = &event.subject;
        let currency = subject.currency.as_deref().unwrap_or("none");
        if !self.currencies.is_empty() && !self.currencies.iter().any(|c| c.eq_ignore_ascii_case(currency)) {
            return Some(format!("currency {currency:?} is not allowed"));
        }
        if self.amount_min.is_some() || self.amount_max.is_some() {
            let Some(amount) = subject.amount_minor else {
                return Some("the event has no amount, and the policy limits amounts".into());
            };
            if self.amount_min.is_some_and(|min| amount < min)
                || self.amount_max.is_some_and(|max| amount > max)
            {
                return Some(format!("amount {amount} is outside of the policy's limits"));
            }
        }
        let blank = |key: &&String| subject.metadata.get(*key).is_none_or(|text| text.trim().is_empty());
        self.metadata.iter().find(blank).map(|key| format!("metadata {key:?} is missing"))
    }
}

/// A mail address as the policy shows it.
#[must_use]
pub fn shown_email(email: &str, shown: Shown) -> Option<String> {
    match shown {
        Shown::Omit => None,
        Shown::Full => Some(email.to_owned()),
        Shown::Masked => Some(masked(email)),
    }
}

/// First letter and domain of a mail address: `b***@example.com`; a text without `@` shows nothing of
/// itself.
#[must_use]
pub fn masked(email: &str) -> String {
    match email.rsplit_once('@') {
        Some((local, domain)) if !local.is_empty() && !domain.is_empty() => {
            let first: String = local.chars().take(1).collect();
            format!("{first}***@{domain}")
        }
        _ => "***".into(),
    }
}
