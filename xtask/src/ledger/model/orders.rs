//! Sections 5.4, 5.5 and 6.3: what buyers pay in, order, use and get back.

use serde_json::Value as Json;

use super::books::{Account, platform};
use super::figures::{MINOR, charge, escrow, platform_fee};
use super::packages::Stage;
use super::{Decided, Model, earnings, id};
use crate::ledger::command::{By, Capacity, What};

const PAY_WITHIN: i64 = 15 * 60 * 1_000_000;

/// States of section 6.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum Status {
    Pending,
    Paid,
    Using,
    Expired,
    Refunded,
}

impl Status {
    pub(in crate::ledger) const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Using => "using",
            Self::Expired => "expired",
            Self::Refunded => "refunded",
        }
    }
}

/// An order.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Order {
    pub(in crate::ledger) buyer: i64,
    buyer_tenant: i64,
    /// The supplier's.
    pub(in crate::ledger) tenant: i64,
    package: i64,
    pub(in crate::ledger) quota: i128,
    pub(in crate::ledger) used: i128,
    prices: (i128, i128),
    pub(in crate::ledger) total: i128,
    pub(in crate::ledger) fees: i128,
    pub(in crate::ledger) earned: i128,
    pub(in crate::ledger) status: Status,
    /// Why it is over; `-` before.
    pub(in crate::ledger) reason: &'static str,
    created: i64,
    ends: i64,
}

/// A call on record.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Call {
    order: i64,
    tokens: (u64, u64),
    success: bool,
    pub(in crate::ledger) charge: i128,
    pub(in crate::ledger) fee: i128,
    record: i64,
    earning: Option<i64>,
}

const fn prepaid(buyer: i64) -> Account {
    ("buyer", buyer, "buyer_prepaid")
}

const fn held(order: i64) -> Account {
    ("order", order, "order_escrow")
}

impl Order {
    const fn is_open(&self) -> bool {
        matches!(self.status, Status::Paid | Status::Using)
    }
}

