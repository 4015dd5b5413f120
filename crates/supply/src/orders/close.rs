//! A paid order is over: its quota is used up, or its validity has ended. What is left of the escrow goes back to
//! the buyer (J-ORDER-CLOSE). The system's, under the key `close:<id>`. Quota that was sold and not used is not
//! offered again: the package ends with the order.

use door::{Failure, Steps};
use kernel::Time;
use ledger::ids::{Buyer, Order as OrderId};
use ledger::{Account, posting};
use store::{Error, Query, Row, Write};

use super::cancel::Ended;
use super::found::{self, damaged};
use super::pay::State;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books::Books;
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;
use crate::rows::{Order, OrderStatus};

pub(super) const USED_UP: &str = "quota_used_up";
const VALIDITY_ENDED: &str = "validity_ended";

/// An order whose time or quota is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// Which order.
    pub order_id: i64,
}

/// The rest of the escrow, as it stands in the books, goes back to the buyer.
pub(super) fn give_rest_back(
    context: &Context,
    books: &mut Books,
    order: &Order,
    at: Time,
) -> Result<Vec<Write>, Stop> {
    let (id, buyer) = (OrderId(order.id), Buyer(order.buyer_user_id));
    let rest = books.balance(Account::escrow(id), order.currency)?;
    let journal = posting::order_close(id, buyer, rest)?;
    journal.map_or_else(|| Ok(Vec::new()), |journal| books.post(context, &journal, at))
}

impl Action for Close {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.order.close"
    }

    fn object(&self) -> Object {
        Object::row(Order::KIND, self.order_id)
    }

    fn comes_due(&self) -> bool {
        true
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let mut queries = found::load(context, self.order_id);
        queries.push(found::buyers_books(self.order_id));
        queries
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let (found, rest) = found::read(rows)?;
        Ok(State { found, books: Books::read(rest.first().ok_or_else(damaged)?)? })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let order = &found::known(state.found.as_ref())?.order;
        if !order.is_open() {
            return Err(order.conflict().into());
        }
        let reason = match order.expired_at {
            _ if order.remaining.is_zero() => USED_UP,
            Some(end) if end <= at => VALIDITY_ENDED,
            end => {
                let refusal = Refusal::of(Code::OrdState).with("status", order.status.as_str());
                let end = end.map(Time::to_rfc3339_millis).unwrap_or_default();
                return Err(order.refuse(refusal.with("expired_at", end)).into());
            }
        };
        let mut books = state.books.clone();
        let mut writes = vec![order.end(context, OrderStatus::Expired, reason, at)];
        writes.extend(give_rest_back(context, &mut books, order, at)?);
        writes.extend(books.balances(at));
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

    fn outrun(&self, _: &'static str, state: &State) -> Option<Refusal> {
        state.found.as_ref().map(|found| found.order.conflict())
    }
}
