//! Where certificates' files stand: the settings `storage.files` and `[s3]`, checked and brought together.
//! Not here: how files are put there (crate `certify`).

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use certify::shelf::{Access, Addressing, S3};
use source::Secret;
use url::{Host, Url};

use super::secret::Layout;
use super::settings::{self, Config};
use super::unit::Span;

/// Shortest time-out of a request to a bucket: below it a healthy one is cut.
const TIMEOUT_MIN: Span = Span(Duration::from_millis(100));
/// Longest: a put may take three, and its sender has long given up then.
const TIMEOUT_MAX: Span = Span::seconds(60);
/// Longest prefix of names in a bucket, in bytes; S3 allows 1024 for a whole name.
const PREFIX_MAX: usize = 512;
/// Largest file of authorities, in bytes: a private one has a few thousand, all public ones 300,000.
const AUTHORITIES_MAX: u64 = 1024 * 1024;

/// Where files stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// In a folder of this server's own, inside the data folder.
    Own,
    /// In a folder that many servers share.
    Folder(PathBuf),
    /// In a bucket.
    Bucket {
        /// Its name.
        name: String,
        /// What all names begin with; may be empty.
        prefix: String,
    },
}

/// What `storage.files` says.
///
/// # Errors
/// It is neither a folder nor `s3://bucket/prefix`. Repeats the value unless a key may be in it.
pub fn place(config: &Config) -> Result<Files, String> {
    let Some(text) = &config.storage.files else { return Ok(Files::Own) };
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => (scheme, rest),
        _ => ("", text.as_str()),
    };
    if text.trim().is_empty() {
        return Err("storage.files is empty; name a folder or s3://bucket/prefix, or remove it".into());
    }
    match (scheme, rest.strip_prefix("//")) {
        ("s3", Some(rest)) => bucket(rest),
        ("", _) => Ok(Files::Folder(PathBuf::from(text))),
        _ => Err(format!(
            "storage.files begins with {scheme:?} and a colon; it is a folder, or written like s3://bucket/prefix"
        )),
    }
}

/// Rules for names of buckets: Amazon S3 User Guide, "General purpose bucket naming rules".
fn bucket(text: &str) -> Result<Files, String> {
    if text.contains(['@', '?', '#']) {
        return Err(
            "storage.files holds more than bucket and prefix; keys belong into s3.access_key and s3.secret_key, everything else into [s3]"
                .into(),
        );
    }
    let (name, prefix) = text.split_once('/').unwrap_or((text, ""));
    let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let named = (3..=63).contains(&name.len())
        && end(name.chars().next())
        && end(name.chars().next_back())
        && name.chars().all(inner);
    if !named {
        return Err(format!(
            "storage.files names the bucket {name:?}; a bucket's name has 3 to 63 lower-case letters, digits, '-' and '.'"
        ));
    }
    let prefix = prefix.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let part = |part: &str| !part.is_empty() && part.chars().all(plain) && !matches!(part, "." | "..");
    if prefix.len() > PREFIX_MAX || !(prefix.is_empty() || prefix.split('/').all(part)) {
        return Err(format!(
            "storage.files names the prefix {prefix:?}; use letters, digits, '-', '_', '.' and single '/', at most {PREFIX_MAX}"
        ));
    }
    Ok(Files::Bucket { name: name.into(), prefix: prefix.into() })
}

/// What is wrong with the two settings, or between them.
///
/// # Errors
/// As said, with the setting's name.
pub fn check(config: &Config) -> Result<(), String> {
    let place = place(config)?;
    let Some(s3) = &config.s3 else { return Ok(()) };
    if !matches!(place, Files::Bucket { .. }) {
        return Err(
            "[s3] is set, but storage.files names no bucket; write storage.files = \"s3://bucket/prefix\", or remove [s3]"
                .into(),
        );
    }
    if s3.access_key.is_some() != s3.secret_key.is_some() {
        return Err("s3.access_key and s3.secret_key go together; set both, or neither".into());
    }
    let region = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if s3.region.is_empty() || s3.region.len() > 64 || !s3.region.chars().all(region) {
        return Err(format!("s3.region is {:?}; write it like eu-central-1", s3.region));
    }
    if s3.timeout < TIMEOUT_MIN || s3.timeout > TIMEOUT_MAX {
        return Err(format!("s3.timeout is {}; use {TIMEOUT_MIN} to {TIMEOUT_MAX}", s3.timeout));
    }
    s3.endpoint.as_deref().map_or(Ok(()), |endpoint| check_endpoint(s3, endpoint))
}

