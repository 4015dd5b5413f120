//! Billing requests, billing conflicts: which rows of the audit they are. Section 19 counts M-004 and M-005 over them.

use crate::code::{Code, Invariant};

/// `action` of every command that moves money, and of those that decide whether it is moved.
pub(super) const MONEY: [&str; 15] = [
    "platform.buyer.top_up",
    "supply.earning.bonus",
    "supply.earning.compensate",
    "supply.earning.release",
    "supply.order.close",
    "supply.order.pay",
    "supply.order.refund",
    USE,
    "supply.settlement.payout.complete",
    "supply.settlement.payout.fail",
    "supply.settlement.payout.return",
    "supply.settlement.payout.start",
    "supply.settlement.risk_reject",
    CANCEL,
    WITHDRAW,
];
const WITHDRAW: &str = "supply.settlement.withdraw.create";
const CANCEL: &str = "supply.settlement.withdraw.cancel";
const USE: &str = "supply.order.use";

/// Names as SQL lists them.
pub(super) fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(", ")
}

/// A condition on billing requests. What was refused before the door moved no money; what the system was refused it asked
/// for beside another server that was faster: nobody's request, unless the ledger itself did not balance.
pub(super) fn asked() -> String {
    format!(
        "event_name not in ('invariant_violation', 'supply.write.refused', 'token.authz.denied') and action in ({})
         and (operator_type <> 'system' or result_code = 'OK' or rule_code = '{}')",
        listed(&MONEY),
        Invariant::Set003.as_str()
    )
}

/// A condition on billing conflicts: other payloads under a key of withdraw, cancel and usage, and another report of a
/// call that is on record (section 5.5), whatever key it came with.
pub(super) fn conflicts() -> String {
    format!(
        "((event_name = 'idempotency.payload_mismatch' and action in ({}))
          or (event_name = '{USE}' and result_code = '{}'))",
        listed(&[WITHDRAW, CANCEL, USE]),
        Code::ComUsage.as_str()
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let within = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
        entries.flat_map(within).filter(|path| !path.ends_with("tests.rs")).collect()
    }

    /// Names that a file's commands are audited under.
    fn names(path: &Path) -> BTreeSet<String> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let quoted = |part: &str| part.split('"').nth(1).map(str::to_owned);
        let events =
            text.split("fn event(&self) -> &'static str {").skip(1).filter_map(|rest| rest.split('}').next());
        let fixed =
            text.split("const EVENT: &'static str =").skip(1).filter_map(|rest| rest.split(';').next());
        events.chain(fixed).filter_map(quoted).collect()
    }

    #[test]
    fn every_command_that_posts_a_journal_is_a_billing_request_and_every_name_is_a_command() {
        let (mut all, mut posting, mut files) = (BTreeSet::new(), BTreeSet::new(), 0);
        for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
            let own = names(&path);
            all.extend(own.clone());
            let text = std::fs::read_to_string(&path).unwrap();
            // The brackets keep this file from being one of them.
            if text.lines().any(|line| line.contains(concat!("posting", "::")) && line.contains('(')) {
                files += 1;
                let command = path.parent().unwrap().with_extension("rs");
                let own = if own.is_empty() { names(&command) } else { own };
                assert!(!own.is_empty(), "{} posts a journal under no name", path.display());
                posting.extend(own);
            }
        }
        let money: BTreeSet<String> = MONEY.into_iter().map(str::to_owned).collect();
        let absent: Vec<_> = posting.difference(&money).collect();
        assert!(absent.is_empty(), "not counted: {absent:?}");
        let unknown: Vec<_> = money.difference(&all).collect();
        assert!(unknown.is_empty(), "no command is called {unknown:?}");
        assert!(files > 12 && money.len() == MONEY.len(), "{files} files post journals");
    }
}
