//! A call of a buyer is recorded and charged (sections 4, 5.5, 6.3; J-USAGE): once for each request of an API key,
//! within the order's quota and escrow. The quota that it uses up closes the order in the same commit.
//!
//! What is decided here:
//! - A quota of tokens or credits counts tokens of both directions, one of requests counts calls. The escrow is the
//!   quota at the higher price, so within a quota of tokens or credits only roundings of single calls, half a
//!   millionth of a minor unit each, can add up to more than the escrow. They are not the buyer's: such a call is
//!   charged what is left. A quota of requests bounds no tokens, so there the escrow refuses.
//! - A failed call costs nothing and uses no quota; the order stays as it is.
//! - A call counts that began before the validity ended, as long as the order is not closed.

mod record;

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::{Money, Quota, QuotaUnit, Tokens};
use ledger::split::Split;
use ledger::{Account, ids, posting};
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

pub(super) use self::record::Recorded;
use super::close::{USED_UP, give_rest_back};
use super::found::{self, Found, damaged};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books::Books;
use crate::caller::Object;
use crate::code::Code;
use crate::earnings::{NewEarning, Origin, insert};
use crate::platform::fields::{self, is_text};
use crate::rows::{Order, OrderStatus, Reader};

const NEXT: &str = "select {next_id supply_usage_records} as record, {next_id supply_earnings} as earning";
const KEY: &str = "select k.id from auth_api_keys k where k.id = $1
  and k.tenant_id = (select o.buyer_tenant_id from supply_orders o where o.id = $2)";
const STATISTICS: &str = "select a.total_requests, a.success_rate from supply_accounts a
where a.id = (select o.supply_account_id from supply_orders o where o.id = $1)";
const USE: &str = "update supply_orders
set status = $1, close_reason = $2, used_quota = $3, remaining_quota = $4, platform_fee = $5, supplier_earnings = $6,
  version = version + 1,
  request_id = $7, idempotency_key = $8, audit_trace_id = $9, updated_ip = $10, updated_at = $11
where id = $12 and tenant_id = $13 and status in ('paid', 'using') and version = $14";
/// Statistics are no state: they neither raise a version nor stamp a row.
const COUNT_ACCOUNT: &str = "update supply_accounts
set total_requests = total_requests + 1, total_tokens = total_tokens + $1, total_cost = total_cost + $2, success_rate = $3
where id = $4 and tenant_id = $5";
const COUNT_PACKAGE: &str =
    "update supply_packages set total_revenue = total_revenue + $1 where id = $2 and tenant_id = $3";

/// Most tokens of one direction that a call may report.
const TOKENS_MAX: u64 = 1_000_000_000_000;

/// `POST /api/v1/platform/usage-records`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordUsage {
    /// Of which order.
    pub order_id: i64,
    /// The buyer's key that it was made with.
    pub api_key_id: i64,
    /// The call's own id; with tenant and key what makes it that call. `1..=64` characters.
    pub request_id: String,
    /// What it used.
    pub tokens: Tokens,
    /// How it went.
    pub call: Call,
}

/// How a call went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Whether it is charged.
    pub ending: Ending,
    /// The route that was called, `1..=200` characters.
    pub endpoint: String,
    /// The provider's id of it, at most 128 characters.
    pub upstream_request_id: Option<String>,
    /// Status of the answer, `100..=599`.
    pub response_status: u16,
    /// How long it took, in milliseconds.
    pub latency_ms: u32,
    /// What went wrong, redacted, at most 500 characters.
    pub error_message: Option<String>,
    /// When it began.
    pub started_at: Time,
    /// When it was over.
    pub completed_at: Time,
}

/// Whether a call is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is.
    Success,
    /// It costs nothing and earns nothing.
    Failure,
}

/// What it decides from.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) found: Option<Found>,
    pub(super) books: Books,
    /// The call, where it is on record.
    pub(super) recorded: Option<Recorded>,
    /// Whether the key is one of the buyer's.
    pub(super) key_known: bool,
    /// Calls of the account so far, and how many hundredths of them went well, in steps of 10^-6.
    pub(super) statistics: (i64, i64),
    pub(super) record: i64,
    pub(super) earning: i64,
}

/// What a call costs and uses.
pub(super) struct Charged {
    pub(super) split: Split,
    pub(super) used: Quota,
    pub(super) remaining: Quota,
}

