//! `onceseal keys`: anchor keys. Public halves are published; private ones are files in the keys folder and
//! are backed up apart from the database.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};
use zeroize::Zeroizing;

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out, Stop, text};
use crate::config::Config;
use crate::wiring::{keys_folder, make_folder, secrets};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal keys list
  onceseal keys list --json > keys.json       a key set for `onceseal verify --keys`
  onceseal keys rotate                        old certificates stay valid
  onceseal keys backup /safe/auditvisa-keys
  onceseal keys restore /safe/auditvisa-keys

Where several servers share a database, a new key takes three steps, so that none is left without it:
  onceseal keys announce                      then copy its file to the other servers, unless they mount one folder
  onceseal keys status                        who has loaded it
  onceseal keys activate                      refused while a server that is alive has not

A lost private key can't be replaced: certificates stay valid, but a database that names it as active does not
start without it. A lost slug.secret would change every new address")]
pub struct Keys {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// All public keys with their periods, retired ones too
    List,
    /// Keys, the servers that share the database, and which of them has loaded what
    Status,
    /// Make a new anchor key and retire the active one, where one server is alone on its database
    Rotate,
    /// Make a new anchor key and publish it; it does not sign yet
    Announce,
    /// Sign with the announced key from now on, and retire the active one
    Activate,
    /// Take the announcement back
    Withdraw,
    /// Copy the private key files into a new folder
    Backup {
        /// Folder to make
        #[arg(value_name = "FOLDER")]
        to: PathBuf,
    },
    /// Copy private key files back; one that is there already must be the same
    Restore {
        /// Folder that `keys backup` made
        #[arg(value_name = "FOLDER")]
        from: PathBuf,
    },
}

impl Keys {
    /// Runs it.
    ///
    /// # Errors
    /// The keys can't be read or written.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        match self.what {
            What::List => list(globals, out).await,
            What::Status => status(globals, out).await,
            What::Rotate => order(globals, "/keys/rotate", out).await,
            What::Announce => order(globals, "/keys/announce", out).await,
            What::Activate => order(globals, "/keys/activate", out).await,
            What::Withdraw => order(globals, "/keys/withdraw", out).await,
            What::Backup { to } => backup(&keys_folder(&globals.load()?.config), &to, out),
            // A server may run: what is there stays, and what is new is loaded within seconds.
            What::Restore { from } => restore(&from, &globals.load()?.config, out),
        }
    }
}

async fn order(globals: &Globals, path: &str, out: Out) -> Ended {
    out.answer(&Api::open(globals, Folder::Expected).await?.call(Order::post(path)).await?);
    Ok(Exit::Fine)
}

async fn status(globals: &Globals, out: Out) -> Ended {
    let standing = Api::open(globals, Folder::Expected).await?.call(Order::get("/keys")).await?;
    if out.json {
        out.value(&standing);
        return Ok(Exit::Fine);
    }
    let list =
        |name: &str| standing.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let key = |key: &Json| {
        ["key_id", "status", "announced_at", "active_from", "retired_at"].map(|name| text(key, name)).to_vec()
    };
    let keys: Vec<Vec<String>> = list("keys").iter().map(key).collect();
    out.table(&["key id", "status", "announced", "active from", "retired"], &keys);
    let nodes: Vec<Vec<String>> = list("nodes").iter().map(|node| shown(node, &standing)).collect();
    if !nodes.is_empty() {
        out.line("");
        out.table(&["node", "address", "seen", "alive", "announced key", "trouble"], &nodes);
    }
    if let Some(trouble) = standing.get("trouble").and_then(Json::as_str) {
        out.line(format_args!("this server: {}", super::out::clean(trouble)));
    }
    if let Some(id) = standing.get("announced").and_then(Json::as_str) {
        let lacking = list("not_loaded_by").iter().filter_map(Json::as_str).collect::<Vec<_>>().join(", ");
        out.line(match lacking.as_str() {
            "" => "next: onceseal keys activate".to_owned(),
            nodes => {
                format!("next: put anchor-{id}.pem into the keys folder of {}", super::out::clean(nodes))
            }
        });
    }
    Ok(Exit::Fine)
}

/// A node's row: whether it is alive and has loaded the announced key.
fn shown(node: &Json, standing: &Json) -> Vec<String> {
    let loaded = node.get("loaded").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let announced = match standing.get("announced").filter(|id| id.is_string()) {
        None => "-",
        Some(id) if loaded.contains(id) => "loaded",
        Some(_) => "not loaded",
    };
    let alive = node.get("alive").and_then(Json::as_bool).unwrap_or(false);
    vec![
        text(node, "node"),
        text(node, "address"),
        format!("{} s ago", text(node, "age_s")),
        if alive { "yes" } else { "no" }.to_owned(),
        announced.to_owned(),
        text(node, "trouble"),
    ]
}

