//! The checks of section 11.5 (INV-SET-003) as functions of values: of everything, hourly and in `onceseal ledger
//! verify`. A violation is ours, never the client's: `SUP_SET_5002`, raise the alarm. Not here: the sums that are
//! compared, which the store makes where the rows are (1, 3 and 4 are nothing but sums: [`sums_equal`]), and the same
//! rules of what one command touched, before its commit; both stand in the statements of crate `supply`.

use std::fmt;

use kernel::money::{Currency, Money, Sum};

use crate::account::Account;
use crate::balances::Balances;
use crate::ids::{Settlement, Supplier};
use crate::journal::JournalKind;

/// Which of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// 1: debits and credits of a journal are equal, of one currency, each above zero.
    Journal,
    /// 2: total = fee + net.
    SettlementSplit,
    /// 2: total = sum of the items.
    SettlementItems,
    /// 2: total = amount of its J-WITHDRAW.
    SettlementWithdraw,
    /// 3: `supplier_frozen` = totals of open settlements.
    Frozen,
    /// 4: `supplier_available` = available parts of released earnings.
    Available,
    /// 4: `supplier_pending` = unreversed parts of unreleased earnings.
    Pending,
    /// 5: no balance below zero where none may be.
    NotNegative,
    /// 6: one journal that closes a closed settlement, the one of its state; none for an open one.
    Closing,
    /// 7: all debits of a currency = all credits.
    Whole,
    /// Section 11.3: a cached balance is the sum of its entries.
    Cache,
}

impl Rule {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Journal => "debits = credits of one currency, each above zero",
            Self::SettlementSplit => "total = fee + net",
            Self::SettlementItems => "total = sum of items",
            Self::SettlementWithdraw => "total = amount of J-WITHDRAW",
            Self::Frozen => "frozen balance = totals of open settlements",
            Self::Available => "available balance = available parts of released earnings",
            Self::Pending => "pending balance = unreversed parts of unreleased earnings",
            Self::NotNegative => "no balance below zero",
            Self::Closing => "one closing journal, the one of the settlement's state",
            Self::Whole => "all debits = all credits",
            Self::Cache => "cached balance = sum of entries",
        }
    }
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A journal, by its row id.
    Journal(i64),
    /// A settlement.
    Settlement(Settlement),
    /// A supplier.
    Supplier(Supplier),
    /// An account.
    Account(Account),
    /// The whole ledger of a currency.
    Ledger(Currency),
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(id) => write!(f, "journal {id}"),
            Self::Settlement(id) => write!(f, "settlement {id}"),
            Self::Supplier(id) => write!(f, "supplier {id}"),
            Self::Account(account) => account.fmt(f),
            Self::Ledger(currency) => write!(f, "the ledger in {currency}"),
        }
    }
}

/// A rule that does not hold. Figures are counts of 10^-6 minor units, of journals for [`Rule::Closing`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{object}: not true that {}: {expected} expected, {found} found; stop postings and compare the rows",
    .rule.as_str()
)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// Of what.
    pub object: Object,
    /// The side that the rule starts from. Equal to `found` when the currencies differ.
    pub expected: i128,
    /// The other side.
    pub found: i128,
}

/// The row of a settlement and what refers to it.
#[derive(Clone, Copy, Debug)]
pub struct SettlementSums {
    /// Which.
    pub settlement: Settlement,
    /// `total_amount`.
    pub total: Money,
    /// `fee_amount`.
    pub fee: Money,
    /// `net_amount`.
    pub net: Money,
    /// Of the amounts of its `supply_settlement_items`.
    pub items: Sum,
    /// What its J-WITHDRAW froze.
    pub withdrawn: Sum,
}

/// 2: `total = fee + net = sum(items) = J-WITHDRAW`.
///
/// # Errors
/// The rule of the side that differs first.
pub fn settlement(sums: &SettlementSums) -> Result<(), Violation> {
    let SettlementSums { settlement, total, fee, net, items, withdrawn } = *sums;
    let object = Object::Settlement(settlement);
    let parts = Sum::from_count(count(&fee) + count(&net), fee.currency());
    sums_equal(Rule::SettlementSplit, object, total.into(), parts)?;
    sums_equal(Rule::SettlementItems, object, total.into(), items)?;
    sums_equal(Rule::SettlementWithdraw, object, total.into(), withdrawn)
}

/// 5: one balance, in 10^-6 minor units.
///
/// # Errors
/// [`Rule::NotNegative`].
pub fn not_negative(account: Account, found: i128) -> Result<(), Violation> {
    if found >= 0 || account.code().may_be_negative() {
        return Ok(());
    }
    let object = Object::Account(account);
    Err(Violation { rule: Rule::NotNegative, object, expected: 0, found })
}

/// Where a settlement stands, as far as its postings go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettlementState {
    /// Pending or processing.
    Open,
    /// Completed, returned by the bank or not.
    Completed,
    /// Failed because the payout failed.
    PayoutFailed,
    /// Failed because it was cancelled, or rejected for its risk.
    Cancelled,
}

/// 6: the kinds of all journals whose source is the settlement. An open one has none that closes it, a
/// closed one has exactly the one of its state.
///
/// # Errors
/// [`Rule::Closing`], with the number of journals expected and found.
pub fn closing(
    settlement: Settlement,
    state: SettlementState,
    kinds: &[JournalKind],
) -> Result<(), Violation> {
    let due = match state {
        SettlementState::Open => None,
        SettlementState::Completed => Some(JournalKind::PayoutOk),
        SettlementState::PayoutFailed => Some(JournalKind::PayoutFail),
        SettlementState::Cancelled => Some(JournalKind::Cancel),
    };
    let closes: Vec<_> = kinds.iter().copied().filter(|kind| kind.closes_settlement()).collect();
    if closes.iter().copied().eq(due) {
        return Ok(());
    }
    let number = |count: usize| i128::try_from(count).unwrap_or(i128::MAX);
    let (expected, found) = (i128::from(due.is_some()), number(closes.len()));
    Err(Violation { rule: Rule::Closing, object: Object::Settlement(settlement), expected, found })
}

/// A cached balance and what its entries say (section 11.3).
///
/// # Errors
/// [`Rule::Cache`]; `expected` is what the entries say.
pub fn cached(account: Account, cached: Money, derived: &Balances) -> Result<(), Violation> {
    let (expected, found) = (derived.count(account, cached.currency()), count(&cached));
    let object = Object::Account(account);
    if expected == found { Ok(()) } else { Err(Violation { rule: Rule::Cache, object, expected, found }) }
}

/// 5 and 7 over the whole ledger: every balance, and debits and credits of every currency. All violations,
/// none when it is right.
#[must_use]
pub fn whole(balances: &Balances) -> Vec<Violation> {
    let negative = balances.iter().filter_map(|(account, _, found)| not_negative(account, found).err());
    let uneven = balances.currencies().into_iter().filter_map(|currency| {
        let (expected, found) = balances.turnover(currency);
        let violation = Violation { rule: Rule::Whole, object: Object::Ledger(currency), expected, found };
        (expected != found).then_some(violation)
    });
    negative.chain(uneven).collect()
}

/// Any of the rules of two sides, where both are sums that somebody else made: the store, of rows.
///
/// # Errors
/// `rule`.
pub fn sums_equal(rule: Rule, object: Object, expected: Sum, found: Sum) -> Result<(), Violation> {
    if expected == found {
        return Ok(());
    }
    Err(Violation { rule, object, expected: expected.count(), found: found.count() })
}

fn count(amount: &Money) -> i128 {
    amount.count().into()
}
