//! The metrics of section 19 that the supply side feeds, with their targets, and what they are over a period. A
//! metric of parts without a whole has no sample: neither 100 nor passed. Errors without a whole are errors: failed.

use custody::VerifyStatus;
use kernel::Time;
use serde::Serialize;
use store::{Error, Store, values};

use super::audited::{Period, Which, kept, says};
use super::button::Millionths;
use super::money;
use super::tally::Counts;
use crate::code::Invariant;
use crate::exact::{Exact, Stamp};
use crate::platform::DIRECT;

/// What a metric must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// No event.
    Never,
    /// All of the whole.
    All,
    /// At most this part of the whole.
    AtMost(Millionths),
    /// At least this part of the whole.
    AtLeast(Millionths),
    /// At least so many.
    Count(u64),
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// `M-013`.
    pub id: &'static str,
    /// `m013`, as it stands in paths and names.
    pub slug: &'static str,
    /// Its name in section 19.
    pub name: &'static str,
    /// What it must be.
    pub target: Target,
    /// The same for people.
    pub wanted: &'static str,
}

const fn metric([id, slug, name, wanted]: [&'static str; 4], target: Target) -> Metric {
    Metric { id, slug, name, target, wanted }
}

/// Those of section 19 that the supply side feeds.
pub const METRICS: [Metric; 8] = [
    metric(["M-004", "m004", "billing_error_rate_pct", "<= 0.1"], Target::AtMost(1_000)),
    metric(["M-005", "m005", "billing_conflict_rate_pct", "<= 0.01"], Target::AtMost(100)),
    metric(["M-011", "m011", "provider_validation_success_pct", ">= 90"], Target::AtLeast(900_000)),
    metric(["M-012", "m012", "supplier_onboarded_count", ">= 10"], Target::Count(10)),
    metric(["M-013", "m013", "supplier_credential_exposure_events", "= 0"], Target::Never),
    metric(["M-014", "m014", "platform_credential_ingress_coverage_pct", "= 100"], Target::All),
    metric(["M-015", "m015", "direct_supplier_call_by_consumer_events", "= 0"], Target::Never),
    metric(["M-016", "m016", "query_key_external_reject_rate_pct", "= 100"], Target::All),
];

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is.
    Pass,
    /// It is not.
    Fail,
    /// Nothing was there to be measured.
    NoSample,
}

impl Status {
    /// As it is sent.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NoSample => "no_sample",
        }
    }
}

/// What a metric is over a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// `M-013`.
    pub metric: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Events, or percent, cut after four decimals; nothing where there is no whole.
    pub value: Option<Exact>,
    /// What it must be.
    pub target: &'static str,
    /// Whether it is.
    pub status: Status,
    /// What is counted.
    pub numerator: u64,
    /// Of how many; nothing where events alone are counted.
    pub denominator: Option<u64>,
    /// Of M-013: what was about to leave and did not.
    pub blocked: Option<u64>,
    /// Over which time.
    pub period: Span,
    /// The latest requests that it is about, ten at most.
    pub samples: Vec<String>,
}

/// A period as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// First instant.
    pub start: Stamp,
    /// First instant after it.
    pub end: Stamp,
}

impl From<Period> for Span {
    fn from(period: Period) -> Self {
        Self { start: Stamp(period.from), end: Stamp(period.to) }
    }
}

/// What was counted.
struct Counted {
    numerator: u64,
    denominator: Option<u64>,
    blocked: Option<u64>,
    samples: Vec<String>,
}

/// Those that ask a provider about a credential.
const VERIFYING: [&str; 3] = ["supply.account.verify", "supply.account.create", "supply.credential.rotate"];
/// What the hourly look through the ledger is audited as.
const RECONCILE: &str = "supply.ledger.reconcile";

