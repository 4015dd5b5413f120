//! Fetching files and key sets for people: bounded in size and time, without following anybody elsewhere
//! with credentials. Not here: the operator API.

use std::time::Duration;

use reqwest::{Client, Url, redirect};

use super::out::{Exit, Stop};

/// For a whole answer.
const WITHIN: Duration = Duration::from_secs(20);
/// For the connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Redirects followed for a public file.
const REDIRECTS_MAX: usize = 3;

/// Whether an answer may send elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// A few times.
    Followed,
    /// The answer is that of the address asked.
    Refused,
}

/// A client with bounds.
///
/// # Errors
/// When none can be built.
pub fn client(redirects: Redirects) -> Result<Client, Stop> {
    let policy = match redirects {
        Redirects::Followed => redirect::Policy::limited(REDIRECTS_MAX),
        Redirects::Refused => redirect::Policy::none(),
    };
    Client::builder()
        .redirect(policy)
        .connect_timeout(CONNECT_WITHIN)
        .timeout(WITHIN)
        .user_agent(concat!("onceseal/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|cause| Stop::failed(format!("no HTTP client: {}", innermost(&cause))))
}

/// Whether a text is meant as an address.
#[must_use]
pub fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// The bytes at an address, at most `max`.
///
/// # Errors
/// No answer, another status than 200, or more bytes.
pub async fn get(url: &str, max: usize, redirects: Redirects) -> Result<Vec<u8>, Stop> {
    let url =
        Url::parse(url).map_err(|cause| Stop::new(Exit::Usage, format!("{url:?} is no address: {cause}")))?;
    let fail = |cause: &reqwest::Error| Stop::failed(format!("{url}: {}", innermost(cause)));
    let mut answer = client(redirects)?.get(url.clone()).send().await.map_err(|cause| fail(&cause))?;
    if !answer.status().is_success() {
        let exit = if answer.status().as_u16() == 404 { Exit::NothingFound } else { Exit::Failed };
        return Err(Stop::new(exit, format!("{url} answered {}", answer.status())));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|cause| fail(&cause))? {
        if bytes.len() + chunk.len() > max {
            return Err(Stop::new(
                Exit::Problems,
                format!("{url} gives more than {max} bytes; certificates are smaller"),
            ));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The last cause of an error: it says what happened, and carries no address.
#[must_use]
pub fn innermost(cause: &dyn std::error::Error) -> String {
    let mut last = cause;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
