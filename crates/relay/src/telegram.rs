//! Telegram's Bot API: one chat, one method, `sendMessage`.
//!
//! The API has no key that would remove repeats, so the only question at each end is whether the message
//! may have arrived (`answer` decides): surely not -> it may be sent again; unclear -> held for a person.
//! The bot token is part of the address; no error, log line or `Debug` shows it or the address.
//!
//! Not here: when to try again, and the words.

mod answer;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::{Client, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value as Json, json};

use crate::channel::{Channel, Outcome, Pace, Reach, Repeats};
use crate::message::Message;
use crate::text::Announcement;
use answer::Verdict;

/// Code points of one message, counted after the markup is taken away.
const TEXT_MAX: usize = 4096;
/// Requests for one send: the first, one to a chat that has moved, one without markup.
const CALLS_MAX: usize = 3;
/// Bytes read of an answer; a true one has a few hundred.
const ANSWER_MAX: usize = 64 * 1024;
/// Code points of the other side's words that are kept.
const WORDS_MAX: usize = 200;
/// Messages that may go out at once after a rest; the service lets short bursts pass.
const BURST: u32 = 3;

/// How to reach the chat.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Destination in the outbox.
    pub name: String,
    /// The bot's token, as its maker gave it.
    pub token: SecretString,
    /// A number, or `@name` of a channel or supergroup.
    pub chat_id: String,
    /// Everything before `/bot`. Plain HTTP is for a server of one's own and takes no proxy; HTTPS goes
    /// through the proxy that the environment names (`HTTPS_PROXY`), which sees only the host.
    pub base_url: String,
    /// For the connection; shorter than `answer_within`, so that its end is known as such.
    pub connect_within: Duration,
    /// For one request as a whole.
    pub answer_within: Duration,
}

impl Settings {
    /// The public service, under the name `telegram`; 5 s to connect, 10 s for an answer.
    #[must_use]
    pub fn new(token: SecretString, chat_id: impl Into<String>) -> Self {
        Self {
            name: "telegram".into(),
            token,
            chat_id: chat_id.into(),
            base_url: "https://api.telegram.org".into(),
            connect_within: Duration::from_secs(5),
            answer_within: Duration::from_secs(10),
        }
    }
}

/// A setting that can't be used. The token and the address are not repeated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Wrong {
    /// Of the token.
    #[error("the bot token may hold only letters, digits, '_', '-' and one ':'; copy it again")]
    Token,
    /// Of the chat.
    #[error("{0:?} is no chat; give a number like -1001234567890 or a name like @channel")]
    Chat(String),
    /// Of the base address.
    #[error(
        "the base address must be like https://api.telegram.org, without user, query or fragment; plain http is for a server of your own"
    )]
    Base,
    /// Of the times.
    #[error("the time to connect must be shorter than the time for an answer")]
    Times,
    /// Of the HTTP client.
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// One chat.
pub struct Telegram {
    settings: Settings,
    client: Client,
    address: SecretString,
    pace: Pace,
    /// Where the chat has moved to; 0 while it has not. In memory only: the setting should follow.
    moved_to: AtomicI64,
}

impl fmt::Debug for Telegram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telegram").field("name", &self.settings.name).finish_non_exhaustive()
    }
}

