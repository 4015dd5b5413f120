//! The balance rows that one command has locked, and what its journals make of them. A journal that touches
//! a row which is not held, or would take one below zero, is refused and changes nothing.

use std::collections::BTreeMap;

use kernel::money::{Currency, Money};

use crate::account::Account;
use crate::error::Error;
use crate::journal::{Entry, Journal};

/// Cached balances under lock, by account and currency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    rows: BTreeMap<(Account, Currency), Money>,
}

/// A leg as it is written to `billing_ledger_entries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The leg.
    pub entry: Entry,
    /// The account's balance with it; `None` for the platform's accounts, which have no cached one.
    pub balance_after: Option<Money>,
}

impl Held {
    /// Takes in a row as loaded under its lock; its currency is the balance's.
    pub fn hold(&mut self, account: Account, balance: Money) {
        self.rows.insert((account, balance.currency()), balance);
    }

    /// The balance of a held row, with all journals posted so far.
    ///
    /// # Errors
    /// [`Error::NotHeld`].
    pub fn balance(&self, account: Account, currency: Currency) -> Result<Money, Error> {
        self.rows.get(&(account, currency)).copied().ok_or(Error::NotHeld { account, currency })
    }

    /// Posts a journal: the rows change together, or none does.
    ///
    /// # Errors
    /// [`Error::NotHeld`], [`Error::Overdrawn`], [`Error::Money`] when a balance leaves its range.
    pub fn post(&mut self, journal: &Journal) -> Result<Vec<Posted>, Error> {
        // A command holds a handful of rows, so a copy costs less than undoing.
        let mut rows = self.rows.clone();
        let mut posted = Vec::with_capacity(journal.legs().len());
        for entry in journal.legs() {
            let balance_after = if entry.account.is_cached() { Some(moved(&mut rows, entry)?) } else { None };
            posted.push(Posted { entry: *entry, balance_after });
        }
        self.rows = rows;
        Ok(posted)
    }

    /// Every held row as it stands, in the order of accounts.
    pub fn rows(&self) -> impl Iterator<Item = (Account, Money)> {
        self.rows.iter().map(|((account, _), balance)| (*account, *balance))
    }
}

fn moved(rows: &mut BTreeMap<(Account, Currency), Money>, entry: &Entry) -> Result<Money, Error> {
    let Entry { account, amount, .. } = *entry;
    let currency = amount.currency();
    let row = rows.get_mut(&(account, currency)).ok_or(Error::NotHeld { account, currency })?;
    let (debit, credit) = entry.sides();
    let grows = account.code().kind().balance(debit, credit) > 0;
    let after = if grows { row.plus(amount)? } else { row.minus(amount)? };
    if after.sign().is_lt() && !account.code().may_be_negative() {
        return Err(Error::Overdrawn { account, balance: *row, after });
    }
    *row = after;
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Settlement, Supplier};
    use crate::posting;

    const CNY: Currency = Currency::CNY;
    const SUPPLIER: Supplier = Supplier(7);

    fn cny(minor: &str) -> Money {
        Money::parse_minor(minor, CNY).unwrap()
    }

    fn held(available: &str) -> Held {
        let mut held = Held::default();
        held.hold(Account::available(SUPPLIER), cny(available));
        held.hold(Account::frozen(SUPPLIER), cny("0"));
        held
    }

    #[test]
    fn a_withdrawal_moves_both_rows() {
        let mut held = held("5442.38136");
        let posted = held.post(&posting::withdraw(Settlement(1), SUPPLIER, cny("5000")).unwrap()).unwrap();
        let after: Vec<_> = posted.iter().map(|leg| leg.balance_after.unwrap().minor()).collect();
        assert_eq!(after, ["442.38136", "5000"]);
        assert_eq!(held.balance(Account::available(SUPPLIER), CNY), Ok(cny("442.38136")));
        assert_eq!(held.rows().count(), 2);
    }

    #[test]
    fn what_would_overdraw_changes_nothing() {
        let mut held = held("442.38136");
        let before = held.clone();
        let refused = held.post(&posting::withdraw(Settlement(1), SUPPLIER, cny("443")).unwrap());
        assert!(
            matches!(refused, Err(Error::Overdrawn { after, .. }) if after.sign().is_lt()),
            "{refused:?}"
        );
        assert_eq!(held, before);
    }

    #[test]
    fn a_row_that_was_not_locked_is_not_written() {
        let mut held = held("5000");
        let before = held.clone();
        let other = posting::withdraw(Settlement(1), Supplier(8), cny("1")).unwrap();
        assert!(matches!(held.post(&other), Err(Error::NotHeld { .. })));
        let dollar = Money::parse_minor("1", Currency::from_code("USD").unwrap()).unwrap();
        let foreign = posting::withdraw(Settlement(1), SUPPLIER, dollar).unwrap();
        assert!(matches!(held.post(&foreign), Err(Error::NotHeld { .. })));
        assert_eq!(held, before);
    }

    #[test]
    fn a_leg_that_fails_takes_back_the_legs_before_it() {
        let mut held = Held::default();
        held.hold(Account::available(SUPPLIER), cny("5000"));
        let journal = posting::withdraw(Settlement(1), SUPPLIER, cny("1")).unwrap();
        let frozen = Error::NotHeld { account: Account::frozen(SUPPLIER), currency: CNY };
        assert_eq!(held.post(&journal), Err(frozen));
        assert_eq!(held.balance(Account::available(SUPPLIER), CNY), Ok(cny("5000")));
    }
}
