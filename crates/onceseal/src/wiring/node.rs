//! The name of this server among those that share a store. It stands in the data folder, so that a restart
//! keeps it and a copy of another node's folder is no second node of that name by accident: names are made
//! when they are first needed, never configured.

use std::net::SocketAddr;
use std::path::Path;

use kernel::Random as _;

use crate::random::OsRandom;

/// File in the data folder.
const FILE: &str = "node";
/// What the machine is called (Linux, proc(5)).
const HOST: &str = "/proc/sys/kernel/hostname";

/// Where people find this node: the machine's name, where the system tells it, and the port.
#[must_use]
pub fn address(listening: SocketAddr) -> String {
    let host = std::fs::read_to_string(HOST).unwrap_or_default();
    match host.trim() {
        "" => listening.to_string(),
        host => format!("{host}:{}", listening.port()),
    }
}

/// Reads the name, or makes one. The folder's lock must be held.
///
/// # Errors
/// The file can't be read or written, or holds something else.
pub fn name(folder: &Path) -> Result<String, String> {
    let file = folder.join(FILE);
    let fail = |cause: &dyn std::fmt::Display| format!("storage.folder: {FILE}: {cause}");
    match std::fs::read_to_string(&file) {
        Ok(text) => {
            let name = text.trim();
            if name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Ok(name.to_owned());
            }
            Err(fail(&"it does not hold 16 hex digits; remove it, and the node gets a new name"))
        }
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = [0; 8];
            OsRandom.fill(&mut bytes);
            let name = hex::encode(bytes);
            std::fs::write(&file, format!("{name}\n")).map_err(|cause| fail(&cause))?;
            Ok(name)
        }
        Err(cause) => Err(fail(&cause)),
    }
}
