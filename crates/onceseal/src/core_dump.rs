//! No core dumps: the keys that wrap credentials are in the program's memory and belong nowhere else (supply
//! specification, section 13.1).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A file of one byte is too short for any dump, so none is written; and where dumps go to a program, the kernel takes
/// this very number, and not zero, for "none" (core(5), `do_coredump` in its source).
const NONE: u64 = 1;

/// Forbids them to this process and its children.
///
/// # Errors
/// The kernel refuses, which it does not do when a limit is lowered.
pub fn forbid() -> std::io::Result<()> {
    let limit = |told: Option<u64>| Some(told.map_or(NONE, |told| told.min(NONE)));
    let Rlimit { current, maximum } = getrlimit(Resource::Core);
    Ok(setrlimit(Resource::Core, Rlimit { current: limit(current), maximum: limit(maximum) })?)
}