impl RecordUsage {
    fn fields(&self) -> Result<(), Refusal> {
        let Call { endpoint, upstream_request_id, error_message, .. } = &self.call;
        let fits =
            |text: &Option<String>, most| text.as_ref().is_none_or(|text| text.chars().count() <= most);
        fields::checked(&[
            ("request_id", "text", is_text(&self.request_id, 64)),
            ("request_tokens", "range", self.tokens.input <= TOKENS_MAX),
            ("response_tokens", "range", self.tokens.output <= TOKENS_MAX),
            ("endpoint", "text", is_text(endpoint, 200)),
            ("upstream_request_id", "length", fits(upstream_request_id, 128)),
            ("error_message", "length", fits(error_message, 500)),
            ("response_status", "range", (100..=599).contains(&self.call.response_status)),
            ("completed_at", "after_started_at", self.call.completed_at >= self.call.started_at),
        ])
    }

    /// Whether the order may be used by this call at all.
    fn open(&self, order: &Order) -> Result<(), Refusal> {
        if !order.is_open() {
            return Err(order.conflict());
        }
        if order.expired_at.is_some_and(|end| end <= self.call.started_at) {
            let refusal = Refusal::of(Code::OrdState).with("status", OrderStatus::Expired.as_str());
            return Err(order.refuse(refusal));
        }
        Ok(())
    }

    /// Charge and quota of the call.
    fn charged(&self, context: &Context, order: &Order, books: &Books) -> Result<Charged, Stop> {
        let currency = order.currency;
        if self.call.ending == Ending::Failure {
            let none = Money::zero(currency);
            return Ok(Charged {
                split: Split::of(none, none)?,
                used: order.used,
                remaining: order.remaining,
            });
        }
        let left = books.balance(Account::escrow(ids::Order(order.id)), currency)?;
        let short = || {
            let refusal = Refusal::of(Code::OrdCalls).with("remaining_quota", order.remaining);
            order.refuse(refusal.with("escrow_left", left))
        };
        let units = match order.unit {
            QuotaUnit::Token | QuotaUnit::Credit => self.tokens.input.saturating_add(self.tokens.output),
            QuotaUnit::Request => 1,
        };
        let used = Quota::whole(units, order.unit).map_err(|_| short())?;
        let remaining = order.remaining.minus(used).map_err(|_| short())?;
        let charge = order.prices().charge(self.tokens, currency).map_err(|_| short())?;
        if charge.exceeds(left)? && order.unit == QuotaUnit::Request {
            return Err(short().into());
        }
        let split = Split::of_charge(charge.least(left)?, context.house.policy.platform_fee_rate)?;
        Ok(Charged { split, used: order.used.plus(used)?, remaining })
    }

    /// The order as this call leaves it.
    fn order_row(context: &Context, order: &Order, charged: &Charged, at: Time) -> Result<Write, Stop> {
        let (status, reason) = Self::end(charged);
        let fees = order.platform_fee.plus(charged.split.fee())?;
        let earned = order.supplier_earnings.plus(charged.split.rest())?;
        let counts = [charged.used.count(), charged.remaining.count(), fees.count(), earned.count()];
        let mut row = values![status.as_str(), reason];
        row.extend(counts.map(Value::Money));
        row.extend(context.stamp(at));
        row.extend(values![order.id, order.tenant_id, order.version]);
        Ok(Write::one("order.use", USE, row))
    }

    const fn end(charged: &Charged) -> (OrderStatus, Option<&'static str>) {
        if charged.remaining.is_zero() {
            (OrderStatus::Expired, Some(USED_UP))
        } else {
            (OrderStatus::Using, None)
        }
    }

    /// What account and package count.
    fn statistics(&self, found: &Found, state: &State, split: Split) -> Vec<Write> {
        let (calls, rate) = state.statistics;
        let tokens = i64::try_from(self.tokens.input.saturating_add(self.tokens.output)).unwrap_or(i64::MAX);
        let well = if self.call.ending == Ending::Success { 100_000_000 } else { 0 };
        let rate = (i128::from(rate) * i128::from(calls) + well) / (i128::from(calls) + 1);
        let rate = Value::Money(i64::try_from(rate).unwrap_or_default());
        let cost = Value::Money(split.whole().count());
        let (account, package) = (&found.account, &found.package);
        let row = [vec![tokens.into(), cost.clone(), rate], values![account.id, account.tenant_id]].concat();
        let mut writes = vec![Write::one("account.count", COUNT_ACCOUNT, row)];
        if split.whole().sign().is_gt() {
            let row = [vec![cost], values![package.id, package.tenant_id]].concat();
            writes.push(Write::one("package.count", COUNT_PACKAGE, row));
        }
        writes
    }

