//! A small marketplace that posts through the ledger's public interface: one supplier, one buyer, one open
//! order at a time. After each step every check of section 11.5 is asked.

use kernel::Time;
use kernel::money::{Currency, Money, Rate, Sum};
use ledger::check::{self, Object, Rule, SettlementState, SettlementSums};
use ledger::draw::{self, Item, Lot};
use ledger::ids::{Buyer, Compensation, Earning, Order, Refund, Settlement, Supplier, Topup, Usage};
use ledger::posting::{self, Beneficiary};
use ledger::{Account, Balances, Direction, Error, Held, Journal, JournalKind, Reversal, Split};

pub(crate) const CNY: Currency = Currency::CNY;
const A: Supplier = Supplier(1);
const B: Buyer = Buyer(2);

/// What happens next; amounts are counts of 10^-6 minor units, `pick` chooses among what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Topup(i64),
    Pay(i64),
    Use(i64),
    Bonus(i64),
    Release(usize),
    Withdraw(i64),
    Cancel,
    PayoutOk,
    PayoutFail,
    PayoutReturn(usize),
    Refund(i64),
    Close,
    Compensate(i64),
    CompensateBuyer(i64),
}

/// Whether an earning's hold is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Running,
    Over,
}

/// A row of `supply_earnings` (section 5.6).
#[derive(Debug)]
struct EarningParts {
    earning: Earning,
    amount: Money,
    available: Money,
    frozen: Money,
    withdrawn: Money,
    reversed: Money,
    hold: Hold,
}

impl EarningParts {
    /// Released, it is the sum of its parts; before, nothing but a part of it may be reversed.
    fn adds_up(&self) -> bool {
        let parts = [self.available, self.frozen, self.withdrawn, self.reversed].map(Money::count);
        let (sum, amount) = (parts.iter().sum::<i64>(), self.amount.count());
        let right = match self.hold {
            Hold::Over => sum == amount,
            Hold::Running => sum == self.reversed.count() && sum <= amount,
        };
        right && parts.iter().all(|part| *part >= 0)
    }
}

struct Withdrawal {
    split: Split,
    items: Vec<Item>,
    state: SettlementState,
    kinds: Vec<JournalKind>,
}

#[derive(Default)]
pub(crate) struct World {
    held: Held,
    pub(crate) journals: Vec<Journal>,
    earnings: Vec<EarningParts>,
    settlements: Vec<Withdrawal>,
    order: Option<Order>,
    orders: i64,
}

fn cny(count: i64) -> Money {
    Money::from_count(count, CNY)
}

