//! From `[supply]` to the supply side: keys, custody, issuer, guard, and who hears of what. Not here: the server's
//! scheduler ([`super::scheduler`]), sending codes ([`super::sms`]).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use auth::{Callers, Issuer, KeyRing, Statuses, Verifier};
use certify::shelf::Shelf;
use custody::kms::Vault;
use custody::pay::{HttpPayout, HttpPayoutSettings, PayoutService};
use custody::provider::{Addresses, Settings, policy::Policy as Verdicts};
use custody::sms::SmsCodes;
use custody::{Custody, Fingerprints, LocalKeyring, Material};
use door::Door;
use guard::{Guard, Scanner, TOKEN_EXCEPTIONS};
use kernel::Clock;
use onceseal_http::{Fingerprints as Hashes, Profile, Protocol};
use secrecy::SecretString;
use store::Query;
use supply::consumers::{Statements, payout, statement};
use supply::exit::Quiet;
use supply::rewrap;
use supply::tokens::TokenRows;
use supply::{House, Keys, Route};
use web::supply::{Links, OnShelf, Rate, Rates, Supply};

use super::keys_folder;
use super::secrets::{self, Secrets};
use crate::config::secret::Layout;
use crate::config::supply::{IdempotencyProfile, Kms, KmsKind, SmsSender};
use crate::config::{Config, files, policy};
use crate::random::OsRandom;

/// Name of the local key that wraps data keys, in the columns `*_kms_key_alias`.
const ALIAS: &str = "local/supply";
/// What alerts of the supply side begin with, and who hears of them.
pub const ALERTS: &str = "supply.alert.";
/// Rows that can't be read without the keys.
const SEALED: &str = "select (select count(*) from supply_suppliers) + (select count(*) from supply_accounts) + (select count(*) from auth_api_keys)";

/// The folder of the keys that the configuration does not name.
#[must_use]
pub fn folder(config: &Config) -> PathBuf {
    keys_folder(config).join(secrets::FOLDER)
}

/// Reads what is named, so that nothing is touched before a secret that can't be used is told of.
///
/// # Errors
/// Says which secret, why, and what to do.
pub fn check(config: &Config) -> Result<(), String> {
    let keys = &config.supply.keys;
    if config.supply.enabled && !keys.are_local() {
        Secrets::named(keys)?;
    }
    if config.supply.enabled && config.supply.kms.kind == KmsKind::Vault {
        vault(&config.supply.kms)?;
    }
    super::sms::sender(config)?;
    payouts(config).map(drop)
}

/// Puts the supply side together; `None` where it is off. Statements stand on `shelf`, their links begin with
/// `public_url`.
///
/// # Errors
/// Says which setting or key, why, and what to do.
pub async fn open(
    config: &Config,
    door: &Door,
    clock: &Arc<dyn Clock>,
    shelf: &Shelf,
    public_url: &str,
) -> Result<Option<Arc<Supply>>, String> {
    let set = &config.supply;
    if !set.enabled {
        return Ok(None);
    }
    let secrets = held(config, door).await?;
    let random = door.random();
    let policy = policy::policy(set)?;
    let keys = keys(config, &secrets, clock)?;
    agree(door, &secrets, &keys).await?;
    let scanner = Scanner::standard().map_err(|cause| format!("the guard's patterns: {cause}"))?;
    let guard = Arc::new(Guard::new(scanner, TOKEN_EXCEPTIONS.to_vec(), &secrets.guard()));
    crate::logging::guarded::pass(&guard);
    let house = House {
        policy,
        random: Arc::clone(&random),
        clock: Arc::clone(clock),
        keys,
        routes: routes(config),
        guard: Some(Arc::clone(&guard)),
    };
    let (verifier, issuer) = issuer(config, clock).await?;
    let believed = Duration::from_secs(u64::from(set.token_status_cache_seconds));
    let rows = if issuer.is_some() { TokenRows::new } else { TokenRows::of_outside_issuer };
    let statuses = Statuses::believing_for(Arc::new(rows(door.store().clone())), believed);
    let (current, former) = secrets.idempotency();
    let hashes =
        Hashes::new(&current, &former).map_err(|cause| format!("supply.keys.idempotency: {cause}"))?;
    let mut protocol = Protocol::new(hashes, random);
    protocol.answers.profile = match set.idempotency_profile {
        IdempotencyProfile::Spec => Profile::Seed,
        IdempotencyProfile::Draft => Profile::Draft,
    };
    let house = Arc::new(house);
    let files = Arc::new(OnShelf(shelf.clone()));
    let statements = Statements { door: door.clone(), house: Arc::clone(&house), files };
    let (current, former) = secrets.links();
    let life = Duration::from_secs(60 * u64::from(set.statement_url_minutes));
    Ok(Some(Arc::new(Supply {
        door: door.clone(),
        house,
        statements: Arc::new(statements),
        links: Links::new(current, former, public_url, life),
        callers: Callers::new(verifier, statuses),
        issuer,
        protocol: Arc::new(protocol),
        guard,
        rates: Rates::new(Rate(set.calls_per_minute), Rate(set.verify_per_minute)),
        quiet: Quiet::default(),
        tally: Arc::default(),
        twin_wait: config.server.wait.0,
        buyer_keys: secrets.buyer(),
        clock: Arc::clone(clock),
    })))
}

