//! A payout that takes too long is told to people (section 12, row 15), once; nothing else changes.

use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, values};

use super::{due, step};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::alert::{self, Level};
use crate::caller::Object;
use crate::code::Code;
use crate::rows::{Reader, Settlement, SettlementStatus};

/// Read behind the settlement's lock, so that of two nodes that listed it the second one finds what the first one said.
const TOLD: &str = "select count(*) from audit_events a where a.tenant_id > 1 and a.tenant_id = $1
  and a.object_type = 'supply_settlement' and a.object_id = $2
  and a.event_name = 'supply.settlement.payout.stuck' and a.result_code = 'OK'";

/// The scheduler's, of [`due::stuck`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Which settlement.
    pub settlement_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    settlement: Option<Settlement>,
    told: i64,
}

#[derive(Debug, Serialize)]
struct Told {
    settlement_id: i64,
}

impl Action for Stuck {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.settlement.payout.stuck"
    }

    fn object(&self) -> Object {
        step::object(self.settlement_id)
    }

    fn comes_due(&self) -> bool {
        true
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let tenant = context.caller.tenant_id;
        let told = values![tenant, self.settlement_id.to_string()];
        vec![step::locked(self.settlement_id, tenant), Query::new("settlement.told", TOLD, told)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let first = |n: usize| rows.get(n).and_then(|rows| rows.first());
        Ok(State {
            settlement: first(0).map(Settlement::read).transpose()?,
            told: first(1).map_or(Ok(0), |row| Reader::new(row).int())?,
        })
    }

    fn decide(&self, _: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let settlement = state.settlement.as_ref().ok_or_else(|| Refusal::of(Code::SetMissing))?;
        let late = settlement.processing_at.is_some_and(|since| since <= due::stuck_before(at));
        if settlement.status != SettlementStatus::Processing || !late || state.told > 0 {
            let refusal = step::state_conflict(settlement);
            return Err(refusal.about(self.object(), settlement.state()).into());
        }
        let mut event = alert::raised(Level::S1, "payout_stuck", &self.object());
        event.version = settlement.version;
        let metadata = json!({ "settlement_no": settlement.settlement_no,
            "processing_at": settlement.processing_at.map(Time::to_rfc3339_millis) });
        let (before, after) = (settlement.state(), settlement.state());
        let data = Told { settlement_id: settlement.id };
        Ok(Change { before, after, metadata, events: vec![event], ..Change::of(self.object(), &data)? })
    }
}
