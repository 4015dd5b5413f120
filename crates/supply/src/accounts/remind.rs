//! Reminds an owner of a credential that grows old: it is to be replaced every 60 days, and ten days ahead that is
//! announced (section 13.2); again for as long as nobody does it. Nothing else changes.

use std::time::Duration;

use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, values};

use super::state;
use crate::action::{Action, Change, Context, Event, Stop};
use crate::caller::Object;
use crate::exact::Stamp;
use crate::rows::{Account, AccountStatus, Reader};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A credential is to be replaced so long after it was mounted or replaced.
const LIFE: Duration = Duration::from_secs(60 * DAY.as_secs());
/// It is said so long after it was mounted, replaced or last spoken of: ten days ahead.
const QUIET: Duration = Duration::from_secs(50 * DAY.as_secs());

/// What was done to the credential stands in the audit: `last_rotation_at` is of new wrapping keys, too.
const OLD: &str = "select a.tenant_id, a.id from supply_accounts a
where a.deleted_at is null and a.status <> 'disabled' and a.created_at <= $1 and not exists (
  select 1 from audit_events e where e.tenant_id > 1 and e.tenant_id = a.tenant_id
    and e.object_type = 'supply_account' and e.object_id = cast(a.id as text) and e.result_code = 'OK'
    and e.event_name in ('supply.credential.rotate', 'supply.credential.remind') and e.created_at > $1)
order by a.id limit $2";

const LAST: &str = "select e.created_at from audit_events e where e.tenant_id > 1 and e.tenant_id = $1
  and e.object_type = 'supply_account' and e.object_id = $2 and e.result_code = 'OK' and e.event_name = $3
order by e.id desc limit 1";

/// Accounts whose credential is to be spoken of, of all tenants: for [`Remind`], fact `remind`. Read by
/// [`crate::platform::Due`].
#[must_use]
pub fn to_remind(now: Time, limit: i64) -> Query {
    Query::new("due.remind", OLD, values![now.minus(QUIET), limit])
}

/// The scheduler's, of [`to_remind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remind {
    /// Which account.
    pub account_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    account: Option<Account>,
    rotated_at: Option<Time>,
    reminded_at: Option<Time>,
}

#[derive(Debug, Serialize)]
struct Reminded {
    account_id: i64,
    rotation_due_at: Stamp,
}

impl Action for Remind {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.credential.remind"
    }

    fn object(&self) -> Object {
        state::object(self.account_id)
    }

    fn comes_due(&self) -> bool {
        true
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let last = |name, event: &str| {
            Query::new(name, LAST, values![context.caller.tenant_id, self.account_id.to_string(), event])
        };
        // Locked before it is asked who spoke of it: of two nodes that listed it, the second one finds the first one's.
        vec![
            state::lock(context, self.account_id),
            last("account.rotated", "supply.credential.rotate"),
            last("account.reminded", self.event()),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let last = |n: usize| {
            let row = rows.get(n).and_then(|rows| rows.first());
            row.map(|row| Reader::new(row).time()).transpose()
        };
        Ok(State { account: state::read(rows.first())?, rotated_at: last(1)?, reminded_at: last(2)? })
    }

    fn decide(&self, _: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let account = state::found(state.account.as_ref())?;
        let renewed_at = state.rotated_at.unwrap_or(account.created_at);
        let spoken_of = state.reminded_at.map_or(renewed_at, |reminded| reminded.max(renewed_at));
        if account.status == AccountStatus::Disabled || spoken_of.plus(QUIET) > at {
            return Err(state::conflict(account).into());
        }
        let due_at = Stamp(renewed_at.plus(LIFE));
        let (before, object) = (account.state(), self.object());
        let event = Event {
            name: "supply.credential.remind.succeeded",
            object: object.clone(),
            version: account.version,
            before: before.clone(),
            after: json!({ "status": account.status.as_str(), "version": account.version,
                "rotation_due_at": due_at }),
        };
        let data = Reminded { account_id: account.id, rotation_due_at: due_at };
        let after = before.clone();
        Ok(Change { before, after, events: vec![event], ..Change::of(object, &data)? })
    }
}
