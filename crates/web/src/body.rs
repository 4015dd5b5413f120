//! Reading a body: counted while it arrives, within a time, never decoded.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::codes::{BODY_TIMEOUT, BODY_TOO_LARGE, BODY_UNREADABLE, ENCODING_UNSUPPORTED};
use crate::problem::Problem;

/// The whole body. A stated length beyond the limit is refused before a byte is read.
///
/// # Errors
/// 413, 408, or 400 for broken chunks and a connection that ended early.
pub(crate) async fn read(body: Body, limit: usize, within: Duration) -> Result<Bytes, Problem> {
    let too_large = || {
        let problem = Problem::new(BODY_TOO_LARGE).saying(format!("the body is larger than {limit} bytes"));
        problem.saying_zh(format!("请求体超过 {limit} 字节"))
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(within, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => {
            tracing::debug!(%error, "body_unreadable");
            Err(Problem::new(BODY_UNREADABLE))
        }
        Err(_) => Err(Problem::new(BODY_TIMEOUT)
            .saying(format!("the body did not arrive within {} ms", within.as_millis()))),
    }
}

/// Encoded bodies are refused: a signature covers the bytes as sent, and a small body could unpack into a
/// large one.
///
/// # Errors
/// 415.
pub(crate) fn unencoded(headers: &HeaderMap) -> Result<(), Problem> {
    let encoded = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|value| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity"));
    if encoded { Err(Problem::new(ENCODING_UNSUPPORTED)) } else { Ok(()) }
}