impl Model {
    /// The order, if the caller may see it: its buyer, or for the platform either side.
    fn order(&self, by: By, order: i64) -> Result<Order, &'static str> {
        let platform = by.capacity != Capacity::User;
        let mine =
            |order: &&Order| order.buyer_tenant == by.tenant || (platform && order.tenant == by.tenant);
        self.orders.get(&order).filter(mine).cloned().ok_or("SUP_ORD_4041")
    }

    pub(super) fn top_up(&mut self, by: By, buyer: i64, amount: i128) -> Decided {
        self.buyers.get(&buyer).filter(|known| known.tenant == by.tenant).ok_or("SUP_COM_4041")?;
        if amount <= 0 || amount % MINOR != 0 {
            return Err("SUP_COM_4001");
        }
        self.books.post("J-TOPUP", &[(platform("cash_clearing"), amount)], &[(prepaid(buyer), amount)]);
        Ok(vec![("amount_minor", amount), ("balance_minor", self.books.of(prepaid(buyer)))])
    }

    pub(super) fn create(
        &mut self,
        by: By,
        (buyer, package, quota): (i64, i64, i128),
        time: i64,
        data: &Json,
    ) -> Decided {
        self.buyers.get(&buyer).filter(|known| known.tenant == by.tenant).ok_or("SUP_COM_4041")?;
        let found = self.packages.of(package).filter(|found| found.stage != Stage::Draft);
        let found = found.cloned().ok_or("SUP_PKG_4041")?;
        if found.stage != Stage::Active || found.ends <= time {
            return Err("SUP_PKG_4091");
        }
        // Tokens are whole.
        if quota < found.least || quota > found.available || quota % MINOR != 0 {
            return Err("SUP_ORD_4001");
        }
        let total = escrow(quota, found.prices.0.max(found.prices.1));
        self.packages.shift(package, (-quota, quota, 0));
        let number = id(data, "order_id");
        let order = Order {
            buyer,
            buyer_tenant: by.tenant,
            tenant: found.tenant,
            package,
            quota,
            used: 0,
            prices: found.prices,
            total,
            fees: 0,
            earned: 0,
            status: Status::Pending,
            reason: "-",
            created: time,
            ends: 0,
        };
        self.books.open("order", number, "order_escrow");
        let known = self.orders.insert(number, order);
        if known.is_some() {
            self.books.broken.push(format!("order {number} is made twice"));
        }
        Ok(vec![("total_amount_minor", total)])
    }

    pub(super) fn pay(&mut self, by: By, number: i64, time: i64) -> Decided {
        let order = self.order(by, number)?;
        let ends = self.packages.of(order.package).map_or(0, |package| package.ends);
        if order.status != Status::Pending || order.created + PAY_WITHIN <= time || ends <= time {
            return Err("SUP_ORD_4091");
        }
        if order.total > self.books.of(prepaid(order.buyer)) {
            return Err("SUP_ORD_4021");
        }
        self.packages.shift(order.package, (0, -order.quota, order.quota));
        self.packages.account_of(order.package, |account| account.frozen -= order.quota);
        let (from, to) = ((prepaid(order.buyer), order.total), (held(number), order.total));
        self.books.post("J-ORDER-PAY", &[from], &[to]);
        let total = order.total;
        self.orders.insert(number, Order { status: Status::Paid, ends, ..order });
        Ok(vec![("total_amount_minor", total)])
    }

    /// By its buyer, or after its time by the system.
    pub(super) fn cancel_order(&mut self, by: By, number: i64, timed_out: Option<i64>) -> Decided {
        let order = self.order(by, number)?;
        let early = timed_out.is_some_and(|time| order.created + PAY_WITHIN > time);
        if order.status != Status::Pending || early {
            return Err("SUP_ORD_4091");
        }
        self.packages.shift(order.package, (order.quota, -order.quota, 0));
        if self.packages.of(order.package).is_some_and(|package| package.stage == Stage::Expired) {
            self.packages.account_of(order.package, |account| {
                account.available += order.quota;
                account.frozen -= order.quota;
            });
        }
        let reason = if timed_out.is_some() { "payment_timeout" } else { "buyer_cancelled" };
        self.orders.insert(number, Order { status: Status::Expired, reason, ..order });
        Ok(vec![])
    }

    /// What is left of the escrow goes back.
    fn give_rest_back(&mut self, number: i64, buyer: i64) -> i128 {
        let rest = self.books.of(held(number));
        self.books.post("J-ORDER-CLOSE", &[(held(number), rest)], &[(prepaid(buyer), rest)]);
        rest
    }

    pub(super) fn close(&mut self, by: By, number: i64, time: i64) -> Decided {
        let order = self.order(by, number)?;
        if !order.is_open() || (order.used < order.quota && order.ends > time) {
            return Err("SUP_ORD_4091");
        }
        self.give_rest_back(number, order.buyer);
        let reason = if order.used < order.quota { "validity_ended" } else { "quota_used_up" };
        self.orders.insert(number, Order { status: Status::Expired, reason, ..order });
        Ok(vec![])
    }

    pub(super) fn refund(&mut self, by: By, number: i64, charge: Option<i128>) -> Decided {
        let order = self.order(by, number)?;
        if !order.is_open() {
            return Err("SUP_ORD_4091");
        }
        let charged = order.fees + order.earned;
        let amount = charge.unwrap_or(charged);
        if amount < 0 || amount > charged {
            return Err("SUP_COM_4001");
        }
        // The sum of fees that were rounded one by one is not the fee of the sum: neither side gives back more
        // than the order's calls brought it.
        let fee = platform_fee(amount).min(order.fees).max(amount - order.earned);
        let left = order.quota - order.used;
        self.packages.shift(order.package, (left, 0, -left));
        let over = self.packages.of(order.package).is_some_and(|package| package.stage == Stage::Expired);
        self.packages.account_of(order.package, |account| {
            if over {
                account.available += left;
            } else {
                account.frozen += left;
            }
        });
        self.take_back(order.tenant, order.buyer, (amount, fee));
        let rest = self.give_rest_back(number, order.buyer);
        self.orders.insert(number, Order { status: Status::Refunded, reason: "refunded", ..order });
        Ok(vec![("refunded_amount_minor", amount), ("returned_amount_minor", rest)])
    }

    /// J-REFUND: of the supplier first what is pending, then what is available, the rest is owed.
    fn take_back(&mut self, tenant: i64, buyer: i64, (amount, fee): (i128, i128)) {
        let user = self.suppliers.get(&tenant).map_or(0, |supplier| supplier.user);
        let of = |code| ("supplier", user, code);
        let side = amount - fee;
        let pending = side.min(self.books.of(of("supplier_pending")));
        let available = (side - pending).min(self.books.of(of("supplier_available")));
        let owed = side - pending - available;
        if side > 0 {
            self.taken_back.0 += 1;
            self.taken_back.1 += side;
        }
        let debits = [
            (of("supplier_pending"), pending),
            (of("supplier_available"), available),
            (of("supplier_receivable"), owed),
            (platform("platform_fee_revenue"), fee),
        ];
        self.books.post("J-REFUND", &debits, &[(prepaid(buyer), amount)]);
        self.reverse(tenant, earnings::Side::Held, pending);
        self.reverse(tenant, earnings::Side::Released, available);
    }

    pub(super) fn call(&mut self, what: &What, by: By, time: i64, data: &Json) -> Decided {
        let What::Use { order: number, key, call, tokens, success, started } = what else {
            return Ok(vec![]);
        };
        let order = self.order(by, *number)?;
        let name = (order.buyer_tenant, *key, call.clone());
        if let Some(known) = self.calls.get(&name) {
            let same = (known.order, known.tokens, known.success) == (*number, *tokens, *success);
            return if same { Ok(told(known)) } else { Err("SUP_COM_4092") };
        }
        if self.buyers.get(&order.buyer).is_none_or(|buyer| buyer.key != *key) {
            return Err("SUP_COM_4001");
        }
        if !order.is_open() || order.ends <= *started {
            return Err("SUP_ORD_4091");
        }
        let used = if *success { i128::from(tokens.0 + tokens.1) * MINOR } else { 0 };
        if order.used + used > order.quota {
            return Err("SUP_ORD_4022");
        }
        let cost = if *success { charge(*tokens, order.prices) } else { 0 };
        // Within the quota only roundings can make it more than what is left, and they are not the buyer's.
        let cost = cost.min(self.books.of(held(*number)));
        let (record, earning) = (id(data, "usage_record_id"), data.get("earning_id").and_then(Json::as_i64));
        let fee = platform_fee(cost);
        let call =
            Call { order: *number, tokens: *tokens, success: *success, charge: cost, fee, record, earning };
        if (cost > fee) != earning.is_some() {
            self.books.broken.push(format!("the answer to {what:?} must name an earning or none: {data}"));
        }
        let figures = told(&call);
        self.calls.insert(name, call);
        if *success {
            self.used(*number, order, (used, cost, fee), (time, earning));
        }
        Ok(figures)
    }

    fn used(
        &mut self,
        number: i64,
        mut order: Order,
        (used, cost, fee): (i128, i128, i128),
        (time, earning): (i64, Option<i64>),
    ) {
        let user = self.suppliers.get(&order.tenant).map_or(0, |supplier| supplier.user);
        let credits =
            [(("supplier", user, "supplier_pending"), cost - fee), (platform("platform_fee_revenue"), fee)];
        self.books.post("J-USAGE", &[(held(number), cost)], &credits);
        if let Some(earning) = earning {
            self.earn(order.tenant, earning, cost - fee, time);
        }
        order.used += used;
        order.fees += fee;
        order.earned += cost - fee;
        order.status = Status::Using;
        if order.used == order.quota {
            (order.status, order.reason) = (Status::Expired, "quota_used_up");
            self.give_rest_back(number, order.buyer);
        }
        self.orders.insert(number, order);
    }
}

/// What every report of a call is answered.
fn told(call: &Call) -> Vec<(&'static str, i128)> {
    let mut figures = vec![
        ("total_cost_minor", call.charge),
        ("platform_fee_minor", call.fee),
        ("usage_record_id", i128::from(call.record)),
    ];
    figures.extend(call.earning.map(|earning| ("earning_id", i128::from(earning))));
    figures
}
