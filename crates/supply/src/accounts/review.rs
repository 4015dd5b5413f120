//! What a person decides of an account that was mounted, or rotated, for a review (sections 5.2, 6.1, 8.1): accepted,
//! its owner may activate it; rejected, it is disabled, and so is its credential.

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::Quota;
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

use super::disable::REASON;
use super::state::{self, Move};
use super::threshold::fallen;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::platform::fields;
use crate::rows::{Account, AccountStatus};

const ACCEPTED: &str = "update supply_accounts
set is_verified = true, verified_at = $1, tos_compliant = true, risk_reason = $2, total_quota = $3, available_quota = $4
where id = $5 and tenant_id = $6";

/// `POST /api/v1/platform/supply/accounts/{id}/review`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Which account.
    pub account_id: i64,
    /// How it ended.
    pub verdict: Verdict,
    /// Why; shown to administrators only.
    pub reason: String,
}

/// How a review ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be activated.
    Accept {
        /// What packages may still commit, where the provider could not tell: a count of 10^-6 units.
        quota: Option<i64>,
    },
    /// It may not.
    Reject,
}

impl Review {
    /// Total and available quota of an account that is accepted.
    fn quotas(account: &Account, quota: Option<i64>) -> Result<(Quota, Quota), Refusal> {
        let Some(count) = quota else { return Ok((account.total, account.available)) };
        let misfit = |rule| fields::refused("available_quota", rule);
        let available = Quota::from_count(count, account.unit).map_err(|_| misfit("whole_units"))?;
        let total = account.total.minus(account.available).and_then(|rest| rest.plus(available));
        Ok((total.map_err(|_| misfit("too_large"))?, available))
    }
}

impl Action for Review {
    type Prepared = ();
    type State = Option<Account>;

    fn event(&self) -> &'static str {
        "supply.account.review"
    }

    fn object(&self) -> Object {
        state::object(self.account_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        vec![state::load(context, self.account_id)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Self::State, Error> {
        state::read(rows.first())
    }

    fn decide(&self, context: &Context, (): &(), account: &Self::State, at: Time) -> Result<Change, Stop> {
        let account = state::found(account.as_ref())?;
        let seen = |refusal: Refusal| refusal.about(self.object(), account.state());
        let waiting = matches!(account.status, AccountStatus::Pending | AccountStatus::Suspended);
        if !waiting || account.is_verified {
            let refusal = state::conflict(account).with("is_verified", account.is_verified);
            return Err(refusal.into());
        }
        let (from, owned) = ("'pending', 'suspended'", values![account.id, account.tenant_id]);
        let (word, to, sets) = match self.verdict {
            Verdict::Accept { .. } => ("accept", account.status, ", tos_check_result = 'reviewed'"),
            Verdict::Reject => ("reject", AccountStatus::Disabled, ""),
        };
        let event = "supply.account.review.succeeded";
        let mut change = Move { write: "account.review", from, to, sets, event }.of(context, account, at)?;
        change.writes.push(match self.verdict {
            Verdict::Accept { quota } => {
                let (total, available) = Self::quotas(account, quota).map_err(seen)?;
                change.events.extend(fallen(account, available));
                let figures = [total, available].map(|quota| Value::Money(quota.count()));
                let row = [values![at, &self.reason], figures.into(), owned].concat();
                Write::one("account.accepted", ACCEPTED, row)
            }
            Verdict::Reject => Write::one("account.reason", REASON, [values![&self.reason], owned].concat()),
        });
        change.metadata = json!({ "decision": word, "reason": self.reason });
        Ok(change)
    }

    fn outrun(&self, write: &'static str, account: &Self::State) -> Option<Refusal> {
        account.as_ref().filter(|_| write == "account.review").map(state::conflict)
    }
}
