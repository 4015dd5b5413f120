//! The report under a seal: the files of a certificate (`seal::bundle`), so that `onceseal verify` says whether anything
//! was changed since. What is sealed is the page, and a run that names every check and the hash of `report.json`.

use std::path::Path;

use kernel::{Random as _, Time};
use seal::bundle::{Draft, Sealed, seal};
use seal::hash::Digest;
use seal::jwks::{Entry, Jwks, Status};
use seal::key::SigningKey;
use serde_json::{Value as Json, json};
use zeroize::Zeroizing;

use super::report::{KIND, Report};
use crate::random::OsRandom;

/// Names of the sealed files, and of the keys that they verify with.
const SEALED: [&str; 3] = ["gate-report.zip", "gate-report.json", "gate-report.html"];
/// Name of the set of public keys.
const KEYS: &str = "keys.json";

/// What is certified.
fn run(report: &Report, (reference, json): (&str, &[u8]), at: Time) -> Json {
    let checks: Vec<Json> = report
        .checks
        .iter()
        .map(|line| {
            json!({ "id": line.id, "group": line.group, "verdict": line.verdict,
                "assertions": line.assertions.len(), "requests": line.requests_sent })
        })
        .collect();
    json!({ "v": 1, "issued_at": at.seconds(), "mode": "test", "kind": KIND, "ref": reference,
        "program": format!("onceseal {}", report.version), "engines": report.engines,
        "checks_total": report.checks_total, "checks_failed": report.checks_failed,
        "groups": report.groups, "checks": checks,
        "report": { "name": "report.json", "sha256": Digest::of(json).to_string(), "size": json.len() } })
}

/// Seals a report with a key of its own; the set of keys that it verifies with.
///
/// # Errors
/// The report is too large.
pub fn sealed(report: &Report, at: Time) -> Result<(Sealed, Vec<u8>), String> {
    let mut seed = Zeroizing::new([0; 32]);
    OsRandom.fill(&mut *seed);
    let key = SigningKey::from_seed(&seed);
    let reference = format!("gate_{}_{}", at.seconds(), super::ground::letters(12));
    let json = report.json()?;
    let run = run(report, (&reference, &json), at);
    let draft = Draft { html: report.html()?.into_bytes(), run, reference };
    let sealed = seal(&draft, &key).map_err(|cause| cause.to_string())?;
    let entry = Entry { key: key.public_key(), status: Status::Active, not_before: Some(at.seconds()) };
    let keys = Jwks::new(vec![entry]).and_then(|set| set.to_json()).map_err(|cause| cause.to_string())?;
    Ok((sealed, keys))
}

/// Writes the sealed files beside the report.
///
/// # Errors
/// The folder can't be written.
pub fn write(folder: &Path, (sealed, keys): &(Sealed, Vec<u8>)) -> Result<(), String> {
    let files = SEALED.into_iter().zip([&sealed.zip, &sealed.json, &sealed.html]).chain([(KEYS, keys)]);
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes)
            .map_err(|cause| format!("{name} can't be written: {cause}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use guard::{Guard, Scanner};
    use seal::verify::{Trust, Verdict, verify};

    use super::*;
    use crate::gate::check::Book;
    use crate::gate::database::Engine;

    #[test]
    fn a_sealed_report_verifies_with_its_keys_and_a_changed_one_does_not() {
        let at = Time::from_seconds(1_774_576_984);
        let guard = Guard::new(Scanner::standard().unwrap(), Vec::new(), &[7; 32]);
        let report = Report::new(&Book::new(Engine::Sqlite).judged(), vec!["sqlite".into()], at, &guard);
        let (sealed, keys) = sealed(&report, at).unwrap();
        let trust = Trust::from(&Jwks::parse(&keys).unwrap());
        for form in [&sealed.zip, &sealed.json, &sealed.html] {
            assert_eq!(verify(form, &trust).verdict, Verdict::Valid);
        }
        let text = String::from_utf8(sealed.html).unwrap();
        let changed = text.replacen("missing", "passed ", 1);
        assert_ne!(changed, text);
        assert!(matches!(verify(changed.as_bytes(), &trust).verdict, Verdict::Invalid(_)));
    }
}
