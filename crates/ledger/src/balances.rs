//! Every balance as a fold over entries, and over nothing else (section 11.3). Takes what is stored as it
//! is: whether it is right is asked by [`crate::check`].

use std::collections::{BTreeMap, BTreeSet};

use kernel::money::{self, Currency, Money};

use crate::account::Account;
use crate::error::Error;
use crate::journal::Entry;

/// Debits and credits of every account and currency, in 10^-6 minor units. Sums are of 128 bits, which 2^64
/// entries of 2^63 can't leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balances {
    sums: BTreeMap<(Currency, Account), (i128, i128)>,
}

impl Balances {
    /// Adds one entry. The order of entries does not matter.
    pub fn apply(&mut self, entry: &Entry) {
        self.add(entry.account, entry.amount.currency(), entry.sides());
    }

    /// Adds many entries of an account at once: the sums of their debits and of their credits, in 10^-6 minor units.
    pub fn add(&mut self, account: Account, currency: Currency, (debit, credit): (i128, i128)) {
        let (debits, credits) = self.sums.entry((currency, account)).or_default();
        *debits += debit;
        *credits += credit;
    }

    /// The balance in 10^-6 minor units, by the account's kind; 0 without an entry.
    #[must_use]
    pub fn count(&self, account: Account, currency: Currency) -> i128 {
        let (debits, credits) = self.sums.get(&(currency, account)).copied().unwrap_or_default();
        account.code().kind().balance(debits, credits)
    }

    /// The balance as an amount.
    ///
    /// # Errors
    /// [`Error::Money`] when it leaves the range of an amount, which sums over the whole platform can.
    pub fn balance(&self, account: Account, currency: Currency) -> Result<Money, Error> {
        let count = i64::try_from(self.count(account, currency));
        let count = count.map_err(|_| money::Error::Range { what: "amount" })?;
        Ok(Money::from_count(count, currency))
    }

    /// Every account that has entries, with its balance in 10^-6 minor units.
    pub fn iter(&self) -> impl Iterator<Item = (Account, Currency, i128)> {
        self.sums.iter().map(|((currency, account), (debits, credits))| {
            (*account, *currency, account.code().kind().balance(*debits, *credits))
        })
    }

    /// The currencies that have entries.
    #[must_use]
    pub fn currencies(&self) -> BTreeSet<Currency> {
        self.sums.keys().map(|(currency, _)| *currency).collect()
    }

    /// All debits and all credits of a currency, in 10^-6 minor units.
    #[must_use]
    pub fn turnover(&self, currency: Currency) -> (i128, i128) {
        let of_currency = self.sums.iter().filter(|((each, _), _)| *each == currency);
        of_currency.fold((0, 0), |(debits, credits), (_, sums)| (debits + sums.0, credits + sums.1))
    }
}

impl<'a> Extend<&'a Entry> for Balances {
    fn extend<T: IntoIterator<Item = &'a Entry>>(&mut self, entries: T) {
        for entry in entries {
            self.apply(entry);
        }
    }
}

impl<'a> FromIterator<&'a Entry> for Balances {
    fn from_iter<T: IntoIterator<Item = &'a Entry>>(entries: T) -> Self {
        let mut balances = Self::default();
        balances.extend(entries);
        balances
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Buyer, Topup};
    use crate::posting;

    #[test]
    fn sums_may_pass_the_range_of_one_amount() {
        let most = Money::from_count(i64::MAX, Currency::CNY);
        let mut balances = Balances::default();
        for id in 1..=3 {
            balances.extend(posting::topup(Topup(id), Buyer(id), most).unwrap().legs());
        }
        let cash = balances.count(Account::CASH_CLEARING, Currency::CNY);
        assert_eq!(cash, 3 * i128::from(i64::MAX));
        assert!(balances.balance(Account::CASH_CLEARING, Currency::CNY).is_err());
        assert_eq!(balances.balance(Account::prepaid(Buyer(2)), Currency::CNY), Ok(most));
        assert_eq!(balances.turnover(Currency::CNY), (cash, cash));
    }
}
