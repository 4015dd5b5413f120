//! Section 6.5 and check 4 of section 11.5: what suppliers earn, in parts.

use serde_json::Value as Json;

use super::books::{Account, platform};
use super::{Decided, Model, id};
use crate::ledger::command::By;

const HOLD: i64 = 7 * 86_400 * 1_000_000;

/// An earning and its parts.
#[derive(Clone, Debug, Default)]
pub(in crate::ledger) struct Earning {
    pub(in crate::ledger) tenant: i64,
    pub(in crate::ledger) amount: i128,
    pub(in crate::ledger) available: i128,
    pub(in crate::ledger) frozen: i128,
    pub(in crate::ledger) withdrawn: i128,
    pub(in crate::ledger) reversed: i128,
    pub(in crate::ledger) is_released: bool,
    pub(in crate::ledger) available_at: i64,
}

impl Earning {
    /// Derived from the parts.
    pub(in crate::ledger) const fn status(&self) -> &'static str {
        match () {
            () if !self.is_released => "pending",
            () if self.frozen > 0 => "frozen",
            () if self.available > 0 => "available",
            () => "withdrawn",
        }
    }
}

/// Which earnings a sum is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Held,
    Released,
}

impl Model {
    /// An account of the supplier of a tenant.
    pub(super) fn of_supplier(&self, tenant: i64, code: &'static str) -> Account {
        ("supplier", self.suppliers.get(&tenant).map_or(0, |supplier| supplier.user), code)
    }

    /// A new earning whose hold begins.
    pub(super) fn earn(&mut self, tenant: i64, earning: i64, amount: i128, time: i64) {
        let available_at = time + HOLD;
        let new = Earning { tenant, amount, available_at, ..Earning::default() };
        if self.earnings.insert(earning, new).is_some() {
            self.books.broken.push(format!("earning {earning} is made twice"));
        }
        if let Some(supplier) = self.suppliers.get_mut(&tenant) {
            supplier.held.insert((available_at, earning));
        }
    }

    pub(super) fn bonus(&mut self, by: By, amount: i128, time: i64, data: &Json) -> Decided {
        self.supplier_of(by).ok_or("SUP_COM_4041")?;
        if amount <= 0 {
            return Err("SUP_COM_4001");
        }
        let pending = self.of_supplier(by.tenant, "supplier_pending");
        self.books.post("J-BONUS", &[(platform("bonus_expense"), amount)], &[(pending, amount)]);
        self.earn(by.tenant, id(data, "earning_id"), amount, time);
        Ok(vec![("amount_minor", amount)])
    }

    /// A bonus row that is released at once.
    pub(super) fn compensate_supplier(
        &mut self,
        by: By,
        user: i64,
        (amount, time): (i128, i64),
        data: &Json,
    ) -> Decided {
        self.supplier_of(by).filter(|supplier| supplier.user == user).ok_or("SUP_COM_4041")?;
        if amount <= 0 {
            return Err("SUP_COM_4001");
        }
        let available = self.of_supplier(by.tenant, "supplier_available");
        let expense = platform("compensation_expense");
        self.books.post("J-COMPENSATE", &[(expense, amount)], &[(available, amount)]);
        let earning = id(data, "earning_id");
        self.earn(by.tenant, earning, amount, time);
        self.change(earning, |earning| {
            (earning.available_at, earning.is_released, earning.available) = (time, true, amount);
        });
        Ok(vec![("amount_minor", amount)])
    }

    pub(super) fn compensate_buyer(&mut self, by: By, buyer: i64, amount: i128) -> Decided {
        self.buyers.get(&buyer).filter(|known| known.tenant == by.tenant).ok_or("SUP_COM_4041")?;
        if amount <= 0 {
            return Err("SUP_COM_4001");
        }
        let to = ("buyer", buyer, "buyer_prepaid");
        self.books.post("J-COMPENSATE", &[(platform("compensation_expense"), amount)], &[(to, amount)]);
        Ok(vec![("amount_minor", amount)])
    }

    /// The unreversed part becomes available; of it a debt is paid first.
    pub(super) fn release(&mut self, by: By, number: i64, time: i64) -> Decided {
        let earning = self.earnings.get(&number).filter(|earning| earning.tenant == by.tenant);
        let earning = earning.ok_or("SUP_COM_4041")?;
        if earning.is_released || earning.available_at > time {
            return Err("SUP_COM_4091");
        }
        let released = earning.amount - earning.reversed;
        self.change(number, |earning| {
            (earning.is_released, earning.available) = (true, released);
        });
        let [pending, available, receivable] =
            ["supplier_pending", "supplier_available", "supplier_receivable"]
                .map(|code| self.of_supplier(by.tenant, code));
        self.books.post("J-RELEASE", &[(pending, released)], &[(available, released)]);
        let recovered = released.min(self.books.of(receivable));
        self.books.post("J-RECOVER", &[(available, recovered)], &[(receivable, recovered)]);
        self.reverse(by.tenant, Side::Released, recovered);
        Ok(vec![("released_amount_minor", released), ("recovered_amount_minor", recovered)])
    }

    /// Changes an earning, and where it stands in the order of those that can be taken from.
    pub(super) fn change(&mut self, number: i64, change: impl FnOnce(&mut Earning)) {
        let Some(earning) = self.earnings.get_mut(&number) else { return };
        let Some(supplier) = self.suppliers.get_mut(&earning.tenant) else { return };
        let place = (earning.available_at, number);
        supplier.held.remove(&place);
        supplier.released.remove(&place);
        change(earning);
        let place = (earning.available_at, number);
        if !earning.is_released && earning.reversed < earning.amount {
            supplier.held.insert(place);
        }
        if earning.is_released && earning.available > 0 {
            supplier.released.insert(place);
        }
        let parts = [earning.available, earning.frozen, earning.withdrawn, earning.reversed];
        let whole = if earning.is_released { earning.amount } else { earning.reversed };
        if parts.iter().any(|part| *part < 0) || parts.iter().sum::<i128>() != whole {
            self.books.broken.push(format!("earning {number} has parts that are not its whole: {earning:?}"));
        }
    }

    /// The oldest earnings of a side until they hold a sum: which, and how much of each.
    pub(super) fn oldest(&self, tenant: i64, side: Side, sum: i128) -> Vec<(i64, i128)> {
        let Some(supplier) = self.suppliers.get(&tenant) else { return Vec::new() };
        let lots = if side == Side::Held { &supplier.held } else { &supplier.released };
        let mut left = sum;
        let mut taken = Vec::new();
        for (_, number) in lots {
            let Some(earning) = self.earnings.get(number).filter(|_| left > 0) else { break };
            let there =
                if side == Side::Held { earning.amount - earning.reversed } else { earning.available };
            taken.push((*number, there.min(left)));
            left -= there.min(left);
        }
        taken
    }

    /// Takes a sum back, of the oldest first.
    pub(super) fn reverse(&mut self, tenant: i64, side: Side, sum: i128) {
        for (number, amount) in self.oldest(tenant, side, sum) {
            self.change(number, |earning| {
                earning.reversed += amount;
                if side == Side::Released {
                    earning.available -= amount;
                }
            });
        }
    }
}
