//! The journals of section 11.2, one function each. What may come to nothing (a free call, an order that is
//! used up, a released earning that was refunded) gives `None` then; the others refuse an amount of zero.
//! Starting a payout posts nothing. A correction is a further journal, never an edit.

use kernel::money::Money;

use crate::account::Account;
use crate::error::Error;
use crate::ids::{Buyer, Compensation, Earning, Order, Refund, Settlement, Supplier, Topup, Usage};
use crate::journal::{Entry, Journal, JournalKind, SourceKind};
use crate::split::{Reversal, Split};

/// J-TOPUP: a buyer paid the platform.
///
/// # Errors
/// [`Error::Nothing`], [`Error::Negative`].
pub fn topup(topup: Topup, buyer: Buyer, paid: Money) -> Result<Journal, Error> {
    let source = (SourceKind::Topup, topup.0);
    transfer(JournalKind::Topup, source, Account::CASH_CLEARING, Account::prepaid(buyer), paid)
}

/// J-ORDER-PAY: the order's total goes into its escrow.
///
/// # Errors
/// [`Error::Nothing`], [`Error::Negative`].
pub fn order_pay(order: Order, buyer: Buyer, total: Money) -> Result<Journal, Error> {
    let source = (SourceKind::Order, order.0);
    transfer(JournalKind::OrderPay, source, Account::prepaid(buyer), Account::escrow(order), total)
}

/// J-USAGE: a call's charge leaves the escrow, the supplier's part pends, the fee is the platform's. `None`
/// for a charge of zero.
///
/// # Errors
/// None for a [`Split`], which is balanced; the type is that of all journals.
pub fn usage(
    usage: Usage,
    order: Order,
    supplier: Supplier,
    charge: Split,
) -> Result<Option<Journal>, Error> {
    let legs = [
        Entry::debit(Account::escrow(order), charge.whole()),
        Entry::credit(Account::pending(supplier), charge.rest()),
        Entry::credit(Account::PLATFORM_FEE_REVENUE, charge.fee()),
    ];
    Journal::of(JournalKind::Usage, (SourceKind::Usage, usage.0), charge.whole().currency(), &legs)
}

/// J-BONUS: a bonus pends as any earning does.
///
/// # Errors
/// [`Error::Nothing`], [`Error::Negative`].
pub fn bonus(earning: Earning, supplier: Supplier, amount: Money) -> Result<Journal, Error> {
    let source = (SourceKind::Earning, earning.0);
    transfer(JournalKind::Bonus, source, Account::BONUS_EXPENSE, Account::pending(supplier), amount)
}

/// J-RELEASE: the hold of an earning is over; `unreversed` is its amount without what refunds took. `None`
/// when they took all of it.
///
/// # Errors
/// [`Error::Negative`].
pub fn release(earning: Earning, supplier: Supplier, unreversed: Money) -> Result<Option<Journal>, Error> {
    let source = (SourceKind::Earning, earning.0);
    let (from, to) = (Account::pending(supplier), Account::available(supplier));
    two_legs(JournalKind::Release, source, from, to, unreversed)
}

/// J-RECOVER: right after a release, what the supplier owes is taken from what was `released`, the smaller
/// of the two. `None` without a debt.
///
/// # Errors
/// [`Error::Negative`], [`Error::Money`] for two currencies.
pub fn recover(
    earning: Earning,
    supplier: Supplier,
    released: Money,
    debt: Money,
) -> Result<Option<Journal>, Error> {
    let source = (SourceKind::Earning, earning.0);
    let (from, to) = (Account::available(supplier), Account::receivable(supplier));
    two_legs(JournalKind::Recover, source, from, to, released.least(debt)?)
}

/// J-WITHDRAW: the total is frozen.
///
/// # Errors
/// [`Error::Nothing`], [`Error::Negative`], [`Error::Fraction`].
pub fn withdraw(settlement: Settlement, supplier: Supplier, total: Money) -> Result<Journal, Error> {
    let (from, to) = (Account::available(supplier), Account::frozen(supplier));
    settle(JournalKind::Withdraw, settlement, from, to, total)
}

