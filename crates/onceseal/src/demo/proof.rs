//! Verifies what came out, as a stranger would: fetch the three forms and the published keys, then look at
//! bytes only.

use seal::jwks::Jwks;
use seal::verify::{Trust, Verdict, verify};
use serde_json::Value as Json;

use crate::cli::fetch::{self, Redirects};
use crate::cli::verify::KEYS_PATH;

/// A certificate and what its forms are worth.
#[derive(Clone, Debug)]
pub struct Proved {
    /// Its reference.
    pub reference: String,
    /// Address of the page.
    pub html_url: String,
    /// Verdict of each form, by its extension.
    pub forms: Vec<(&'static str, Verdict)>,
}

impl Proved {
    /// Whether every form is plainly valid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.forms.iter().all(|(_, verdict)| *verdict == Verdict::Valid)
    }
}

/// Fetches and verifies the forms of a certificate that an answer names, with the keys that `base` publishes.
///
/// # Errors
/// A file can't be fetched.
pub async fn prove(base: &str, answer: &Json) -> Result<Proved, String> {
    let keys = get(&format!("{base}{KEYS_PATH}")).await?;
    let trust = Trust::from(&Jwks::parse(&keys).map_err(|cause| cause.to_string())?);
    let text = |name: &str| answer.get(name).and_then(Json::as_str).unwrap_or_default();
    // In a folder that was used before, the recorded addresses name the port of that time.
    let here = |name: &str| {
        let path = url::Url::parse(text(name)).map(|url| url.path().to_owned());
        format!("{base}{}", path.unwrap_or_default())
    };
    let mut forms = Vec::new();
    for (form, name) in [("html", "html_url"), ("zip", "zip_url"), ("json", "json_url")] {
        forms.push((form, verify(&get(&here(name)).await?, &trust).verdict));
    }
    Ok(Proved { reference: text("ref").to_owned(), html_url: here("html_url"), forms })
}

async fn get(url: &str) -> Result<Vec<u8>, String> {
    fetch::get(url, seal::verify::MAX_BYTES, Redirects::Refused).await.map_err(|stop| stop.text)
}
