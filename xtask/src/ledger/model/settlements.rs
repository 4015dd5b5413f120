//! Sections 6.4, 11.4 and 12: withdrawals and what becomes of them.

use serde_json::Value as Json;

use super::books::platform;
use super::earnings::Side;
use super::figures::{MINOR, midnight, read_major, withdraw_fee};
use super::{Decided, Model, id};
use crate::ledger::command::By;

const SECOND: i64 = 1_000_000;
const COOL_DOWN: i64 = 900 * SECOND;
const REVIEW: i64 = 900 * SECOND;
const LEAST: i128 = 1_000 * MINOR;
const MOST: i128 = 5_000_000 * MINOR;
const MOST_A_DAY: i128 = 20_000_000 * MINOR;
const CODE_LIFE: i64 = 300 * SECOND;
const CODE_PAUSE: i64 = 60 * SECOND;
const CODES_A_DAY: usize = 10;
const TRIES: u32 = 5;

/// A code that was sent.
#[derive(Debug)]
pub(in crate::ledger) struct Code {
    code_ref: String,
    /// When, and which row: the newest one counts.
    sent: (i64, i64),
    tries: u32,
    is_used: bool,
}

/// Where a settlement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum State {
    Pending,
    Processing,
    Completed,
    Failed(&'static str),
}

impl State {
    pub(in crate::ledger) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Pending => ("pending", "-"),
            Self::Processing => ("processing", "-"),
            Self::Completed => ("completed", "-"),
            Self::Failed(reason) => ("failed", reason),
        }
    }
}

/// A settlement and what it was taken from.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Settlement {
    pub(in crate::ledger) tenant: i64,
    pub(in crate::ledger) total: i128,
    pub(in crate::ledger) fee: i128,
    pub(in crate::ledger) state: State,
    pub(in crate::ledger) is_returned: bool,
    pub(in crate::ledger) created: i64,
    processing: Option<i64>,
    pub(in crate::ledger) items: Vec<(i64, i128)>,
}

/// What can become of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Cancel,
    Reject,
    Start,
    Complete,
    Fail,
    Return,
}

impl Model {
    /// Every code of every supplier: row, wrong tries, whether it is used.
    pub(in crate::ledger) fn codes(&self) -> impl Iterator<Item = (i64, u32, bool)> {
        let all = self.suppliers.values().flat_map(|supplier| &supplier.codes);
        all.map(|code| (code.sent.1, code.tries, code.is_used))
    }

    pub(super) fn send_code(&mut self, by: By, time: i64, made: Option<&(String, i64)>) -> Decided {
        let supplier = self.suppliers.get_mut(&by.tenant).ok_or("SUP_SET_4095")?;
        let today = supplier.codes.iter().filter(|code| code.sent.0 >= midnight(time)).count();
        let last = supplier.codes.iter().map(|code| code.sent.0).max();
        if today >= CODES_A_DAY || last.is_some_and(|last| time < last + CODE_PAUSE) {
            return Err("SUP_SET_4292");
        }
        if let Some((code_ref, row)) = made {
            let sent = (time, *row);
            supplier.codes.push(Code { code_ref: code_ref.clone(), sent, tries: 0, is_used: false });
        }
        Ok(vec![("expires_in_seconds", 300)])
    }

    /// `payee`: an account that the method knows begins with "1"; that is all that is sent here.
    pub(super) fn withdraw(
        &mut self,
        by: By,
        (amount, given, payee): (&str, &str, &str),
        time: i64,
        data: &Json,
    ) -> Decided {
        let total = read_major(amount).filter(|total| *total > 0).ok_or("SUP_SET_4004")?;
        match () {
            () if !payee.starts_with('1') => return Err("SUP_SET_4002"),
            () if total < LEAST => return Err("SUP_SET_4005"),
            () if total > MOST => return Err("SUP_SET_4006"),
            () => {}
        }
        let available = self.of_supplier(by.tenant, "supplier_available");
        let supplier = self.suppliers.get(&by.tenant).ok_or("SUP_SET_4095")?;
        let all = || supplier.settlements.iter().filter_map(|number| self.settlements.get(number));
        if all().any(|each| matches!(each.state, State::Pending | State::Processing)) {
            return Err("SUP_SET_4091");
        }
        if all().filter_map(|each| each.processing).max().is_some_and(|since| time < since + COOL_DOWN) {
            return Err("SUP_SET_4291");
        }
        let counts =
            |each: &&Settlement| each.created >= midnight(time) && !matches!(each.state, State::Failed(_));
        if all().filter(counts).map(|each| each.total).sum::<i128>() + total > MOST_A_DAY {
            return Err("SUP_SET_4007");
        }
        if total > self.books.of(available) / MINOR * MINOR {
            return Err("SUP_SET_4001");
        }
        self.code_is_right(by, given, time)?;
        let fee = withdraw_fee(total);
        self.settle(by.tenant, (total, fee), time, id(data, "settlement_id"));
        Ok(vec![("total_amount_minor", total), ("fee_amount_minor", fee), ("net_amount_minor", total - fee)])
    }

