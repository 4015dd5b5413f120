//! All settings with their defaults. `docs/configuration.md` explains each; a test compares the two.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use certify::policy::{CertifiedMode, Policy};
use serde::{Deserialize, Serialize};
use source::Kind;

use super::secret::SecretRef;
use super::supply::Supply;
use super::unit::{Size, Span};

/// The whole configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The HTTP edge.
    pub server: Server,
    /// Where state is kept.
    pub storage: Storage,
    /// The database of many nodes.
    pub postgres: Postgres,
    /// The bucket of the certificates' files.
    pub s3: Option<S3>,
    /// Who issues.
    pub issuer: Issuer,
    /// The anchor keys' files.
    pub keys: Keys,
    /// What is certified.
    pub policy: Policy,
    /// Who hears of certificates.
    pub announce: Announce,
    /// When repeats are answered.
    pub arrivals: Arrivals,
    /// What is logged.
    pub log: Log,
    /// Where traces go.
    pub telemetry: Telemetry,
    /// The supply side.
    pub supply: Supply,
    /// The webhook endpoints, by their name in the address.
    pub sources: BTreeMap<String, Source>,
}

/// `[server]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Address and port to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address under which the world reaches this server; links are made of it.
    pub public_url: Option<String>,
    /// Addresses or networks (`10.0.0.0/8`) whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<String>,
    /// Largest request body.
    pub body_limit: Size,
    /// Certificate and key, for TLS without a proxy in front.
    pub tls: Option<Tls>,
    /// How long a repeat waits for the first delivery's result.
    pub wait: Span,
    /// Most connections at once.
    pub max_connections: u32,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            public_url: None,
            trusted_proxies: Vec::new(),
            body_limit: Size(256 * 1024),
            tls: None,
            wait: Span::seconds(2),
            max_connections: 1024,
        }
    }
}

/// `[server.tls]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// PEM file: the server's certificate, then those between it and the root.
    pub certificate: PathBuf,
    /// PEM file: its private key.
    pub key: PathBuf,
}

/// `[storage]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Storage {
    /// Folder of the database, the deliveries, the keys and the export.
    pub folder: PathBuf,
    /// Address of a PostgreSQL database, without its password; absent, the database is a file in the folder.
    pub database: Option<String>,
    /// Where certificates' files stand: a folder that many servers share, or `s3://bucket/prefix`; absent, in
    /// `deliveries` inside the folder.
    pub files: Option<String>,
    /// Page cache of the writer; each reader takes a quarter of it.
    pub cache: Size,
    /// Threads for reads.
    pub readers: u32,
    /// Age at which new files are synced.
    pub sync_after: Span,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            folder: PathBuf::from("/var/lib/auditvisa"),
            database: None,
            files: None,
            cache: Size(24 * 1024 * 1024),
            readers: 2,
            sync_after: Span::seconds(60),
        }
    }
}

/// `[postgres]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Postgres {
    /// Place of the password.
    pub password: Option<SecretRef>,
    /// How statements are sent.
    pub mode: PostgresMode,
    /// Connections of this node.
    pub connections: u32,
    /// PEM file of the authorities whose certificates are believed, instead of the public ones.
    pub authorities: Option<PathBuf>,
    /// For a connection to be made, and for one of the pool to become free.
    pub connect_timeout: Span,
    /// For a lock inside the server.
    pub lock_timeout: Span,
    /// For one statement inside the server.
    pub statement_timeout: Span,
    /// For this node's next statement, seen from the server.
    pub idle_timeout: Span,
    /// For an answer, seen from here.
    pub answer_timeout: Span,
    /// How far this machine's clock may be from the database's before `/readyz` says so.
    pub clock_limit: Span,
}

impl Default for Postgres {
    fn default() -> Self {
        Self {
            password: None,
            mode: PostgresMode::Prepared,
            connections: 16,
            authorities: None,
            connect_timeout: Span::seconds(5),
            lock_timeout: Span::seconds(2),
            statement_timeout: Span::seconds(5),
            idle_timeout: Span::seconds(10),
            answer_timeout: Span::seconds(10),
            clock_limit: Span::seconds(300),
        }
    }
}

/// How statements are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PostgresMode {
    /// Prepared once on each connection.
    #[default]
    Prepared,
    /// Unnamed each time: through a pooler in transaction mode.
    Unnamed,
}

/// `[s3]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct S3 {
    /// `https://host` of the server; AWS itself when absent.
    pub endpoint: Option<String>,
    /// Whether a server without TLS may be elsewhere than on this machine.
    pub allow_http: bool,
    /// The bucket's region.
    pub region: String,
    /// Access key id.
    pub access_key: Option<SecretRef>,
    /// Secret access key.
    pub secret_key: Option<SecretRef>,
    /// Whether the bucket's name stands in the path instead of the host; absent, so it is with an endpoint or
    /// a dot in the name.
    pub path_style: Option<bool>,
    /// How long one request may take.
    pub timeout: Span,
    /// PEM file of the authorities whose certificates are believed, instead of the public ones.
    pub authorities: Option<PathBuf>,
}