impl Metric {
    /// The one with this `slug`.
    #[must_use]
    pub fn of(slug: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.slug == slug)
    }

    /// What it is over a period, by full counts.
    ///
    /// # Errors
    /// The store's.
    pub async fn read(&self, store: &Store, period: Period) -> Result<Reading, Error> {
        let counts = match self.slug {
            "m014" | "m016" => kept(store, period).await?,
            _ => Counts::default(),
        };
        self.beside(store, period, &counts).await
    }

    /// The same, where what servers kept of the period is known.
    pub(super) async fn beside(
        &self,
        store: &Store,
        period: Period,
        counts: &Counts,
    ) -> Result<Reading, Error> {
        let counted = match self.slug {
            "m004" => billing_errors(store, period).await?,
            "m005" => billing_conflicts(store, period).await?,
            "m011" => validations(store, period).await?,
            "m012" => onboarded(store, period).await?,
            "m013" => exposures(store, period).await?,
            "m014" => ingress(counts),
            "m016" => query_keys(store, period, counts).await?,
            // Those of an egress audit (section 19); without one there are none.
            _ => events(store, period, Which::named(DIRECT)).await?,
        };
        Ok(self.reading(counted, period))
    }

    fn reading(&self, counted: Counted, period: Period) -> Reading {
        let Counted { numerator, denominator, blocked, samples } = counted;
        let value = match denominator {
            None => Some(numerator.into()),
            Some(0) => None,
            Some(whole) => Some(Exact::percent_cut(numerator, whole)),
        };
        Reading {
            metric: self.id,
            name: self.name,
            value,
            target: self.wanted,
            status: self.judge(numerator, denominator),
            numerator,
            denominator,
            blocked,
            period: period.into(),
            samples,
        }
    }

    fn judge(&self, numerator: u64, denominator: Option<u64>) -> Status {
        let (part, whole) = (u128::from(numerator), u128::from(denominator.unwrap_or(1)));
        let met = match self.target {
            // Errors without a request are errors all the same.
            Target::AtMost(_) if denominator == Some(0) && part > 0 => false,
            _ if denominator == Some(0) => return Status::NoSample,
            Target::Never => part == 0,
            Target::All => part == whole,
            Target::AtMost(most) => part * 1_000_000 <= whole * u128::from(most),
            Target::AtLeast(least) => part * 1_000_000 >= whole * u128::from(least),
            Target::Count(least) => numerator >= least,
        };
        if met { Status::Pass } else { Status::Fail }
    }
}

async fn events(store: &Store, period: Period, which: Which) -> Result<Counted, Error> {
    let (numerator, samples) = (which.count(store, period).await?, which.samples(store, period).await?);
    Ok(Counted { numerator, denominator: None, blocked: None, samples })
}

async fn asked(store: &Store, period: Period) -> Result<u64, Error> {
    Which::new(money::asked(), Vec::new()).count(store, period).await
}

/// M-004. What the hourly look finds again each hour is one error.
async fn billing_errors(store: &Store, period: Period) -> Result<Counted, Error> {
    let broken = "event_name = 'invariant_violation' and rule_code = $3";
    let rule = values![Invariant::Set003.as_str()];
    let refused = Which::new(format!("{broken} and action <> '{RECONCILE}'"), rule.clone());
    let found = Which::new(format!("{broken} and action = '{RECONCILE}'"), rule.clone());
    let objects = found.number(store, period, "count(distinct object_type || ':' || object_id)").await?;
    Ok(Counted {
        numerator: refused.count(store, period).await? + objects,
        denominator: Some(asked(store, period).await?),
        blocked: None,
        samples: Which::new(broken, rule).samples(store, period).await?,
    })
}

/// M-005.
async fn billing_conflicts(store: &Store, period: Period) -> Result<Counted, Error> {
    let counted = events(store, period, Which::new(money::conflicts(), Vec::new())).await?;
    Ok(Counted { denominator: Some(asked(store, period).await?), ..counted })
}

