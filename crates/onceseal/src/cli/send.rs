//! `onceseal send`: plays the sender. Signs a body with the secret of a configured source, posts it, and
//! shows what came back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use kernel::{Clock as _, Digest};
use reqwest::{Client, Url};
use serde_json::{Value as Json, json};
use source::{Kind, Secret, Signer, samples};

use super::fetch::{self, Redirects, innermost};
use super::out::{Ended, Exit, Out, Stop, Tone, clean};
use super::{Globals, api};
use crate::config::secret::{Layout, SecretRef};
use crate::config::{Loaded, endpoint};
use crate::random::SystemClock;

/// Largest body that is sent, in bytes.
const BODY_MAX: u64 = 16 * 1024 * 1024;
/// Most sends in one call.
const TIMES_MAX: u32 = 100_000;
/// Most sends at the same time.
const PARALLEL_MAX: u32 = 1_000;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal send event.json                         once, as the first configured source
  onceseal send event.json --times 5 --parallel 5  five at once
  onceseal send sample:checkout-paid --source shop
  onceseal send event.json --url https://visa.example.com/webhooks/shop

A file \"sample:NAME\" is one of the bundled events; \"sample:\" lists them. WeChat Pay and Alipay sign with a
private key that the server doesn't have: give it with --private-key.

Exit codes: 0 every send was answered 2xx, 3 some were not, 7 the server can't be reached")]
pub struct Send {
    /// Body to send: a file, - for standard input, or sample:NAME
    #[arg(value_name = "FILE")]
    file: String,
    /// Source whose secret signs [default: the only one, or the first in the file]
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// How often
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(TIMES_MAX)))]
    times: u32,
    /// How many at the same time
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(PARALLEL_MAX)))]
    parallel: u32,
    /// Event id: in the header where the sender has one, else in the body's "id" or "event_id"
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Event type, for senders that put it into a header (GitHub, Lemon Squeezy)
    #[arg(long = "type", value_name = "TYPE", default_value = "ping")]
    event_type: String,
    /// Address to post to [default: the source's at the running server]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// PEM file with the sender's private key (WeChat Pay, Alipay), or a file with whsk_... (Standard Webhooks)
    #[arg(long, value_name = "FILE")]
    private_key: Option<std::path::PathBuf>,
    /// Name of that key (WeChat Pay: the serial number)
    #[arg(long, value_name = "SERIAL", default_value = "")]
    key_serial: String,
}

/// One send and its answer.
struct Sent {
    status: Result<u16, String>,
    body: Json,
    took: Duration,
}

impl Send {
    /// Runs it.
    ///
    /// # Errors
    /// There is nothing to send, nobody to sign, or no server.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        if self.file == "sample:" {
            samples::ALL.iter().for_each(|(name, _)| out.line(format_args!("sample:{name}")));
            return Ok(Exit::Fine);
        }
        let loaded = globals.load()?;
        let name = self.source_name(&loaded)?;
        let kind = loaded.config.sources.get(&name).map_or(Kind::Stripe, |source| source.kind);
        let signer = self.signer(&loaded, &name, kind)?;
        let body = self.body(kind)?;
        let url = match &self.url {
            Some(url) => url.clone(),
            None => format!("{}/webhooks/{name}", api::address(globals, &loaded)?),
        };
        let url = Url::parse(&url).map_err(|cause| Stop::new(Exit::Usage, format!("{url:?}: {cause}")))?;
        let id = self.id.clone().unwrap_or_else(|| default_id(&body));
        let post = Arc::new(Post { client: fetch::client(Redirects::Refused)?, url, signer, body, id });
        let sent = self.all(&post).await;
        Ok(report(out, &sent))
    }

    fn source_name(&self, loaded: &Loaded) -> Result<String, Stop> {
        match &self.source {
            Some(name) if loaded.config.sources.contains_key(name) => Ok(name.clone()),
            Some(name) => Err(Stop::new(
                Exit::Usage,
                format!("no source is named {name:?}; configured are: {}", loaded.order.join(", ")),
            )),
            None => loaded.order.first().cloned().ok_or_else(|| {
                Stop::new(Exit::Usage, "no source is configured; its secret would sign (see `onceseal init`)")
            }),
        }
    }

    fn signer(&self, loaded: &Loaded, name: &str, kind: Kind) -> Result<Signer, Stop> {
        let wrong = |cause: String| Stop::new(Exit::Usage, format!("source {name:?}: {cause}"));
        let source = loaded.config.sources.get(name).ok_or_else(|| wrong("it is gone".into()))?;
        let secret: Secret = match (&self.private_key, source.secrets.first()) {
            (Some(file), _) => {
                let layout =
                    if matches!(kind, Kind::WechatPay | Kind::Alipay) { Layout::Pem } else { Layout::Line };
                SecretRef::File(file.clone()).read(layout).map_err(wrong)?
            }
            (None, Some(secret)) => secret.read(Layout::Line).map_err(wrong)?,
            (None, None) => {
                return Err(wrong(
                    "it has no shared secret; give the sender's key with --private-key".into(),
                ));
            }
        };
        let signer = Signer::new(kind, &secret).map_err(|cause| wrong(cause.fault))?;
        let signer = signer.with_type(&self.event_type).with_serial(&self.key_serial);
        Ok(match &source.generic {
            Some(generic) => signer.with_rule(endpoint::rule(generic)),
            None => signer,
        })
    }

    fn body(&self, kind: Kind) -> Result<Vec<u8>, Stop> {
        let bytes = if let Some(name) = self.file.strip_prefix("sample:") {
            let (_, body) = samples::ALL.iter().find(|(known, _)| *known == name).ok_or_else(|| {
                let text = format!("there is no sample {name:?}; `onceseal send sample:` lists them");
                Stop::new(Exit::NothingFound, text)
            })?;
            body.as_bytes().to_vec()
        } else {
            read(&self.file)?
        };
        let member = match kind {
            Kind::Stripe => "id",
            Kind::Paddle => "event_id",
            _ => return Ok(bytes),
        };
        let Some(id) = &self.id else { return Ok(bytes) };
        let wrong = |cause| Stop::new(Exit::Usage, format!("--id needs a JSON body: {cause}"));
        let mut event: Json = serde_json::from_slice(&bytes).map_err(wrong)?;
        if let Some(event) = event.as_object_mut() {
            event.insert(member.into(), id.as_str().into());
        }
        serde_json::to_vec(&event).map_err(wrong)
    }

    /// Sends all, at most `parallel` at a time; in the order of their start.
    async fn all(&self, post: &Arc<Post>) -> Vec<Sent> {
        let mut sent = Vec::new();
        let mut running = std::collections::VecDeque::new();
        for _ in 0..self.times {
            if running.len() >= usize::try_from(self.parallel).unwrap_or(1) {
                sent.extend(ended(running.pop_front()).await);
            }
            let post = Arc::clone(post);
            running.push_back(tokio::spawn(async move { post.once().await }));
        }
        while !running.is_empty() {
            sent.extend(ended(running.pop_front()).await);
        }
        sent
    }
}

