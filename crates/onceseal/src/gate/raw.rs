//! One request as it is written, byte by byte: what a library of HTTP would put right before it is sent. And a call
//! that is cut off once it is out.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use play::Answer;

/// For a whole answer.
const WITHIN: Duration = Duration::from_secs(60);

/// A request as it is written.
#[derive(Clone, Debug)]
pub struct Raw {
    /// Of HTTP.
    pub method: String,
    /// Path and query, as they are.
    pub target: String,
    /// Lines in their order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Raw {
    /// Without a body.
    #[must_use]
    pub fn get(target: impl Into<String>) -> Self {
        Self { method: "GET".into(), target: target.into(), headers: Vec::new(), body: String::new() }
    }

    /// With one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    fn text(&self, host: &str) -> String {
        let Self { method, target, headers, body } = self;
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length =
            if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        format!(
            "{method} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{lines}{length}\r\n{body}"
        )
    }

    async fn written(&self, base: &str) -> Result<TcpStream, String> {
        let host = base.trim_start_matches("http://");
        let fail = |cause: std::io::Error| format!("{} {}: {cause}", self.method, self.target);
        let mut stream = TcpStream::connect(host).await.map_err(fail)?;
        stream.write_all(self.text(host).as_bytes()).await.map_err(fail)?;
        Ok(stream)
    }

    /// Sends it and reads the whole answer; its request id is the answer's.
    ///
    /// # Errors
    /// None came.
    pub async fn send(&self, base: &str) -> Result<Answer, String> {
        let mut bytes = Vec::new();
        let reading = async {
            let mut stream = self.written(base).await?;
            stream.read_to_end(&mut bytes).await.map_err(|cause| format!("{}: {cause}", self.target))
        };
        let late = |_| format!("{}: no answer", self.target);
        tokio::time::timeout(WITHIN, reading).await.map_err(late)??;
        answer(&bytes).ok_or_else(|| format!("{}: no answer of HTTP", self.target))
    }

    /// Sends it and is gone.
    ///
    /// # Errors
    /// Nobody listens.
    pub async fn hang_up(&self, base: &str) -> Result<(), String> {
        self.written(base).await.map(drop)
    }
}

fn answer(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = bytes.split_at(end);
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse::<u16>().ok()?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        headers.append(
            HeaderName::from_bytes(name.trim().as_bytes()).ok()?,
            HeaderValue::from_str(value.trim()).ok()?,
        );
    }
    let request_id =
        headers.get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let body = body.get(4..)?.to_vec();
    Some(Answer { request_id, status: StatusCode::from_u16(status).ok()?, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_as_it_is_and_an_answer_is_read_whole() {
        let raw = Raw::get("/x?%61=%zz").with("X-Request-Id", "a").with("X-Request-Id", "b");
        let text = raw.text("h:1");
        assert!(text.starts_with("GET /x?%61=%zz HTTP/1.1\r\nhost: h:1\r\n"), "{text}");
        assert_eq!(text.matches("X-Request-Id").count(), 2);
        let read = answer(b"HTTP/1.1 401 Unauthorized\r\nX-Request-Id: r\r\n\r\n{}").unwrap();
        assert_eq!((read.code(), read.request_id.as_str(), read.body.as_slice()), (401, "r", &b"{}"[..]));
    }
}
