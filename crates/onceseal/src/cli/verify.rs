//! `onceseal verify`: is this file a genuine certificate, and who says so. Offline; the file's own word
//! about its signer counts for nothing.

use std::io::Read as _;

use clap::Args;
use seal::jwks::{Jwks, Status};
use seal::key::PublicKey;
use seal::verify::{MAX_BYTES, Outcome, Report, Trust, Verdict, verify};
use serde_json::{Value as Json, json};

use super::fetch::{self, Redirects};
use super::out::{Ended, Exit, Out, Stop, Tone, clean};

/// Where an issuer publishes its anchor keys.
pub const KEYS_PATH: &str = "/.well-known/onceseal/keys.json";

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal verify certificate.zip --keys keys.json
  onceseal verify certificate.html --keys 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo
  onceseal verify https://visa.example.com/d/9f...c1.json --anchor visa.example.com

Without --keys or --anchor the best answer is \"intact, signer unknown\": a file can't vouch for itself.

Exit codes: 0 valid, 3 not valid, 4 intact but signer unknown, 5 valid but its key is retired, so that the
date is only the signer's claim; of several files the worst counts")]
pub struct Verify {
    /// Certificates: files, addresses, or - for standard input
    #[arg(required = true, value_name = "FILE|URL")]
    files: Vec<String>,
    /// Trusted keys: a key set's file or address, or one public key in base64url
    // One key in 64 begins with a hyphen.
    #[arg(long, value_name = "FILE|URL|KEY", conflicts_with = "anchor", allow_hyphen_values = true)]
    keys: Option<String>,
    /// Trust the keys that this host publishes over HTTPS
    #[arg(long, value_name = "HOST")]
    anchor: Option<String>,
}

impl Verify {
    /// Runs it.
    ///
    /// # Errors
    /// A file or the keys can't be read; that says nothing about validity.
    pub async fn run(self, out: Out) -> Ended {
        let trust = self.trust().await?;
        let mut worst = Exit::Fine;
        let mut reports = Vec::new();
        for file in &self.files {
            let report = verify(&read(file).await?, &trust);
            let exit = exit(&report.verdict);
            if badness(exit) > badness(worst) {
                worst = exit;
            }
            if out.json {
                reports.push(as_json(file, &report));
            } else {
                print(out, file, &report);
            }
        }
        if out.json {
            out.value(&match reports.len() {
                1 => reports.remove(0),
                _ => Json::Array(reports),
            });
        }
        Ok(worst)
    }

    async fn trust(&self) -> Result<Trust, Stop> {
        if let Some(host) = &self.anchor {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
            if host.is_empty() || !host.chars().all(plain) {
                return Err(Stop::new(Exit::Usage, format!("--anchor {host:?} is no host name")));
            }
            return published(&format!("https://{host}{KEYS_PATH}")).await;
        }
        let Some(keys) = &self.keys else { return Ok(Trust::none()) };
        if fetch::is_url(keys) {
            return published(keys).await;
        }
        if let Ok(key) = keys.parse::<PublicKey>() {
            return Ok(Trust::pinned(key));
        }
        let text = std::fs::read(keys).map_err(|cause| {
            Stop::new(
                Exit::Usage,
                format!("--keys {keys:?} is neither a key in base64url nor a file: {cause}"),
            )
        })?;
        trusted(keys, &text)
    }
}

/// Keys from an address. Redirects are refused: the address was chosen by the verifier, its end was not.
async fn published(url: &str) -> Result<Trust, Stop> {
    trusted(url, &fetch::get(url, seal::jwks::MAX_BYTES, Redirects::Refused).await?)
}

fn trusted(place: &str, text: &[u8]) -> Result<Trust, Stop> {
    let set = Jwks::parse(text).map_err(|cause| Stop::new(Exit::Usage, format!("{place}: {cause}")))?;
    Ok(Trust::from(&set))
}

async fn read(file: &str) -> Result<Vec<u8>, Stop> {
    if fetch::is_url(file) {
        return fetch::get(file, MAX_BYTES, Redirects::Followed).await;
    }
    // One byte more than is looked at tells the verifier that there is more.
    let limit = MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = if file == "-" {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(limit).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            Err(Stop::new(Exit::NothingFound, format!("{file}: there is no such file")))
        }
        Err(cause) => Err(Stop::failed(format!("{file}: {cause}"))),
    }
}

/// The end of the program for a verdict.
#[must_use]
pub const fn exit(verdict: &Verdict) -> Exit {
    match verdict {
        Verdict::Valid => Exit::Fine,
        Verdict::ValidDateClaimed => Exit::DateClaimed,
        Verdict::IntactSignerUnknown => Exit::SignerUnknown,
        Verdict::Invalid(_) => Exit::Problems,
    }
}

const fn badness(exit: Exit) -> u8 {
    match exit {
        Exit::Fine => 0,
        Exit::DateClaimed => 1,
        Exit::SignerUnknown => 2,
        _ => 3,
    }
}

fn as_json(file: &str, report: &Report) -> Json {
    let checks: Vec<Json> = report
        .checks
        .iter()
        .map(|check| json!({ "name": check.name, "outcome": word(check.outcome), "detail": check.detail }))
        .collect();
    json!({
        "file": file,
        "verdict": report.verdict.code(),
        "text": report.verdict.to_string(),
        "form": report.form.map(|form| form.to_string()),
        "ref": report.reference,
        "run_hash": report.run_hash.map(|hash| hash.to_string()),
        "issued_at": report.issued_at.map(time),
        "mode": report.mode.map(|mode| mode.to_string()),
        "key_id": report.key_id.map(|id| id.to_string()),
        "key_period": period(report),
        "checks": checks,
    })
}

fn print(out: Out, file: &str, report: &Report) {
    let tone = match exit(&report.verdict) {
        Exit::Fine => Tone::Good,
        Exit::DateClaimed | Exit::SignerUnknown => Tone::Calm,
        _ => Tone::Bad,
    };
    out.line(format_args!("{file}: {}", out.paint(tone, &clean(&report.verdict.to_string()))));
    for check in &report.checks {
        let (tone, mark) = match check.outcome {
            Outcome::Passed => (Tone::Good, "pass"),
            Outcome::Failed => (Tone::Bad, "FAIL"),
            Outcome::NotInFile => (Tone::Faint, " -- "),
        };
        out.line(format_args!("  {} {:<10} {}", out.paint(tone, mark), check.name, clean(&check.detail)));
    }
    if let Some(reference) = &report.reference {
        out.line(format_args!("  reference  {}", clean(reference)));
    }
    if let (Some(issued), Some(mode)) = (report.issued_at, report.mode) {
        out.line(format_args!("  issued     {} ({mode} mode)", time(issued)));
    }
    if let Some(period) = period(report) {
        out.line(format_args!("  key        {period}"));
    }
    if report.verdict == Verdict::IntactSignerUnknown {
        out.line("  next       get the issuer's keys from a place you trust and give them with --keys");
    }
}

/// The signer's key and its period, once it is a trusted one.
fn period(report: &Report) -> Option<String> {
    let entry = report.signer.as_ref()?;
    let from = entry.not_before.map_or_else(|| "an unstated time".to_owned(), time);
    let until = match entry.status {
        Status::Announced => "not in use yet".to_owned(),
        Status::Active => "in use".to_owned(),
        Status::Retired { at } => format!("retired {}", time(at)),
    };
    Some(format!("{}, from {from}, {until}", entry.key.id()))
}

fn time(seconds: i64) -> String {
    kernel::Time::from_seconds(seconds).to_rfc3339_seconds()
}

const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::NotInFile => "not_in_file",
    }
}