/// J-CANCEL: the total is available again, after a cancellation or a rejection.
///
/// # Errors
/// [`Error::Nothing`], [`Error::Negative`], [`Error::Fraction`].
pub fn cancel(settlement: Settlement, supplier: Supplier, total: Money) -> Result<Journal, Error> {
    let (from, to) = (Account::frozen(supplier), Account::available(supplier));
    settle(JournalKind::Cancel, settlement, from, to, total)
}

/// J-PAYOUT-OK: the net amount left the bank, the fee is earned.
///
/// # Errors
/// [`Error::Fraction`]; [`Error::Fee`] when nothing is paid out.
pub fn payout_ok(settlement: Settlement, supplier: Supplier, paid: Split) -> Result<Journal, Error> {
    paid.for_settlement()?;
    let legs = [
        Entry::debit(Account::frozen(supplier), paid.whole()),
        Entry::credit(Account::CASH_CLEARING, paid.rest()),
        Entry::credit(Account::WITHDRAW_FEE_REVENUE, paid.fee()),
    ];
    payout(JournalKind::PayoutOk, settlement, paid, &legs)
}

/// J-PAYOUT-FAIL: the total is available again, no fee.
///
/// # Errors
/// [`Error::Nothing`], [`Error::Negative`], [`Error::Fraction`].
pub fn payout_fail(settlement: Settlement, supplier: Supplier, total: Money) -> Result<Journal, Error> {
    let (from, to) = (Account::frozen(supplier), Account::available(supplier));
    settle(JournalKind::PayoutFail, settlement, from, to, total)
}

/// J-PAYOUT-RETURN: the bank sent the net amount back, the fee is given back too.
///
/// # Errors
/// [`Error::Fraction`]; [`Error::Fee`] when nothing had been paid out.
pub fn payout_return(settlement: Settlement, supplier: Supplier, paid: Split) -> Result<Journal, Error> {
    paid.for_settlement()?;
    let legs = [
        Entry::debit(Account::CASH_CLEARING, paid.rest()),
        Entry::debit(Account::WITHDRAW_FEE_REVENUE, paid.fee()),
        Entry::credit(Account::available(supplier), paid.whole()),
    ];
    payout(JournalKind::PayoutReturn, settlement, paid, &legs)
}

/// J-REFUND: the buyer gets the charge back, the supplier and the platform give back their parts. `None`
/// for a charge of zero.
///
/// # Errors
/// None for a [`Reversal`], which is balanced; the type is that of all journals.
pub fn refund(
    refund: Refund,
    supplier: Supplier,
    buyer: Buyer,
    reversal: Reversal,
) -> Result<Option<Journal>, Error> {
    let split = reversal.split();
    let legs = [
        Entry::debit(Account::pending(supplier), reversal.pending()),
        Entry::debit(Account::available(supplier), reversal.available()),
        Entry::debit(Account::receivable(supplier), reversal.receivable()),
        Entry::debit(Account::PLATFORM_FEE_REVENUE, split.fee()),
        Entry::credit(Account::prepaid(buyer), split.whole()),
    ];
    Journal::of(JournalKind::Refund, (SourceKind::Refund, refund.0), split.whole().currency(), &legs)
}

/// J-ORDER-CLOSE: what is left of the escrow goes back to the buyer. `None` when nothing is left.
///
/// # Errors
/// [`Error::Negative`].
pub fn order_close(order: Order, buyer: Buyer, rest: Money) -> Result<Option<Journal>, Error> {
    let source = (SourceKind::Order, order.0);
    two_legs(JournalKind::OrderClose, source, Account::escrow(order), Account::prepaid(buyer), rest)
}

/// Who is compensated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beneficiary {
    /// Into the prepaid balance.
    Buyer(Buyer),
    /// Into the available balance; an earning of the type bonus, released at once, stands beside it.
    Supplier(Supplier),
}

/// J-COMPENSATE: a broken service level is made good.
///
/// # Errors
/// [`Error::Nothing`], [`Error::Negative`].
pub fn compensate(compensation: Compensation, to: Beneficiary, amount: Money) -> Result<Journal, Error> {
    let to = match to {
        Beneficiary::Buyer(buyer) => Account::prepaid(buyer),
        Beneficiary::Supplier(supplier) => Account::available(supplier),
    };
    let source = (SourceKind::Compensation, compensation.0);
    transfer(JournalKind::Compensate, source, Account::COMPENSATION_EXPENSE, to, amount)
}

