//! As much of HTTP/1.1 as the load needs to read an answer.
//!
//! Not a client: no chunks, no redirects, no continuation lines. A server under
//! test that answers in another shape is reported, not guessed at.

use std::ops::Range;

/// Longest head taken, in bytes. Longer means that something else answers.
const HEAD_LIMIT: usize = 8 * 1024;

/// Longest body taken, in bytes.
const BODY_LIMIT: usize = 256 * 1024;

/// One complete answer at the start of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// Status code, 100 to 999.
    pub(crate) status: u16,
    /// Where the body stands in the buffer.
    pub(crate) body: Range<usize>,
}

/// The bytes are no answer this reader knows.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not HTTP/1.1 with a content length within the limits")]
pub(crate) struct Unreadable;

/// The answer at the start of `bytes`, or `None` while it is incomplete.
///
/// # Errors
/// No HTTP/1.1 status line, no content length, or beyond the limits.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Response>, Unreadable> {
    let Some(head_length) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
        return if bytes.len() > HEAD_LIMIT { Err(Unreadable) } else { Ok(None) };
    };
    let head = bytes.get(..head_length).and_then(|it| std::str::from_utf8(it).ok()).ok_or(Unreadable)?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|it| it.strip_prefix("HTTP/1.1 "))
        .and_then(|it| it.get(..3))
        .and_then(|it| it.parse::<u16>().ok())
        .ok_or(Unreadable)?;
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok())
        .filter(|length| *length <= BODY_LIMIT)
        .ok_or(Unreadable)?;
    let start = head_length + 4;
    let body = start..start + length;
    Ok((bytes.len() >= body.end).then_some(Response { status, body }))
}

/// Whether a JSON body has `"status": "<status>"`, with or without the blank.
pub(crate) fn says(body: &[u8], status: &str) -> bool {
    const NAME: &[u8] = b"\"status\":";
    let Some(at) = body.windows(NAME.len()).position(|it| it == NAME) else { return false };
    let value = body.get(at + NAME.len()..).unwrap_or_default().trim_ascii_start();
    value
        .strip_prefix(b"\"")
        .and_then(|it| it.strip_prefix(status.as_bytes()))
        .is_some_and(|it| it.first() == Some(&b'"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_answer_is_found_and_a_part_is_waited_for() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\n{}";
        assert_eq!(parse(answer), Ok(Some(Response { status: 200, body: 44..46 })));
        for length in 0..answer.len() {
            assert_eq!(parse(&answer[..length]), Ok(None));
        }
    }

    #[test]
    fn an_answer_without_length_or_of_another_protocol_is_unreadable() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"), Err(Unreadable));
        assert_eq!(parse(b"SSH-2.0-OpenSSH\r\n\r\n"), Err(Unreadable));
        assert_eq!(parse(&[b'x'; HEAD_LIMIT + 1]), Err(Unreadable));
    }

    #[test]
    fn the_status_field_is_compared_whole() {
        assert!(says(br#"{"status":"processed"}"#, "processed"));
        assert!(says(br#"{"status": "processed"}"#, "processed"));
        assert!(!says(br#"{"status":"processed_late"}"#, "processed"));
        assert!(!says(br#"{"state":"processed"}"#, "processed"));
    }
}
