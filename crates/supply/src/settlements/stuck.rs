//! A payout that takes too long is told to people (section 12, row 15), once; nothing else changes.

use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row};

use super::{due, step};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::alert::{self, Level};
use crate::caller::Object;
use crate::code::Code;
use crate::rows::{Settlement, SettlementStatus};

/// The scheduler's, of [`due::stuck`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Which settlement.
    pub settlement_id: i64,
}

#[derive(Debug, Serialize)]
struct Told {
    settlement_id: i64,
}

impl Action for Stuck {
    type Prepared = ();
    type State = Option<Settlement>;

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
        vec![step::found(self.settlement_id, context.caller.tenant_id)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Option<Settlement>, Error> {
        rows.iter().flatten().next().map(Settlement::read).transpose()
    }

    fn decide(&self, _: &Context, (): &(), found: &Option<Settlement>, at: Time) -> Result<Change, Stop> {
        let settlement = found.as_ref().ok_or_else(|| Refusal::of(Code::SetMissing))?;
        let late = settlement.processing_at.is_some_and(|since| since <= due::stuck_before(at));
        if settlement.status != SettlementStatus::Processing || !late {
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
