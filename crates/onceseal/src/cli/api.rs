//! The operator API, over HTTP where a server runs, else in this process on the folder itself: the same
//! router either way, so that a command has one code path. Not here: what the routes do (`web`).

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Globals;
use super::out::{Exit, Stop};
use crate::config::Loaded;

/// Where a running server says how to reach it, inside the data folder.
pub const RUN_FILE: &str = "run/server.json";

/// What a running server says about itself; readable by its own user only.
#[derive(Clone, Serialize, Deserialize)]
pub struct Running {
    /// Base address.
    pub address: String,
    /// Token that lives as long as the server.
    pub token: String,
    /// Process id.
    pub pid: u32,
}

impl Running {
    /// Writes the file, mode 0600, in one step.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<RunFile> {
        use std::io::Write as _;
        let path = folder.join(RUN_FILE);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let aside = path.with_extension("new");
        // The mode holds from the first byte only for a new file.
        match std::fs::remove_file(&aside) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(&aside, &path)?;
        Ok(RunFile(path))
    }

    fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(RUN_FILE)).ok()?).ok()
    }
}

/// Removes the file when the server ends.
#[derive(Debug)]
pub struct RunFile(PathBuf);

impl Drop for RunFile {
    fn drop(&mut self) {
        // What stays behind is stale: without the folder's lock nobody believes it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The server that runs on the folder, if one does.
///
/// # Errors
/// One does, but this user can't read how to reach it.
pub fn running(folder: &Path) -> Result<Option<Running>, Stop> {
    let locked = store::is_locked(folder).map_err(|cause| Stop::failed(cause.to_string()))?;
    if !locked {
        return Ok(None);
    }
    match Running::read(folder) {
        Some(running) => Ok(Some(running)),
        None => Err(Stop::new(
            Exit::Server,
            format!(
                "a server or another command uses {}, and {RUN_FILE} can't be read; run as the server's user, or give --server and --token-file",
                folder.display()
            ),
        )),
    }
}

/// Base address to send to: `--server`, the running server's, or the configured one.
///
/// # Errors
/// As [`running`].
pub fn address(globals: &Globals, loaded: &Loaded) -> Result<String, Stop> {
    if let Some(server) = &globals.server {
        return Ok(server.trim_end_matches('/').to_owned());
    }
    let running = running(&loaded.config.storage.folder)?;
    Ok(running.map_or_else(|| format!("http://{}", loaded.config.server.listen), |running| running.address))
}
