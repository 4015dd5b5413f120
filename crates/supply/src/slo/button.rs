//! The buttons of section 18 with their objectives. Ids are those of the button specification: PKG-005 is the batch
//! price. A percentage is a number of millionths, so that no float stands in a promise.

use std::time::Duration;

/// Millionths of a whole: 99.9 % is 999,000.
pub type Millionths = u32;

/// All of it.
pub const WHOLE: Millionths = 1_000_000;

/// What a button's requests are promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Button {
    /// `BTN-SET-002`.
    pub id: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// The same in Chinese.
    pub name_zh: &'static str,
    /// HTTP method.
    pub method: &'static str,
    /// Path as it is routed.
    pub path: &'static str,
    /// `action` of its audit rows; reads are not audited and have none.
    pub action: Option<&'static str>,
    /// Least part of its requests that must not fail; its rest is the error budget of a month.
    pub success: Millionths,
    /// The time that 95 of 100 answers must not exceed.
    pub p95: Option<Duration>,
    /// Largest part that may be lost to a faster writer.
    pub conflicts: Option<Millionths>,
    /// Least part of its failed items that must be explained; its rest is the budget.
    pub explained: Option<Millionths>,
}

const fn write(
    [id, name, name_zh]: [&'static str; 3],
    (method, path): (&'static str, &'static str),
    action: &'static str,
    success: Millionths,
) -> Button {
    let (p95, conflicts, explained) = (None, None, None);
    Button { id, name, name_zh, method, path, action: Some(action), success, p95, conflicts, explained }
}

const fn read([id, name, name_zh]: [&'static str; 3], path: &'static str) -> Button {
    let p95 = Some(Duration::from_millis(300));
    let (method, action, conflicts, explained) = ("GET", None, None, None);
    Button { id, name, name_zh, method, path, action, success: USUAL, p95, conflicts, explained }
}

/// 99.5 %.
const USUAL: Millionths = 995_000;
/// 99.9 %.
const HIGH: Millionths = 999_000;

/// All of them. Section 18 fixes verify, mount, publish, batch price, withdraw and cancel; the others have its usual.
pub const BUTTONS: [Button; 17] = [
    Button {
        p95: Some(Duration::from_millis(800)),
        ..write(
            ["BTN-ACC-001", "verify", "立即验证"],
            ("POST", "/api/v1/supply/accounts/verify"),
            "supply.account.verify",
            HIGH,
        )
    },
    write(
        ["BTN-ACC-002", "mount", "提交挂载"],
        ("POST", "/api/v1/supply/accounts"),
        "supply.account.create",
        USUAL,
    ),
    write(
        ["BTN-ACC-003", "activate", "启用账号"],
        ("POST", "/api/v1/supply/accounts/{account_id}/activate"),
        "supply.account.activate",
        USUAL,
    ),
    write(
        ["BTN-ACC-004", "suspend", "暂停账号"],
        ("POST", "/api/v1/supply/accounts/{account_id}/suspend"),
        "supply.account.suspend",
        USUAL,
    ),
    write(
        ["BTN-ACC-005", "delete", "删除账号"],
        ("DELETE", "/api/v1/supply/accounts/{account_id}"),
        "supply.account.delete",
        USUAL,
    ),
    read(["BTN-ACC-006", "audit log", "查看审计日志"], "/api/v1/supply/accounts/{account_id}/audit-logs"),
    write(
        ["BTN-PKG-001", "draft", "保存草稿"],
        ("POST", "/api/v1/supply/packages/draft"),
        "supply.package.draft.save",
        USUAL,
    ),
    Button {
        conflicts: Some(3_000),
        ..write(
            ["BTN-PKG-002", "publish", "发布上架"],
            ("POST", "/api/v1/supply/packages/{package_id}/publish"),
            "supply.package.publish",
            USUAL,
        )
    },
    write(
        ["BTN-PKG-003", "pause", "暂停售卖"],
        ("POST", "/api/v1/supply/packages/{package_id}/pause"),
        "supply.package.pause",
        USUAL,
    ),
    write(
        ["BTN-PKG-004", "unlist", "下架"],
        ("POST", "/api/v1/supply/packages/{package_id}/unlist"),
        "supply.package.unlist",
        USUAL,
    ),
    // Section 18 promises its receipts alone, whole; that it answers is promised as of the others.
    Button {
        explained: Some(WHOLE),
        ..write(
            ["BTN-PKG-005", "batch price", "批量调价"],
            ("POST", "/api/v1/supply/packages/batch-price"),
            "supply.package.price.batch_update",
            USUAL,
        )
    },
    write(
        ["BTN-PKG-006", "clone", "克隆套餐"],
        ("POST", "/api/v1/supply/packages/{package_id}/clone"),
        "supply.package.clone",
        USUAL,
    ),
    read(["BTN-SET-001", "billing", "刷新账单"], "/api/v1/supply/billing"),
    Button {
        p95: Some(Duration::from_millis(1200)),
        ..write(
            ["BTN-SET-002", "withdraw", "发起提现"],
            ("POST", "/api/v1/supply/settlements/withdraw"),
            "supply.settlement.withdraw.create",
            HIGH,
        )
    },
    write(
        ["BTN-SET-003", "cancel", "撤销申请"],
        ("POST", "/api/v1/supply/settlements/{settlement_id}/cancel"),
        "supply.settlement.withdraw.cancel",
        HIGH,
    ),
    read(["BTN-SET-004", "statement", "导出结算单"], "/api/v1/supply/settlements/{settlement_id}/statement"),
    read(["BTN-SET-005", "earnings", "收益明细"], "/api/v1/supply/earnings/records"),
];

impl Button {
    /// Its number in [`BUTTONS`], by method and path as routed.
    #[must_use]
    pub fn of(method: &str, path: &str) -> Option<usize> {
        BUTTONS.iter().position(|button| button.path == path && button.method == method)
    }

    /// The part that may fail.
    #[must_use]
    pub const fn budget(&self) -> Millionths {
        WHOLE - self.success
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_routes_stand_once_and_the_six_of_the_specification_are_as_it_says() {
        let mut ids: Vec<_> = BUTTONS.iter().map(|button| button.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), BUTTONS.len());
        for (number, button) in BUTTONS.iter().enumerate() {
            assert_eq!(Button::of(button.method, button.path), Some(number), "{}", button.id);
        }
        let fixed = |id| {
            let button = BUTTONS.iter().find(|button| button.id == id).unwrap();
            (button.budget(), button.p95.map(|p95| p95.as_millis()), button.conflicts)
        };
        assert_eq!(fixed("BTN-ACC-001"), (1_000, Some(800), None));
        assert_eq!(fixed("BTN-ACC-002"), (5_000, None, None));
        assert_eq!(fixed("BTN-PKG-002"), (5_000, None, Some(3_000)));
        assert_eq!(fixed("BTN-SET-002"), (1_000, Some(1200), None));
        assert_eq!(fixed("BTN-SET-003"), (1_000, None, None));
        let explained: Vec<_> =
            BUTTONS.iter().filter_map(|button| Some((button.id, WHOLE - button.explained?))).collect();
        assert_eq!(explained, [("BTN-PKG-005", 0)], "its budget is 0");
    }
}
