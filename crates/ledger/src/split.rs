//! A whole that is a fee and a rest, split by subtraction; and what a refund takes back from a supplier.

use kernel::money::{Money, Rate, Step};

use crate::error::Error;

/// `whole = fee + rest`, exactly; none is below zero. Charge, platform fee, supplier's part; or total, fee,
/// net of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    whole: Money,
    fee: Money,
    rest: Money,
}

impl Split {
    /// The charge of a call: the platform's fee is rounded half up to 10^-6 minor units, the supplier gets
    /// the rest (section 4).
    ///
    /// # Errors
    /// [`Error::Negative`] for a negative charge.
    pub fn of_charge(charge: Money, rate: Rate) -> Result<Self, Error> {
        Self::of(charge, charge.share(rate, Step::Micro)?)
    }

    /// The total of a withdrawal: the fee is rounded half up to whole minor units, the net amount is the
    /// rest (section 4).
    ///
    /// # Errors
    /// [`Error::Fraction`] when the total is not whole minor units, [`Error::Fee`] when nothing is left to
    /// pay out, [`Error::Negative`].
    pub fn of_withdrawal(total: Money, rate: Rate) -> Result<Self, Error> {
        Self::of_settlement(total, total.share(rate, Step::Minor)?)
    }

    /// A stored settlement's total and fee.
    ///
    /// # Errors
    /// As [`Split::of_withdrawal`].
    pub fn of_settlement(total: Money, fee: Money) -> Result<Self, Error> {
        let split = Self::of(total, fee)?;
        split.for_settlement()?;
        Ok(split)
    }

    /// A stored whole and its stored fee, such as a usage record's.
    ///
    /// # Errors
    /// [`Error::Negative`]; [`Error::Fee`] when the fee is more than the whole.
    pub fn of(whole: Money, fee: Money) -> Result<Self, Error> {
        if let Some(amount) = [whole, fee].into_iter().find(|amount| amount.sign().is_lt()) {
            return Err(Error::Negative { amount });
        }
        if fee.exceeds(whole)? {
            return Err(Error::Fee { whole, fee });
        }
        Ok(Self { whole, fee, rest: whole.minus(fee)? })
    }

    /// Whether it may be paid out.
    pub(crate) fn for_settlement(self) -> Result<(), Error> {
        let Self { whole, fee, rest } = self;
        if let Some(amount) = [whole, fee].into_iter().find(|amount| !amount.is_whole_minor()) {
            return Err(Error::Fraction { amount });
        }
        if rest.sign().is_gt() { Ok(()) } else { Err(Error::Fee { whole, fee }) }
    }

    /// Charge or total.
    #[must_use]
    pub const fn whole(self) -> Money {
        self.whole
    }

    /// The platform's part.
    #[must_use]
    pub const fn fee(self) -> Money {
        self.fee
    }

    /// The supplier's part, or the net amount.
    #[must_use]
    pub const fn rest(self) -> Money {
        self.rest
    }
}

/// A refund, and where the supplier's side of it comes from: first what is pending, then what is available,
/// the rest becomes a debt. What is frozen is never touched (section 11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reversal {
    split: Split,
    pending: Money,
    available: Money,
    receivable: Money,
}

impl Reversal {
    /// Spreads the supplier's side of `split` over the balances as they stand under lock.
    ///
    /// # Errors
    /// [`Error::Negative`] for a balance below zero, [`Error::Money`] for another currency.
    pub fn of(split: Split, pending: Money, available: Money) -> Result<Self, Error> {
        if let Some(amount) = [pending, available].into_iter().find(|balance| balance.sign().is_lt()) {
            return Err(Error::Negative { amount });
        }
        let pending = split.rest.least(pending)?;
        let left = split.rest.minus(pending)?;
        let available = left.least(available)?;
        Ok(Self { split, pending, available, receivable: left.minus(available)? })
    }

    /// The refunded charge with its fee.
    #[must_use]
    pub const fn split(self) -> Split {
        self.split
    }

    /// Taken from unreleased earnings.
    #[must_use]
    pub const fn pending(self) -> Money {
        self.pending
    }

    /// Taken from released earnings.
    #[must_use]
    pub const fn available(self) -> Money {
        self.available
    }

    /// Owed from now on.
    #[must_use]
    pub const fn receivable(self) -> Money {
        self.receivable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::money::Currency;

    fn cny(minor: &str) -> Money {
        Money::parse_minor(minor, Currency::CNY).unwrap()
    }

    fn rate(text: &str) -> Rate {
        Rate::parse(text).unwrap()
    }

    #[test]
    fn the_charge_of_section_4_splits_without_a_residue() {
        let split = Split::of_charge(cny("6402.8016"), rate("0.15")).unwrap();
        assert_eq!(
            (split.fee().minor().as_str(), split.rest().minor().as_str()),
            ("960.42024", "5442.38136")
        );
        let all = Split::of_charge(cny("1"), Rate::ONE).unwrap();
        assert_eq!(all.rest(), cny("0"));
    }

    #[test]
    fn a_withdrawal_pays_out_whole_minor_units_and_more_than_nothing() {
        let split = Split::of_withdrawal(cny("3333"), rate("0.01")).unwrap();
        assert_eq!((split.fee(), split.rest()), (cny("33"), cny("3300")));
        assert_eq!(Split::of_withdrawal(cny("50"), rate("0.01")).unwrap().rest(), cny("49"));
        let half = cny("0.5");
        assert_eq!(Split::of_withdrawal(half, rate("0.01")), Err(Error::Fraction { amount: half }));
        let (whole, fee) = (cny("1"), cny("1"));
        assert_eq!(Split::of_withdrawal(whole, rate("0.5")), Err(Error::Fee { whole, fee }));
        assert!(Split::of_withdrawal(cny("0"), rate("0.01")).is_err());
        assert!(Split::of(cny("1"), cny("2")).is_err());
        assert!(Split::of(Money::from_count(-1, Currency::CNY), cny("0")).is_err());
    }

    #[test]
    fn a_refund_takes_pending_then_available_and_the_rest_is_owed() {
        let split = Split::of_charge(cny("1000"), rate("0.15")).unwrap();
        for (pending, available, taken) in [
            ("0", "442.38136", ["0", "442.38136", "407.61864"]),
            ("850", "5", ["850", "0", "0"]),
            ("849.999999", "5", ["849.999999", "0.000001", "0"]),
            ("0", "0", ["0", "0", "850"]),
            ("100", "100", ["100", "100", "650"]),
        ] {
            let reversal = Reversal::of(split, cny(pending), cny(available)).unwrap();
            let parts = [reversal.pending(), reversal.available(), reversal.receivable()];
            assert_eq!(parts.map(Money::minor), taken, "{pending} {available}");
        }
    }
}