    /// What the supplier earns, if anything.
    fn earning<'a>(
        &'a self,
        context: &Context,
        state: &State,
        (order, split): (&Order, Split),
        at: Time,
    ) -> Option<NewEarning<'a>> {
        split.rest().sign().is_gt().then(|| NewEarning {
            id: state.earning,
            owner: (order.tenant_id, order.supplier_user_id),
            origin: Origin {
                account_id: Some(order.supply_account_id),
                order_id: Some(order.id),
                usage_record_id: Some(state.record),
            },
            kind: "usage",
            amount: split.rest(),
            available: Money::zero(order.currency),
            status: "pending",
            description: "",
            available_at: at.plus(context.house.policy.earnings_hold),
            request_id: &self.request_id,
        })
    }

    /// All rows of a call that is charged, or failed.
    fn writes(
        &self,
        context: &Context,
        state: &State,
        (found, charged): (&Found, &Charged),
        at: Time,
    ) -> Result<Vec<Write>, Stop> {
        let (order, split) = (&found.order, charged.split);
        let (order_id, supplier) = (ids::Order(order.id), ids::Supplier(order.supplier_user_id));
        let mut books = state.books.clone();
        let mut writes = self.statistics(found, state, split);
        writes.push(self.insert(context, (state.record, order), split, at)?);
        if let Some(earning) = self.earning(context, state, (order, split), at) {
            writes.push(insert(context, &earning, at));
        }
        if let Some(journal) = posting::usage(ids::Usage(state.record), order_id, supplier, split)? {
            writes.extend(books.post(context, &journal, at)?);
        }
        if self.call.ending == Ending::Success {
            writes.push(Self::order_row(context, order, charged, at)?);
            if charged.remaining.is_zero() {
                writes.extend(give_rest_back(context, &mut books, order, at)?);
            }
        }
        writes.extend(books.balances_of_a_call(at));
        Ok(writes)
    }

    /// The answer that the first report of the call got, or that this one differs.
    fn again(&self, order: &Order, recorded: &Recorded) -> Result<Change, Stop> {
        if !recorded.is_of(self) {
            let refusal = Refusal::of(Code::ComUsage).with("usage_record_id", recorded.id);
            return Err(order.refuse(refusal).into());
        }
        let change = Change::of(order.object(), &recorded.data())?;
        let metadata = json!({ "usage_record_id": recorded.id, "repeated": true });
        Ok(Change { before: order.state(), after: order.state(), metadata, ..change })
    }
}

impl Action for RecordUsage {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.order.use"
    }

    fn object(&self) -> Object {
        Object::row(Order::KIND, self.order_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    /// The record is looked for after the locks: of two reports the second sees what the first wrote.
    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let mut queries = found::load(context, self.order_id);
        queries.extend([
            found::all_books(self.order_id),
            self.find(),
            Query::new("usage.key", KEY, values![self.api_key_id, self.order_id]),
            Query::new("usage.statistics", STATISTICS, values![self.order_id]),
            Query::new("usage.next", NEXT, vec![]),
        ]);
        queries
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let (found, rest) = found::read(rows)?;
        let [books, recorded, key, statistics, next] = rest else { return Err(damaged()) };
        let statistics = statistics.first().map(|row| {
            let mut reader = Reader::new(row);
            Ok::<_, Error>((reader.int()?, reader.int()?))
        });
        let mut next = Reader::new(next.first().ok_or_else(damaged)?);
        Ok(State {
            found,
            books: Books::read(books)?,
            recorded: recorded.first().map(Recorded::read).transpose()?,
            key_known: !key.is_empty(),
            statistics: statistics.transpose()?.unwrap_or_default(),
            record: next.int()?,
            earning: next.int()?,
        })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        self.fields()?;
        let found = found::known(state.found.as_ref())?;
        let order = &found.order;
        if let Some(recorded) = &state.recorded {
            return self.again(order, recorded);
        }
        if !state.key_known {
            return Err(order.refuse(fields::refused("api_key_id", "unknown")).into());
        }
        self.open(order)?;
        let charged = self.charged(context, order, &state.books)?;
        let writes = self.writes(context, state, (found, &charged), at)?;
        let after = match self.call.ending {
            Ending::Success => {
                let (status, reason) = Self::end(&charged);
                order.after(status, reason)
            }
            Ending::Failure => order.state(),
        };
        let closed = self.call.ending == Ending::Success && charged.remaining.is_zero();
        let events = closed.then(|| order.told("supply.order.close.succeeded", &after));
        let earning = charged.split.rest().sign().is_gt().then_some(state.earning);
        let recorded = Recorded::of(self, (state.record, earning), charged.split, at);
        let metadata =
            json!({ "usage_record_id": state.record, "charge_minor": charged.split.whole().minor() });
        let change = Change::of(order.object(), &recorded.data())?;
        let events = events.into_iter().collect();
        // The last call's row is the close's (section 16.2): one row a request and object.
        let audited_as = closed.then_some("supply.order.close");
        Ok(Change { audited_as, before: order.state(), after, metadata, writes, events, ..change })
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let order = &state.found.as_ref()?.order;
        Some(match write {
            // On record since, for another order: otherwise it would have been found.
            "usage.insert" => order.refuse(Refusal::of(Code::ComUsage)),
            _ => order.conflict(),
        })
    }
}