/// The keys; those in files are made where nothing can have been sealed under others.
async fn held(config: &Config, door: &Door) -> Result<Secrets, String> {
    let keys = &config.supply.keys;
    if !keys.are_local() {
        return Secrets::named(keys);
    }
    let folder = folder(config);
    if let Some(missing) = secrets::missing(&folder) {
        let lost = |why: &str| {
            Err(format!(
                "supply.keys: the key file keys/{}/{missing} is not there, and {why}",
                secrets::FOLDER
            ))
        };
        if config.storage.database.is_some() {
            return lost(
                "all nodes of a database need the same keys; make them once with `onceseal init --supply` and copy them, or name them in [supply.keys]",
            );
        }
        let rows = door.store().query(Query::new("supply.sealed", SEALED, vec![])).await;
        let sealed = rows.and_then(|rows| rows.first().map_or(Ok(0), |row| row.int(0)));
        if sealed.map_err(|cause| cause.to_string())? > 0 {
            return lost(
                "the database holds what was sealed under it; put it back from the backup of the keys",
            );
        }
        let made = secrets::make(&folder, &OsRandom)?;
        tracing::info!(files = made.len(), "supply_keys_made");
    }
    Secrets::local(&folder)
}

fn keys(config: &Config, secrets: &Secrets, clock: &Arc<dyn Clock>) -> Result<Keys, String> {
    let set = &config.supply;
    let fingerprints = Fingerprints::new(&secrets.pepper, secrets.former_pepper.as_ref());
    let sms = (set.sms.sender != SmsSender::Off).then(|| codes(&secrets.sms)).transpose()?;
    let places = &set.providers;
    let addresses = Addresses {
        openai: places.openai.clone(),
        anthropic: places.anthropic.clone(),
        gemini: places.gemini.clone(),
        baidu: places.baidu.clone(),
        xfyun: places.xfyun.clone(),
        tencent: places.tencent.clone(),
        tencent_signed: places.tencent_signed.clone(),
    };
    let asked = Settings { addresses, quota_header: places.quota_header.clone(), ..Settings::default() };
    let verdicts = Verdicts::standard(policy::assumed_quota(set)?);
    let verifier = custody::Verifier::new(asked, verdicts, Arc::clone(clock), Arc::new(OsRandom));
    Ok(Keys {
        custody: custody(config, secrets)?,
        fingerprints: Arc::new(fingerprints.map_err(|cause| format!("supply.keys.pepper: {cause}"))?),
        sms: sms.map(Arc::new),
        verifier: Arc::new(verifier.map_err(|cause| format!("supply.providers: {cause}"))?),
    })
}

