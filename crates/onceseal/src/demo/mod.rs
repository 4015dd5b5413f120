//! The demo: a server of its own on loopback in a folder of its own, and a story told to it by a sender
//! that repeats itself. Everything goes over HTTP and through the same code as in production.
//!
//! [`story`] is what is sent, [`teller`] sends it, [`proof`] verifies what came out; [`market`] is the story of the
//! supply side. Not here: printing (`cli::demo`).

pub mod market;
pub mod proof;
pub mod story;
pub mod teller;

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use source::Secret;

use crate::config::Places;
use crate::config::load::Environment;
use crate::random::OsRandom;
use crate::wiring::server::Server;

/// Name of the demo's source.
pub const SOURCE: &str = "stripe";

/// A demo server that is ready, and the secret of its sender.
pub struct Stage {
    /// The server.
    pub server: Server,
    /// Signs as the sender.
    pub secret: Secret,
}

/// Sets the server up in `folder`, to listen there: a random secret, a configuration that ends with `more`,
/// everything as `onceseal init` would.
///
/// # Errors
/// The folder can't be written, or the server can't start.
pub async fn set(folder: &Path, listen: SocketAddr, more: &str) -> Result<Stage, String> {
    let fail = |cause: std::io::Error| format!("the demo's folder can't be written: {cause}");
    std::fs::create_dir_all(folder).map_err(fail)?;
    let secret_file = folder.join("stripe.secret");
    let text = match std::fs::read_to_string(&secret_file) {
        Ok(text) => text,
        Err(_) => {
            let text = random_secret();
            write_new(&secret_file, text.as_bytes()).map_err(fail)?;
            text
        }
    };
    let config = folder.join("onceseal.toml");
    std::fs::write(&config, configuration(folder, listen, &secret_file) + more).map_err(fail)?;
    let places = Places { file: Some(config), flags: Vec::new(), environment: Environment::Ignored };
    let loaded = places.load().map_err(|fault| fault.to_string())?;
    crate::logging::start(&loaded.config)?;
    let server = Server::start(places, loaded).await?;
    let secret = Secret::new(text).map_err(|cause| cause.to_string())?;
    Ok(Stage { server, secret })
}

fn random_secret() -> String {
    use kernel::Random as _;
    let mut bytes = [0; 24];
    OsRandom.fill(&mut bytes);
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("whsec_{digits}")
}

fn write_new(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?.write_all(bytes)
}

/// Only what differs from the defaults.
fn configuration(folder: &Path, listen: SocketAddr, secret: &Path) -> String {
    let quoted = |path: &Path| toml::Value::String(path.display().to_string()).to_string();
    format!(
        "# Written by `onceseal demo`.\n\
         [server]\nlisten = \"{listen}\"\n\n\
         [storage]\nfolder = {}\n\n\
         [issuer]\nname = \"AuditVisa demo\"\n\n\
         [log]\nlevel = \"error\"\nformat = \"text\"\n\n\
         [sources.{SOURCE}]\nkind = \"stripe\"\nplain_refs = true\nmode = \"test\"\nsecrets = [{{ file = {} }}]\n",
        quoted(&folder.join("data")),
        quoted(secret),
    )
}
