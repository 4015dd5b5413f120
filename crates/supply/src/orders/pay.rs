//! A buyer pays an order out of the prepaid balance (J-ORDER-PAY): what was reserved is sold. Its validity is
//! what is left of the package's.

use door::{Failure, Steps};
use kernel::Time;
use ledger::ids::{Buyer, Order as OrderId};
use ledger::{Account, posting};
use serde::Serialize;
use store::{Error, Query, Row, Write, values};

use super::found::{self, Found, Shift, damaged};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books::Books;
use crate::caller::Object;
use crate::code::Code;
use crate::exact::{Exact, Stamp};
use crate::rows::{Order, OrderStatus};

const PAY: &str = "update supply_orders
set status = 'paid', paid_at = $1, expired_at = $2, payment_method = 'prepaid', version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and status = 'pending' and version = $10";

/// `POST /api/v1/platform/orders/{orderId}/pay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pay {
    /// Which order.
    pub order_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) found: Option<Found>,
    pub(super) books: Books,
}

#[derive(Debug, Serialize)]
struct Paid {
    order_id: i64,
    status: &'static str,
    total_amount: Exact,
    total_amount_minor: String,
    currency_code: &'static str,
    paid_at: Stamp,
    expired_at: Stamp,
    version: i64,
}

impl Pay {
    /// The end of its validity, if it may still be paid.
    fn payable(context: &Context, found: &Found, at: Time) -> Result<Time, Refusal> {
        let Found { package, order, .. } = found;
        if order.status != OrderStatus::Pending {
            return Err(order.conflict());
        }
        let late = order.created_at.plus(context.house.policy.order_pay) <= at;
        // Nothing would be left of it.
        let end = package.end_at.filter(|end| *end > at && !late);
        end.ok_or_else(|| {
            let refusal = Refusal::of(Code::OrdState).with("status", OrderStatus::Expired.as_str());
            order.refuse(refusal)
        })
    }
}

impl Action for Pay {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.order.pay"
    }

    fn object(&self) -> Object {
        Object::row(Order::KIND, self.order_id)
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
        let found = found::known(state.found.as_ref())?;
        let order = &found.order;
        let end = Self::payable(context, found, at)?;
        let buyer = Buyer(order.buyer_user_id);
        let prepaid = state.books.balance(Account::prepaid(buyer), order.currency)?;
        if order.total.exceeds(prepaid)? {
            let refusal = Refusal::of(Code::OrdFunds).with("total_amount", order.total);
            return Err(order.refuse(refusal.with("balance", prepaid)).into());
        }
        let mut books = state.books.clone();
        let journal = posting::order_pay(OrderId(order.id), buyer, order.total)?;
        let mut writes = Shift::Sell.writes(context, found, order.quota, at)?;
        let mut row = values![at, end];
        row.extend(context.stamp(at));
        row.extend(values![order.id, order.tenant_id, order.version]);
        writes.push(Write::one("order.pay", PAY, row));
        writes.extend(books.post(context, &journal, at)?);
        writes.extend(books.balances(at));
        let data = Paid {
            order_id: order.id,
            status: "paid",
            total_amount: order.total.into(),
            total_amount_minor: order.total.minor(),
            currency_code: order.currency.code(),
            paid_at: Stamp(at),
            expired_at: Stamp(end),
            version: order.version + 1,
        };
        let after = order.after(OrderStatus::Paid, None);
        let events = vec![order.told("supply.order.pay.succeeded", &after)];
        let before = order.state();
        Ok(Change { before, after, writes, events, ..Change::of(order.object(), &data)? })
    }

    fn outrun(&self, _: &'static str, state: &State) -> Option<Refusal> {
        state.found.as_ref().map(|found| found.order.conflict())
    }
}