/// Who wraps data keys. Local keys beside a service open what was sealed before it was there.
fn custody(config: &Config, secrets: &Secrets) -> Result<Custody, String> {
    let current = secrets.kek.iter().map(|(version, _)| *version).max();
    let ring =
        current.map(|current| LocalKeyring::new(ALIAS, current, secrets.kek.clone(), Arc::new(OsRandom)));
    let ring = ring.transpose().map_err(|cause| format!("supply.keys.kek: {cause}"))?.map(Arc::new);
    match (config.supply.kms.kind, ring) {
        (KmsKind::Local, None) => Err("supply.keys.kek is not set".into()),
        (KmsKind::Local, Some(ring)) => Ok(Custody::new(ring, Arc::new(OsRandom))),
        (KmsKind::Vault, ring) => {
            let custody = Custody::new(Arc::new(vault(&config.supply.kms)?), Arc::new(OsRandom));
            Ok(match ring {
                Some(ring) => custody.with_earlier(ring),
                None => custody,
            })
        }
    }
}

fn vault(set: &Kms) -> Result<Vault, String> {
    let missing = || "supply.kms.kind is \"vault\"; set supply.kms.address and supply.kms.token".to_owned();
    let (address, token) = set.address.as_ref().zip(set.token.as_ref()).ok_or_else(missing)?;
    let token = token.read(Layout::Line).map_err(|cause| format!("supply.kms.token: {cause}"))?;
    let token = SecretString::from(token.expose().to_owned());
    let mut settings = custody::kms::vault::Settings::new(address, &set.key, token);
    settings.mount.clone_from(&set.mount);
    settings.namespace.clone_from(&set.namespace);
    if let Some(path) = &set.authorities {
        let pem = files::authorities(path).map_err(|cause| format!("supply.kms.{cause}"))?;
        let text = String::from_utf8(pem).map_err(|_| "supply.kms.authorities is no PEM file".to_owned())?;
        settings.authority = Some(text);
    }
    Vault::new(settings, Arc::new(OsRandom)).map_err(|cause| format!("supply.kms: {cause}"))
}

/// Registry and local keys tell the same: no version that is needed is missing, and the newest is registered as the
/// one that wraps. A service tells of its versions by itself, when the scheduler first asks.
async fn agree(door: &Door, secrets: &Secrets, keys: &Keys) -> Result<(), String> {
    let held: Vec<i64> = secrets.kek.iter().map(|(version, _)| i64::from(*version)).collect();
    let known = rewrap::versions(door.store(), ALIAS).await.map_err(|cause| cause.to_string())?;
    let local = keys.custody.kms().alias() == ALIAS;
    let needed = |one: &&rewrap::Version| {
        !held.contains(&one.version) && (one.rows > 0 || (local && one.status != "retired"))
    };
    if let Some(lost) = known.iter().find(needed) {
        return Err(format!(
            "supply.keys.kek: version {} is {} in the registry and wraps {} rows, but it is not among the keys; put keys/{}/kek-{} back from the backup of the keys, or name it in [supply.keys.kek]",
            lost.version,
            lost.status,
            lost.rows,
            secrets::FOLDER,
            lost.version
        ));
    }
    match held.iter().max().filter(|_| local) {
        Some(current) => {
            rewrap::register(door, ALIAS, &held, *current).await.map_err(|cause| cause.to_string())
        }
        None => Ok(()),
    }
}

fn codes(versions: &[(u32, Material)]) -> Result<SmsCodes, String> {
    let mut newest = versions.iter().rev().map(|(version, material)| (*version, material));
    let current = newest.next().ok_or("supply.keys.sms is not set")?;
    SmsCodes::new(current, newest.next()).map_err(|cause| format!("supply.keys.sms: {cause}"))
}

