//! What a posting can fail with. None of these is a rule that a client may break and be told about (the
//! crate `supply` asks before it posts): each means rows that disagree or a fault of ours (`SUP_SET_5002`).

use kernel::money::{self, Currency, Money};

use crate::account::Account;
use crate::journal::JournalKind;

/// Why nothing was posted. Amounts print in major units.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Amounts of two currencies, or out of range.
    #[error(transparent)]
    Money(#[from] money::Error),
    /// A journal of this kind must move something.
    #[error("{kind} moves nothing; give it an amount above zero")]
    Nothing {
        /// The journal.
        kind: JournalKind,
    },
    /// An amount below zero.
    #[error("{amount} is below zero; a correction is a journal of its own, with the sides turned")]
    Negative {
        /// The amount.
        amount: Money,
    },
    /// Settlements are whole minor units (section 4, rule 4).
    #[error("{amount} has a fraction of a minor unit; settle whole minor units")]
    Fraction {
        /// The amount.
        amount: Money,
    },
    /// A fee that leaves nothing, or less.
    #[error("a fee of {fee} can't be taken out of {whole}; check the rate")]
    Fee {
        /// What it is taken out of.
        whole: Money,
        /// The fee.
        fee: Money,
    },
    /// Debits and credits differ. The functions of `posting` can't come here; asked for all the same.
    #[error("{kind} does not balance; nothing was posted")]
    Unbalanced {
        /// The journal.
        kind: JournalKind,
    },
    /// A balance would fall below zero.
    #[error("{account} holds {balance} and would fall to {after}; nothing was posted")]
    Overdrawn {
        /// The account.
        account: Account,
        /// Before.
        balance: Money,
        /// What it would have become.
        after: Money,
    },
    /// A balance row that the command did not lock.
    #[error("the row of {account} in {currency} is not held; load and lock it before posting")]
    NotHeld {
        /// The account.
        account: Account,
        /// The journal's currency.
        currency: Currency,
    },
    /// The parts do not add up to what is asked.
    #[error("{asked} asked, only {there} there; compare the earnings with the balance")]
    Short {
        /// The sum wanted.
        asked: Money,
        /// The sum of the parts.
        there: Money,
    },
    /// A row of an account that section 11.1 does not have.
    #[error(
        "{code:?} is no account of an owner of type {owner_type:?}; the row was not written by this program"
    )]
    UnknownAccount {
        /// As read.
        owner_type: String,
        /// As read.
        code: String,
    },
}
