//! `onceseal backup`: the whole committed state in one file, while the server goes on.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out, Stop};
use super::progress;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal backup /backup/auditvisa-2026-03-01.db
  onceseal keys backup /safe/auditvisa-keys          the keys are apart, on purpose

Everything answered before the start is in it. The certificates' files need no backup: they are rebuilt from
the records. With --server the path is one on the server")]
pub struct Backup {
    /// File to write; must not exist
    #[arg(value_name = "FILE")]
    to: PathBuf,
}

impl Backup {
    /// Runs it.
    ///
    /// # Errors
    /// The file exists, or can't be written; nothing is left behind then.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let to = whole(&self.to)?;
        let Some(to) = to.to_str() else {
            return Err(Stop::new(Exit::Usage, "the path is not UTF-8; choose another"));
        };
        let api = Api::open(globals, Folder::Expected).await?;
        let order = Order::post("/backup").json(&json!({ "to": to }));
        out.answer(&progress::during("copying", api.call(order)).await?);
        if globals.server.is_none() {
            // It holds what the data folder keeps from others. Another user's file can't be changed, and
            // then its folder decides.
            let _ = std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o600));
        }
        if !out.json {
            out.line("keys are not in it; see `onceseal keys backup`");
        }
        Ok(Exit::Fine)
    }
}

/// The path as the server must see it: from the root, without `..`.
fn whole(to: &Path) -> Result<PathBuf, Stop> {
    let Some(name) = to.file_name() else {
        return Err(Stop::new(Exit::Usage, format!("{}: name a file", to.display())));
    };
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = folder.canonicalize();
    let folder = found.map_err(|cause| Stop::new(Exit::Usage, format!("{}: {cause}", folder.display())))?;
    Ok(folder.join(name))
}
