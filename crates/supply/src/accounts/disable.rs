//! Takes an account out of use by the platform's risk control, with a reason (sections 6.1, 8.5). Of a credential that
//! got out nothing is left to decrypt (section 13.2); its fingerprint stays, so that nobody mounts it again.

use door::{Failure, Steps};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use super::state::{self, Move};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::rows::{Account, AccountStatus, Reader};

pub(super) const REASON: &str =
    "update supply_accounts set risk_reason = $1, risk_level = 'high' where id = $2 and tenant_id = $3";

const REVOKED: &str =
    "select count(*) from supply_accounts where id = $1 and tenant_id = $2 and encrypted_credentials = ''";

/// `POST /api/v1/platform/supply/accounts/{id}/disable`. That the credential got out may be known later than that the
/// account is to be out of use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disable {
    /// Which account.
    pub account_id: i64,
    /// Why; shown to administrators only.
    pub reason: String,
    /// Whether the credential got out.
    pub credential: Credential,
}

/// What is known of the credential of an account that is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Its owner's alone.
    Kept,
    /// Others have it.
    Compromised,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub(super) account: Option<Account>,
    /// Whether nothing is left to decrypt.
    pub(super) is_revoked: bool,
}

impl Credential {
    /// Statuses that it leads out of.
    const fn from(self) -> &'static str {
        match self {
            Self::Kept => "'pending', 'active', 'suspended'",
            Self::Compromised => "'pending', 'active', 'suspended', 'disabled'",
        }
    }

    /// What becomes of it: without an envelope there is nothing that could be verified.
    const fn sets(self) -> &'static str {
        match self {
            Self::Kept => "",
            Self::Compromised => ", encrypted_credentials = '', is_verified = false, verified_at = null",
        }
    }
}

impl Action for Disable {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.account.disable"
    }

    fn object(&self) -> Object {
        state::object(self.account_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let by = values![self.account_id, context.caller.tenant_id];
        vec![state::load(context, self.account_id), Query::new("account.revoked", REVOKED, by)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Self::State, Error> {
        let revoked = rows.get(1).and_then(|rows| rows.first());
        let revoked = revoked.map_or(Ok(0), |row| Reader::new(row).int())?;
        Ok(State { account: state::read(rows.first())?, is_revoked: revoked > 0 })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let account = state::found(state.account.as_ref())?;
        let news = self.credential == Credential::Compromised && !state.is_revoked;
        if account.status == AccountStatus::Disabled && !news {
            return Err(state::conflict(account).into());
        }
        let (from, event) = (self.credential.from(), "supply.account.disable.succeeded");
        let to = AccountStatus::Disabled;
        let moved = Move { write: "account.disable", from, to, sets: self.credential.sets(), event };
        let mut change = moved.of(context, account, at)?;
        let row = values![&self.reason, account.id, account.tenant_id];
        change.writes.push(Write::one("account.reason", REASON, row));
        change.metadata = json!({ "reason": self.reason });
        if self.credential == Credential::Compromised {
            let mut revoked = context.caller.audit("CRED-REVOKE", &change.object);
            (revoked.before_state, revoked.after_state) = (change.before.clone(), change.after.clone());
            revoked.metadata = json!({ "key_id": account.key_id });
            change.audit.push(revoked);
        }
        Ok(change)
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        state.account.as_ref().filter(|_| write == "account.disable").map(state::conflict)
    }
}
