//! HTTP/1.1 by hand over one connection a request, so that it can be cut at any byte. Bodies have a
//! content length or end with the connection; there are no chunks.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value as Json;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nowhere.
    Never,
    /// After so many bytes of the request.
    Sending(usize),
    /// After so many bytes of the answer.
    Reading(usize),
}

impl Answer {
    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null when it is none.
    pub(crate) fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The first header of that name, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The bytes of a request after which the connection closes.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nhost: deliver.example.com\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}

/// Sends a request over a new connection and reads the whole answer.
///
/// # Errors
/// Nobody listens, or the answer is cut or unreadable.
pub(crate) fn exchange(to: SocketAddr, request: &[u8]) -> anyhow::Result<Answer> {
    send(to, request, Cut::Never)?.context("an answer")
}

/// As [`exchange`], but gives up after `patience`, as senders do.
///
/// # Errors
/// As [`exchange`], and no whole answer in time.
pub(crate) fn exchange_within(to: SocketAddr, request: &[u8], patience: Duration) -> anyhow::Result<Answer> {
    send_within(to, request, Cut::Never, patience)?.context("an answer")
}

/// Sends a request over a new connection, which is cut where asked: then there is no answer.
///
/// # Errors
/// Nobody listens, or the answer ends early though nothing was cut here.
pub(crate) fn send(to: SocketAddr, request: &[u8], cut: Cut) -> anyhow::Result<Option<Answer>> {
    send_within(to, request, cut, PATIENCE)
}

/// Answers come in one piece or two: the patience is for each.
fn send_within(
    to: SocketAddr,
    request: &[u8],
    cut: Cut,
    patience: Duration,
) -> anyhow::Result<Option<Answer>> {
    let mut stream = TcpStream::connect_timeout(&to, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    match cut {
        Cut::Never => {
            stream.write_all(request)?;
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes)?;
            parse(&bytes).map(Some)
        }
        Cut::Sending(after) => {
            stream.write_all(request.get(..after).unwrap_or(request))?;
            hang_up(&stream);
            Ok(None)
        }
        Cut::Reading(after) => {
            stream.write_all(request)?;
            let mut bytes = vec![0; after];
            match stream.read_exact(&mut bytes) {
                // The answer was shorter: it is lost all the same.
                Err(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => return Err(cause.into()),
                _ => hang_up(&stream),
            }
            Ok(None)
        }
    }
}

/// Closes at once; the peer may have gone first.
fn hang_up(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

fn parse(bytes: &[u8]) -> anyhow::Result<Answer> {
    let end =
        bytes.windows(4).position(|it| it == b"\r\n\r\n").context("the answer has no end of its head")?;
    let head = std::str::from_utf8(bytes.get(..end).unwrap_or_default())?;
    let body = bytes.get(end + 4..).unwrap_or_default().to_vec();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let answer = Answer { status: status.context("the answer has no status")?, headers, body };
    if let Some(length) = answer.header("content-length") {
        ensure!(length.parse() == Ok(answer.body.len()), "the answer was cut");
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_answer_is_read_and_a_cut_one_is_not() {
        let answer = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\n{}").unwrap();
        assert_eq!((answer.status, answer.body.as_slice(), answer.header("x")), (200, &b"{}"[..], Some("y")));
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\n").is_err());
    }
}
