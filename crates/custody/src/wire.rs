//! HTTP to the outside as this crate needs it: checked addresses, TLS by rustls on ring, no redirects, a
//! bounded answer, a bounded number of tries within one budget, a circuit breaker; and ends that are classes,
//! never the other side's words. Not here: what is asked, and what an answer means.

use std::fmt;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use kernel::Random;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::{Instant, sleep, timeout_at};
use zeroize::Zeroizing;

use crate::breaker::Breaker;

/// Characters of a secret in a row that count as a part of it (supply specification, section 20, FI-008).
const RUN: usize = 8;

/// Why there was no answer to work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// No connection, or no TLS.
    Connection,
    /// No answer within the budget.
    Time,
    /// The connection broke before the answer was whole.
    Broken,
    /// The other side says that it is out of order (5xx).
    OutOfOrder,
    /// The other side wants fewer requests (429).
    RateLimited,
    /// It failed several times just now; nothing was sent.
    Resting,
    /// The answer is none that is documented: a redirect, another service, too long.
    Unexpected,
}

impl Cause {
    /// One word for metrics and log fields.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Time => "time",
            Self::Broken => "broken",
            Self::OutOfOrder => "out_of_order",
            Self::RateLimited => "rate_limited",
            Self::Resting => "resting",
            Self::Unexpected => "unexpected",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "no connection",
            Self::Time => "no answer in time",
            Self::Broken => "the connection broke",
            Self::OutOfOrder => "it is out of order",
            Self::RateLimited => "it wants fewer requests",
            Self::Resting => "it failed several times just now",
            Self::Unexpected => "its answer is not the documented one",
        })
    }
}

/// An address, certificate or client that can't be used. The address is the configured one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Of an address.
    #[error(
        "{0:?} must be an https address without user, query and fragment; http is for loopback only, since secrets go there"
    )]
    Address(String),
    /// Of the certificates.
    #[error("the authority certificates are no PEM certificates; give the chain's root as PEM")]
    Authority,
    /// Of a token.
    #[error("the token for {0:?} is empty or not printable ASCII; copy it again")]
    Token(String),
    /// Of a name in a path.
    #[error("{0:?} must have letters, digits, '-', '_', '.', and '/' between them; correct it")]
    Name(String),
    /// Of the HTTP client.
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// Reads an address. It carries no secret, so it may stand in messages.
pub(crate) fn address(text: &str) -> Result<Url, Wrong> {
    let wrong = || Wrong::Address(text.split('@').next_back().unwrap_or_default().to_owned());
    let url = Url::parse(text).map_err(|_| wrong())?;
    let own = url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    });
    let fine = (url.scheme() == "https" || url.scheme() == "http" && own)
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if fine { Ok(url) } else { Err(wrong()) }
}

/// The address with a path behind its own.
pub(crate) fn under(base: &Url, path: &str) -> String {
    format!("{}{path}", base.as_str().trim_end_matches('/'))
}

/// A client for one address. `authority` adds roots, as PEM, for a service under a private authority.
pub(crate) fn client(base: &Url, connect: Duration, authority: Option<&str>) -> Result<Client, Wrong> {
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(pem) = authority {
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|_| Wrong::Authority)?;
            roots.add(certificate).map_err(|_| Wrong::Authority)?;
            found += 1;
        }
        if found == 0 {
            return Err(Wrong::Authority);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| Wrong::Client(cause.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // HTTPS goes through the proxy that the environment names, which sees only the host.
    let builder = if base.scheme() == "https" { Client::builder() } else { Client::builder().no_proxy() };
    builder
        .tls_backend_preconfigured(tls)
        .connect_timeout(connect)
        // A redirect would carry the secret elsewhere; the tries are counted here, not below.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .build()
        .map_err(|cause| Wrong::Client(cause.without_url().to_string()))
}

/// A header that no `Debug` shows.
pub(crate) fn hidden(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The header of a bearer token; `None` where the token is none.
pub(crate) fn bearer(token: &SecretString) -> Option<HeaderValue> {
    let text = token.expose_secret();
    let fine = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    fine.then(|| Zeroizing::new(format!("Bearer {text}"))).and_then(|bearer| hidden(&bearer))
}

/// Whether [`RUN`] characters of the secret in a row, or all of a shorter one, stand in the text: a service may send
/// back anything.
pub(crate) fn repeated(secret: &SecretString, text: &str) -> bool {
    let secret = secret.expose_secret().as_bytes();
    let run = RUN.min(secret.len()).max(1);
    secret.windows(run).any(|part| text.as_bytes().windows(run).any(|other| other == part))
}

/// An answer, whole. The body is wiped on drop, since some bodies are secrets and some repeat them.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Zeroizing<Vec<u8>>,
}

impl Answer {
    /// `Retry-After` in seconds, an hour at most; dates are not read.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let text = self.headers.get("retry-after")?.to_str().ok()?;
        text.trim().parse().ok().map(|seconds: u64| Duration::from_secs(seconds.min(3600)))
    }
}

