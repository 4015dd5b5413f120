//! A journal: the legs that are posted together for one fact, once. Unique is (kind, source) (section 5.9).
//! [`crate::posting`] makes them.

use std::fmt;

use kernel::money::{self, Currency, Money};

use crate::account::Account;
use crate::error::Error;

/// Debit or credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// 借.
    Debit,
    /// 贷.
    Credit,
}

impl Direction {
    /// The word of `direction`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debit => "dr",
            Self::Credit => "cr",
        }
    }

    /// From a stored word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "dr" => Some(Self::Debit),
            "cr" => Some(Self::Credit),
            _ => None,
        }
    }
}

/// One leg: of a journal, or of a row of `billing_ledger_entries`, which may say anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Which account.
    pub account: Account,
    /// Which side.
    pub direction: Direction,
    /// How much; above zero in a journal.
    pub amount: Money,
}

impl Entry {
    pub(crate) const fn debit(account: Account, amount: Money) -> Self {
        Self { account, direction: Direction::Debit, amount }
    }

    pub(crate) const fn credit(account: Account, amount: Money) -> Self {
        Self { account, direction: Direction::Credit, amount }
    }

    /// What it adds to debits and to credits, in 10^-6 minor units.
    #[must_use]
    pub fn sides(&self) -> (i128, i128) {
        let count = i128::from(self.amount.count());
        match self.direction {
            Direction::Debit => (count, 0),
            Direction::Credit => (0, count),
        }
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$each])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stored word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// From a stored word.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The kinds of section 11.2; the word stands in `journal_type`.
    JournalKind {
        /// A buyer tops up.
        Topup = "J-TOPUP",
        /// An order is paid.
        OrderPay = "J-ORDER-PAY",
        /// A call was charged.
        Usage = "J-USAGE",
        /// A supplier gets a bonus.
        Bonus = "J-BONUS",
        /// An earning's hold is over.
        Release = "J-RELEASE",
        /// A debt is paid out of what was just released.
        Recover = "J-RECOVER",
        /// A withdrawal is asked for.
        Withdraw = "J-WITHDRAW",
        /// It is cancelled, or rejected for its risk.
        Cancel = "J-CANCEL",
        /// It was paid out.
        PayoutOk = "J-PAYOUT-OK",
        /// It could not be paid out.
        PayoutFail = "J-PAYOUT-FAIL",
        /// The bank sent it back.
        PayoutReturn = "J-PAYOUT-RETURN",
        /// A charge is given back.
        Refund = "J-REFUND",
        /// An order ends.
        OrderClose = "J-ORDER-CLOSE",
        /// A broken service level is made good.
        Compensate = "J-COMPENSATE",
    }
}

impl JournalKind {
    /// Whether it ends a settlement; a settlement has one of these, once (section 11.5, check 6).
    #[must_use]
    pub const fn closes_settlement(self) -> bool {
        matches!(self, Self::Cancel | Self::PayoutOk | Self::PayoutFail)
    }
}

words! {
    /// What kind of fact a journal stands for; the word stands in `source_type`.
    SourceKind {
        /// A buyer's payment to the platform.
        Topup = "topup",
        /// An order.
        Order = "order",
        /// A usage record.
        Usage = "usage",
        /// An earning.
        Earning = "earning",
        /// A settlement.
        Settlement = "settlement",
        /// A refund.
        Refund = "refund",
        /// A compensation.
        Compensation = "compensation",
    }
}

/// The fact that is posted: `source_type` and `source_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// What kind of row.
    pub kind: SourceKind,
    /// Its id.
    pub id: i64,
}

/// Balanced legs of one currency, each above zero. Only [`crate::posting`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    kind: JournalKind,
    source: Source,
    currency: Currency,
    legs: Vec<Entry>,
}

impl Journal {
    /// Leaves out legs of zero; `None` when none is left.
    ///
    /// # Errors
    /// [`Error::Negative`], [`Error::Money`] for a second currency, [`Error::Unbalanced`].
    pub(crate) fn of(
        kind: JournalKind,
        source: (SourceKind, i64),
        currency: Currency,
        legs: &[Entry],
    ) -> Result<Option<Self>, Error> {
        let (mut debits, mut credits) = (0, 0);
        for leg in legs {
            let (left, right) = (currency, leg.amount.currency());
            if left != right {
                return Err(money::Error::Currencies { left, right }.into());
            }
            if leg.amount.sign().is_lt() {
                return Err(Error::Negative { amount: leg.amount });
            }
            let (debit, credit) = leg.sides();
            debits += debit;
            credits += credit;
        }
        if debits != credits {
            return Err(Error::Unbalanced { kind });
        }
        let legs: Vec<_> = legs.iter().filter(|leg| leg.amount.sign().is_gt()).copied().collect();
        let source = Source { kind: source.0, id: source.1 };
        Ok((!legs.is_empty()).then_some(Self { kind, source, currency, legs }))
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> JournalKind {
        self.kind
    }

    /// The fact it stands for.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// The currency of every leg.
    #[must_use]
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// Its legs, debits first.
    #[must_use]
    pub fn legs(&self) -> &[Entry] {
        &self.legs
    }

    /// The accounts it moves, in the order of its legs: which balance rows a command must hold.
    pub fn accounts(&self) -> impl Iterator<Item = Account> {
        self.legs.iter().map(|leg| leg.account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Buyer;

    const CNY: Currency = Currency::CNY;

    fn built(debit: i64, credit: i64) -> Result<Option<Journal>, Error> {
        let legs = [
            Entry::debit(Account::CASH_CLEARING, Money::from_count(debit, CNY)),
            Entry::credit(Account::prepaid(Buyer(1)), Money::from_count(credit, CNY)),
        ];
        Journal::of(JournalKind::Topup, (SourceKind::Topup, 1), CNY, &legs)
    }

    #[test]
    fn unbalanced_or_negative_legs_are_no_journal() {
        assert_eq!(built(1, 2), Err(Error::Unbalanced { kind: JournalKind::Topup }));
        assert_eq!(built(-1, -1), Err(Error::Negative { amount: Money::from_count(-1, CNY) }));
        assert_eq!(built(0, 0), Ok(None));
        assert!(built(i64::MAX, i64::MAX).unwrap().is_some());
    }

    #[test]
    fn a_second_currency_is_no_journal() {
        let dollar = Money::from_count(1, Currency::from_code("USD").unwrap());
        let legs = [Entry::debit(Account::CASH_CLEARING, dollar)];
        let built = Journal::of(JournalKind::Topup, (SourceKind::Topup, 1), CNY, &legs);
        assert!(matches!(built, Err(Error::Money(money::Error::Currencies { .. }))));
    }

    #[test]
    fn stored_words_are_read_back() {
        for kind in JournalKind::ALL {
            assert_eq!(JournalKind::parse(kind.as_str()), Some(*kind));
        }
        for kind in SourceKind::ALL {
            assert_eq!(SourceKind::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(Direction::parse(Direction::Credit.as_str()), Some(Direction::Credit));
        assert_eq!((JournalKind::ALL.len(), JournalKind::parse("J-TOP")), (14, None));
    }
}
