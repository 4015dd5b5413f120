//! From settings to a working house: store, door, keys, AuditVisa, the supply side ([`market`]) and the router, in
//! this order. [`server`] adds what only a server has: a socket, the workers, signals, reload ([`reload`]).
//!
//! Not here: what any of the parts does.

pub mod export;
pub mod keeper;
pub mod market;
pub mod node;
pub mod plain;
pub mod reload;
pub mod scheduler;
pub mod secrets;
pub mod server;
pub mod sms;
pub mod waker;
pub mod withheld;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use certify::keyring::{Folder, Passphrase};
use certify::ledgerfile::ProcessedFile;
use certify::run::Issuer;
use certify::shelf::Shelf;
use certify::{AuditVisa, Endpoint};
use door::Door;
use ipnet::IpNet;
use kernel::Clock;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::SecretString;
use store::migration::{CERTIFY, CORE, Chain, SUPPLY};
use supply::consumers::{payout, statement};
use web::health::Check;
use web::token::{Token, Tokens};

use crate::config::files::{self, Files};
use crate::config::secret::Layout;
use crate::config::settings::PostgresMode;
use crate::config::supply::SmsSender;
use crate::config::{Config, Loaded};
use crate::random::{OsRandom, StoreClock, SystemClock};

/// The schema that this program works with: the supply side's, too, where that is on.
#[must_use]
pub fn chains(config: &Config) -> Vec<Chain> {
    let supply = config.supply.enabled.then_some(SUPPLY);
    [CORE, CERTIFY].into_iter().chain(supply).collect()
}

/// Folder of the certificates' files, inside the data folder.
pub const DELIVERIES: &str = "deliveries";
/// Folder of the private keys, inside the data folder.
pub const KEYS: &str = "keys";

/// Largest list that one import takes, in bytes: about 150,000 events. It is checked as a whole before
/// anything is kept, so it can't be cut into pieces.
const IMPORT_BODY: usize = 64 * 1024 * 1024;

/// Everything that works, without a socket.
pub struct House {
    /// AuditVisa.
    pub visa: Arc<AuditVisa>,
    /// A token that this program alone knows, good while it runs.
    pub token: Token,
    /// The clock that all parts share.
    pub clock: Arc<dyn Clock>,
    /// The supply side, where it is on.
    pub supply: Option<Arc<web::supply::Supply>>,
    shelf: Shelf,
    _claim: Option<store::FolderLock>,
}

/// What only a server has; a single command's router goes without.
#[derive(Default)]
pub struct Surroundings {
    /// What `/metrics` prints.
    pub metrics: Option<Metrics>,
    /// Wakes the announcements.
    pub nudge: Option<relay::Nudge>,
    /// Asks the worker that writes `processed.jsonl`; without one the order is carried out at once.
    pub rebuild: Option<web::Rebuild>,
}

/// Handle of the process' meters.
pub type Metrics = metrics_exporter_prometheus::PrometheusHandle;

