//! A laboratory for the real program: builds it, sets it up in a folder, starts it, plays its senders,
//! stops or kills it, and looks at what it left.
//!
//! Modules in reading order: [`build`] (which binary), [`house`] (folder, configuration, secrets),
//! [`server`] (a started program), [`nodes`] (several of them on one PostgreSQL), [`wire`] (HTTP by hand,
//! so that a connection can be cut at any byte), [`event`] (numbered deliveries as Stripe signs them),
//! [`record`] (the store, read past the program), [`clock`] (the clock that a program sees), [`market`] (what the
//! supply side has around it).
//!
//! Not here: what must hold. `race` and `crash` judge; the folder of a house can be copied, because its
//! configuration names no absolute path.

pub(crate) mod build;
pub(crate) mod clock;
pub(crate) mod event;
pub(crate) mod house;
pub(crate) mod market;
pub(crate) mod nodes;
pub(crate) mod record;
pub(crate) mod server;
pub(crate) mod wire;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;

pub(crate) use build::Build;
pub(crate) use house::{House, Setup};
pub(crate) use server::Server;

/// The checkout's top folder.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// An empty folder `target/lab/NAME`, this run's alone until it ends; what an earlier run left there is
/// removed.
///
/// # Errors
/// It can't be made, or another run is using it.
pub(crate) fn scratch(name: &str) -> anyhow::Result<PathBuf> {
    let all = root().join("target/lab");
    std::fs::create_dir_all(&all).with_context(|| format!("making {}", all.display()))?;
    claim(&all, name)?;
    let folder = all.join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("clearing {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder.canonicalize()?)
}

/// Holds `NAME.lock` until this program ends: two runs in one folder would pull it from under each other.
fn claim(all: &Path, name: &str) -> anyhow::Result<()> {
    static HELD: Mutex<Vec<(String, File)>> = Mutex::new(Vec::new());
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.iter().any(|(known, _)| known == name) {
        return Ok(());
    }
    let lock = File::create(all.join(format!("{name}.lock")))?;
    lock.try_lock().with_context(|| format!("another run is using target/lab/{name}; wait for its end"))?;
    held.push((name.to_owned(), lock));
    Ok(())
}

/// The wall clock in Unix seconds: what a sender signs with.
#[expect(clippy::disallowed_methods, reason = "a sender has a clock of its own; nothing is decided on it")]
pub(crate) fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