fn check_endpoint(s3: &settings::S3, text: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("s3.endpoint {why}; write it like https://s3.example.com"));
    let Ok(url) = Url::parse(text) else { return wrong("is not an address") };
    let Some(host) = url.host() else { return wrong("must name a host") };
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("must begin with https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("must not hold a user name or password");
    }
    if url.query().is_some() || url.fragment().is_some() || url.path() != "/" {
        return wrong("must end after the host");
    }
    let (near, numeric) = match host {
        Host::Domain(name) => (name == "localhost", false),
        Host::Ipv4(address) => (IpAddr::V4(address).is_loopback(), true),
        Host::Ipv6(address) => (IpAddr::V6(address).is_loopback(), true),
    };
    if url.scheme() == "http" && !near && !s3.allow_http {
        return Err(format!(
            "s3.endpoint {text:?} has no TLS: certificates and signatures would cross the network in the open; use https, or set s3.allow_http = true"
        ));
    }
    if numeric && s3.path_style == Some(false) {
        return Err("s3.path_style is false, but s3.endpoint names no domain; remove s3.path_style".into());
    }
    Ok(())
}

/// How a bucket is reached; keys are read here. `variables` are those of the environment.
///
/// # Errors
/// A key or the file of certificates can't be read, or nothing says who asks.
pub fn s3(
    config: &Config,
    name: String,
    prefix: String,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<S3, String> {
    let settings = config.s3.clone().unwrap_or_default();
    // No certificate of AWS is for a host with more than one name before its own.
    let path_style = settings.path_style.unwrap_or(settings.endpoint.is_some() || name.contains('.'));
    Ok(S3 {
        bucket: name,
        prefix,
        access: access(&settings, variables)?,
        authorities: settings
            .authorities
            .as_deref()
            .map(|path| authorities(path).map_err(|cause| format!("s3.{cause}")))
            .transpose()?,
        addressing: if path_style { Addressing::Path } else { Addressing::Host },
        endpoint: settings.endpoint,
        region: settings.region,
        timeout: settings.timeout.0,
    })
}

fn access(
    settings: &settings::S3,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Access, String> {
    if let (Some(id), Some(secret)) = (&settings.access_key, &settings.secret_key) {
        let id = id.read(Layout::Line).map_err(|cause| format!("s3.access_key: {cause}"))?;
        let secret = secret.read(Layout::Line).map_err(|cause| format!("s3.secret_key: {cause}"))?;
        return Ok(Access::Keys { id, secret });
    }
    let mut said = Vec::new();
    for (name, value) in variables.filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty()) {
        let value = Secret::new(value).map_err(|cause| format!("the variable {name}: {cause}"))?;
        said.push((name, value));
    }
    // Only a machine of AWS has a role that can be asked for; elsewhere the question would wait in vain.
    if settings.endpoint.is_some() && !said.iter().any(|(name, _)| name == "AWS_ACCESS_KEY_ID") {
        return Err(
            "s3.access_key and s3.secret_key are not set, nor is the variable AWS_ACCESS_KEY_ID; nothing says who asks s3.endpoint, so set the keys' places"
                .into(),
        );
    }
    Ok(Access::Surroundings(said))
}

/// Reads a file of authorities; a refusal begins with `authorities` and the path.
///
/// # Errors
/// It can't be read, or is too large.
pub fn authorities(path: &Path) -> Result<Vec<u8>, String> {
    let fail = |cause: std::io::Error| format!("authorities {}: {cause}", path.display());
    let length = std::fs::metadata(path).map_err(fail)?.len();
    if length > AUTHORITIES_MAX {
        return Err(format!(
            "authorities {} has {length} bytes; use at most {AUTHORITIES_MAX}",
            path.display()
        ));
    }
    std::fs::read(path).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::secret::SecretRef;

    fn config(files: &str, s3: Option<settings::S3>) -> Config {
        let mut config = Config { s3, ..Config::default() };
        config.storage.files = Some(files.into());
        config
    }

    #[test]
    fn a_place_is_a_folder_or_a_bucket() {
        let bucket = |name: &str, prefix: &str| Files::Bucket { name: name.into(), prefix: prefix.into() };
        for (text, expected) in [
            ("/mnt/shared", Files::Folder("/mnt/shared".into())),
            ("shared folder/a:b", Files::Folder("shared folder/a:b".into())),
            ("s3://certificates", bucket("certificates", "")),
            ("s3://my.bucket-1/prod/visa/", bucket("my.bucket-1", "prod/visa")),
        ] {
            assert_eq!(place(&config(text, None)), Ok(expected), "{text}");
        }
        assert_eq!(place(&Config::default()), Ok(Files::Own));
    }

    #[test]
    fn what_is_neither_is_refused_by_name_and_never_with_a_key() {
        for text in [
            "",
            " ",
            "s3:/bucket",
            "s3:bucket",
            "gs://bucket",
            "https://s3.example.com/bucket",
            "s3://",
            "s3://ab",
            "s3://Bucket",
            "s3://-bucket",
            "s3://bucket//x",
            "s3://bucket/../x",
            "s3://bucket/a b",
            "s3://bucket/%2e",
            "s3://AKIA:CANARY@bucket/x",
            "s3://bucket/x?key=CANARY",
        ] {
            let refused = place(&config(text, None)).unwrap_err();
            assert!(refused.contains("storage.files") && !refused.contains("CANARY"), "{text}: {refused}");
        }
    }

    #[test]
    fn settings_of_a_bucket_that_contradict_each_other_are_refused_by_name() {
        let key = || Some(SecretRef::Env("KEY".into()));
        let fine = settings::S3 { access_key: key(), secret_key: key(), ..settings::S3::default() };
        assert_eq!(check(&config("s3://bucket", Some(fine.clone()))), Ok(()));
        let with = |alter: fn(&mut settings::S3)| {
            let mut s3 = fine.clone();
            alter(&mut s3);
            check(&config("s3://bucket", Some(s3)))
        };
        assert!(check(&config("/mnt/shared", Some(fine.clone()))).unwrap_err().contains("names no bucket"));
        assert!(with(|s3| s3.secret_key = None).unwrap_err().contains("go together"));
        assert!(with(|s3| s3.region = "EU central".into()).unwrap_err().contains("s3.region"));
        assert!(
            with(|s3| s3.timeout = Span::seconds(61))
                .unwrap_err()
                .contains("s3.timeout is 61s; use 100ms to 1m")
        );
        for endpoint in [
            "s3.example.com",
            "ftp://s3.example.com",
            "https://user:CANARY@s3.example.com",
            "https://s3.example.com/bucket",
            "https://s3.example.com/?CANARY",
            "http://s3.example.com",
            "http://10.0.0.7:9000",
        ] {
            let s3 = settings::S3 { endpoint: Some(endpoint.into()), ..fine.clone() };
            let refused = check(&config("s3://bucket", Some(s3))).unwrap_err();
            assert!(refused.contains("s3.endpoint") && !refused.contains("CANARY"), "{endpoint}: {refused}");
        }
        for endpoint in
            ["https://s3.example.com", "http://localhost:9000", "http://127.0.0.1:9000", "http://[::1]:9000"]
        {
            let s3 = settings::S3 { endpoint: Some(endpoint.into()), ..fine.clone() };
            assert_eq!(check(&config("s3://bucket", Some(s3))), Ok(()), "{endpoint}");
        }
        assert_eq!(
            with(|s3| (s3.endpoint, s3.allow_http) = (Some("http://s3.example.com".into()), true)),
            Ok(())
        );
        assert!(
            with(|s3| (s3.endpoint, s3.path_style) = (Some("http://127.0.0.1".into()), Some(false))).is_err()
        );
    }

    #[test]
    fn who_asks_is_said_by_both_keys_or_by_the_surroundings() {
        let variables =
            || [("AWS_ACCESS_KEY_ID".to_owned(), "AKIACANARY".to_owned()), ("HOME".into(), "x".into())];
        let own = settings::S3 { endpoint: Some("http://127.0.0.1:9000".into()), ..settings::S3::default() };
        let asks = |s3: &settings::S3, variables: Vec<(String, String)>| access(s3, variables.into_iter());
        let Ok(Access::Surroundings(said)) = asks(&own, variables().into()) else { panic!("no access") };
        assert_eq!(said.len(), 1);
        assert!(asks(&own, Vec::new()).unwrap_err().contains("s3.access_key"));
        assert!(asks(&settings::S3::default(), Vec::new()).is_ok(), "a machine of AWS has a role");
        let place = |name: &str| Some(SecretRef::Env(name.into()));
        let keys = settings::S3 { access_key: place("PATH"), secret_key: place("NOT_SET_ANYWHERE"), ..own };
        assert_eq!(
            asks(&keys, Vec::new()).unwrap_err(),
            "s3.secret_key: the variable NOT_SET_ANYWHERE is not set"
        );
    }
}
