//! Every check there is, by its id: pinned, so that one that is forgotten, renamed or left out is missed. Not here:
//! what a check does ([`super::checks`]).
//!
//! An id is `RULE.write.case@engine`: the injection, invariant or metric of the supply specification (sections 4, 6
//! and 8), the critical write it is tried on, and the case. Each belongs to one gate of section 22 of the domain's
//! specification.

use super::database::Engine;

/// The five critical writes (section 2.1), as they stand in ids.
pub const WRITES: [&str; 5] = ["mount", "publish", "batch_price", "withdraw", "cancel"];

/// A gate: the checks that a part of the product is let through by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// SUP-004: accounts.
    Accounts,
    /// SUP-005: packages.
    Packages,
    /// SUP-006: settlements.
    Settlements,
    /// SUP-007: the boundary of credentials, in figures.
    Boundary,
    /// SUP-008: what stands under all others.
    Whole,
    /// SEC-SUP-001: nothing with a credential leaves.
    Redaction,
    /// SEC-SUP-002: nothing with a credential comes in by an address.
    Ingress,
}

impl Group {
    /// All, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Accounts,
        Self::Packages,
        Self::Settlements,
        Self::Boundary,
        Self::Whole,
        Self::Redaction,
        Self::Ingress,
    ];

    /// Its id.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Accounts => "SUP-004",
            Self::Packages => "SUP-005",
            Self::Settlements => "SUP-006",
            Self::Boundary => "SUP-007",
            Self::Whole => "SUP-008",
            Self::Redaction => "SEC-SUP-001",
            Self::Ingress => "SEC-SUP-002",
        }
    }

    /// What it is about, in Chinese and English.
    #[must_use]
    pub const fn title(self) -> (&'static str, &'static str) {
        match self {
            Self::Accounts => ("供应账号", "Supply accounts"),
            Self::Packages => ("套餐与订单", "Packages"),
            Self::Settlements => ("结算与提现", "Settlements"),
            Self::Boundary => ("凭证边界指标", "Credential boundary, in figures"),
            Self::Whole => ("数据库、账本与总体", "Database, ledger and the whole"),
            Self::Redaction => ("错误、导出与日志脱敏", "Redaction of answers, exports and logs"),
            Self::Ingress => ("外部 query key 拒绝", "Credentials in addresses are refused"),
        }
    }
}

/// One check that must be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its id, with the engine.
    pub id: String,
    /// Where it belongs.
    pub group: Group,
}

/// The tables of a withdrawal, in the order of its writes: FI-001 breaks each.
pub const STEPS: [(&str, &str); 8] = [
    ("insert", "supply_settlements"),
    ("insert", "supply_settlement_items"),
    ("update", "supply_earnings"),
    ("insert", "billing_journals"),
    ("insert", "billing_ledger_entries"),
    ("update", "billing_accounts"),
    ("update", "supply_sms_codes"),
    ("insert", "outbox"),
];

/// Those on settlements.
const SETTLEMENTS: [&str; 22] = [
    "FI-001.withdraw.timeout",
    "FI-001.withdraw.lock",
    "FI-001.withdraw.commit",
    "FI-001.withdraw.hangup",
    "FI-006.withdraw",
    "FI-006.cancel",
    "FI-006.statement",
    "FI-006.dead",
    "FI-006.sms",
    "INV-SET-001.processing",
    "INV-SET-001.completed",
    "INV-SET-002",
    "INV-SET-003",
    "CON-SET-001",
    "CON-SET-002",
    "CON-KEY.withdraw",
    "CON-PAYOUT.cancel",
    "M-004",
    "M-005",
    "FI-004.refusal.withdraw",
    "FI-004.refusal.cancel",
    "LED-001",
];
const PACKAGES: [&str; 16] = [
    "FI-003.publish.race",
    "FI-003.publish.stale",
    "FI-003.publish.active",
    "FI-004.refusal.publish",
    "FI-004.refusal.batch_price",
    "FI-006.publish",
    "INV-PKG-001.publish",
    "INV-PKG-001.pause",
    "INV-PKG-001.unlist",
    "INV-PKG-002.unlisted",
    "INV-PKG-002.late",
    "INV-PKG-003.publish",
    "INV-PKG-003.batch_price",
    "CON-PKG-001",
    "CON-BATCH.crash",
    "CON-BATCH.partial",
];
const ACCOUNTS: [&str; 4] = ["FI-004.refusal.mount", "INV-ACC-001", "INV-ACC-002.owner", "INV-ACC-002.staff"];
const BOUNDARY: [&str; 4] = ["M-013", "M-014", "M-015", "M-016"];
const WHOLE: [&str; 9] = [
    "FI-004.count",
    "FI-005.join",
    "CAT.files",
    "CAT.again",
    "CAT.early",
    "CAT.indexes",
    "CAT.matrix",
    "CAT.record",
    "CAT.keys",
];
const REDACTION: [&str; 10] = [
    "FI-008.answer",
    "FI-008.fragment",
    "FI-008.error",
    "FI-008.audit",
    "FI-008.export",
    "FI-008.log",
    "FI-008.key",
    "FI-008.counted",
    "CANARY.planted",
    "CANARY.absent",
];
const INGRESS: [&str; 5] =
    ["FI-007.names", "FI-007.values", "FI-007.paths", "FI-007.lookalikes", "FI-007.counted"];