/// M-011: of the checks that came to an end, those that did not reject, whatever else refused the command. A provider
/// that was not reached ended none.
async fn validations(store: &Store, period: Period) -> Result<Counted, Error> {
    let listed = money::listed(&VERIFYING);
    let told = |status: VerifyStatus| {
        let status = says("verify_status", &format!(r#""{}""#, status.as_str()));
        Which::new(format!("event_name in ({listed}) and {status}"), Vec::new())
    };
    let rejected = told(VerifyStatus::Reject);
    let accepted = told(VerifyStatus::Pass).count(store, period).await?
        + told(VerifyStatus::ReviewRequired).count(store, period).await?;
    Ok(Counted {
        numerator: accepted,
        denominator: Some(accepted + rejected.count(store, period).await?),
        blocked: None,
        samples: rejected.samples(store, period).await?,
    })
}

/// M-012: suppliers with an account that was active at some time, however long ago.
async fn onboarded(store: &Store, period: Period) -> Result<Counted, Error> {
    let ever = Period { from: Time::from_micros(0), ..period };
    let which = Which::new("event_name = 'supply.account.activate' and result_code = 'OK'", Vec::new());
    let numerator = which.number(store, ever, "count(distinct tenant_id)").await?;
    Ok(Counted { numerator, denominator: None, blocked: None, samples: which.samples(store, ever).await? })
}

/// M-013: what left; what was withheld is counted apart (X-29).
async fn exposures(store: &Store, period: Period) -> Result<Counted, Error> {
    let (exposed, blocked) = ("event_name like 'CRED-EXPOSE-%'", says("blocked", "true"));
    let left = Which::new(format!("{exposed} and not {blocked}"), Vec::new());
    let withheld = Which::new(format!("{exposed} and {blocked}"), Vec::new());
    let counted = events(store, period, left).await?;
    let (blocked, mut samples) = (withheld.count(store, period).await?, counted.samples);
    samples.extend(withheld.samples(store, period).await?);
    samples.truncate(super::tally::SAMPLES);
    Ok(Counted { blocked: Some(blocked), samples, ..counted })
}

/// M-014: of the requests that reached a handler, those whose caller a platform credential told (X-30).
fn ingress(counts: &Counts) -> Counted {
    let (numerator, denominator) = (counts.platform, Some(counts.reached));
    Counted { numerator, denominator, blocked: None, samples: counts.samples.clone() }
}

/// M-016: of the requests in whose URL the access layer saw a credential, those whose refusal is on record. Refusals
/// are on record at once, what was seen only when a server keeps it: so refusals are counted from where the first
/// kept row begins. What a server that was killed saw and had not kept is missing from the whole, not from the part.
async fn query_keys(store: &Store, period: Period, counts: &Counts) -> Result<Counted, Error> {
    let from = counts.from.map_or(period.from, |from| from.min(period.from));
    let which = Which::named("token.query_key.rejected");
    let rejected = which.count(store, Period { from, ..period }).await?;
    Ok(Counted {
        numerator: rejected.min(counts.detected),
        denominator: Some(counts.detected),
        blocked: None,
        samples: which.samples(store, period).await?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(slug: &str, numerator: u64, denominator: Option<u64>) -> (Option<String>, Status) {
        let period = Period { from: Time::from_seconds(0), to: Time::from_seconds(60) };
        let counted = Counted { numerator, denominator, blocked: None, samples: Vec::new() };
        let reading = Metric::of(slug).unwrap().reading(counted, period);
        (reading.value.map(|value| value.text().to_owned()), reading.status)
    }

    #[test]
    fn a_part_of_nothing_has_no_sample_and_no_value() {
        for slug in ["m004", "m005", "m011", "m014", "m016"] {
            assert_eq!(reading(slug, 0, Some(0)), (None, Status::NoSample), "{slug}");
        }
    }

    #[test]
    fn errors_without_a_request_fail_and_have_no_value() {
        for slug in ["m004", "m005"] {
            assert_eq!(reading(slug, 1, Some(0)), (None, Status::Fail), "{slug}");
        }
    }

    #[test]
    fn targets_are_met_up_to_their_limits_and_no_further() {
        let value = |text: &str| Some(text.to_owned());
        for (slug, part, whole, expected) in [
            ("m004", 1, Some(1000), (value("0.1"), Status::Pass)),
            ("m004", 1, Some(999), (value("0.1001"), Status::Fail)),
            ("m005", 1, Some(10_000), (value("0.01"), Status::Pass)),
            ("m005", 1, Some(9_999), (value("0.01"), Status::Fail)),
            ("m011", 9, Some(10), (value("90"), Status::Pass)),
            ("m011", 89, Some(99), (value("89.8989"), Status::Fail)),
            ("m012", 10, None, (value("10"), Status::Pass)),
            ("m012", 9, None, (value("9"), Status::Fail)),
            ("m013", 0, None, (value("0"), Status::Pass)),
            ("m013", 1, None, (value("1"), Status::Fail)),
            ("m014", 3, Some(3), (value("100"), Status::Pass)),
            ("m016", 9_999_999, Some(10_000_000), (value("99.9999"), Status::Fail)),
        ] {
            assert_eq!(reading(slug, part, whole), expected, "{slug} {part} of {whole:?}");
        }
    }
}
