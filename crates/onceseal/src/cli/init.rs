//! `onceseal init`: a commented configuration and the folders around it, so that `onceseal serve` starts.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::Args;
use kernel::Random as _;
use serde_json::json;

use super::out::{Ended, Exit, Out, Stop};
use crate::random::OsRandom;
use crate::wiring::secrets;

const TEMPLATE: &str = include_str!("onceseal.toml");

/// The template's section of the supply side, off and on.
const OFF: &str = "# [supply]\n# enabled = true\n";
const ON: &str = "[supply]\nenabled = true\n";

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal init                    onceseal.toml, secrets/ and data/ in this folder
  onceseal init /srv/shop
  sudo onceseal init --system      /etc/onceseal and /var/lib/auditvisa
  onceseal init --supply           with the supply side: keys in data/keys/supply, [supply] enabled

A file that is there already is never changed. The sender's secret is random at first, enough to try it with
`onceseal send sample:checkout-paid`; put the one that your sender shows you into secrets/stripe")]
pub struct Init {
    /// Folder to set up
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Set up the Debian-style layout instead
    #[arg(long, conflicts_with = "folder")]
    system: bool,
    /// With --system: put everything below this folder (for packages); paths in the file stay as they are
    #[arg(long, value_name = "FOLDER", requires = "system")]
    root: Option<PathBuf>,
    /// Switch the supply side on, and make its keys
    #[arg(long)]
    supply: bool,
}

/// Where things go, and what the file calls them.
struct Layout {
    config: PathBuf,
    secrets: PathBuf,
    data: PathBuf,
    named_secrets: String,
    named_data: String,
}

impl Init {
    /// Runs it.
    ///
    /// # Errors
    /// A folder or file can't be made.
    pub fn run(self, out: Out) -> Ended {
        let layout = self.layout()?;
        let secret = layout.secrets.join("stripe");
        let text = TEMPLATE
            .replace("{{DATA}}", &layout.named_data)
            .replace("{{SECRET}}", &format!("{}/stripe", layout.named_secrets));
        let text = if self.supply { text.replace(OFF, ON) } else { text };
        if let Some(parent) = layout.config.parent() {
            folder(parent, 0o755)?;
        }
        folder(&layout.secrets, 0o700)?;
        folder(&layout.data, 0o750)?;
        for (name, mode) in [(crate::wiring::DELIVERIES, 0o750), (crate::wiring::KEYS, 0o700)] {
            folder(&layout.data.join(name), mode)?;
        }
        let mut made = Vec::new();
        for (path, content, mode) in [(&layout.config, text, 0o644), (&secret, random_secret(), 0o600)] {
            if file(path, content.as_bytes(), mode)? {
                made.push(path.display().to_string());
            }
        }
        if self.supply {
            let folder = layout.data.join(crate::wiring::KEYS).join(secrets::FOLDER);
            let keys = secrets::make(&folder, &OsRandom).map_err(Stop::failed)?;
            made.extend(keys.iter().map(|name| folder.join(name).display().to_string()));
            if !secrets::has_issuer(&folder) {
                auth::issuer::folder::open(&folder, &OsRandom)
                    .map_err(|cause| Stop::failed(cause.to_string()))?;
                made.push(folder.join("issuer-0001.pem").display().to_string());
            }
        }
        if out.json {
            out.value(&json!({ "made": made, "config": layout.config, "data": layout.data }));
            return Ok(Exit::Fine);
        }
        for path in &made {
            out.line(format_args!("made {path}"));
        }
        if made.is_empty() {
            out.line("everything was there already; nothing was changed");
        }
        out.line(format_args!("next: put your sender's signing secret into {}", secret.display()));
        out.line(if self.system {
            "      give /etc/onceseal/secrets and /var/lib/auditvisa to the server's user, then start the unit"
        } else {
            "      onceseal serve"
        });
        Ok(Exit::Fine)
    }

    fn layout(&self) -> Result<Layout, Stop> {
        if self.system {
            let root = self.root.clone().unwrap_or_else(|| PathBuf::from("/"));
            let below = |path: &str| root.join(path.trim_start_matches('/'));
            return Ok(Layout {
                config: below("/etc/onceseal/onceseal.toml"),
                secrets: below("/etc/onceseal/secrets"),
                data: below("/var/lib/auditvisa"),
                named_secrets: "/etc/onceseal/secrets".into(),
                named_data: "/var/lib/auditvisa".into(),
            });
        }
        let folder = std::path::absolute(&self.folder)?;
        let named = |name: &str| {
            let path = folder.join(name);
            path.to_str().filter(|text| !text.contains(['"', '\\'])).map(str::to_owned).ok_or_else(|| {
                Stop::new(
                    Exit::Usage,
                    "the folder's name can't stand in a configuration file; choose another",
                )
            })
        };
        Ok(Layout {
            config: folder.join("onceseal.toml"),
            secrets: folder.join("secrets"),
            data: folder.join("data"),
            named_secrets: named("secrets")?,
            named_data: named("data")?,
        })
    }
}

fn folder(path: &Path, mode: u32) -> Result<(), Stop> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(mode).create(path);
    made.map_err(|cause| Stop::failed(format!("{} can't be made: {cause}", path.display())))
}

/// Whether the file was made; one that is there stays.
fn file(path: &Path, content: &[u8], mode: u32) -> Result<bool, Stop> {
    let fail = |cause: std::io::Error| Stop::failed(format!("{}: {cause}", path.display()));
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(mut file) => file.write_all(content).map(|()| true).map_err(fail),
        Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(cause) => Err(fail(cause)),
    }
}

fn random_secret() -> String {
    let mut bytes = [0; 24];
    OsRandom.fill(&mut bytes);
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("whsec_{digits}\n")
}
