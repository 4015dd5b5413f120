//! An order that was not paid ends: the buyer cancels it, or its time is up. What was reserved may be bought by
//! others.

use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use store::{Error, Query, Row};

use super::found::{self, Found, Shift};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;
use crate::rows::{Order, OrderStatus};

/// `POST /api/v1/platform/orders/{orderId}/cancel`, and the system's time-out under the key `timeout:<id>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancel {
    /// Which order.
    pub order_id: i64,
    /// Why.
    pub cause: Cause,
}

/// Why an order is not paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its buyer does not want it any more.
    Buyer,
    /// It was not paid in time.
    Timeout,
}

impl Cause {
    /// The word of `close_reason`.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Buyer => "buyer_cancelled",
            Self::Timeout => "payment_timeout",
        }
    }
}

/// `data` of the answer, and of closing.
#[derive(Debug, Serialize)]
pub(super) struct Ended {
    pub(super) order_id: i64,
    pub(super) status: &'static str,
    pub(super) close_reason: &'static str,
    pub(super) version: i64,
    pub(super) updated_at: Stamp,
}

impl Action for Cancel {
    type Prepared = ();
    type State = Option<Found>;

    fn event(&self) -> &'static str {
        "supply.order.close"
    }

    fn object(&self) -> Object {
        Object::row(Order::KIND, self.order_id)
    }

    fn comes_due(&self) -> bool {
        self.cause == Cause::Timeout
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        found::load(context, self.order_id)
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Option<Found>, Error> {
        Ok(found::read(rows)?.0)
    }

    fn decide(&self, context: &Context, (): &(), state: &Option<Found>, at: Time) -> Result<Change, Stop> {
        let found = found::known(state.as_ref())?;
        let order = &found.order;
        if order.status != OrderStatus::Pending {
            return Err(order.conflict().into());
        }
        let until = order.created_at.plus(context.house.policy.order_pay);
        if self.cause == Cause::Timeout && until > at {
            let refusal = Refusal::of(Code::OrdState).with("pay_before", until.to_rfc3339_millis());
            return Err(order.refuse(refusal).into());
        }
        let reason = self.cause.as_str();
        let mut writes = Shift::GiveBack.writes(context, found, order.quota, at)?;
        writes.push(order.end(context, OrderStatus::Expired, reason, at));
        let data = Ended {
            order_id: order.id,
            status: "expired",
            close_reason: reason,
            version: order.version + 1,
            updated_at: Stamp(at),
        };
        let after = order.after(OrderStatus::Expired, Some(reason));
        let events = vec![order.told("supply.order.close.succeeded", &after)];
        let before = order.state();
        Ok(Change { before, after, writes, events, ..Change::of(order.object(), &data)? })
    }

    fn outrun(&self, _: &'static str, state: &Option<Found>) -> Option<Refusal> {
        state.as_ref().map(|found| found.order.conflict())
    }
}
