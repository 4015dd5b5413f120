//! The platform takes an order back (section 6.3): the buyer gets the rest of the escrow (J-ORDER-CLOSE) and what
//! calls were charged, or a part of it (J-REFUND). The supplier's side comes out of its earnings, oldest first, of
//! whatever order they came; what they do not hold, it owes.

use door::{AuditRow, Failure, Steps};
use kernel::Time;
use kernel::money::Money;
use ledger::split::{Reversal, Split};
use ledger::{Account, ids, posting};
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Write, values};

use super::close::give_rest_back;
use super::found::{self, Found, Shift, damaged};
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::books::{self, Books};
use crate::caller::Object;
use crate::code::Code;
use crate::earnings::{NewEarning, Origin, Side, insert, lots, reverse};
use crate::exact::{Exact, Stamp};
use crate::platform::fields;
use crate::rows::{Earning, Order, OrderStatus, Reader};

/// A refund is counted with the journals; the row that shows it, with the earnings.
const NEXT: &str = "select {next_id billing_journals} as fact, {next_id supply_earnings} as earning";
const SUPPLIER: &str = "(select o.supplier_user_id from supply_orders o where o.id = $1)";
/// No more is taken back than the order's calls earned.
const MOST: &str = "(select r.supplier_earnings from supply_orders r where r.id = $2)";

/// `POST /api/v1/platform/orders/{orderId}/refund`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refund {
    /// Which order.
    pub order_id: i64,
    /// How much of what calls were charged is given back: from nothing to all, which is meant by none.
    pub charge: Option<Money>,
}

/// What it decides from.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) found: Option<Found>,
    pub(super) books: Books,
    pub(super) held: Vec<Earning>,
    pub(super) released: Vec<Earning>,
    pub(super) refund: i64,
    pub(super) earning: i64,
}

#[derive(Debug, Serialize)]
struct Refunded {
    order_id: i64,
    status: &'static str,
    refund_id: Option<i64>,
    returned_amount: Exact,
    returned_amount_minor: String,
    refunded_amount: Exact,
    refunded_amount_minor: String,
    currency_code: &'static str,
    version: i64,
    updated_at: Stamp,
}

impl Refund {
    /// What is given back of the charges, as fee and supplier's part. The fee is that of the amount, but neither
    /// part is more than the order's calls made: then a refund of everything leaves nothing of either, whatever
    /// their single fees were rounded to.
    fn split(&self, context: &Context, order: &Order) -> Result<Split, Stop> {
        let (fees, earned) = (order.platform_fee, order.supplier_earnings);
        let charged = fees.plus(earned)?;
        let charge = self.charge.unwrap_or(charged);
        if charge.currency() != order.currency {
            return Err(order.refuse(Refusal::of(Code::ComCurrency)).into());
        }
        if charge.sign().is_lt() || charge.exceeds(charged)? {
            let refusal = fields::refused("charge_amount", "within_charges").with("charged", charged);
            return Err(order.refuse(refusal).into());
        }
        let fee = Split::of_charge(charge, context.house.policy.platform_fee_rate)?.fee();
        let (least, most) = (charge.minus(earned)?, fees);
        let fee = if least.exceeds(fee)? { least } else { fee.least(most)? };
        Ok(Split::of(charge, fee)?)
    }

    /// Journal, earnings and the row that shows it.
    fn reversal(
        context: &Context,
        state: &State,
        books: &mut Books,
        (order, split): (&Order, Split),
        at: Time,
    ) -> Result<(Vec<Write>, Json), Stop> {
        let (supplier, buyer) = (ids::Supplier(order.supplier_user_id), ids::Buyer(order.buyer_user_id));
        let pending = books.balance(Account::pending(supplier), order.currency)?;
        let available = books.balance(Account::available(supplier), order.currency)?;
        let reversal = Reversal::of(split, pending, available)?;
        let mut writes = Vec::new();
        if split.rest().sign().is_gt() {
            writes.push(insert(context, &Self::shown(context, state, order, split.rest(), at)?, at));
        }
        let held = reverse(context, (Side::Held, reversal.pending()), &state.held, at)?;
        let released = reverse(context, (Side::Released, reversal.available()), &state.released, at)?;
        let after = json!({ "status": "withdrawn", "version": 0, "reversed_minor": split.rest().minor(),
            "pending_minor": reversal.pending().minor(), "available_minor": reversal.available().minor(),
            "earnings": held.earnings.len() + released.earnings.len() });
        writes.extend(held.writes.into_iter().chain(released.writes));
        if let Some(journal) = posting::refund(ids::Refund(state.refund), supplier, buyer, reversal)? {
            writes.extend(books.post(context, &journal, at)?);
        }
        Ok((writes, after))
    }

