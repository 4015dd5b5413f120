//! Section 7.4: what stands under a key.

use std::collections::BTreeMap;

use crate::ledger::command::{Command, Sent, Told};

const HOUR: i64 = 3_600_000_000;

/// How long the answer to this command stands, in microseconds: longer where money leaves.
pub(in crate::ledger) fn life(kind: &str) -> i64 {
    if matches!(kind, "withdraw" | "cancel") { 72 * HOUR } else { 24 * HOUR }
}

#[derive(Debug)]
struct Kept {
    command: Command,
    told: Told,
    expires: i64,
}

/// Answers by key.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<String, Kept>);

/// 429 and 5xx leave the key open, and so does whoever was outrun although the state would still allow it.
fn is_passing(told: &Told) -> bool {
    let is_outrun = || told.json().pointer("/error/details/retryable") == Some(&true.into());
    told.code == 429 || told.code >= 500 || is_outrun()
}

impl Keys {
    /// Whether the answer was one that stood there: then it must be that one.
    pub(super) fn stands(&self, sent: &Sent, at: i64) -> Result<bool, String> {
        let kept = self.0.get(&sent.command.key).filter(|kept| kept.expires > at);
        let kept = kept.filter(|kept| sent.command.by.keys() && !is_passing(&kept.told));
        match (kept, sent.told.replayed) {
            (None, false) => Ok(false),
            (None, true) => Err("a repeat of nothing that stands".into()),
            (Some(kept), false) => Err(format!("its key's answer stands: {:?}", kept.told)),
            (Some(kept), true) => {
                let same = kept.command == sent.command;
                if same != sent.told.same {
                    return Err(format!("its key's command is {:?}", kept.command));
                }
                // A store may keep JSON as a value, without the order of its names.
                if (kept.told.code, kept.told.json()) != (sent.told.code, sent.told.json()) {
                    return Err(format!("must be the answer of before: {:?}", kept.told));
                }
                Ok(true)
            }
        }
    }

    /// A first answer under its key.
    pub(super) fn keep(&mut self, sent: &Sent, at: i64) {
        let expires = at + life(sent.command.what.kind());
        let kept = Kept { command: sent.command.clone(), told: sent.told.clone(), expires };
        self.0.insert(sent.command.key.clone(), kept);
    }
}