impl Default for S3 {
    fn default() -> Self {
        Self {
            endpoint: None,
            allow_http: false,
            region: "us-east-1".into(),
            access_key: None,
            secret_key: None,
            path_style: None,
            timeout: Span::seconds(3),
            authorities: None,
        }
    }
}

/// `[issuer]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Issuer {
    /// Name on every certificate.
    pub name: String,
}

impl Default for Issuer {
    fn default() -> Self {
        Self { name: "AuditVisa".into() }
    }
}

/// `[keys]`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// Folder of the key files; `keys` in the data folder when absent.
    pub folder: Option<PathBuf>,
    /// Passphrase of the private key files.
    pub passphrase: Option<SecretRef>,
}

/// `[announce]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Announce {
    /// Channels that hear of a new certificate.
    pub channels: Vec<String>,
    /// Channels that hear of every repeat.
    pub repeats: Vec<String>,
    /// The chat of the channel `telegram`.
    pub telegram: Option<Telegram>,
}

impl Default for Announce {
    fn default() -> Self {
        Self { channels: vec!["log".into()], repeats: Vec::new(), telegram: None }
    }
}

/// `[announce.telegram]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telegram {
    /// Everything before `/bot`.
    #[serde(default = "Telegram::public")]
    pub base_url: String,
    /// The bot's token.
    pub token: SecretRef,
    /// A number, or `@name` of a channel or supergroup.
    pub chat_id: ChatId,
}

impl Telegram {
    fn public() -> String {
        "https://api.telegram.org".into()
    }
}

/// A chat: numbers may stand without quotes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ChatId {
    /// `-1001234567890`
    Number(i64),
    /// `@channel`
    Name(String),
}

impl std::fmt::Display for ChatId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// `[arrivals]`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Arrivals {
    /// When a repeat is answered.
    pub mode: ArrivalMode,
}

/// When a repeat is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalMode {
    /// Once its arrival is on disk.
    #[default]
    Durable,
    /// At once; a kill loses the arrivals of the last moments ([`certify::buffer`] states the bound).
    Buffered,
}

/// `[log]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// How a line looks.
    pub format: LogFormat,
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,certify=debug`.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Json, level: "info".into() }
    }
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For reading.
    Text,
}

/// `[telemetry]`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Address of a collector that takes OTLP over HTTP, as `http://127.0.0.1:4318`. Only a program built with
    /// the feature `otel` takes it.
    pub endpoint: Option<String>,
}

/// `[sources.NAME]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Whose rules apply.
    pub kind: Kind,
    /// Scope of the event ids; the source's name when absent.
    pub account: Option<String>,
    /// All live secrets; two during a rotation.
    #[serde(default)]
    pub secrets: Vec<SecretRef>,
    /// Accepted distance of the signed time from now.
    pub tolerance: Option<Span>,
    /// Whether references are `av_` and the event's id.
    pub plain_refs: Option<bool>,
    /// Mode of events whose sender states none; `live` when absent.
    pub mode: Option<CertifiedMode>,
    /// Keys that verify, for WeChat Pay, Alipay and Standard Webhooks with Ed25519.
    #[serde(default)]
    pub public_keys: Vec<PublicKey>,
    /// `WeChat` Pay: the merchant's `APIv3` key.
    pub api_v3_key: Option<SecretRef>,
    /// How a `generic-hmac` sender signs.
    pub generic: Option<Generic>,
}

/// One of `public_keys`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicKey {
    /// `WeChat` Pay: serial number or `PUB_KEY_ID_...`; elsewhere a label.
    #[serde(default)]
    pub id: String,
    /// The file with the key.
    pub file: Option<PathBuf>,
    /// The key itself: it is public.
    pub text: Option<String>,
}

/// `[sources.NAME.generic]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generic {
    /// Header with the signature.
    pub signature_header: String,
    /// How the MAC is written.
    #[serde(default)]
    pub encoding: Encoding,
    /// Text in front of the MAC.
    pub prefix: Option<String>,
    /// Where the signed time is.
    pub timestamp: Option<Timestamp>,
    /// Where the event id is.
    pub id: Option<IdPlace>,
    /// JSON pointer to the type.
    #[serde(rename = "type")]
    pub type_pointer: Option<String>,
    /// JSON pointer to the event's time.
    pub time: Option<String>,
    /// JSON pointer to the amount in the smallest unit.
    pub amount: Option<String>,
    /// JSON pointer to the currency.
    pub currency: Option<String>,
}

/// How a MAC is written.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Lower-case hexadecimal.
    #[default]
    Hex,
    /// Standard base64.
    Base64,
}

/// A signed time in a header.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timestamp {
    /// Header with Unix seconds.
    pub header: String,
    /// Text between time and body in the signed bytes.
    #[serde(default = "Timestamp::dot")]
    pub separator: String,
}

impl Timestamp {
    fn dot() -> String {
        ".".into()
    }
}

/// Where an event id is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdPlace {
    /// In a header.
    Header(String),
    /// In the body, by JSON pointer.
    Pointer(String),
}