/// Sends once and reads at most `most` bytes of the answer.
pub(crate) async fn exchange(request: RequestBuilder, most: usize) -> Result<Answer, Cause> {
    let mut response = request.send().await.map_err(|error| class(&error))?;
    let status = response.status().as_u16();
    let headers = std::mem::take(response.headers_mut());
    let mut body = Zeroizing::new(Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(|error| class(&error))? {
        if body.len() + chunk.len() > most {
            return Err(Cause::Unexpected);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, headers, body })
}

/// The class of an error; its text holds the address and is not used.
fn class(error: &reqwest::Error) -> Cause {
    if error.is_connect() {
        Cause::Connection
    } else if error.is_timeout() {
        Cause::Time
    } else if error.is_builder() {
        Cause::Unexpected
    } else {
        Cause::Broken
    }
}

/// How often, and for how long in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Tries at most.
    pub tries: u32,
    /// For all tries and the pauses between them.
    pub budget: Duration,
    /// Before the second try; doubled before each further one, and cut by up to half at random.
    pub pause: Duration,
}

/// Tries until one breaks off with a result. `Continue` asks for another try; a rate limit says nothing of
/// the other side's health, every other cause counts against it.
pub(crate) async fn tried<T, F>(
    effort: &Effort,
    breaker: &Breaker,
    random: &dyn Random,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Cause>
where
    F: Future<Output = ControlFlow<T, Cause>>,
{
    let deadline = Instant::now() + effort.budget;
    let mut pause = effort.pause;
    let mut last = Cause::Resting;
    for number in 1..=effort.tries.max(1) {
        let Some(turn) = breaker.enter() else { return Err(last) };
        match timeout_at(deadline, attempt()).await {
            Ok(ControlFlow::Break(result)) => {
                turn.reached();
                return Ok(result);
            }
            Ok(ControlFlow::Continue(cause)) => {
                if cause != Cause::RateLimited {
                    turn.failed();
                }
                last = cause;
            }
            Err(_) => {
                turn.failed();
                return Err(Cause::Time);
            }
        }
        let rest = jittered(pause, random);
        if number == effort.tries || Instant::now() + rest >= deadline {
            break;
        }
        sleep(rest).await;
        pause *= 2;
    }
    Err(last)
}

/// Between half and all of it.
fn jittered(pause: Duration, random: &dyn Random) -> Duration {
    let mut byte = [0];
    random.fill(&mut byte);
    let [byte] = byte;
    pause / 2 + pause / 2 * u32::from(byte) / 255
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::BreakerSettings;
    use testkit::CountingRandom;

    const EFFORT: Effort =
        Effort { tries: 3, budget: Duration::from_millis(700), pause: Duration::from_millis(20) };

    fn breaker() -> Breaker {
        Breaker::new(BreakerSettings { after: 3, rest: Duration::from_secs(10) })
    }

    #[test]
    fn plain_http_is_for_loopback_and_no_address_carries_a_secret() {
        for text in [
            "https://a.example",
            "https://a.example/v1/",
            "http://127.0.0.1:1",
            "http://[::1]:1",
            "http://localhost",
        ] {
            assert!(address(text).is_ok(), "{text}");
        }
        for text in [
            "http://a.example",
            "http://127.0.0.1.example",
            "http://10.0.0.1",
            "https://CANARY:CANARY@a.example",
            "https://a.example?key=1",
            "https://a.example#x",
            "file:///etc",
            "a.example",
            "",
        ] {
            let error = address(text).unwrap_err();
            assert!(!error.to_string().contains("CANARY"), "{error}");
        }
        assert_eq!(under(&address("https://a.example/x/").unwrap(), "/v1/y"), "https://a.example/x/v1/y");
        assert!(client(&address("https://a.example").unwrap(), EFFORT.pause, Some("no PEM")).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn tries_end_with_the_first_result_the_number_or_the_budget() {
        let (random, start) = (CountingRandom::default(), Instant::now());
        let mut count = 0;
        let mut fails = |until: u32| {
            count += 1;
            std::future::ready(if count < until {
                ControlFlow::Continue(Cause::Broken)
            } else {
                ControlFlow::Break(count)
            })
        };
        assert_eq!(tried(&EFFORT, &breaker(), &random, || fails(3)).await, Ok(3));
        assert!(start.elapsed() < Duration::from_millis(61));
        let mut none = || std::future::ready(ControlFlow::<(), _>::Continue(Cause::RateLimited));
        assert_eq!(tried(&EFFORT, &breaker(), &random, &mut none).await, Err(Cause::RateLimited));
        let start = Instant::now();
        let hang = || std::future::pending::<ControlFlow<(), Cause>>();
        assert_eq!(tried(&EFFORT, &breaker(), &random, hang).await, Err(Cause::Time));
        assert_eq!(start.elapsed(), EFFORT.budget);
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_opens_the_circuit_and_a_rate_limit_does_not() {
        let (random, breaker) = (CountingRandom::default(), breaker());
        let limited = || std::future::ready(ControlFlow::<(), _>::Continue(Cause::RateLimited));
        for _ in 0..4 {
            assert_eq!(tried(&EFFORT, &breaker, &random, limited).await, Err(Cause::RateLimited));
        }
        let hang = || std::future::pending::<ControlFlow<(), Cause>>();
        for _ in 0..3 {
            assert_eq!(tried(&EFFORT, &breaker, &random, hang).await, Err(Cause::Time));
        }
        assert_eq!(tried(&EFFORT, &breaker, &random, hang).await, Err(Cause::Resting));
    }
}
