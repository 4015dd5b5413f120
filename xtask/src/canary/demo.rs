//! A run of `onceseal demo` that leaves everything behind, logged at the highest level.

use anyhow::ensure;

use super::{Observed, proven_then_clean};
use crate::lab::{self, Build, House, Server};

/// Runs the demo and scans it.
///
/// # Errors
/// The demo fails, or a secret was found.
pub(super) fn scanned() -> anyhow::Result<()> {
    let program = Build::Release.program()?;
    let house = House::at(lab::scratch("demo")?);
    std::fs::create_dir(house.logs())?;
    let mut command = house.command(&program, &["demo", "--folder", ".", "--serve"]);
    command.env("RUST_LOG", "trace");
    let server = house.start_with(command)?;
    let seen = observed(&server)?;
    server.stop()?;
    proven_then_clean(&house, &seen)
}

fn observed(server: &Server) -> anyhow::Result<Observed> {
    let mut seen = Observed { mails: mails(), ..Observed::default() };
    ensure!(!seen.mails.is_empty(), "the samples lost their mail addresses");
    seen.metrics.push(server.get("/metrics")?.body);
    seen.errors.push(server.get("/d/none.html")?.body);
    for path in ["events?limit=200", "announcements", "status", "tokens"] {
        seen.pages.push(server.order_raw("GET", path)?.body);
    }
    seen.exports.push(server.order_raw("GET", "export")?.body);
    Ok(seen)
}

/// Full mail addresses in the bundled events.
fn mails() -> Vec<String> {
    let texts = source::samples::ALL.iter().flat_map(|(_, body)| body.split('"'));
    let mut mails: Vec<String> = texts.filter(|text| is_mail(text)).map(ToOwned::to_owned).collect();
    mails.sort();
    mails.dedup();
    mails
}

fn is_mail(text: &str) -> bool {
    let parts = text.split_once('@');
    parts.is_some_and(|(local, domain)| {
        !local.is_empty() && domain.contains('.') && !text.contains([' ', '/'])
    })
}
