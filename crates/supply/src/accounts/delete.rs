//! Deletes an account that is not active and that nothing depends on (section 6.1, INV-ACC-001). The row stays,
//! its envelope goes; the fingerprint stays, so that a blocked credential stays blocked.

use door::{Failure, Steps};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use super::state;
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::{Code, Invariant};
use crate::exact::Details;
use crate::house::Live;
use crate::rows::{Account, AccountStatus, Reader};

const BLOCKING: &str = "select
  (select count(*) from supply_packages p where p.supply_account_id = a.id and p.status in ('active', 'paused', 'sold_out')),
  (select count(*) from supply_orders o where o.supply_account_id = a.id and o.status in ('pending', 'paid', 'using'))
from supply_accounts a where a.id = $1 and a.tenant_id = $2";

const DELETE: &str = "update supply_accounts
set deleted_at = $1, encrypted_credentials = '', version = version + 1,
  request_id = $2, idempotency_key = $3, audit_trace_id = $4, updated_ip = $5, updated_at = $6, updated_by = $7
where id = $8 and tenant_id = $9 and deleted_at is null and status in ('pending', 'suspended', 'disabled') and version = $10";

/// `DELETE /api/v1/supply/accounts/{accountId}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delete {
    /// Which account.
    pub account_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub(super) account: Option<Account>,
    pub(super) packages: i64,
    pub(super) orders: i64,
}

impl Action for Delete {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.account.delete"
    }

    fn object(&self) -> Object {
        state::object(self.account_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let by = values![self.account_id, context.caller.tenant_id];
        vec![state::load(context, self.account_id), Query::new("account.blocking", BLOCKING, by)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let (packages, orders) = match rows.get(1).and_then(|rows| rows.first()).map(Reader::new) {
            Some(mut reader) => (reader.int()?, reader.int()?),
            None => (0, 0),
        };
        Ok(State { account: state::read(rows.first())?, packages, orders })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let account = state::found(state.account.as_ref())?;
        let seen = |refusal: Refusal| refusal.about(self.object(), account.state());
        if account.status == AccountStatus::Active {
            return Err(seen(Refusal::broken(Invariant::Acc001)).into());
        }
        if state.packages + state.orders > 0 {
            let blocking = Details::none().with("packages", state.packages).with("orders", state.orders);
            return Err(seen(Refusal::of(Code::AccBlocked).with("blocking", vec![blocking])).into());
        }
        let mut row = values![at];
        row.extend(context.stamp(at));
        row.extend(values![context.caller.operator_id, account.id, account.tenant_id, account.version]);
        let (object, version, before) = (self.object(), account.version + 1, account.state());
        let after = json!({ "deleted": true });
        let name = "supply.account.delete.succeeded";
        let told = object.clone();
        let event = Event { name, object: told, version, before: before.clone(), after: after.clone() };
        let writes = vec![Write::one("account.delete", DELETE, row)];
        let change = Change::of(object, &())?;
        Ok(Change { before, after, writes, events: vec![event], status: 204, ..change })
    }

    fn live(&self) -> Option<Live> {
        Some(Live::Gone)
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        state.account.as_ref().filter(|_| write == "account.delete").map(state::conflict)
    }
}
