//! Which account's references are plain, kept beside the events that are named by them and so in every
//! backup: if plain references moved to another account, known events would be looked up under new names
//! and be certified again. Not here: how a reference is made (`identity`), and who is configured.

use door::Failure;
use store::{Query, Row, Write, values};

use crate::intake::AuditVisa;

/// In front of the account, in the name of the mark. No account has an empty name: a mark without one says
/// that no references are plain.
const MARK: &str = "plain:";
/// The mark; `;` follows `:`.
const KEPT: &str = "select name from certify_marks where name like 'plain:%'";
/// The account that plain references belong to in fact. For events that were imported before the first start.
const NAMED: &str = "select scope from certify_events where ref = 'av_' || event_id limit 1";
/// $1 account: whether it has events that would be plain and are not.
const NAMED_OTHERWISE: &str = "select id from certify_events where scope = $1 and substr(event_id, 1, 4) = 'evt_' and ref <> 'av_' || event_id limit 1";

/// How a wanted account stands to the one on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// They agree, from now on if they didn't before.
    AsWanted,
    /// References are plain for this account, or for none, and events are named so.
    Elsewhere(Option<String>),
}

impl AuditVisa {
    /// Compares the account whose references shall be plain with the one on record, and records it where
    /// no event contradicts. Before the first event is named.
    ///
    /// # Errors
    /// The store's.
    pub async fn keep_plain(&self, account: Option<&str>) -> Result<Kept, Failure> {
        let wanted = account.unwrap_or_default().to_owned();
        let kept = || Query::new("plain.kept", KEPT, Vec::new());
        // At nearly every start this is all.
        if recorded(&self.door.store().query(kept()).await?)?.is_some_and(|known| known == wanted) {
            return Ok(Kept::AsWanted);
        }
        let reads = vec![
            kept(),
            Query::new("plain.named", NAMED, Vec::new()),
            Query::new("plain.named_otherwise", NAMED_OTHERWISE, values![&wanted]),
        ];
        let compared = self.door.maintain("plain.keep", reads, move |rows, now| {
            let mut rows = rows.into_iter();
            let mut next = || rows.next().unwrap_or_default();
            let (kept, named, otherwise) = (recorded(&next())?, next(), next());
            let named = named.first().map(|row| row.text(0).map(ToOwned::to_owned)).transpose()?;
            let known = kept.or(named).unwrap_or_default();
            if known != wanted && (!known.is_empty() || !otherwise.is_empty()) {
                return Ok((Vec::new(), Kept::Elsewhere(Some(known).filter(|known| !known.is_empty()))));
            }
            let clear = "delete from certify_marks where name like 'plain:%'";
            let keep = "insert into certify_marks (name, value, updated_at) values ($1, 1, $2)";
            let writes = vec![
                Write::any("plain.clear", clear, Vec::new()),
                Write::one("plain.keep", keep, values![format!("{MARK}{wanted}"), now]).numbered(),
            ];
            Ok((writes, Kept::AsWanted))
        });
        Ok(compared.await?.0)
    }
}

/// The account of the mark, if there is one.
fn recorded(rows: &[Row]) -> Result<Option<String>, store::Error> {
    let name = rows.first().map(|row| row.text(0)).transpose()?;
    Ok(name.and_then(|name| name.strip_prefix(MARK)).map(ToOwned::to_owned))
}
