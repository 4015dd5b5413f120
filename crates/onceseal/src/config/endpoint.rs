//! From configured sources to endpoints: secrets are read here, at the start and at every reload.

use certify::Endpoint;
use certify::identity::Plain;
use certify::policy::CertifiedMode;
use source::{Encoding, GenericRule, IdRule, Kind, PublicKey, Settings, TimestampRule};

use super::load::Loaded;
use super::secret::Layout;
use super::settings::{self, IdPlace, Source};

/// All endpoints, in the file's order.
///
/// # Errors
/// There is none, or one has no usable secret: says which, why, and what to do.
pub fn all(loaded: &Loaded) -> Result<Vec<Endpoint>, String> {
    if loaded.order.is_empty() {
        return Err(
            "no source is configured; add one as [sources.NAME], or run `onceseal init` for an example"
                .into(),
        );
    }
    let plain = plain_account(loaded);
    loaded
        .order
        .iter()
        .filter_map(|name| Some((name, loaded.config.sources.get(name)?)))
        .map(|(name, source)| {
            let settings = settings_of(name, source)?;
            let plain = if plain == Some(settings.account.as_str()) { Plain::Yes } else { Plain::No };
            let unstated = source.mode.unwrap_or(CertifiedMode::Live);
            let source = source::Source::new(settings).map_err(|cause| cause.to_string())?;
            Ok(Endpoint { source, plain, unstated })
        })
        .collect()
}

/// The account whose references are plain: the one that says so, else that of the first Stripe source in
/// the file that doesn't say no.
#[must_use]
pub fn plain_account(loaded: &Loaded) -> Option<&str> {
    let sources = || loaded.order.iter().filter_map(|name| loaded.config.sources.get_key_value(name));
    let said = sources().find(|(_, source)| source.plain_refs == Some(true));
    let first = || sources().find(|(_, source)| source.kind == Kind::Stripe && source.plain_refs.is_none());
    said.or_else(first).map(|(name, source)| source.account.as_deref().unwrap_or(name))
}

/// The settings of one source, with its secrets.
///
/// # Errors
/// A secret or key can't be read.
pub fn settings_of(name: &str, source: &Source) -> Result<Settings, String> {
    let fail = |cause: String| format!("source {name:?} can't start: {cause}");
    let mut settings = Settings::new(name, source.kind);
    if let Some(account) = &source.account {
        settings.account.clone_from(account);
    }
    for secret in &source.secrets {
        settings.secrets.push(secret.read(Layout::Line).map_err(fail)?);
    }
    settings.tolerance_s = source.tolerance.map(|span| i64::try_from(span.0.as_secs()).unwrap_or(i64::MAX));
    settings.generic = source.generic.as_ref().map(rule);
    settings.api_v3_key =
        source.api_v3_key.as_ref().map(|key| key.read(Layout::Line)).transpose().map_err(fail)?;
    for key in &source.public_keys {
        settings.public_keys.push(public_key(key).map_err(fail)?);
    }
    Ok(settings)
}

fn public_key(key: &settings::PublicKey) -> Result<PublicKey, String> {
    let text = match (&key.file, &key.text) {
        (Some(path), _) => std::fs::read_to_string(path)
            .map_err(|cause| format!("public key file {}: {cause}", path.display()))?,
        (None, text) => text.clone().unwrap_or_default(),
    };
    Ok(PublicKey { id: key.id.clone(), text })
}

/// The rule of a generic sender.
#[must_use]
pub fn rule(generic: &settings::Generic) -> GenericRule {
    GenericRule {
        signature_header: generic.signature_header.clone(),
        encoding: match generic.encoding {
            settings::Encoding::Hex => Encoding::Hex,
            settings::Encoding::Base64 => Encoding::Base64,
        },
        prefix: generic.prefix.clone(),
        timestamp: generic
            .timestamp
            .as_ref()
            .map(|stamp| TimestampRule { header: stamp.header.clone(), separator: stamp.separator.clone() }),
        id: generic.id.as_ref().map(|id| match id {
            IdPlace::Header(name) => IdRule::Header(name.clone()),
            IdPlace::Pointer(pointer) => IdRule::Pointer(pointer.clone()),
        }),
        type_pointer: generic.type_pointer.clone(),
        time_pointer: generic.time.clone(),
        amount_pointer: generic.amount.clone(),
        currency_pointer: generic.currency.clone(),
    }
}
