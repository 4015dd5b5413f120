//! Plain references stay with their account: a configuration that would move them does not start. Not here:
//! where the account is kept (`certify::plain`).

use certify::AuditVisa;
use certify::plain::Kept;

/// Compares the configured account with the one on record, and records it at the first start.
///
/// # Errors
/// They differ, or the store can't be used.
pub async fn keep(account: Option<&str>, visa: &AuditVisa) -> Result<(), String> {
    match visa.keep_plain(account).await.map_err(|cause| cause.to_string())? {
        Kept::AsWanted => Ok(()),
        Kept::Elsewhere(known) => Err(moved(known.as_deref(), account)),
    }
}

fn moved(known: Option<&str>, wanted: Option<&str>) -> String {
    let wanted = wanted.map_or_else(|| "none".to_owned(), |account| format!("{account:?}"));
    let (what, set) = match known {
        None => (
            format!("account {wanted} has events with other references already"),
            "plain_refs = false for its sources",
        ),
        Some(known) => (
            format!(
                "plain references belong to account {known:?}, and the configuration gives them to {wanted}"
            ),
            "plain_refs = true for that account",
        ),
    };
    format!("sources: {what}; known events would be certified again, so set {set}")
}
