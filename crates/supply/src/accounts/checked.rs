//! What a verification of an upstream credential said (section 8.1, operations 1, 2, 9), in the form that a leased
//! command keeps between its attempts: words and counts, nothing of the credential.

use custody::{AccountType, CheckItem, Credential, Mark, Provider, Rejection, Verification};
use door::{Failure, Steps};
use kernel::money::{Quota, QuotaUnit};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use store::Error;

use super::create::fingerprints;
use crate::action::{Context, Refusal};
use crate::code::Code;

/// Name of the foreign step.
const STEP: &str = "verify";

/// Whose credential, of which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The provider.
    pub provider: Provider,
    /// Its type.
    pub account_type: AccountType,
}

/// What the provider and the policy said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// `pass`, `review_required`, `reject`.
    pub status: String,
    /// Item, result, fixed sentence; five, in the order of the specification.
    pub items: Vec<(String, String, String)>,
    /// Count of 10^-6 units; 0 where the provider told none.
    pub quota: i64,
    /// What it counts.
    pub unit: String,
    /// 0 to 100.
    pub risk_score: i64,
    /// Whether the terms were checked and allow it.
    pub tos: bool,
    /// Which code it is rejected with.
    rejected: Option<String>,
}

impl From<Verification> for Checked {
    fn from(verification: Verification) -> Self {
        let rejected = verification.rejection().map(|rejection| match rejection {
            Rejection::Format => Code::AccFormat,
            Rejection::Provider => Code::AccRefused,
            Rejection::Tos | Rejection::Risk => Code::AccTos,
        });
        let item = |item: &custody::Item| {
            (item.item.as_str().to_owned(), item.result.as_str().to_owned(), item.message.to_owned())
        };
        let quota = verification.available_quota;
        Self {
            status: verification.verify_status.as_str().to_owned(),
            items: verification.items.iter().map(item).collect(),
            quota: quota.map_or(0, Quota::count),
            unit: quota.map_or(QuotaUnit::Token, Quota::unit).as_str().to_owned(),
            risk_score: verification.risk_score.into(),
            tos: verification.tos_compliant(),
            rejected: rejected.map(|code| code.as_str().to_owned()),
        }
    }
}

impl Checked {
    /// Why nothing is mounted with it.
    ///
    /// # Errors
    /// The refusal of the first item that failed.
    pub fn accepted(&self) -> Result<(), Refusal> {
        match self.rejected.as_deref() {
            None => Ok(()),
            Some(word) if word == Code::AccFormat.as_str() => {
                Err(Refusal::of(Code::AccFormat).with("field", "credential_input"))
            }
            Some(word) if word == Code::AccTos.as_str() => Err(Refusal::of(Code::AccTos)),
            Some(_) => Err(Refusal::of(Code::AccRefused).with("field", "credential_input")),
        }
    }

    /// Whether all items passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.status == "pass"
    }

    /// Whether the provider itself took the credential for one of its own.
    fn confirmed(&self) -> bool {
        let asked = CheckItem::ProviderConnectivity.as_str();
        self.items.iter().any(|(item, result, _)| item == asked && result == Mark::Pass.as_str())
    }

    /// Result of the terms, for `tos_check_result`.
    #[must_use]
    pub fn tos_result(&self) -> &str {
        self.items.iter().find(|(item, _, _)| item == "tos").map_or("", |(_, result, _)| result)
    }

    /// `low`, `normal`, `high` of the score: what needs a review is high (section 5.2).
    #[must_use]
    pub const fn risk_level(&self) -> &'static str {
        match self.risk_score {
            ..=19 => "low",
            20..=59 => "normal",
            _ => "high",
        }
    }

    /// The quota that is taken to be there.
    ///
    /// # Errors
    /// A kept step that is damaged.
    pub fn quota(&self) -> Result<Quota, Error> {
        let damaged = || Error::Corrupt { table: "supply_steps", column: "quota".into() };
        let unit = QuotaUnit::parse(&self.unit).map_err(|_| damaged())?;
        Quota::from_count(self.quota, unit).map_err(|_| damaged())
    }

    /// Asks the provider, once over all attempts of a leased command. `None`: it is out of reach, nothing is known.
    ///
    /// # Errors
    /// The door's: the lease is lost, the store does not answer.
    pub async fn ask(
        context: &Context,
        steps: &Steps,
        kind: Kind,
        secret: &SecretString,
    ) -> Result<Option<Self>, Failure> {
        let Kind { provider, account_type } = kind;
        let asked = steps.once(STEP, async {
            let credential = Credential { provider, account_type, secret };
            let out_of_reach = |_| Failure::Step { step: STEP, cause: "the provider is out of reach".into() };
            let verification = context.house.keys.verifier.verify(&credential).await.map_err(out_of_reach)?;
            let unwritten = |_| Failure::Step { step: STEP, cause: "the result has no JSON form".into() };
            serde_json::to_vec(&Self::from(verification)).map_err(unwritten)
        });
        match asked.await {
            Ok(kept) => {
                let damaged = |_| Error::Corrupt { table: "supply_steps", column: "result".into() };
                let checked: Self = serde_json::from_slice(&kept).map_err(damaged)?;
                if checked.confirmed() {
                    context.house.glimpse(secret);
                }
                Ok(Some(checked))
            }
            Err(Failure::Step { .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// What the audit says of a credential and its check, however the command ends: by the fingerprint tries of one
/// credential belong together, by the status M-011 counts them.
pub(super) fn noted(context: &Context, kind: Kind, secret: &SecretString, checked: Option<&Checked>) -> Json {
    let [fingerprint, _] = fingerprints(context, kind, secret);
    match checked {
        Some(Checked { status, risk_score, .. }) => {
            json!({ "fingerprint": fingerprint, "verify_status": status, "risk_score": risk_score })
        }
        None => json!({ "fingerprint": fingerprint }),
    }
}

/// The provider could not be asked in time: nothing is known, the key is not burnt.
pub(super) fn unreachable() -> Refusal {
    Refusal::of(Code::AccUnreachable).with("retryable", true)
}
