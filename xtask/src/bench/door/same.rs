//! One key, sent many times at once: how often it takes effect, and what the senders are told.

use std::collections::BTreeMap;

use anyhow::Result;

use super::served::Served;
use crate::bench::delivery::account;
use crate::bench::load::{Limit, Numbers};

/// Sends at once, each over a connection of its own.
const SENDS: usize = 32;

/// What came of all trials.
#[derive(Debug, Default)]
pub(super) struct Same {
    /// Fewest and most effects that one key had.
    pub(super) fewest: u64,
    pub(super) most: u64,
    /// Keys with more than one effect.
    pub(super) doubled: u64,
    /// Answers by HTTP status.
    pub(super) answers: BTreeMap<u16, u64>,
    pub(super) unanswered: u64,
}

/// Sends one new key 32 times at once, `trials` times.
///
/// # Errors
/// It takes no connections, or its effects can't be counted.
pub(super) fn sent(served: &mut Served, trials: u64) -> Result<Same> {
    // Connections, statements and code are warm, as in a server that has been up for a while.
    served.load(SENDS, Limit::Count(500), Numbers::From(0))?;
    let first = served.next;
    let mut same = Same { fewest: u64::MAX, ..Same::default() };
    for number in first..first + trials {
        let sends = u64::try_from(SENDS)?;
        let tally = served.load(SENDS, Limit::Count(sends), Numbers::Only(number))?;
        for (status, count) in tally.answers {
            *same.answers.entry(status).or_default() += count;
        }
        same.unanswered += tally.unanswered;
    }
    served.next = first + trials;
    let debits = served.debits()?;
    for number in first..first + trials {
        let effects = debits.get(&account(number)).copied().unwrap_or_default();
        same.fewest = same.fewest.min(effects);
        same.most = same.most.max(effects);
        same.doubled += u64::from(effects > 1);
    }
    Ok(same)
}
