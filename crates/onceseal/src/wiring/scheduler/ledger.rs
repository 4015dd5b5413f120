//! The hourly look through the whole ledger (section 11.5), in a task of its own: on a large one it takes minutes, and
//! nothing that comes due waits for it. Each node looks for itself and puts what it finds on record.

use std::sync::Arc;
use std::time::Duration;

use door::{Door, Submission};
use kernel::Time;
use supply::caller::PLATFORM;
use supply::settlements::{Unbalanced, reconcile};
use supply::{Caller, Commanded, Context, House};
use tokio::sync::watch;

/// Between two looks.
const HOURLY: Duration = Duration::from_secs(3600);
/// Before the next try where a look broke off.
const PAUSE: Duration = Duration::from_secs(300);

/// Looks now and every hour, until it is stopped; a look that is running then is left. The first one waits for `first`, so
/// that a node which starts has served somebody before.
pub(super) async fn run(door: Door, house: Arc<House>, first: Duration, mut stop: watch::Receiver<()>) {
    looked_through(Time::from_micros(0));
    let mut pause = first;
    loop {
        tokio::select! {
            _ = stop.changed() => return,
            () = tokio::time::sleep(pause) => {}
        }
        if door.store().is_closed() {
            return;
        }
        pause = tokio::select! {
            _ = stop.changed() => return,
            pause = look(&door, &house) => pause,
        };
    }
}

/// Looks through all of it; what is found is put on record and told. How long until the next look.
async fn look(door: &Door, house: &Arc<House>) -> Duration {
    // As it stood at the beginning.
    let now = house.clock.now();
    let found = match reconcile(door.store()).await {
        Ok(found) => found,
        Err(cause) => {
            // Nobody knows whether it balances: again soon, and the gauge's age wakes somebody.
            tracing::error!(%cause, "ledger_look_broke_off");
            return PAUSE;
        }
    };
    looked_through(now);
    metrics::gauge!("onceseal_ledger_violations").set(u32::try_from(found.len()).unwrap_or(u32::MAX));
    for violation in found {
        tracing::error!(%violation, "ledger_unbalanced");
        let fact = format!("reconcile:{}:{}", violation.object, now.seconds() / 3600);
        let context = Context { caller: Caller::system(PLATFORM, &fact), house: Arc::clone(house) };
        let command = Commanded { context, action: Unbalanced { violation } };
        let submission = Submission { key: None, command, wait: Duration::ZERO };
        if let Err(cause) = door.submit(submission).await {
            tracing::error!(%cause, "what is wrong with the ledger could not be put on record");
        }
    }
    HOURLY
}

/// Since when the look through the whole ledger is good, in seconds since 1970; 0 from the start to the first look.
fn looked_through(at: Time) {
    let seconds = u32::try_from(at.seconds()).unwrap_or_default();
    metrics::gauge!("onceseal_ledger_verified_timestamp_seconds").set(seconds);
}
