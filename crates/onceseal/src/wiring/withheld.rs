//! Audits and alerts what the log would have held (supply specification, section 8): once for each place and rule in a
//! while, so that nobody can force writes. Not here: taking it out of the line (`logging::guarded`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use guard::Exposure;
use kernel::Time;
use supply::caller::PLATFORM;
use supply::exit::{IN_LOG, Withheld};
use supply::{Caller, Context, Object};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use web::supply::Supply;

use super::House;

/// The same credential by the same rule is told once in this time.
const QUIET: Duration = Duration::from_secs(60);

/// Hears of the lines of this house's server, where the supply side is on and nobody hears yet.
#[must_use]
pub fn of(house: &House) -> Option<JoinHandle<()>> {
    let supply = house.supply.as_ref()?;
    Some(start(Arc::clone(supply), crate::logging::guarded::watch()?))
}

/// Hears of lines until the server ends.
fn start(supply: Arc<Supply>, mut lines: Receiver<Exposure>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut told: HashMap<[u8; 32], Time> = HashMap::new();
        while let Some(exposure) = lines.recv().await {
            let now = supply.clock.now();
            told.retain(|_, at| now.since(*at) < QUIET);
            if told.insert(exposure.mac, now).is_some() {
                continue;
            }
            let caller = Caller::system(PLATFORM, "log");
            let context = Context { caller, house: Arc::clone(&supply.house) };
            let (withheld, object) = (Withheld::new(IN_LOG, &exposure), Object::new_of("log"));
            if let Err(failure) = withheld.tell(&supply.door, &context, &object).await {
                tracing::error!(%failure, "a redacted log line could not be audited");
            }
        }
    })
}
