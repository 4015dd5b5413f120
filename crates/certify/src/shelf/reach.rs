//! How a bucket's server is reached: address, keys, TLS, time-outs, what is sent again. Not here: what is
//! put there ([`super::bucket`]).

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use source::Secret;
use url::{Host, Url};

use super::Form;
use super::bucket::PATIENCE;

/// How long a connection may take to stand.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// A request is sent again this often after a refused or broken connection or an answer 5xx or 429.
const AGAIN_MAX: usize = 2;
/// First pause before a request is sent again; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long an idle connection is kept. Servers close theirs after about 20 s; a request that meets the close
/// has to be sent again.
const IDLE_MAX: Duration = Duration::from_secs(15);
/// Variables of the surroundings that may say who we are (AWS SDKs and Tools Reference Guide, "Environment
/// variables"). All others of AWS change where requests go, which is the configuration's to say.
const CREDENTIALS: [&str; 9] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
];

/// A bucket and how it is reached.
#[derive(Clone, Debug)]
pub struct S3 {
    /// Name of the bucket.
    pub bucket: String,
    /// What all names begin with, without a slash at either end; may be empty.
    pub prefix: String,
    /// `https://host` of the server; `None` is AWS itself.
    pub endpoint: Option<String>,
    /// The bucket's region; part of each signature.
    pub region: String,
    /// Who asks.
    pub access: Access,
    /// Where the bucket's name stands in addresses.
    pub addressing: Addressing,
    /// How long one request may take, its answer included.
    pub timeout: Duration,
    /// Authorities (PEM) whose certificates are believed, instead of the public ones.
    pub authorities: Option<Vec<u8>>,
}

/// Who asks.
#[derive(Clone, Debug)]
pub enum Access {
    /// The holder of these keys.
    Keys {
        /// Access key id.
        id: Secret,
        /// Secret access key.
        secret: Secret,
    },
    /// Whoever the surroundings say: variables `AWS_*` (name, value), else the machine's role. Variables that
    /// say something else are ignored.
    Surroundings(Vec<(String, Secret)>),
}

/// Where the bucket's name stands in addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// `https://host/bucket/name`
    Path,
    /// `https://bucket.host/name`
    Host,
}

/// A client of the bucket; nothing is asked yet.
pub(super) fn client(settings: &S3) -> Result<AmazonS3, String> {
    let endpoint = endpoint(settings)?;
    let connector = Connector(transport(settings)?);
    // Its errors are about settings that are not there, and name no value.
    builder(settings, endpoint).with_http_connector(connector).build().map_err(|cause| cause.to_string())
}

/// The address to which names are appended; for AWS itself `None`.
fn endpoint(settings: &S3) -> Result<Option<String>, String> {
    let Some(given) = &settings.endpoint else { return Ok(None) };
    let mut url =
        Url::parse(given).map_err(|cause| format!("s3.endpoint {given:?} is no address: {cause}"))?;
    if settings.addressing == Addressing::Host {
        let Some(Host::Domain(host)) = url.host() else {
            return Err(format!(
                "s3.endpoint {given:?} names no domain that a bucket's name could be put before; set s3.path_style = true"
            ));
        };
        let host = format!("{}.{host}", settings.bucket);
        url.set_host(Some(&host)).map_err(|cause| format!("{host:?} is no host: {cause}"))?;
    }
    Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
}

fn builder(settings: &S3, endpoint: Option<String>) -> AmazonS3Builder {
    let retry = RetryConfig {
        backoff: BackoffConfig { init_backoff: PAUSE_FIRST, max_backoff: PAUSE_MAX, base: 2.0 },
        max_retries: AGAIN_MAX,
        retry_timeout: settings.timeout * (PATIENCE - 1),
    };
    let kinds = Form::ALL.into_iter().fold(ClientOptions::new(), |options, form| {
        options.with_content_type_for_suffix(form.extension(), form.media_type())
    });
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&settings.bucket)
        .with_region(&settings.region)
        .with_virtual_hosted_style_request(settings.addressing == Addressing::Host)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // One request a removal is understood by every server; nobody removes much here.
        .with_disable_bulk_delete(true)
        .with_retry(retry)
        .with_client_options(kinds);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    match &settings.access {
        Access::Keys { id, secret } => {
            builder.with_access_key_id(id.expose()).with_secret_access_key(secret.expose())
        }
        Access::Surroundings(variables) => variables
            .iter()
            .filter(|(name, _)| CREDENTIALS.contains(&name.as_str()))
            .filter_map(|(name, value)| {
                Some((name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>().ok()?, value))
            })
            .fold(builder, |builder, (key, value)| builder.with_config(key, value.expose())),
    }
}

/// TLS by rustls with ring; no redirect, whose target would get the signature; no proxy for a server without
/// TLS.
fn transport(settings: &S3) -> Result<reqwest::Client, String> {
    let roots = match &settings.authorities {
        None => rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
        Some(pem) => authorities(pem).map_err(|cause| format!("s3.authorities can't be used: {cause}"))?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| cause.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut builder = reqwest::Client::builder();
    if settings.endpoint.as_deref().is_some_and(|endpoint| endpoint.starts_with("http:")) {
        builder = builder.no_proxy();
    }
    builder
        .tls_backend_preconfigured(tls)
        .http1_only()
        .connect_timeout(CONNECT_WITHIN.min(settings.timeout))
        .timeout(settings.timeout)
        .pool_idle_timeout(IDLE_MAX)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .user_agent("onceseal")
        .build()
        .map_err(|cause| cause.without_url().to_string())
}

fn authorities(pem: &[u8]) -> Result<rustls::RootCertStore, String> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|cause| cause.to_string())?).map_err(|cause| cause.to_string())?;
    }
    if roots.is_empty() {
        return Err("no certificate in PEM is in it".into());
    }
    Ok(roots)
}

/// Gives the bucket our own client.
#[derive(Debug)]
struct Connector(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}
