//! Activates a mounted account; an administrator restores a disabled one (section 6.1, INV-ACC-002).

use door::{Failure, Steps};
use kernel::Time;
use store::{Error, Query, Row};

use super::state::{self, Move};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::{Code, Invariant};
use crate::rows::{Account, AccountStatus};

/// Above it an account is not activated (section 5.2).
const RISK_MOST: i64 = 80;

/// `POST /api/v1/supply/accounts/{accountId}/activate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activate {
    /// Which account.
    pub account_id: i64,
}

/// Conditions that are not met, in the words of `details.unmet`.
pub(super) fn unmet(account: &Account) -> Vec<&'static str> {
    let conditions = [
        ("verified", account.is_verified),
        ("tos", account.tos_compliant),
        ("risk", account.risk_score <= RISK_MOST),
        ("frozen", !account.is_frozen),
    ];
    conditions.into_iter().filter(|(_, met)| !met).map(|(word, _)| word).collect()
}

impl Action for Activate {
    type Prepared = ();
    type State = Option<Account>;

    fn event(&self) -> &'static str {
        "supply.account.activate"
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
        let from = match (account.status, context.caller.is_platform()) {
            (AccountStatus::Pending | AccountStatus::Suspended, false) => "'pending', 'suspended'",
            (AccountStatus::Disabled, true) => "'disabled'",
            (AccountStatus::Disabled, false) => return Err(seen(Refusal::broken(Invariant::Acc002)).into()),
            _ => return Err(state::conflict(account).into()),
        };
        let unmet = unmet(account);
        if !unmet.is_empty() {
            return Err(seen(Refusal::of(Code::AccGuard).with("unmet", unmet)).into());
        }
        let event = "supply.account.activate.succeeded";
        let to = AccountStatus::Active;
        Move { write: "account.activate", from, to, sets: "", event }.of(context, account, at)
    }

    fn outrun(&self, write: &'static str, account: &Self::State) -> Option<Refusal> {
        account.as_ref().filter(|_| write == "account.activate").map(state::conflict)
    }
}
