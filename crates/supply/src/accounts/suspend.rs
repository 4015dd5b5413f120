//! Takes an active account out of use, unless a risk case is open (section 6.1). Its packages are paused by the
//! system afterwards.

use door::{Failure, Steps};
use kernel::Time;
use store::{Error, Query, Row, values};

use super::state::{self, Move};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::rows::{Account, AccountStatus};

const RISK_CASES: &str = "select open_risk_cases from supply_suppliers where tenant_id = $1";

/// `POST /api/v1/supply/accounts/{accountId}/suspend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// Which account.
    pub account_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub(super) account: Option<Account>,
    pub(super) open_risk_cases: i64,
}

impl Action for Suspend {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.account.suspend"
    }

    fn object(&self) -> Object {
        state::object(self.account_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let cases = Query::new("supplier.cases", RISK_CASES, values![context.caller.tenant_id]);
        vec![state::load(context, self.account_id), cases]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let cases = rows.get(1).and_then(|rows| rows.first());
        let open_risk_cases = cases.map_or(Ok(0), |row| row.int(0))?;
        Ok(State { account: state::read(rows.first())?, open_risk_cases })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let account = state::found(state.account.as_ref())?;
        if account.status != AccountStatus::Active {
            return Err(state::conflict(account).into());
        }
        if state.open_risk_cases > 0 {
            let refusal = Refusal::of(Code::AccRiskCase).with("open_risk_cases", state.open_risk_cases);
            return Err(refusal.about(self.object(), account.state()).into());
        }
        let event = "supply.account.suspend.succeeded";
        let to = AccountStatus::Suspended;
        Move { write: "account.suspend", from: "'active'", to, sets: "", event }.of(context, account, at)
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        state.account.as_ref().filter(|_| write == "account.suspend").map(state::conflict)
    }
}