fn rate(text: &str) -> Rate {
    Rate::parse(text).unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self::default();
        for account in [
            Account::prepaid(B),
            Account::pending(A),
            Account::available(A),
            Account::frozen(A),
            Account::receivable(A),
        ] {
            world.held.hold(account, cny(0));
        }
        world
    }

    fn balance(&self, account: Account) -> Money {
        self.held.balance(account, CNY).unwrap()
    }

    fn next(&self) -> i64 {
        i64::try_from(self.journals.len()).unwrap() + 1
    }

    /// Posts, or changes nothing.
    fn post(&mut self, journal: Journal) -> Result<(), Error> {
        for posted in self.held.post(&journal)? {
            assert!(posted.entry.amount.sign().is_gt());
        }
        self.journals.push(journal);
        Ok(())
    }

    fn earn(&mut self, amount: Money) {
        let zero = cny(0);
        let earning = Earning(i64::try_from(self.earnings.len()).unwrap());
        self.earnings.push(EarningParts {
            earning,
            amount,
            available: zero,
            frozen: zero,
            withdrawn: zero,
            reversed: zero,
            hold: Hold::Running,
        });
    }

    /// What can be taken from each earning that is released, or that is not.
    fn lots(&self, hold: Hold) -> Vec<Lot> {
        let earnings = self.earnings.iter().filter(|parts| parts.hold == hold);
        let lot = |parts: &EarningParts| Lot {
            earning: parts.earning,
            available_at: Time::from_seconds(parts.earning.0 / 3),
            amount: match hold {
                Hold::Over => parts.available,
                Hold::Running => parts.amount.minus(parts.reversed).unwrap(),
            },
        };
        earnings.map(lot).collect()
    }

    fn shift(&mut self, items: &[Item], change: impl Fn(&mut EarningParts, Money)) {
        for item in items {
            let parts = self.earnings.iter_mut().find(|parts| parts.earning == item.earning).unwrap();
            change(parts, item.amount);
        }
    }

    fn reverse(&mut self, hold: Hold, amount: Money) {
        let items = draw::oldest_first(amount, &self.lots(hold)).unwrap();
        self.shift(&items, |parts, part| {
            parts.reversed = parts.reversed.plus(part).unwrap();
            if parts.hold == Hold::Over {
                parts.available = parts.available.minus(part).unwrap();
            }
        });
    }

    /// Takes a step. A refusal changes nothing; what does not apply now is passed over.
    pub(crate) fn take(&mut self, step: Step) -> Result<(), Error> {
        let id = self.next();
        match step {
            Step::Topup(count) => self.post(posting::topup(Topup(id), B, cny(count))?),
            Step::Pay(count) => self.pay(cny(count).floor_to_minor()),
            Step::Use(count) => self.call(id, cny(count)),
            Step::Bonus(count) => {
                self.post(posting::bonus(Earning(id), A, cny(count))?)?;
                self.earn(cny(count));
                Ok(())
            }
            Step::Release(pick) => self.release(pick),
            Step::Withdraw(count) => self.withdraw(cny(count).floor_to_minor()),
            Step::Cancel => self.close_settlement(SettlementState::Cancelled),
            Step::PayoutOk => self.close_settlement(SettlementState::Completed),
            Step::PayoutFail => self.close_settlement(SettlementState::PayoutFailed),
            Step::PayoutReturn(pick) => self.payout_return(pick),
            Step::Refund(count) => self.refund(id, cny(count)),
            Step::Close => self.close_order(),
            Step::Compensate(count) => {
                let to = Beneficiary::Supplier(A);
                self.post(posting::compensate(Compensation(id), to, cny(count))?)?;
                self.earn(cny(count));
                let parts = self.earnings.last_mut().unwrap();
                (parts.available, parts.hold) = (parts.amount, Hold::Over);
                Ok(())
            }
            Step::CompensateBuyer(count) => {
                self.post(posting::compensate(Compensation(id), Beneficiary::Buyer(B), cny(count))?)
            }
        }
    }

    fn pay(&mut self, total: Money) -> Result<(), Error> {
        if self.order.is_some() {
            return Ok(());
        }
        let order = Order(self.orders + 1);
        self.held.hold(Account::escrow(order), cny(0));
        self.post(posting::order_pay(order, B, total)?)?;
        (self.order, self.orders) = (Some(order), order.0);
        Ok(())
    }

    fn call(&mut self, id: i64, charge: Money) -> Result<(), Error> {
        let Some(order) = self.order else { return Ok(()) };
        let split = Split::of_charge(charge, rate("0.15"))?;
        if let Some(journal) = posting::usage(Usage(id), order, A, split)? {
            self.post(journal)?;
            if split.rest().sign().is_gt() {
                self.earn(split.rest());
            }
        }
        Ok(())
    }

    fn release(&mut self, pick: usize) -> Result<(), Error> {
        let held: Vec<_> = self.lots(Hold::Running);
        let Some(lot) = held.get(pick % held.len().max(1)).copied() else { return Ok(()) };
        if let Some(journal) = posting::release(lot.earning, A, lot.amount)? {
            self.post(journal)?;
        }
        let parts = self.earnings.iter_mut().find(|parts| parts.earning == lot.earning).unwrap();
        (parts.available, parts.hold) = (lot.amount, Hold::Over);
        let debt = self.balance(Account::receivable(A));
        if let Some(journal) = posting::recover(lot.earning, A, lot.amount, debt)? {
            let taken = journal.legs()[0].amount;
            self.post(journal)?;
            self.reverse(Hold::Over, taken);
        }
        Ok(())
    }

    fn withdraw(&mut self, total: Money) -> Result<(), Error> {
        if self.settlements.iter().any(|each| each.state == SettlementState::Open) {
            return Ok(());
        }
        let split = Split::of_withdrawal(total, rate("0.01"))?;
        let settlement = Settlement(i64::try_from(self.settlements.len()).unwrap());
        let items = draw::oldest_first(total, &self.lots(Hold::Over))?;
        self.post(posting::withdraw(settlement, A, total)?)?;
        self.shift(&items, |parts, part| {
            parts.available = parts.available.minus(part).unwrap();
            parts.frozen = parts.frozen.plus(part).unwrap();
        });
        let kinds = vec![JournalKind::Withdraw];
        self.settlements.push(Withdrawal { split, items, state: SettlementState::Open, kinds });
        Ok(())
    }

    fn close_settlement(&mut self, state: SettlementState) -> Result<(), Error> {
        let open = self.settlements.iter().position(|each| each.state == SettlementState::Open);
        let Some(at) = open else { return Ok(()) };
        let (split, id) = (self.settlements[at].split, Settlement(i64::try_from(at).unwrap()));
        let journal = match state {
            SettlementState::Completed => posting::payout_ok(id, A, split)?,
            SettlementState::PayoutFailed => posting::payout_fail(id, A, split.whole())?,
            _ => posting::cancel(id, A, split.whole())?,
        };
        let kind = journal.kind();
        self.post(journal)?;
        let items = self.settlements[at].items.clone();
        self.shift(&items, |parts, part| {
            parts.frozen = parts.frozen.minus(part).unwrap();
            let to =
                if state == SettlementState::Completed { &mut parts.withdrawn } else { &mut parts.available };
            *to = to.plus(part).unwrap();
        });
        self.settlements[at].state = state;
        self.settlements[at].kinds.push(kind);
        Ok(())
    }

    fn payout_return(&mut self, pick: usize) -> Result<(), Error> {
        let at = pick % self.settlements.len().max(1);
        let Some(settlement) = self.settlements.get(at) else { return Ok(()) };
        let returned = settlement.kinds.contains(&JournalKind::PayoutReturn);
        if settlement.state != SettlementState::Completed || returned {
            return Ok(());
        }
        let (split, items) = (settlement.split, settlement.items.clone());
        self.post(posting::payout_return(Settlement(i64::try_from(at).unwrap()), A, split)?)?;
        self.settlements[at].kinds.push(JournalKind::PayoutReturn);
        self.shift(&items, |parts, part| {
            parts.withdrawn = parts.withdrawn.minus(part).unwrap();
            parts.available = parts.available.plus(part).unwrap();
        });
        Ok(())
    }

    /// Gives back at most what usage earned the platform, as its revenue can't fall below zero.
    fn refund(&mut self, id: i64, charge: Money) -> Result<(), Error> {
        let split = Split::of_charge(charge, rate("0.15"))?;
        let earned = self.derived().balance(Account::PLATFORM_FEE_REVENUE, CNY)?;
        if split.fee().exceeds(earned)? {
            return Ok(());
        }
        let (pending, available) = (self.balance(Account::pending(A)), self.balance(Account::available(A)));
        let reversal = Reversal::of(split, pending, available)?;
        if let Some(journal) = posting::refund(Refund(id), A, B, reversal)? {
            self.post(journal)?;
            self.reverse(Hold::Running, reversal.pending());
            self.reverse(Hold::Over, reversal.available());
        }
        Ok(())
    }

    fn close_order(&mut self) -> Result<(), Error> {
        let Some(order) = self.order.take() else { return Ok(()) };
        let rest = self.balance(Account::escrow(order));
        posting::order_close(order, B, rest)?.map_or(Ok(()), |journal| self.post(journal))
    }

    fn derived(&self) -> Balances {
        self.journals.iter().flat_map(Journal::legs).collect()
    }

    /// Asks every check of section 11.5.
    pub(crate) fn check(&self) -> Result<(), check::Violation> {
        let derived = self.derived();
        for journal in &self.journals {
            let of = |side| journal.legs().iter().filter(move |leg| leg.direction == side);
            let sum = |side| of(side).map(|leg| leg.amount.count()).sum::<i64>();
            assert_eq!(sum(Direction::Debit), sum(Direction::Credit), "{journal:?}");
        }
        for (account, balance) in self.held.rows() {
            check::cached(account, balance, &derived)?;
        }
        for parts in &self.earnings {
            assert!(parts.adds_up(), "{parts:?}");
        }
        let lots = |hold| self.lots(hold).into_iter().map(|lot| lot.amount);
        let open = self.settlements.iter().filter(|each| each.state == SettlementState::Open);
        self.check_balance((Rule::Available, Account::available(A)), lots(Hold::Over))?;
        self.check_balance((Rule::Pending, Account::pending(A)), lots(Hold::Running))?;
        self.check_balance((Rule::Frozen, Account::frozen(A)), open.map(|each| each.split.whole()))?;
        for (withdrawal, id) in self.settlements.iter().zip(0..) {
            self.check_settlement(Settlement(id), withdrawal)?;
        }
        check::whole(&derived).into_iter().next().map_or(Ok(()), Err)
    }

    fn check_balance(
        &self,
        (rule, account): (Rule, Account),
        rows: impl Iterator<Item = Money>,
    ) -> Result<(), check::Violation> {
        let found = Sum::from_count(rows.map(|amount| i128::from(amount.count())).sum(), CNY);
        check::sums_equal(rule, Object::Supplier(A), self.balance(account).into(), found)
    }

    fn check_settlement(&self, settlement: Settlement, each: &Withdrawal) -> Result<(), check::Violation> {
        let items =
            Money::sum(each.split.whole().currency(), each.items.iter().map(|item| item.amount)).unwrap();
        let frozen = |journal: &&Journal| {
            journal.kind() == JournalKind::Withdraw && journal.source().id == settlement.0
        };
        let withdrawn = self.journals.iter().find(frozen).unwrap().legs()[0].amount;
        let (total, fee, net) = (each.split.whole(), each.split.fee(), each.split.rest());
        check::settlement(&SettlementSums {
            settlement,
            total,
            fee,
            net,
            items: items.into(),
            withdrawn: withdrawn.into(),
        })?;
        check::closing(settlement, each.state, &each.kinds)
    }
}
