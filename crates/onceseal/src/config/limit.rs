//! What is refused though it has the right form: zero where it would switch a guard off, numbers nobody
//! can mean, settings that contradict each other. Each refusal names the setting.

use std::collections::BTreeMap;
use std::time::Duration;

use url::Url;

use super::settings::{Config, Server};
use super::unit::{Size, Span};
use super::{files, policy};

/// Longest time that a repeat may wait. Some senders give up after five seconds, so the edge ends every
/// answer at four; the answer after the wait must fit before that.
const WAIT_MAX: Span = Span::seconds(3);
/// Oldest that files may become before they are synced: what a power cut then leaves to be checked.
const SYNC_MAX: Span = Span::seconds(3600);
/// Largest accepted request body.
const BODY_MAX: Size = Size(16 * 1024 * 1024);
/// Longest accepted age of a signature.
const TOLERANCE_MAX: Span = Span::seconds(86_400);

/// The first thing that is wrong, with the setting's name.
///
/// # Errors
/// As said.
pub fn check(config: &Config) -> Result<(), String> {
    server(&config.server)?;
    let storage = &config.storage;
    within("storage.cache", storage.cache, Size(1024 * 1024), Size(4 << 30))?;
    within("storage.readers", storage.readers, 1, 64)?;
    within("storage.sync_after", storage.sync_after, Span(Duration::from_millis(10)), SYNC_MAX)?;
    if storage.folder.as_os_str().is_empty() {
        return Err("storage.folder is empty; name a folder".into());
    }
    if config.keys.folder.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
        return Err("keys.folder is empty; name a folder, or leave the setting out".into());
    }
    postgres(config)?;
    within("policy.keep_payload_days", config.policy.keep_payload_days, 0, 400)?;
    if config.issuer.name.trim().is_empty() || config.issuer.name.chars().count() > 200 {
        return Err("issuer.name must have 1 to 200 characters".into());
    }
    files::check(config)?;
    policy::check(&config.supply)?;
    channels(config)?;
    config.telemetry.endpoint.as_deref().map_or(Ok(()), collector)?;
    sources(config)
}

fn postgres(config: &Config) -> Result<(), String> {
    let postgres = &config.postgres;
    let spans = [
        ("postgres.connect_timeout", postgres.connect_timeout),
        ("postgres.lock_timeout", postgres.lock_timeout),
        ("postgres.statement_timeout", postgres.statement_timeout),
        ("postgres.idle_timeout", postgres.idle_timeout),
        ("postgres.answer_timeout", postgres.answer_timeout),
    ];
    for (setting, span) in spans {
        within(setting, span, Span(Duration::from_millis(50)), Span::seconds(120))?;
    }
    within("postgres.clock_limit", postgres.clock_limit, Span::seconds(1), Span::seconds(3600))?;
    within("postgres.connections", postgres.connections, 1, 1000)?;
    if postgres.lock_timeout >= postgres.answer_timeout {
        return Err(format!(
            "postgres.lock_timeout is {} and postgres.answer_timeout {}; the lock's must be the shorter one, or every wait for a lock ends as an unknown commit",
            postgres.lock_timeout, postgres.answer_timeout
        ));
    }
    let Some(text) = &config.storage.database else { return Ok(()) };
    let wrong = |why: &str| {
        Err(format!(
            "storage.database {why}; write it like postgres://onceseal@db.example.com:5432/onceseal?sslmode=require"
        ))
    };
    // Several hosts stand in one authority, which a general reader of addresses refuses.
    let Some(rest) = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://")) else {
        return wrong("must begin with postgres://");
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    if user.contains(':') || text.contains("password=") {
        return Err(
            "storage.database must not hold the password; put its place into postgres.password".into()
        );
    }
    if user.is_empty() || database.split('?').next().unwrap_or_default().is_empty() {
        return wrong("must name a user and a database");
    }
    Ok(())
}

fn server(server: &Server) -> Result<(), String> {
    within("server.wait", server.wait, Span(Duration::from_millis(1)), WAIT_MAX)?;
    within("server.body_limit", server.body_limit, Size(1024), BODY_MAX)?;
    within("server.max_connections", server.max_connections, 1, 100_000)?;
    match &server.public_url {
        None => Ok(()),
        Some(text) => public_url(text),
    }
}

fn public_url(text: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("server.public_url {why}; write it like https://visa.example.com"));
    let Ok(url) = Url::parse(text) else { return wrong("is not an address") };
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return wrong("must begin with http:// or https:// and name a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("must not hold a user name or password");
    }
    if url.query().is_some() || url.fragment().is_some() || url.path() != "/" {
        return wrong("must end after the host");
    }
    Ok(())
}

fn collector(text: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("telemetry.endpoint {why}; write it like http://127.0.0.1:4318"));
    if !cfg!(feature = "otel") {
        return Err(
            "telemetry.endpoint needs a program built with the feature \"otel\" (cargo build --features otel); this one has none, so remove the setting"
                .into(),
        );
    }
    let Ok(url) = Url::parse(text) else { return wrong("is not an address") };
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return wrong("must begin with http:// or https:// and name a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("must not hold a user name or password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("must end after the path");
    }
    Ok(())
}

fn channels(config: &Config) -> Result<(), String> {
    let announce = &config.announce;
    for (setting, names) in
        [("announce.channels", &announce.channels), ("announce.repeats", &announce.repeats)]
    {
        for name in names {
            match name.as_str() {
                "log" => {}
                "telegram" if announce.telegram.is_some() => {}
                "telegram" => {
                    return Err(format!("{setting} names telegram, but [announce.telegram] is missing"));
                }
                other => {
                    return Err(format!("{setting} names {other:?}; channels are \"log\" and \"telegram\""));
                }
            }
        }
        let mut seen = names.clone();
        seen.sort();
        seen.dedup();
        if seen.len() != names.len() {
            return Err(format!("{setting} names a channel twice"));
        }
    }
    Ok(())
}

fn sources(config: &Config) -> Result<(), String> {
    let mut kinds = BTreeMap::new();
    let mut plain: Option<&str> = None;
    for (name, source) in &config.sources {
        if let Some(tolerance) = source.tolerance {
            within(&format!("sources.{name}.tolerance"), tolerance, Span::seconds(1), TOLERANCE_MAX)?;
            if tolerance.0.subsec_millis() != 0 {
                return Err(format!(
                    "sources.{name}.tolerance is {tolerance}; use whole seconds, as signatures do"
                ));
            }
        }
        let account = source.account.as_deref().unwrap_or(name);
        if let Some((kind, first)) = kinds.insert(account, (source.kind, name))
            && kind != source.kind
        {
            return Err(format!(
                "sources.{first} ({kind}) and sources.{name} ({}) share the account {account:?}; ids of two kinds of sender would mix, so give each its own account",
                source.kind
            ));
        }
        if source.plain_refs == Some(true) && plain.replace(account).is_some_and(|first| first != account) {
            return Err(format!(
                "sources.{name}.plain_refs: plain references are for one account only; leave them on for one"
            ));
        }
        for key in &source.public_keys {
            if key.file.is_some() == key.text.is_some() {
                return Err(format!("sources.{name}.public_keys: each needs either file or text"));
            }
        }
    }
    Ok(())
}

/// Refuses a value outside of `min..=max` by the setting's name.
fn within<T: Copy + PartialOrd + std::fmt::Display>(
    setting: &str,
    value: T,
    min: T,
    max: T,
) -> Result<(), String> {
    if value < min || value > max {
        return Err(format!("{setting} is {value}; use {min} to {max}"));
    }
    Ok(())
}