    fn shown<'a>(
        context: &'a Context,
        state: &State,
        order: &Order,
        taken: Money,
        at: Time,
    ) -> Result<NewEarning<'a>, Stop> {
        let none = Money::zero(order.currency);
        Ok(NewEarning {
            id: state.earning,
            owner: (order.tenant_id, order.supplier_user_id),
            origin: Origin {
                account_id: Some(order.supply_account_id),
                order_id: Some(order.id),
                usage_record_id: None,
            },
            kind: "refund",
            amount: none.minus(taken)?,
            available: none,
            status: "withdrawn",
            description: "",
            available_at: at,
            request_id: &context.caller.request_id,
        })
    }

    /// One row of the audit and one event for all earnings that it came out of, which may be as many as calls: of the
    /// row that shows it.
    fn taken_back(context: &Context, state: &State, after: Json) -> (AuditRow, Event) {
        let (object, before) = (Object::row(Earning::KIND, state.earning), json!({}));
        let mut audit = context.caller.audit("supply.earning.reverse", &object);
        (audit.before_state, audit.after_state) = (before.clone(), after.clone());
        (audit, Event { name: "supply.earning.reverse.succeeded", object, version: 0, before, after })
    }
}

impl Action for Refund {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.order.refund"
    }

    fn object(&self) -> Object {
        Object::row(Order::KIND, self.order_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let both = values![self.order_id, self.order_id];
        let mut queries = found::load(context, self.order_id);
        queries.extend([
            found::all_books(self.order_id),
            lots(Side::Held, SUPPLIER, MOST, both.clone()),
            lots(Side::Released, SUPPLIER, MOST, both),
            Query::new("refund.next", NEXT, vec![]),
        ]);
        queries
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let (found, rest) = found::read(rows)?;
        let [books, held, released, next] = rest else { return Err(damaged()) };
        let earnings = |rows: &[Row]| rows.iter().map(Earning::read).collect::<Result<Vec<_>, _>>();
        let mut next = Reader::new(next.first().ok_or_else(damaged)?);
        Ok(State {
            found,
            books: Books::read(books)?,
            held: earnings(held)?,
            released: earnings(released)?,
            refund: next.int()?,
            earning: next.int()?,
        })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let found = found::known(state.found.as_ref())?;
        let order = &found.order;
        if !order.is_open() {
            return Err(order.conflict().into());
        }
        let split = self.split(context, order)?;
        let mut books = state.books.clone();
        let rest = books.balance(Account::escrow(ids::Order(order.id)), order.currency)?;
        let mut writes = if order.remaining.is_zero() {
            Vec::new()
        } else {
            Shift::Return.writes(context, found, order.remaining, at)?
        };
        writes.push(order.end(context, OrderStatus::Refunded, "refunded", at));
        let (reversal, taken) = Self::reversal(context, state, &mut books, (order, split), at)?;
        writes.extend(reversal);
        writes.extend(give_rest_back(context, &mut books, order, at)?);
        writes.extend(books.balances(at));
        let refund_id = split.whole().sign().is_gt().then_some(state.refund);
        let data = Refunded {
            order_id: order.id,
            status: "refunded",
            refund_id,
            returned_amount: rest.into(),
            returned_amount_minor: rest.minor(),
            refunded_amount: split.whole().into(),
            refunded_amount_minor: split.whole().minor(),
            currency_code: order.currency.code(),
            version: order.version + 1,
            updated_at: Stamp(at),
        };
        let after = order.after(OrderStatus::Refunded, Some("refunded"));
        let mut events = vec![order.told("supply.order.refund.succeeded", &after)];
        let mut audit = Vec::new();
        if split.rest().sign().is_gt() {
            let (row, event) = Self::taken_back(context, state, taken);
            audit.push(row);
            events.push(event);
        }
        let metadata = json!({ "refund_id": refund_id, "returned_minor": rest.minor(),
            "refunded_minor": split.whole().minor(), "supplier_part_minor": split.rest().minor() });
        let before = order.state();
        Ok(Change { before, after, metadata, writes, audit, events, ..Change::of(order.object(), &data)? })
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let order = &state.found.as_ref()?.order;
        Some(books::unbalanced(write).map_or_else(|| order.conflict(), |broken| order.refuse(broken)))
    }
}