    /// The newest code, alive; used up by the right answer, and one try the poorer by a wrong one.
    fn code_is_right(&mut self, by: By, given: &str, time: i64) -> Result<(), &'static str> {
        let refused = "SUP_SET_4003";
        let supplier = self.suppliers.get_mut(&by.tenant).ok_or(refused)?;
        let code = supplier.codes.iter_mut().max_by_key(|code| code.sent).ok_or(refused)?;
        if code.is_used || code.tries >= TRIES || code.sent.0 + CODE_LIFE <= time {
            return Err(refused);
        }
        if code.code_ref != given {
            code.tries += 1;
            return Err(refused);
        }
        code.is_used = true;
        Ok(())
    }

    fn settle(&mut self, tenant: i64, (total, fee): (i128, i128), time: i64, number: i64) {
        let items = self.oldest(tenant, Side::Released, total);
        for (earning, amount) in &items {
            self.change(*earning, |earning| {
                earning.available -= amount;
                earning.frozen += amount;
            });
        }
        let [available, frozen] =
            ["supplier_available", "supplier_frozen"].map(|code| self.of_supplier(tenant, code));
        self.books.post("J-WITHDRAW", &[(available, total)], &[(frozen, total)]);
        let (state, created) = (State::Pending, time);
        let settlement =
            Settlement { tenant, total, fee, state, is_returned: false, created, processing: None, items };
        if self.settlements.insert(number, settlement).is_some() {
            self.books.broken.push(format!("settlement {number} is made twice"));
        }
        if let Some(supplier) = self.suppliers.get_mut(&tenant) {
            supplier.settlements.push(number);
        }
    }

    pub(super) fn step(&mut self, by: By, number: i64, step: Step, time: i64) -> Decided {
        let found = self.settlements.get(&number).filter(|found| found.tenant == by.tenant);
        let mut found = found.cloned().ok_or("SUP_SET_4041")?;
        let conflict = Err("SUP_SET_4094");
        found.state = match (step, found.state) {
            (Step::Cancel, State::Pending) => State::Failed("cancelled"),
            (Step::Cancel, State::Processing | State::Completed) => return Err("SUP_SET_4092"),
            (Step::Reject, State::Pending) => State::Failed("risk_rejected"),
            (Step::Start, State::Pending) if found.created + REVIEW <= time => State::Processing,
            (Step::Complete, State::Processing) => State::Completed,
            (Step::Fail, State::Processing) => State::Failed("payout_failed"),
            (Step::Return, State::Completed) if !found.is_returned => State::Completed,
            _ => return conflict,
        };
        found.is_returned |= step == Step::Return;
        if step == Step::Start {
            found.processing = Some(time);
        }
        self.posted(&found, step);
        self.settlements.insert(number, found);
        Ok(vec![])
    }

    /// The journal of a step, and the parts of the earnings.
    fn posted(&mut self, found: &Settlement, step: Step) {
        let Settlement { tenant, total, fee, items, .. } = found;
        let [available, frozen] =
            ["supplier_available", "supplier_frozen"].map(|code| self.of_supplier(*tenant, code));
        let paid = [(platform("cash_clearing"), total - fee), (platform("withdraw_fee_revenue"), *fee)];
        match step {
            Step::Start => return,
            Step::Cancel | Step::Reject => {
                self.books.post("J-CANCEL", &[(frozen, *total)], &[(available, *total)]);
            }
            Step::Fail => self.books.post("J-PAYOUT-FAIL", &[(frozen, *total)], &[(available, *total)]),
            Step::Complete => self.books.post("J-PAYOUT-OK", &[(frozen, *total)], &paid),
            Step::Return => self.books.post("J-PAYOUT-RETURN", &paid, &[(available, *total)]),
        }
        for (earning, amount) in items {
            self.change(*earning, |earning| match step {
                Step::Complete => {
                    earning.frozen -= amount;
                    earning.withdrawn += amount;
                }
                Step::Return => {
                    earning.withdrawn -= amount;
                    earning.available += amount;
                }
                _ => {
                    earning.frozen -= amount;
                    earning.available += amount;
                }
            });
        }
    }
}
