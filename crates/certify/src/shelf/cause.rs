//! What went wrong with a file, in words for an operator: what a bucket's server answered, and nothing of
//! the request that it answered, which is signed with a key.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};

/// Longest piece of a foreign text that is repeated, in characters: enough for a sentence.
const TOLD_MAX: usize = 200;
/// Longest error code of S3 that is repeated, in bytes; the longest known ones have about 50.
const CODE_MAX: usize = 64;

/// Codes of S3's error answers (Amazon S3 API Reference, "Error responses") with what to do about them.
const HINTS: [(&str, &str); 9] = [
    ("NoSuchBucket", "make the bucket, or correct storage.files"),
    ("InvalidAccessKeyId", "check s3.access_key"),
    ("SignatureDoesNotMatch", "check s3.secret_key"),
    ("ExpiredToken", "renew the credentials"),
    ("AccessDenied", "allow these keys to get, put, delete and list objects there"),
    ("AuthorizationHeaderMalformed", "check s3.region"),
    ("PermanentRedirect", "check s3.region"),
    ("RequestTimeTooSkewed", "set this machine's clock"),
    ("NotImplemented", "the server lacks what is needed; use another, or a shared folder"),
];

/// What can go wrong with a file.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what} {name}: {cause}")]
pub struct Error {
    what: &'static str,
    name: String,
    cause: String,
}

impl Error {
    pub(super) fn new(what: &'static str, name: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { what, name: name.into(), cause: cause.into() }
    }

    /// The cause of an object store's error carries the path; the innermost cause says what happened.
    pub(super) fn local(what: &'static str, name: &str, cause: &object_store::Error) -> Self {
        Self::new(what, name, chain(cause).0)
    }

    /// From a bucket.
    pub(super) fn bucket(what: &'static str, name: &str, cause: &object_store::Error) -> Self {
        let (innermost, transport) = chain(cause);
        let told = match transport {
            Some(HttpErrorKind::Connect) => format!("no connection: {}", brief(&innermost)),
            Some(HttpErrorKind::Timeout) => "no answer in time".into(),
            Some(_) => format!("the connection broke: {}", brief(&innermost)),
            None => answer(&innermost),
        };
        Self::new(what, name, told)
    }
}

/// The innermost cause, and of what kind it is where no answer came.
fn chain(cause: &object_store::Error) -> (String, Option<HttpErrorKind>) {
    let mut innermost: &(dyn StdError + 'static) = cause;
    let mut transport = None;
    loop {
        if let Some(http) = innermost.downcast_ref::<HttpError>() {
            transport = Some(http.kind());
        }
        match innermost.source() {
            Some(source) => innermost = source,
            None => return (innermost.to_string(), transport),
        }
    }
}

/// Status and code of an answer. Its body may repeat the access key and what was signed.
fn answer(text: &str) -> String {
    let Some((_, rest)) = text.split_once("status code: ") else { return brief(text) };
    let status = rest.split(':').next().unwrap_or(rest);
    match code(rest) {
        Some(code) => match HINTS.iter().find(|(known, _)| *known == code) {
            Some((_, hint)) => format!("the answer {} {code}; {hint}", brief(status)),
            None => format!("the answer {} {code}", brief(status)),
        },
        None => format!("the answer {}", brief(status)),
    }
}

fn code(body: &str) -> Option<&str> {
    let (code, _) = body.split_once("<Code>")?.1.split_once("</Code>")?;
    let plain = (1..=CODE_MAX).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphanumeric());
    plain.then_some(code)
}

/// One line without markup.
fn brief(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let plain = line.split('<').next().unwrap_or_default().trim();
    plain.chars().filter(|c| !c.is_control()).take(TOLD_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_by_status_and_code_alone() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error>\
            <Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>CANARY</AWSAccessKeyId></Error>";
        assert_eq!(answer(body), "the answer 403 Forbidden SignatureDoesNotMatch; check s3.secret_key");
        let odd = "Server returned non-2xx status code: 500 Internal Server Error: <Code>CAN ARY</Code>";
        assert_eq!(answer(odd), "the answer 500 Internal Server Error");
        assert_eq!(
            answer("Server returned error response: <Error>CANARY</Error>"),
            "Server returned error response:"
        );
    }
}