/// The gate of a critical write.
fn group_of(write: &str) -> Group {
    match write {
        "mount" => Group::Accounts,
        "publish" | "batch_price" => Group::Packages,
        _ => Group::Settlements,
    }
}

/// All checks on an engine, in the order of reports.
#[must_use]
pub fn all(engine: Engine) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |id: String, group| items.push(Item { id: format!("{id}@{engine}"), group });
    for (_, table) in STEPS {
        add(format!("FI-001.withdraw.{table}"), Group::Settlements);
    }
    for write in WRITES {
        let group = group_of(write);
        for state in ["processing", "succeeded", "failed"] {
            add(format!("FI-002.{write}.{state}"), group);
        }
        add(format!("FI-004.{write}"), group);
        add(format!("FI-005.{write}"), group);
        add(format!("HDR.{write}"), group);
    }
    let named: [(&[&str], Group); 7] = [
        (&ACCOUNTS, Group::Accounts),
        (&PACKAGES, Group::Packages),
        (&SETTLEMENTS, Group::Settlements),
        (&BOUNDARY, Group::Boundary),
        (&WHOLE, Group::Whole),
        (&REDACTION, Group::Redaction),
        (&INGRESS, Group::Ingress),
    ];
    for (ids, group) in named {
        for id in ids {
            add((*id).to_owned(), group);
        }
    }
    items.sort_by(|one, other| (one.group, &one.id).cmp(&(other.group, &other.id)));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_pinned_and_no_id_stands_in_it_twice() {
        let lines =
            |engine| all(engine).iter().map(|item| format!("{} {}", item.group.id(), item.id)).collect();
        let sqlite: Vec<String> = lines(Engine::Sqlite);
        let postgres: Vec<String> = lines(Engine::Postgres);
        assert_eq!(sqlite.len(), postgres.len());
        assert_eq!(sqlite.iter().collect::<std::collections::BTreeSet<_>>().len(), sqlite.len());
        insta::assert_snapshot!(sqlite.join("\n"));
    }

    #[test]
    fn each_injection_invariant_race_and_metric_has_a_check_and_each_gate_has_some() {
        let ids: Vec<String> = all(Engine::Sqlite).into_iter().map(|item| item.id).collect();
        let rules = [
            "FI-001",
            "FI-002",
            "FI-003",
            "FI-004",
            "FI-005",
            "FI-006",
            "FI-007",
            "FI-008",
            "INV-ACC-001",
            "INV-ACC-002",
            "INV-PKG-001",
            "INV-PKG-002",
            "INV-PKG-003",
            "INV-SET-001",
            "INV-SET-002",
            "INV-SET-003",
            "CON-SET-001",
            "CON-SET-002",
            "CON-PKG-001",
            "M-004",
            "M-005",
            "M-013",
            "M-014",
            "M-015",
            "M-016",
        ];
        for rule in rules {
            assert!(ids.iter().any(|id| id.starts_with(rule)), "{rule}");
        }
        for group in Group::ALL {
            assert!(all(Engine::Postgres).iter().any(|item| item.group == group), "{group:?}");
        }
    }
}
