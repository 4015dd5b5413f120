//! What is known of a request before anybody looks at what it asks for: its id, its trace, its client.
//!
//! Everything here comes from outside and is checked before it is kept, logged or echoed.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;
use kernel::Random;
use onceseal_http::headers::{REQUEST_ID, TRACEPARENT, Trace};

/// Longest request id that is taken from a client.
const REQUEST_ID_MAX: usize = 128;
/// Entries of `X-Forwarded-For` that are looked at, from the right: a chain of proxies is short.
const FORWARDED_MAX: usize = 32;

/// What is known of a request.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    /// Its id: the client's where it can be kept, else ours.
    pub(crate) request_id: String,
    /// Trace id of a right `traceparent`: 32 hex digits.
    pub(crate) trace_id: Option<String>,
    /// The client's address, as far as the proxies are trusted.
    pub(crate) client: Option<IpAddr>,
}

impl Arrived {
    /// For the audit.
    pub(crate) fn context(self) -> certify::Context {
        certify::Context {
            trace_id: self.trace_id.unwrap_or_else(|| self.request_id.clone()),
            request_id: self.request_id,
            client_ip: self.client.map(|address| address.to_string()),
        }
    }
}

/// The id of a request that has passed the outermost layer.
pub(crate) fn of(request: &axum::extract::Request) -> String {
    request.extensions().get::<Arrived>().map(|arrived| arrived.request_id.clone()).unwrap_or_default()
}

/// Makes ids for requests that bring none: a random beginning, drawn once, and a count.
#[derive(Debug)]
pub(crate) struct Ids {
    beginning: String,
    count: AtomicU64,
}

impl Ids {
    pub(crate) fn new(random: &dyn Random) -> Self {
        let mut bytes = [0; 8];
        random.fill(&mut bytes);
        Self { beginning: format!("req_{:016x}", u64::from_be_bytes(bytes)), count: AtomicU64::new(0) }
    }

    /// The client's id if there is exactly one and it is harmless everywhere (log, JSON, header), else a
    /// new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> String {
        let given = only(headers, &REQUEST_ID).and_then(|id| id.to_str().ok());
        match given.filter(|id| harmless(id)) {
            Some(id) => id.to_owned(),
            None => format!("{}{:06x}", self.beginning, self.count.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

fn harmless(id: &str) -> bool {
    (1..=REQUEST_ID_MAX).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b'<' | b'>'))
}

/// The value of a header that stands there once.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { Some(value) }
}

/// Where a request belongs to in its client's trace: a right `traceparent` that stands there once.
pub(crate) fn trace(headers: &HeaderMap) -> Option<Trace> {
    only(headers, &TRACEPARENT).and_then(Trace::of)
}

/// The client's address: the peer, or what trusted proxies say of it. `X-Forwarded-For` is read from the
/// right; the first address that no trusted proxy has is the client. What stands further left was written by
/// the client itself.
pub(crate) fn client(peer: Option<IpAddr>, headers: &HeaderMap, trusted: &[IpNet]) -> Option<IpAddr> {
    let mut client = peer?.to_canonical();
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    if trusted.is_empty() || !is_trusted(&client) {
        return Some(client);
    }
    let lines: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().filter_map(|line| line.to_str().ok()).collect();
    let entries = lines.iter().rev().flat_map(|line| line.rsplit(','));
    for entry in entries.take(FORWARDED_MAX) {
        let Some(address) = address(entry.trim()) else { break };
        client = address;
        if !is_trusted(&client) {
            break;
        }
    }
    Some(client)
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let parsed = bare.parse().ok();
    parsed
        .or_else(|| text.parse::<std::net::SocketAddr>().ok().map(|socket| socket.ip()))
        .map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a header"));
        }
        map
    }

    #[test]
    fn a_traceparent_is_taken_only_when_it_stands_there_once() {
        let right = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let once = trace(&headers(&[("traceparent", right)]));
        assert_eq!(once.as_ref().map(Trace::id), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(trace(&headers(&[("traceparent", right), ("traceparent", right)])), None);
    }

    #[test]
    fn only_trusted_proxies_say_who_the_client_is() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "::1/128"].map(|net| net.parse().expect("a net")).into();
        let client = |peer: &str, forwarded: &[&str]| {
            let lines: Vec<_> = forwarded.iter().map(|line| ("x-forwarded-for", *line)).collect();
            client(Some(peer.parse().expect("address")), &headers(&lines), &trusted)
                .expect("known")
                .to_string()
        };
        assert_eq!(client("192.0.2.1", &["203.0.113.9"]), "192.0.2.1", "an untrusted peer is the client");
        assert_eq!(client("10.1.1.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("10.1.1.1", &["6.6.6.6, 203.0.113.9, 10.2.2.2"]), "203.0.113.9");
        assert_eq!(client("10.1.1.1", &["6.6.6.6", "203.0.113.9"]), "203.0.113.9", "lines are one list");
        assert_eq!(client("10.1.1.1", &["10.3.3.3, 10.2.2.2"]), "10.3.3.3", "all trusted: the outermost");
        assert_eq!(client("10.1.1.1", &["203.0.113.9, unknown"]), "10.1.1.1", "what can't be read ends it");
        assert_eq!(client("::ffff:10.1.1.1", &["203.0.113.9:4711"]), "203.0.113.9");
        assert_eq!(client("::1", &["[2001:db8::7]:443"]), "2001:db8::7");
        assert_eq!(client("10.1.1.1", &[]), "10.1.1.1");
    }

    #[test]
    fn a_request_id_that_could_break_out_is_replaced() {
        let ids = Ids::new(&testkit::CountingRandom::default());
        let id = |text: &str| ids.of(&headers(&[("x-request-id", text)]));
        assert_eq!(id("order-42:retry/1"), "order-42:retry/1");
        let long = "x".repeat(129);
        for wrong in ["", " ", "a b", "tab\there", r#""},{"level":"error"#, r"a\n", "é", &long] {
            assert!(id(wrong).starts_with("req_"), "{wrong}");
        }
        assert_ne!(id(""), id(""));
        let twice = headers(&[("x-request-id", "a"), ("x-request-id", "b")]);
        assert!(ids.of(&twice).starts_with("req_"));
    }
}