async fn list(globals: &Globals, out: Out) -> Ended {
    let set = Api::open(globals, Folder::Expected).await?.call(Order::anchor_keys()).await?;
    let keys = set.get("keys").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    if out.json {
        out.value(&set);
        return Ok(Exit::Fine);
    }
    let time = |key: &Json, name: &str| {
        let seconds = key.get(name).and_then(Json::as_i64);
        seconds.map_or_else(|| "-".into(), |at| kernel::Time::from_seconds(at).to_rfc3339_seconds())
    };
    let row = |key: &Json| {
        vec![
            text(key, "kid"),
            text(key, "onceseal:status"),
            time(key, "onceseal:not_before"),
            time(key, "onceseal:retired_at"),
            text(key, "x"),
        ]
    };
    let rows: Vec<Vec<String>> = keys.iter().map(row).collect();
    out.table(&["key id", "status", "from", "retired", "public key"], &rows);
    Ok(Exit::Fine)
}

fn backup(from: &Path, to: &Path, out: Out) -> Ended {
    let files = files(from)?;
    if files.is_empty() {
        let text = format!("{} holds no keys; a server makes them at its first start", from.display());
        return Err(Stop::new(Exit::NothingFound, text));
    }
    folder(to)?;
    beside(to, files.iter().map(|(name, _)| name))?;
    for (name, bytes) in &files {
        write(&to.join(name), bytes)?;
    }
    std::fs::File::open(to)?.sync_all()?;
    out.answer(&json!({ "to": to.display().to_string(), "files": files.len() }));
    Ok(Exit::Fine)
}

fn restore(from: &Path, config: &Config, out: Out) -> Ended {
    let (files, to) = (files(from)?, &keys_folder(config));
    if files.is_empty() {
        return Err(Stop::new(Exit::NothingFound, format!("{} holds no keys", from.display())));
    }
    let mut missing = Vec::new();
    // All are compared before the first is written.
    for (name, bytes) in &files {
        match std::fs::read(to.join(name)).map(Zeroizing::new) {
            Ok(there) if *there == **bytes => {}
            Ok(_) => {
                let text = format!(
                    "{name} is there already and differs; nothing was written. Move it away if the backup is right"
                );
                return Err(Stop::new(Exit::Problems, text));
            }
            Err(_) => missing.push((name, bytes)),
        }
    }
    if !to.is_dir() {
        // On a new machine there is nothing yet.
        make_folder(&config.storage.folder).map_err(Stop::failed)?;
        folder(to)?;
    }
    beside(to, missing.iter().map(|(name, _)| *name))?;
    for (name, bytes) in &missing {
        write(&to.join(name), bytes)?;
    }
    std::fs::File::open(to)?.sync_all()?;
    out.answer(&json!({ "restored": missing.len(), "there_already": files.len() - missing.len() }));
    Ok(Exit::Fine)
}

/// Name and content.
type KeyFile = (String, Zeroizing<Vec<u8>>);

/// The key files in a folder, and those of the supply side in the folder inside it.
fn files(folder: &Path) -> Result<Vec<KeyFile>, Stop> {
    let fail = |cause: std::io::Error| Stop::failed(format!("{}: {cause}", folder.display()));
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(cause) => return Err(fail(cause)),
    };
    for entry in entries {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_key = name == "slug.secret" || (name.starts_with("anchor-") && name.ends_with(".pem"));
        if is_key {
            found.push((name, Zeroizing::new(std::fs::read(entry.path()).map_err(fail)?)));
        }
    }
    let supply = folder.join(secrets::FOLDER);
    for entry in std::fs::read_dir(supply).into_iter().flatten() {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // What is still being written has a name that begins with a dot.
        if entry.path().is_file() && !name.starts_with('.') && !name.contains(".new-") {
            let bytes = Zeroizing::new(std::fs::read(entry.path()).map_err(fail)?);
            found.push((format!("{}/{name}", secrets::FOLDER), bytes));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

/// The folder of the supply side's keys, where a file is to stand in it.
fn beside<'a>(to: &Path, mut names: impl Iterator<Item = &'a String>) -> Result<(), Stop> {
    let path = to.join(secrets::FOLDER);
    if names.any(|name| name.starts_with(secrets::FOLDER)) && !path.is_dir() {
        folder(&path)?;
    }
    Ok(())
}

fn folder(path: &Path) -> Result<(), Stop> {
    let made = std::fs::DirBuilder::new().mode(0o700).create(path);
    made.map_err(|cause| Stop::failed(format!("{} can't be made: {cause}", path.display())))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(())
}
