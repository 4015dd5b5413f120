//! Section 11: balances and what is posted on them.

use std::collections::BTreeMap;

/// Owner type, owner, account code.
pub(in crate::ledger) type Account = (&'static str, i64, &'static str);

/// Kinds of account whose balance is debits less credits.
const ASSETS: [&str; 4] = ["cash_clearing", "supplier_receivable", "bonus_expense", "compensation_expense"];
/// Accounts that may be below zero: none but the float.
const FLOATS: [&str; 1] = ["cash_clearing"];
const PLATFORM: [&str; 5] = [
    "cash_clearing",
    "platform_fee_revenue",
    "withdraw_fee_revenue",
    "bonus_expense",
    "compensation_expense",
];

/// An account of the platform.
pub(super) const fn platform(code: &'static str) -> Account {
    ("platform", 0, code)
}

/// Balances, and how often and how much was posted of each kind.
#[derive(Debug)]
pub(in crate::ledger) struct Books {
    pub(in crate::ledger) balances: BTreeMap<Account, i128>,
    pub(in crate::ledger) journals: BTreeMap<&'static str, (i128, i128)>,
    /// What may not be: a journal that is uneven, a balance below zero.
    pub(in crate::ledger) broken: Vec<String>,
}

impl Default for Books {
    fn default() -> Self {
        let balances = PLATFORM.map(|code| (platform(code), 0)).into();
        Self { balances, journals: BTreeMap::new(), broken: Vec::new() }
    }
}

impl Books {
    /// A new account with nothing on it.
    pub(super) fn open(&mut self, owner_type: &'static str, owner: i64, code: &'static str) {
        self.balances.entry((owner_type, owner, code)).or_insert(0);
    }

    /// A balance.
    pub(super) fn of(&self, account: Account) -> i128 {
        self.balances.get(&account).copied().unwrap_or_default()
    }

    /// Posts a journal. Legs of nothing are left out, and so is a journal of nothing.
    pub(super) fn post(
        &mut self,
        kind: &'static str,
        debits: &[(Account, i128)],
        credits: &[(Account, i128)],
    ) {
        let sum = |legs: &[(Account, i128)]| legs.iter().map(|(_, amount)| *amount).sum::<i128>();
        let amount = sum(debits);
        if amount == 0 && sum(credits) == 0 {
            return;
        }
        if amount != sum(credits) || debits.iter().chain(credits).any(|(_, amount)| *amount < 0) {
            self.broken.push(format!("{kind} {debits:?} {credits:?} is uneven"));
        }
        let (count, total) = self.journals.entry(kind).or_default();
        *count += 1;
        *total += amount;
        for (legs, side) in [(debits, 1), (credits, -1)] {
            for (account, amount) in legs {
                let sign = if ASSETS.contains(&account.2) { side } else { -side };
                let balance = self.balances.entry(*account).or_default();
                *balance += sign * amount;
                if *balance < 0 && !FLOATS.contains(&account.2) {
                    self.broken.push(format!("{kind} leaves {account:?} with {balance}"));
                }
            }
        }
    }
}