impl House {
    /// Opens the data folder and puts the parts together. `public_url` is the address in links, without a
    /// slash at its end; a single command needs no endpoints.
    ///
    /// # Errors
    /// Says which part can't be used, why, and what to do.
    pub async fn open(config: &Config, public_url: &str, endpoints: Vec<Endpoint>) -> Result<Self, String> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let folder = &config.storage.folder;
        make_folder(folder)?;
        let settings = store_settings(config)?;
        let (claim, node) = match &settings {
            store::Settings::Sqlite(_) => (None, None),
            // The engine is elsewhere; keys, files and the export are this node's alone all the same.
            store::Settings::Postgres(_) => {
                let claim = store::FolderLock::take(folder).map_err(|cause| cause.to_string())?;
                (Some(claim), Some(node::name(folder)?))
            }
        };
        let store = store::Store::open(&settings, &chains(config), Arc::clone(&clock))
            .await
            .map_err(|cause| cause.to_string())?;
        let clock: Arc<dyn Clock> = Arc::new(StoreClock { machine: clock, store: store.clone() });
        let door = Door::new(store, Arc::new(OsRandom));
        let shelf = open_shelf(config).await?;
        let keys = Folder::new(keys_folder(config), passphrase(config)?);
        let settings = certify_settings(config, public_url);
        let visa = AuditVisa::open(door, Arc::clone(&clock), shelf.clone(), keys, settings)
            .await
            .map_err(|cause| format!("keys.folder: {cause}"))?;
        let visa = match node {
            Some(name) => visa.on_node(name),
            None => visa,
        };
        visa.set_endpoints(endpoints);
        let supply = market::open(config, visa.door(), &clock, &shelf, public_url).await?;
        let token = Token::random(&OsRandom);
        Ok(Self { visa: Arc::new(visa), token, clock, supply, shelf, _claim: claim })
    }

    /// All routes.
    ///
    /// # Errors
    /// `server.trusted_proxies` can't be read.
    pub fn router(&self, config: &Config, around: Surroundings) -> Result<Router, String> {
        let tokens = Tokens::new(self.visa.door().clone(), Arc::clone(&self.clock));
        let announcements = web::Announcements { destinations: destinations(config), nudge: around.nudge };
        let rebuild = around.rebuild.unwrap_or_else(|| self.rebuild(config));
        Ok(web::router(web::State {
            visa: Arc::clone(&self.visa),
            clock: Arc::clone(&self.clock),
            tokens: tokens.with_local(&self.token),
            metrics: around.metrics,
            limits: limits(config),
            trusted_proxies: proxies(config)?,
            checks: self.checks(config),
            announcements,
            rebuild: Some(rebuild),
            supply: self.supply.clone(),
        }))
    }

    fn checks(&self, config: &Config) -> Vec<Check> {
        let mut checks = vec![deliveries(&self.shelf)];
        let store = self.visa.door().store().clone();
        if store.is_shared() {
            checks.push(Check::schema(store.clone(), &chains(config)));
            checks.push(Check::clock(store, config.postgres.clock_limit.0));
        }
        checks
    }

    /// No worker runs, and the folder is locked: this hand is the only one on the file.
    fn rebuild(&self, config: &Config) -> web::Rebuild {
        let visa = Arc::clone(&self.visa);
        let file = ProcessedFile::at(processed_file(&config.storage.folder));
        web::Rebuild::new(move || {
            let (visa, file) = (Arc::clone(&visa), file.clone());
            Box::pin(async move { visa.rebuild_export(&file).await })
        })
    }
}

/// The channels that are named by a setting, or that the supply side needs.
#[must_use]
pub fn destinations(config: &Config) -> Vec<String> {
    let mut names = [config.announce.channels.clone(), config.announce.repeats.clone()].concat();
    if config.supply.enabled {
        names.extend(["log".into(), statement::NAME.to_owned()]);
        names.extend(config.supply.payout.url.as_ref().map(|_| payout::NAME.to_owned()));
        names.extend(config.announce.telegram.is_some().then(|| "telegram".to_owned()));
        names.extend((config.supply.sms.sender != SmsSender::Off).then(|| sms::NAME.to_owned()));
    }
    names.sort();
    names.dedup();
    names
}

/// Address in links: the configured one, else the listener's.
#[must_use]
pub fn public_url(config: &Config, listening: &str) -> String {
    config.server.public_url.as_deref().unwrap_or(listening).trim_end_matches('/').to_owned()
}

/// Whether a data folder has a database already.
#[must_use]
pub fn has_store(loaded: &Loaded) -> bool {
    let storage = &loaded.config.storage;
    storage.database.is_some() || storage.folder.join(store::FILE).is_file()
}

/// Where the private keys stand: in the data folder, unless they are mounted elsewhere.
#[must_use]
pub fn keys_folder(config: &Config) -> PathBuf {
    config.keys.folder.clone().unwrap_or_else(|| config.storage.folder.join(KEYS))
}

/// Where the append-only list of processed events stands.
#[must_use]
pub fn processed_file(folder: &Path) -> PathBuf {
    folder.join("processed.jsonl")
}

/// Names the setting that leads to the place.
fn in_folder(cause: impl std::fmt::Display) -> String {
    format!("storage.folder: {cause}")
}

/// Makes the data folder where it is not there yet. It holds what is personal: nobody else's business.
///
/// # Errors
/// It can't be made.
pub fn make_folder(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::DirBuilderExt as _;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o750).create(folder);
    made.map_err(|cause| format!("storage.folder {}: {cause}", folder.display()))
}