/// A transfer of whole minor units between two accounts of a supplier.
fn settle(
    kind: JournalKind,
    settlement: Settlement,
    from: Account,
    to: Account,
    total: Money,
) -> Result<Journal, Error> {
    if !total.is_whole_minor() {
        return Err(Error::Fraction { amount: total });
    }
    transfer(kind, (SourceKind::Settlement, settlement.0), from, to, total)
}

fn payout(kind: JournalKind, settlement: Settlement, paid: Split, legs: &[Entry]) -> Result<Journal, Error> {
    let source = (SourceKind::Settlement, settlement.0);
    Journal::of(kind, source, paid.whole().currency(), legs)?.ok_or(Error::Nothing { kind })
}

/// Debits one account and credits the other with more than nothing.
fn transfer(
    kind: JournalKind,
    source: (SourceKind, i64),
    debit: Account,
    credit: Account,
    amount: Money,
) -> Result<Journal, Error> {
    two_legs(kind, source, debit, credit, amount)?.ok_or(Error::Nothing { kind })
}

fn two_legs(
    kind: JournalKind,
    source: (SourceKind, i64),
    debit: Account,
    credit: Account,
    amount: Money,
) -> Result<Option<Journal>, Error> {
    let legs = [Entry::debit(debit, amount), Entry::credit(credit, amount)];
    Journal::of(kind, source, amount.currency(), &legs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::money::Currency;

    const S: Supplier = Supplier(7);
    const B: Buyer = Buyer(8);

    fn cny(minor: &str) -> Money {
        Money::parse_minor(minor, Currency::CNY).unwrap()
    }

    /// Every journal that must move something, with this amount.
    fn due(amount: Money) -> Vec<Result<Journal, Error>> {
        vec![
            topup(Topup(1), B, amount),
            order_pay(Order(1), B, amount),
            bonus(Earning(1), S, amount),
            withdraw(Settlement(1), S, amount),
            cancel(Settlement(1), S, amount),
            payout_fail(Settlement(1), S, amount),
            compensate(Compensation(1), Beneficiary::Buyer(B), amount),
            compensate(Compensation(1), Beneficiary::Supplier(S), amount),
        ]
    }

    #[test]
    fn what_must_move_something_refuses_nothing_and_less() {
        assert!(due(cny("0")).iter().all(|built| matches!(built, Err(Error::Nothing { .. }))));
        let below = Money::from_count(-1_000_000, Currency::CNY);
        assert!(due(below).iter().all(|built| *built == Err(Error::Negative { amount: below })));
        assert!(due(cny("1")).iter().all(|built| built.as_ref().is_ok_and(|it| it.legs().len() == 2)));
    }

    #[test]
    fn what_may_come_to_nothing_is_no_journal_then() {
        let none = cny("0");
        let free = Split::of(none, none).unwrap();
        let reversal = Reversal::of(free, none, none).unwrap();
        for built in [
            usage(Usage(1), Order(1), S, free),
            release(Earning(1), S, none),
            recover(Earning(1), S, cny("5"), none),
            refund(Refund(1), S, B, reversal),
            order_close(Order(1), B, none),
        ] {
            assert_eq!(built, Ok(None));
        }
    }

    #[test]
    fn settlements_are_whole_minor_units() {
        let fraction = cny("1.5");
        let refused = Err(Error::Fraction { amount: fraction });
        assert_eq!(withdraw(Settlement(1), S, fraction), refused);
        assert_eq!(cancel(Settlement(1), S, fraction), refused);
        assert_eq!(payout_fail(Settlement(1), S, fraction), refused);
        let charge = Split::of(fraction, cny("0")).unwrap();
        assert_eq!(payout_ok(Settlement(1), S, charge), refused);
        assert_eq!(payout_return(Settlement(1), S, charge), refused);
    }

    #[test]
    fn a_leg_of_zero_is_left_out() {
        let split = Split::of(cny("100"), cny("0")).unwrap();
        assert_eq!(payout_ok(Settlement(1), S, split).unwrap().legs().len(), 2);
        let all_pending = Reversal::of(split, cny("100"), cny("100")).unwrap();
        let legs = refund(Refund(1), S, B, all_pending).unwrap().unwrap();
        assert_eq!(legs.accounts().collect::<Vec<_>>(), [Account::pending(S), Account::prepaid(B)]);
    }
}
