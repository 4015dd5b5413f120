//! What a stage stands on: folders, configurations, keys, a database of its own, and the two tokens that a set-up begins
//! with. Not here: what is made of them ([`super::stage`]).

use std::path::{Path, PathBuf};

use kernel::Random as _;
use serde_json::Value as Json;

use super::database::{Address, Database};
use super::node;
use crate::random::OsRandom;

/// A server that was killed is waited for no longer than that.
const LEASE: &str = "supply.idempotency_lease_seconds=5";
/// What the name of a gate's database begins with.
const NAMED: &str = "onceseal_gate_";

/// One node's place.
pub(super) struct Place {
    pub(super) config: PathBuf,
    pub(super) log: PathBuf,
    pub(super) port: u16,
}

/// Random letters and digits: nothing that stands anywhere by chance.
#[must_use]
pub fn letters(count: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut bytes = vec![0; count];
    OsRandom.fill(&mut bytes);
    bytes
        .iter()
        .map(|byte| DIGITS.get(usize::from(byte % 62)).map_or('0', |digit| char::from(*digit)))
        .collect()
}

pub(super) fn written(path: &Path, text: &str) -> Result<(), String> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|cause| format!("the gate's folder can't be written: {cause}"))
}

/// The database of a gate: none is named for SQLite.
pub(super) async fn database(server: Option<&Address>) -> Result<Option<(Address, String)>, String> {
    let Some(server) = server else { return Ok(None) };
    let name = format!("{NAMED}{}", letters(12).to_ascii_lowercase());
    Database::postgres(server).await?.run(&format!("create database {name}")).await?;
    Ok(Some((server.clone(), name)))
}

/// Where the two stand in for the outside world.
pub(super) struct Around<'a> {
    pub(super) provider: &'a str,
    pub(super) phone: &'a str,
}

/// The folder of one node: keys of the first, and a configuration.
pub(super) fn prepare(
    folder: &Path,
    address: Option<&Address>,
    around: &Around<'_>,
) -> Result<Place, String> {
    let fail = |cause: std::io::Error| format!("the gate's folder can't be written: {cause}");
    std::fs::create_dir_all(folder).map_err(fail)?;
    let (config, token) = (folder.join("onceseal.toml"), folder.join("sms.token"));
    let secret = folder.join("stripe.secret");
    written(&token, &letters(32))?;
    written(&secret, &format!("whsec_{}", letters(32)))?;
    let quoted = |path: &Path| toml::Value::String(path.display().to_string()).to_string();
    let mut text = format!(
        "[server]\nwait = \"200ms\"\n\n[issuer]\nname = \"Onceseal gate\"\n\n[log]\nlevel = \"info\"\n\n\
         [sources.stripe]\nkind = \"stripe\"\nmode = \"test\"\nsecrets = [{{ file = {} }}]\n\n\
         [storage]\nfolder = {}\n",
        quoted(&secret),
        quoted(&folder.join("data"))
    );
    if let Some(address) = address {
        text.push_str(&format!(
            "database = {}\n\n[postgres]\nconnections = 8\nlock_timeout = \"700ms\"\nstatement_timeout = \"1500ms\"\n",
            toml::Value::String(address.plain.clone())
        ));
        if let Some(password) = &address.password {
            let file = folder.join("database.password");
            written(&file, password)?;
            text.push_str(&format!("password = {{ file = {} }}\n", quoted(&file)));
        }
    }
    text.push('\n');
    text.push_str(&play::setting::supply(around.provider, around.phone, &token.display().to_string(), ""));
    std::fs::write(&config, text).map_err(fail)?;
    Ok(Place { config, log: folder.join("server.log"), port: 0 })
}

/// Makes the keys that all nodes of a database need.
pub(super) fn keys(folder: &Path) -> Result<(), String> {
    let folder = folder.join("data").join(crate::wiring::KEYS).join(crate::wiring::secrets::FOLDER);
    crate::wiring::secrets::make(&folder, &OsRandom)?;
    auth::issuer::folder::open(&folder, &OsRandom).map(drop).map_err(|cause| cause.to_string())
}

/// Gives the other node the keys of the first.
pub(super) fn copied(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    std::fs::set_permissions(to, std::fs::metadata(from)?.permissions())?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copied(&entry.path(), &target)?;
        } else {
            // The copy has the original's mode.
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

pub(super) fn listen(place: &Place) -> Vec<String> {
    vec![format!("server.listen=127.0.0.1:{}", place.port), LEASE.into()]
}

pub(super) fn port(base: &str) -> Result<u16, String> {
    let port = base.rsplit(':').next().and_then(|port| port.parse().ok());
    port.ok_or_else(|| format!("{base} names no port"))
}

/// The platform's first administrator, as the command line makes it.
pub(super) async fn admin(config: &Path) -> Result<String, String> {
    let mut command = node::command(config, &["supply", "admin", "gate"])?;
    let ran =
        tokio::task::spawn_blocking(move || command.output()).await.map_err(|cause| cause.to_string())?;
    let ran = ran.map_err(|cause| format!("this program can't be started: {cause}"))?;
    if !ran.status.success() {
        return Err(format!("no administrator: {}", String::from_utf8_lossy(&ran.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

/// The token that a running server leaves for commands on its machine.
pub(super) fn operator(data: &Path) -> Result<String, String> {
    let text =
        std::fs::read(data.join("run/server.json")).map_err(|cause| format!("run/server.json: {cause}"))?;
    let json: Json = serde_json::from_slice(&text).map_err(|cause| format!("run/server.json: {cause}"))?;
    json.get("token")
        .and_then(Json::as_str)
        .map(str::to_owned)
        .ok_or_else(|| "run/server.json has no token".into())
}