impl Telegram {
    /// Checks the settings and builds the client; nothing is sent.
    ///
    /// # Errors
    /// [`Wrong`], naming the setting.
    pub fn new(settings: Settings) -> Result<Self, Wrong> {
        let token = settings.token.expose_secret();
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':');
        if token.is_empty() || token.len() > 80 || !token.chars().all(fine) {
            return Err(Wrong::Token);
        }
        if settings.connect_within >= settings.answer_within {
            return Err(Wrong::Times);
        }
        let chat = chat(&settings.chat_id).ok_or_else(|| Wrong::Chat(settings.chat_id.clone()))?;
        let base = base(&settings.base_url).ok_or(Wrong::Base)?;
        let address = SecretString::from(format!("{base}/bot{token}/sendMessage"));
        // Groups and channels get 20 messages a minute, a person one a second.
        let every = if chat.as_i64().is_some_and(|id| id > 0) { 1 } else { 3 };
        let pace = Pace { parallel: 1, burst: BURST, every: Duration::from_secs(every) };
        let client = client(&settings)?;
        Ok(Self { settings, client, address, pace, moved_to: AtomicI64::new(0) })
    }

    async fn deliver(&self, message: &Message) -> Outcome {
        let text = Announcement::of(message);
        let mut markup = true;
        let mut moved = false;
        for _ in 0..CALLS_MAX {
            match self.call(&text, markup).await {
                Verdict::Sent { id } => return self.sent(message, id, markup),
                Verdict::Moved { to } if !moved => {
                    moved = true;
                    self.moved_to.store(to, Ordering::Relaxed);
                    tracing::warn!(
                        channel = self.settings.name,
                        chat_id = to,
                        "the chat has moved; set it so"
                    );
                }
                Verdict::Unparsable { .. } if markup => markup = false,
                Verdict::Moved { .. } => return refused("the chat has moved twice; look its id up".into()),
                Verdict::Unparsable { words } => return refused(self.redacted(&words)),
                Verdict::Ended(outcome) => return self.clean(outcome),
            }
        }
        refused("neither with nor without markup was it taken".into())
    }

    /// The end in which it arrived: the log line that section 14.4 names, and the receipt.
    fn sent(&self, message: &Message, id: Option<i64>, markup: bool) -> Outcome {
        tracing::info!(
            event = "telegram_notified",
            channel = self.settings.name,
            outbox_id = %message.event_id,
            event_id = message.field("event_id"),
            r#ref = message.field("ref"),
            request_id = message.request_id,
            message_id = id,
            "telegram_notified",
        );
        let mut receipt = id.map_or_else(|| "message without id".to_owned(), |id| format!("message {id}"));
        if !markup {
            receipt.push_str("; sent as plain text");
        }
        match self.moved_to.load(Ordering::Relaxed) {
            0 => {}
            to => receipt.push_str(&format!("; the chat has moved to {to}, set chat_id so")),
        }
        Outcome::Delivered { receipt }
    }

    async fn call(&self, text: &Announcement, markup: bool) -> Verdict {
        let chat = match self.moved_to.load(Ordering::Relaxed) {
            0 => chat(&self.settings.chat_id).unwrap_or(Json::Null),
            to => to.into(),
        };
        // No previews: nobody but a reader opens the links.
        let mut body = json!({ "chat_id": chat, "link_preview_options": { "is_disabled": true } });
        if let Some(fields) = body.as_object_mut() {
            let text = if markup { text.html(TEXT_MAX) } else { text.plain(TEXT_MAX) };
            fields.insert("text".into(), text.into());
            if markup {
                fields.insert("parse_mode".into(), "HTML".into());
            }
        }
        match self.client.post(self.address.expose_secret()).json(&body).send().await {
            Ok(response) => {
                let status = response.status().as_u16();
                let header = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
                let header = header.map(ToOwned::to_owned);
                answer::judge(status, header.as_deref(), &read(response).await)
            }
            Err(error) => Verdict::Ended(failed(error)),
        }
    }

    fn clean(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Refused { cause, reach } => Outcome::Refused { cause: self.redacted(&cause), reach },
            Outcome::Retry { cause, after } => Outcome::Retry { cause: self.redacted(&cause), after },
            Outcome::Uncertain { cause } => Outcome::Uncertain { cause: self.redacted(&cause) },
            delivered @ Outcome::Delivered { .. } => delivered,
        }
    }

    /// The other side's words without the token (some proxies repeat the address) and not too many of them.
    fn redacted(&self, words: &str) -> String {
        let token = self.settings.token.expose_secret();
        let secret = token.split_once(':').map_or(token, |(_, secret)| secret);
        let mut words = words.replace(token, "[token]");
        if !secret.is_empty() {
            words = words.replace(secret, "[token]");
        }
        words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_MAX).collect()
    }
}

impl Channel for Telegram {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn kind(&self) -> &'static str {
        "telegram"
    }

    fn repeats(&self) -> Repeats {
        Repeats::Shown
    }

    fn pace(&self) -> Pace {
        self.pace
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome> {
        Box::pin(self.deliver(message))
    }
}

fn refused(cause: String) -> Outcome {
    Outcome::Refused { cause, reach: Reach::Message }
}

/// The chat as the API wants it: a number, or a name.
fn chat(text: &str) -> Option<Json> {
    let name = text.strip_prefix('@').is_some_and(|name| {
        !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    if name {
        return Some(text.into());
    }
    text.parse::<i64>().ok().filter(|id| *id != 0).map(Json::from)
}

fn base(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    // The address holds the token: in the open only to a server of one's own.
    let own = url.host_str().is_some_and(|host| !host.ends_with("telegram.org"));
    let fine = (url.scheme() == "https" || url.scheme() == "http" && own)
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    fine.then(|| url.as_str().trim_end_matches('/').to_owned())
}

fn client(settings: &Settings) -> Result<Client, Wrong> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| Wrong::Client(cause.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = match base(&settings.base_url) {
        Some(base) if base.starts_with("https:") => Client::builder(),
        _ => Client::builder().no_proxy(),
    };
    builder
        .tls_backend_preconfigured(tls)
        .connect_timeout(settings.connect_within)
        .timeout(settings.answer_within)
        // A redirect would carry the token elsewhere, and a retry below us would send twice.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        // A kept connection that the other side closes just then makes a send uncertain; at one message a
        // second a new connection each time is cheap.
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|cause| Wrong::Client(cause.without_url().to_string()))
}

/// The answer's first [`ANSWER_MAX`] bytes, as far as they came.
async fn read(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ANSWER_MAX {
            break;
        }
    }
    body
}

/// What a request without an answer means. Only before the connection stood was nothing written.
fn failed(error: reqwest::Error) -> Outcome {
    // The address holds the token.
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let cause = innermost.to_string();
    if error.is_builder() {
        let cause = format!("no request could be made: {cause}; check the channel's settings");
        Outcome::Refused { cause, reach: Reach::Channel }
    } else if error.is_connect() {
        Outcome::Retry { cause: format!("no connection: {cause}"), after: None }
    } else if error.is_timeout() {
        Outcome::Uncertain { cause: "no answer in time; the message may have arrived".into() }
    } else {
        Outcome::Uncertain { cause: format!("the connection broke: {cause}; the message may have arrived") }
    }
}