/// Whoever pays out, by the configuration; `None` where people do.
///
/// # Errors
/// Says which setting, why, and what to do.
pub fn payouts(config: &Config) -> Result<Option<Arc<dyn PayoutService>>, String> {
    let set = &config.supply.payout;
    let Some((url, token)) = set.url.as_ref().zip(set.token.as_ref()).filter(|_| config.supply.enabled)
    else {
        return Ok(None);
    };
    let token = token.read(Layout::Line).map_err(|cause| format!("supply.payout.token: {cause}"))?;
    let settings = HttpPayoutSettings::new(url, SecretString::from(token.expose().to_owned()));
    let service = HttpPayout::new(settings).map_err(|cause| format!("supply.payout.url: {cause}"))?;
    Ok(Some(Arc::new(service)))
}

/// Who hears of which event.
fn routes(config: &Config) -> Vec<Route> {
    let alerts = |destination: &str| Route { prefix: ALERTS.into(), destination: destination.into() };
    // People who read a chat are told there as well, whatever it hears of certificates.
    let chat = config.announce.telegram.is_some().then(|| alerts("telegram"));
    let codes = Route { prefix: super::sms::EVENT.into(), destination: super::sms::NAME.into() };
    let sent = (config.supply.sms.sender != SmsSender::Off).then_some(codes);
    let paid = config.supply.payout.url.is_some().then(payout::route);
    [Some(alerts("log")), chat, sent, paid].into_iter().flatten().chain(statement::routes()).collect()
}

async fn issuer(config: &Config, clock: &Arc<dyn Clock>) -> Result<(Verifier, Option<Arc<Issuer>>), String> {
    let set = &config.supply.issuer;
    if let Some(url) = &set.jwks_url {
        let authorities = set.authorities.as_deref().map(files::authorities).transpose();
        let authorities = authorities.map_err(|cause| format!("supply.issuer.{cause}"))?;
        let asked = auth::jwks::Settings { authorities, ..auth::jwks::Settings::new(url) };
        let outside = auth::jwks::Outside::new(asked, Arc::clone(clock));
        let outside = outside.map_err(|cause| format!("supply.issuer.jwks_url: {cause}"))?;
        // It may come later; until then callers are told that their token can't be checked.
        if outside.warm().await.is_err() {
            tracing::warn!("supply.issuer.jwks_url gives no keys yet");
        }
        let ring: Arc<dyn KeyRing> = Arc::new(outside);
        return Ok((Verifier::new(&set.name, &set.audience, ring), None));
    }
    let fail = |cause: auth::issuer::Error| format!("supply.issuer: {cause}");
    let folder = set.folder.clone().unwrap_or_else(|| folder(config));
    if config.storage.database.is_some() && !secrets::has_issuer(&folder) {
        return Err(format!(
            "supply.issuer: no file issuer-NNNN.pem is in {}, and all nodes of a database need the same issuer's keys; make one with `onceseal init --supply` and copy it, or set supply.issuer.folder",
            folder.display()
        ));
    }
    let keys = auth::issuer::folder::open(&folder, &OsRandom).map_err(fail)?;
    let mut issuer = Issuer::new(&set.name, &set.audience, keys).map_err(fail)?;
    if let Some(kid) = &set.signing_key {
        issuer = issuer.signing_with(kid).map_err(fail)?;
    }
    let verifier = Verifier::new(issuer.name(), issuer.audience(), issuer.keys().map_err(fail)?);
    Ok((verifier, Some(Arc::new(issuer))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::secret::SecretRef;
    use crate::config::settings::{ChatId, Telegram};

    #[test]
    fn alerts_go_to_the_log_and_to_the_chat_that_is_set() {
        let mut config = Config::default();
        config.supply.enabled = true;
        let told = |config: &Config| {
            let alerts =
                routes(config).into_iter().filter(|route| "supply.alert.x".starts_with(&route.prefix));
            alerts.map(|route| route.destination).collect::<Vec<_>>()
        };
        assert_eq!(told(&config), ["log"]);
        config.announce.telegram = Some(Telegram {
            base_url: "https://api.telegram.org".into(),
            token: SecretRef::Env("TOKEN".into()),
            chat_id: ChatId::Number(1),
        });
        assert_eq!(told(&config), ["log", "telegram"]);
        assert!(super::super::destinations(&config).contains(&"telegram".to_owned()), "somebody sends them");
    }
}
