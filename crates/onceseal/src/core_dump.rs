//! No core dumps: the keys that wrap credentials are in the program's memory and belong nowhere else (supply
//! specification, section 13.1).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A file of one byte is too short for any dump, so none is written; and where dumps go to a program, the kernel takes
/// this very number, and not zero, for "none" (core(5), `do_coredump` in its source). So the limit that shells set, zero,
/// is raised to it; only under a hard limit of zero that is not allowed.
const NONE: u64 = 1;

/// Forbids them to this process and its children.
///
/// # Errors
/// The kernel refuses, which it does not do when a hard limit is lowered.
pub fn forbid() -> std::io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let limit = Some(maximum.map_or(NONE, |told| told.min(NONE)));
    Ok(setrlimit(Resource::Core, Rlimit { current: limit, maximum: limit })?)
}