async fn ended(task: Option<tokio::task::JoinHandle<Sent>>) -> Option<Sent> {
    // A task that panicked has printed why.
    task?.await.ok()
}

/// What is posted, and where to.
struct Post {
    client: Client,
    url: Url,
    signer: Signer,
    body: Vec<u8>,
    id: String,
}

impl Post {
    async fn once(&self) -> Sent {
        let body = self.signer.body(&self.body);
        let headers = self.signer.sign(&body, SystemClock.now().seconds(), &self.id);
        let mut request = self.client.post(self.url.clone()).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let started = Instant::now();
        let answer = async {
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            Ok::<_, reqwest::Error>((status, answer.bytes().await?))
        };
        match answer.await {
            Ok((status, bytes)) => {
                let body = serde_json::from_slice(&bytes)
                    .unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes).into_owned()));
                Sent { status: Ok(status), body, took: started.elapsed() }
            }
            Err(cause) => Sent { status: Err(innermost(&cause)), body: Json::Null, took: started.elapsed() },
        }
    }
}

fn report(out: Out, sent: &[Sent]) -> Exit {
    if out.json {
        let all = sent.iter().map(|one| {
            json!({ "http_status": one.status.as_ref().ok(), "error": one.status.as_ref().err(),
                "answer": one.body, "took_us": u64::try_from(one.took.as_micros()).unwrap_or(u64::MAX) })
        });
        out.value(&all.collect());
    } else {
        let rows: Vec<Vec<String>> = sent.iter().enumerate().map(|(at, one)| row(out, at, one)).collect();
        out.table(&["#", "http", "result", "ref", "arrivals", "ms"], &rows);
        let first = sent.iter().find_map(|one| one.body.get("html_url")?.as_str());
        if let Some(url) = first {
            out.line(clean(url));
        }
    }
    let fine = |one: &Sent| one.status.as_ref().is_ok_and(|status| (200..300).contains(status));
    if sent.iter().all(|one| one.status.is_err()) {
        Exit::Server
    } else if sent.iter().all(fine) {
        Exit::Fine
    } else {
        Exit::Problems
    }
}

fn row(out: Out, at: usize, sent: &Sent) -> Vec<String> {
    let text = |name: &str| sent.body.get(name).and_then(Json::as_str).map(clean);
    let (http, tone) = match &sent.status {
        Ok(status @ 200..300) => (status.to_string(), Tone::Good),
        Ok(status) => (status.to_string(), Tone::Bad),
        Err(cause) => (clean(cause), Tone::Bad),
    };
    let result = text("status").or_else(|| text("code")).unwrap_or_else(|| "-".into());
    let arrivals = sent.body.get("arrivals").map_or_else(|| "-".into(), Json::to_string);
    let ms = format!("{}.{}", sent.took.as_millis(), sent.took.as_micros() / 100 % 10);
    vec![
        (at + 1).to_string(),
        out.paint(tone, &http),
        result,
        text("ref").unwrap_or_else(|| "-".into()),
        arrivals,
        ms,
    ]
}

fn read(file: &str) -> Result<Vec<u8>, Stop> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let limit = BODY_MAX + 1;
    let read = if file == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(limit).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) if bytes.len() as u64 > BODY_MAX => {
            Err(Stop::new(Exit::Usage, format!("{file} has more than {BODY_MAX} bytes")))
        }
        Ok(_) => Ok(bytes),
        Err(cause) => Err(Stop::failed(format!("{file}: {cause}"))),
    }
}

/// The same body gets the same id, as a sender's repeat would.
fn default_id(body: &[u8]) -> String {
    let digest = Digest::of(body).to_hex();
    format!("msg_{}", digest.get(..24).unwrap_or(&digest))
}
