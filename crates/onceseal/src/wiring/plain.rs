//! Which account's references are plain, kept in the data folder: a reference names its event's record, so
//! if plain references moved to another account, known events would be looked up under new names and be
//! certified again. A configuration that would move them does not start.

use std::io::Write as _;
use std::path::Path;

use certify::AuditVisa;
use certify::audit::Filter;

/// Name of the file in the data folder.
const FILE: &str = "plain-references";
/// What stands in it where no account has plain references.
const NONE: &str = "-";

/// Compares the configured account with the one on record, and records it at the first start.
///
/// # Errors
/// They differ, or the file can't be read or written.
pub async fn keep(
    folder: &Path,
    account: Option<&str>,
    sources: &[&str],
    visa: &AuditVisa,
) -> Result<(), String> {
    let file = folder.join(FILE);
    let fail = |cause: std::io::Error| format!("storage.folder: {FILE}: {cause}");
    let wanted = account.unwrap_or(NONE);
    let known = match std::fs::read_to_string(&file) {
        // Blank is what a power cut may leave of a file that nobody believed yet.
        Ok(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => None,
        Err(cause) => return Err(fail(cause)),
    };
    match known.as_deref() {
        Some(known) if known == wanted => return Ok(()),
        Some(NONE) if !any(visa, sources).await? => {}
        Some(known) => return Err(moved(known, wanted)),
        None => {}
    }
    write(folder, &file, wanted).map_err(fail)
}

/// Whole or not at all, and durable before the first event is named by it.
fn write(folder: &Path, file: &Path, wanted: &str) -> std::io::Result<()> {
    let mut aside = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(aside, "{wanted}")?;
    aside.as_file().sync_all()?;
    aside.persist(file)?;
    std::fs::File::open(folder)?.sync_all()
}

fn moved(known: &str, wanted: &str) -> String {
    let what = match (known, wanted) {
        (NONE, wanted) => format!("account {wanted:?} has events with other references already"),
        (known, NONE) => {
            format!("plain references belong to account {known:?}, and the configuration gives them to none")
        }
        (known, wanted) => format!(
            "plain references belong to account {known:?}, and the configuration gives them to {wanted:?}"
        ),
    };
    let set = if known == NONE {
        "plain_refs = false for its sources"
    } else {
        "plain_refs = true for that account"
    };
    format!("sources: {what}; known events would be certified again, so set {set}")
}

/// Whether any of the sources has events.
async fn any(visa: &AuditVisa, sources: &[&str]) -> Result<bool, String> {
    for source in sources {
        let filter = Filter { source: Some((*source).to_owned()), limit: Some(1), ..Filter::default() };
        let found = visa.list(&filter).await.map_err(|cause| cause.to_string())?;
        if found.get("events").and_then(serde_json::Value::as_array).is_some_and(|events| !events.is_empty())
        {
            return Ok(true);
        }
    }
    Ok(false)
}
