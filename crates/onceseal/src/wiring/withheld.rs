//! Audits and alerts what the log would have held (supply specification, section 8): once for each rule in a while, so
//! that nobody can force writes. Not here: taking it out of the line (`logging::guarded`), and how long a while is
//! (`supply::exit`).

use std::sync::Arc;

use guard::Exposure;
use supply::caller::PLATFORM;
use supply::exit::{IN_LOG, Withheld};
use supply::{Caller, Context, Object};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use web::supply::Supply;

use super::House;

/// Hears of the lines of this house's server, where the supply side is on and nobody hears yet.
#[must_use]
pub fn of(house: &House) -> Option<JoinHandle<()>> {
    let supply = house.supply.as_ref()?;
    Some(start(Arc::clone(supply), crate::logging::guarded::watch()?))
}

/// Hears of lines until the server ends.
fn start(supply: Arc<Supply>, mut lines: Receiver<Exposure>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Some(exposure) = lines.recv().await {
            let caller = Caller::system(PLATFORM, "log");
            let context = Context { caller, house: Arc::clone(&supply.house) };
            let (withheld, object) = (Withheld::new(IN_LOG, &exposure), Object::new_of("log"));
            let told = withheld.tell_once(&supply.quiet, &supply.door, (&context, &object)).await;
            if let Err(failure) = told {
                tracing::error!(%failure, "a redacted log line could not be audited");
            }
        }
    })
}
