//! One kind of fault, played: normal load, the fault while submissions are under way, its end, the way back
//! to normal, redelivery of what was not acknowledged, the verdict.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::ledger::Excuse;
use super::load::{Fired, Load, enough};
use super::site::Site;
use super::verdict::{self, Told, Verdict};

/// How long after the end of a fault all may take to be normal: longer than the longest wait that a node
/// has for a session whose commit is unknown (12 s), and for its own time-outs.
const NORMAL_WITHIN: Duration = Duration::from_secs(30);
/// Acknowledged submissions of normal load after the fault.
const AFTERWARDS: u64 = 40;
/// How long redelivery may take, in which each delivery must be acknowledged.
const REDELIVERED_WITHIN: Duration = Duration::from_secs(30);

/// What came of a fault.
pub(super) struct Played {
    /// The proof that it fired.
    pub(super) fired: Fired,
    /// From the end of the fault until every node took new events.
    pub(super) back: Duration,
    pub(super) verdict: Verdict,
}

/// Plays a fault: `strike` switches it on under load, waits for the proof, and switches it off.
///
/// # Errors
/// It did not fire, or not with enough submissions under way, or normal service did not come back.
pub(super) fn struck(
    site: &mut Site,
    strike: impl FnOnce(&mut Site, &Load) -> Result<Fired>,
) -> Result<Played> {
    struck_with(site, Excuse::None, strike)
}

/// As [`struck`], with an excuse for what is told meanwhile.
///
/// # Errors
/// As [`struck`].
pub(super) fn struck_with(
    site: &mut Site,
    excuse: Excuse,
    strike: impl FnOnce(&mut Site, &Load) -> Result<Fired>,
) -> Result<Played> {
    let (load, base) = site.load()?;
    let fired = strike(site, &load)?;
    enough(&fired)?;
    let back = site.normal(&load, NORMAL_WITHIN).context("after the fault")?;
    load.warm(AFTERWARDS).context("after the fault")?;
    let (tries, left) = load.stop(REDELIVERED_WITHIN)?;
    ensure!(!tries.is_empty(), "nothing was sent");
    let verdict = verdict::judge(site, &Told { base, tries: &tries, left: &left, excuse }, fired.ghosts)?;
    if fired.ghosts > 0 {
        site.exorcised()?;
    }
    Ok(Played { fired, back, verdict })
}
