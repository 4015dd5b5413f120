//! What the tool is told, as its configuration `schemathesis.toml`: for each operation its token and the statuses that
//! are allowed, and where ids of real objects go. Written into the run's folder; tokens are in it.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::stage::Stage;
use super::statuses::{FILE, Statuses, operations};

/// The part that runs inside the tool.
const HOOKS: &str = include_str!("hooks.py");
/// How often a value that exists is taken where one is known.
const OFTEN: f64 = 0.6;
/// A request that does not fit its description is refused with one of these; 5xx is nobody's refusal.
const REFUSED: &str = r#"["400", "401", "404", "405", "413", "415"]"#;

/// What is no fault of a server, unless a 5xx is pinned for the operation.
const WELL: [&str; 3] = ["2xx", "3xx", "4xx"];

/// Writes everything that the tool reads.
///
/// # Errors
/// A file can't be written.
pub(super) fn write(folder: &Path, stage: &Stage, statuses: &Statuses) -> anyhow::Result<()> {
    std::fs::write(folder.join("schemathesis.toml"), configuration(stage, statuses))?;
    std::fs::write(folder.join("hooks.py"), HOOKS)?;
    std::fs::write(folder.join("statuses.toml"), FILE)?;
    let [owner, other] = &stage.suppliers;
    let peer = |name: &str, token: &str| json!({ "name": name, "fixedHeaders": [{ "name": "Authorization", "value": format!("Bearer {token}") }] });
    let peers = json!({ "auth": [peer("owner", owner), peer("other", other)] });
    std::fs::write(folder.join("peers.json"), peers.to_string())?;
    let [(admin, id), (spare, renewed)] = &stage.staff;
    // The first three are the first administrator's and the suppliers'.
    let run = json!({ "desk": stage.desk, "admin": admin, "spared_tokens": [1, 2, 3, id, renewed],
        "renewed": { "id": renewed, "token": spare } });
    std::fs::write(folder.join("run.json"), run.to_string())?;
    Ok(())
}

fn configuration(stage: &Stage, statuses: &Statuses) -> String {
    let [_, (_, renewed)] = &stage.staff;
    let mut text = format!(
        "hooks = \"hooks.py\"\nrequest-timeout = 30.0\nwarnings = false\n\n\
         [auth.wfc]\npath = \"peers.json\"\nuser = \"owner\"\npeers = [\"owner\", \"other\"]\n\n\
         [checks]\nnegative_data_rejection.expected-statuses = {REFUSED}\n\n"
    );
    dictionaries(&mut text, stage);
    for operation in operations(&stage.document) {
        let allowed = statuses.of(&operation);
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "\n[[operations]]\ninclude-operation-id = {:?}\nchecks.positive_data_acceptance.expected-statuses = {:?}",
            operation.id, allowed
        );
        let faults: Vec<String> = allowed.into_iter().filter(|status| status.starts_with('5')).collect();
        if !faults.is_empty() {
            let all: Vec<String> = WELL.iter().map(|class| (*class).to_owned()).chain(faults).collect();
            let _ = writeln!(text, "checks.not_a_server_error.expected-statuses = {all:?}");
        }
        let known = match operation.id.as_str() {
            // Only the token that calls is renewed.
            "refreshToken" => Some(("tokenId", renewed.to_string())),
            _ => operation.of().map(|(parameter, known)| (parameter, taken(known))),
        };
        if let Some((parameter, values)) = known {
            let _ = writeln!(text, "parameters = {{ \"path.{parameter}\" = {values} }}");
        }
    }
    text
}

/// As often as not, a value of this dictionary.
fn taken(name: &str) -> String {
    format!("{{ dictionary = {name:?}, probability = {OFTEN} }}")
}

/// Values that exist, and where in bodies they go.
fn dictionaries(text: &mut String, stage: &Stage) {
    for (name, values) in &stage.known {
        let _ = writeln!(text, "[dictionaries.{name}]\nvalues = {}\n", Json::from(values.clone()));
    }
    let _ = writeln!(text, "[parameters]");
    for name in stage.known.keys() {
        let _ = writeln!(text, "\"body.{name}\" = {}", taken(name));
    }
    for (place, name) in [("supply_account_id", "account_id"), ("items[*].package_id", "package_id")] {
        let _ = writeln!(text, "\"body.{place}\" = {}", taken(name));
    }
}
