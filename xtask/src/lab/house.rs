//! A folder in which the program runs: `onceseal.toml`, `secrets/`, `data/`, `logs/`. All paths in the
//! configuration are relative to the folder, so a copy of it is a house of its own.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// Signing secret of the source `stripe`.
pub(crate) const STRIPE_SECRET: &str = "whsec_lab_8e1b5f7c20d94a63b1d7";
/// Bearer token of the source `internal`.
pub(crate) const INTERNAL_TOKEN: &str = "lab-internal-3a9d41c7e58b4f02";
/// Passphrase of the key files, where the setup asks for one.
pub(crate) const PASSPHRASE: &str = "lab passphrase 5c0e7d19ab";
/// Token of the Telegram bot, where the setup has one.
pub(crate) const BOT_TOKEN: &str = "7314159265:AALab-bot-token-2f6e0c8d1b";
/// Token of the SMS service, where the setup has one.
pub(crate) const SMS_TOKEN: &str = "lab-sms-91c4e7f05b";
/// Address in links: of no machine, so that a certificate doesn't depend on the port.
pub(crate) const PUBLIC_URL: &str = "https://deliver.example.com";

/// How a house is set up.
#[derive(Clone, Default)]
pub(crate) struct Setup {
    /// Whether key files have a passphrase (costs some 100 ms a start).
    pub(crate) passphrase: bool,
    /// Where a Telegram of our own listens; announcements then go there besides the log.
    pub(crate) telegram: Option<SocketAddr>,
    /// Level of the log; `info` when empty.
    pub(crate) level: &'static str,
    /// More sections of the configuration.
    pub(crate) more: &'static str,
    /// The sections of the supply side (`play::setting`); it is off when empty.
    pub(crate) supply: String,
    /// Where the store is, when it is not a file in the folder.
    pub(crate) database: Option<Database>,
}

/// A PostgreSQL database as a house's store.
#[derive(Clone)]
pub(crate) struct Database {
    /// `postgres://user@host:port/name`, without the password.
    pub(crate) address: String,
    /// The password, kept in a file of its own.
    pub(crate) password: String,
    /// More lines of the section `[postgres]`.
    pub(crate) settings: &'static str,
}

impl Database {
    /// The database at `url`, which has a password in it.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn at(url: &str, settings: &'static str) -> anyhow::Result<Self> {
        let parts = url.split_once("://").and_then(|(scheme, rest)| {
            let (login, place) = rest.split_once('@')?;
            let (user, password) = login.split_once(':')?;
            Some((format!("{scheme}://{user}@{place}?sslmode=disable"), password.to_owned()))
        });
        let (address, password) = parts.context("a database's URL without user and password")?;
        Ok(Self { address, password, settings })
    }
}

/// A folder in which the program runs.
#[derive(Clone, Debug)]
pub(crate) struct House {
    folder: PathBuf,
}

impl House {
    /// Makes a house in an empty folder.
    ///
    /// # Errors
    /// A file can't be written.
    pub(crate) fn make(folder: impl Into<PathBuf>, setup: &Setup) -> anyhow::Result<Self> {
        let house = Self::at(folder);
        for part in ["secrets", "logs"] {
            std::fs::create_dir_all(house.folder.join(part)).context("making the house")?;
        }
        house.secret("stripe", STRIPE_SECRET)?;
        house.secret("internal", INTERNAL_TOKEN)?;
        house.secret("passphrase", PASSPHRASE)?;
        house.secret("telegram", BOT_TOKEN)?;
        house.secret("sms", SMS_TOKEN)?;
        if let Some(database) = &setup.database {
            house.secret("postgres", &database.password)?;
        }
        std::fs::write(house.folder.join("onceseal.toml"), configuration(setup))?;
        Ok(house)
    }

    /// The house in a folder that has one, such as a copy.
    pub(crate) fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder that the program writes to.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Where logs are collected, one file a start.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// The certificates' files.
    pub(crate) fn deliveries(&self) -> PathBuf {
        self.data().join("deliveries")
    }

    /// `onceseal ARGUMENTS` in this house, with nothing of the caller's own settings in its environment.
    pub(crate) fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("ONCESEAL_") || name == "RUST_LOG" {
                command.env_remove(name);
            }
        }
        command.args(["--config", "onceseal.toml"]).args(arguments).current_dir(&self.folder);
        command
    }

    /// Writes a file of the folder `secrets`, as its owner would.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn secret(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.folder.join("secrets").join(name);
        std::fs::write(&path, text)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(())
    }
}

fn configuration(setup: &Setup) -> String {
    let level = if setup.level.is_empty() { "info" } else { setup.level };
    let mut text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\npublic_url = \"{PUBLIC_URL}\"\n\n\
         [storage]\nfolder = \"data\"\nsync_after = \"20ms\"\n"
    );
    // Writing to a string can't fail.
    let _ = match &setup.database {
        None => Ok(()),
        Some(Database { address, settings, .. }) => write!(
            text,
            "database = \"{address}\"\n\n[postgres]\npassword = {{ file = \"secrets/postgres\" }}\n{settings}\n"
        ),
    };
    let _ = write!(
        text,
        "\n[issuer]\nname = \"AuditVisa Lab\"\n\n[log]\nlevel = \"{level}\"\n\n{}\n",
        setup.more
    );
    if setup.passphrase {
        text.push_str("[keys]\npassphrase = { file = \"secrets/passphrase\" }\n\n");
    }
    if let Some(at) = setup.telegram {
        let _ = write!(
            text,
            "[announce]\nchannels = [\"log\", \"telegram\"]\n\n[announce.telegram]\nbase_url = \"http://{at}\"\n\
             token = {{ file = \"secrets/telegram\" }}\nchat_id = -1001234567890\n\n"
        );
    }
    text.push_str(
        "[sources.stripe]\nkind = \"stripe\"\nsecrets = [{ file = \"secrets/stripe\" }]\n\n\
         [sources.internal]\nkind = \"internal\"\nsecrets = [{ file = \"secrets/internal\" }]\n",
    );
    text.push_str(&setup.supply);
    text
}