/// Opens the place that `storage.files` names.
async fn open_shelf(config: &Config) -> Result<Shelf, String> {
    let named = |cause: certify::shelf::Error| format!("storage.files: {cause}");
    match files::place(config)? {
        Files::Own => Shelf::open(&config.storage.folder.join(DELIVERIES)).map_err(in_folder),
        Files::Folder(folder) => Shelf::open_shared(&folder, &OsRandom).map_err(named),
        Files::Bucket { name, prefix } => {
            let variables = std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
            Shelf::open_s3(files::s3(config, name, prefix, variables)?).await.map_err(named)
        }
    }
}

/// Can certificates' files be written?
fn deliveries(shelf: &Shelf) -> Check {
    let shelf = shelf.clone();
    Check::new("deliveries", move || {
        let shelf = shelf.clone();
        Box::pin(async move {
            shelf.probe().await.map_err(|cause| {
                tracing::warn!(%cause, "deliveries_not_writable");
                "the certificates' files can't be written".into()
            })
        })
    })
}

/// How the store is reached.
///
/// # Errors
/// The password can't be read; names its place.
pub fn store_settings(config: &Config) -> Result<store::Settings, String> {
    let storage = &config.storage;
    let Some(address) = &storage.database else {
        return Ok(store::Settings::Sqlite(store::Sqlite {
            folder: storage.folder.clone(),
            cache_kib: u32::try_from(storage.cache.0 / 1024).unwrap_or(u32::MAX),
            readers: usize::try_from(storage.readers).unwrap_or(1),
        }));
    };
    let postgres = &config.postgres;
    let url = match &postgres.password {
        None => address.clone(),
        Some(place) => {
            let secret = place.read(Layout::Line).map_err(|cause| format!("postgres.password: {cause}"))?;
            let password = utf8_percent_encode(secret.expose(), NON_ALPHANUMERIC);
            address.replacen('@', &format!(":{password}@"), 1)
        }
    };
    Ok(store::Settings::Postgres(store::Postgres {
        url: SecretString::from(url),
        mode: match postgres.mode {
            PostgresMode::Prepared => store::Mode::Prepared,
            PostgresMode::Unnamed => store::Mode::Unnamed,
        },
        connections: usize::try_from(postgres.connections).unwrap_or(1),
        authorities: postgres.authorities.clone(),
        timeouts: store::postgres::Timeouts {
            connect: postgres.connect_timeout.0,
            free: postgres.connect_timeout.0,
            lock: postgres.lock_timeout.0,
            statement: postgres.statement_timeout.0,
            idle: postgres.idle_timeout.0,
            answer: postgres.answer_timeout.0,
        },
    }))
}

fn certify_settings(config: &Config, public_url: &str) -> certify::Settings {
    certify::Settings {
        policy: config.policy.clone(),
        issuer: Issuer { name: config.issuer.name.clone(), url: public_url.to_owned() },
        announce: config.announce.channels.clone(),
        announce_repeats: config.announce.repeats.clone(),
        wait: config.server.wait.0,
    }
}

fn passphrase(config: &Config) -> Result<Option<Passphrase>, String> {
    let Some(place) = &config.keys.passphrase else { return Ok(None) };
    let secret = place.read(Layout::Line).map_err(|cause| format!("keys.passphrase: {cause}"))?;
    Ok(Some(Passphrase::from(secret.expose().to_owned())))
}

fn limits(config: &Config) -> web::Limits {
    let webhook_body = usize::try_from(config.server.body_limit.0).unwrap_or(usize::MAX);
    web::Limits { webhook_body, import_body: IMPORT_BODY, ..web::Limits::default() }
}

/// A single address is a network of one.
fn proxies(config: &Config) -> Result<Vec<IpNet>, String> {
    let network = |text: &String| {
        let address = || text.parse::<std::net::IpAddr>().map(IpNet::from);
        text.parse::<IpNet>().or_else(|_| address()).map_err(|_| {
            format!("server.trusted_proxies: {text:?} is neither an address nor a network like 10.0.0.0/8")
        })
    };
    config.server.trusted_proxies.iter().map(network).collect()
}
