//! What the platform's risk control decides of accounts, packages and suppliers (sections 6.1, 8.5, 12).

use auth::scope;
use supply::Code;

use super::accounts::ACCOUNT_STATE;
use super::form::{Answer, Body, Field, Kind, Least, Operation, Shape, WRITE, may, must};
use super::packages::PACKAGE_FREEZE;

const NAME: Kind = Kind::Line(100);
const RISK: &[&str] = &[scope::PLATFORM_RISK];
const UPDATED: Field = must("updated_at", Kind::Instant, "When it was changed.");
const VERSION: Field = must("version", Kind::Whole(0, i64::MAX), "Raised by every change.");

/// Why; also of a rejected withdrawal.
pub(super) const REASON: Shape =
    Shape { name: "Reason", fields: &[must("reason", NAME, "Why; credentials in it are masked.")] };
const DISABLE: Shape = Shape {
    name: "DisableAccount",
    fields: &[
        must("reason", NAME, "Why; credentials in it are masked."),
        may(
            "compromised",
            Kind::Flag,
            "The credential got out: nothing of it is kept but what refuses to mount it again, and the account is not restored.",
        ),
    ],
};
const REVIEW: Shape = Shape {
    name: "ReviewAccount",
    fields: &[
        must("decision", Kind::Word(&["accept", "reject"]), "Whether its owner may activate it."),
        must("reason", NAME, "Why; credentials in it are masked."),
        may(
            "available_quota",
            Kind::Quota(Least::Zero),
            "What packages may still commit, in the account's unit, where the provider could not tell; with accept only.",
        ),
    ],
};
const STANDING: Shape = Shape {
    name: "SupplierStanding",
    fields: &[
        must("supplier_id", Kind::Id, "Its row."),
        must("tenant_id", Kind::Id, "Its tenant."),
        must("user_id", Kind::Id, "Its principal."),
        must("status", Kind::Word(&["active", "suspended", "closed"]), "Where it stands."),
        must("open_risk_cases", Kind::Whole(0, i64::MAX), "Risk cases that are not closed."),
        VERSION,
        UPDATED,
    ],
};

/// What is done to a supplier: same scope, same answer.
const MEASURE: Operation = Operation {
    scopes: RISK,
    body: Body::Fields(REASON),
    answer: Answer::Data(200, STANDING),
    codes: &[Code::ComMissing, Code::ComState],
    ..WRITE
};

/// Sections 6.1, 8.5 and 12.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "disableAccount",
        path: "/api/v1/platform/supply/accounts/{id}/disable",
        summary: "Disable an account of any tenant",
        summary_zh: "平台禁用供应账号",
        scopes: RISK,
        body: Body::Fields(DISABLE),
        answer: ACCOUNT_STATE,
        codes: &[Code::AccMissing, Code::AccState],
        ..WRITE
    },
    Operation {
        id: "reviewAccount",
        path: "/api/v1/platform/supply/accounts/{id}/review",
        summary: "Decide on an account whose verification asked for a review",
        summary_zh: "平台审核供应账号",
        about: "A pending or suspended account with is_verified false. Rejected, it is disabled, and its credential with it.",
        scopes: RISK,
        body: Body::Fields(REVIEW),
        answer: ACCOUNT_STATE,
        codes: &[Code::ComField, Code::AccMissing, Code::AccState],
        ..WRITE
    },
    Operation {
        id: "freezePackage",
        path: "/api/v1/platform/supply/packages/{id}/freeze",
        summary: "Freeze a package; an active one is paused",
        summary_zh: "平台冻结套餐",
        scopes: RISK,
        answer: PACKAGE_FREEZE,
        codes: &[Code::PkgMissing, Code::PkgState],
        ..WRITE
    },
    Operation {
        id: "unfreezePackage",
        path: "/api/v1/platform/supply/packages/{id}/unfreeze",
        summary: "Lift a freeze",
        summary_zh: "平台解冻套餐",
        scopes: RISK,
        answer: PACKAGE_FREEZE,
        codes: &[Code::PkgMissing, Code::PkgState],
        ..WRITE
    },
    Operation {
        id: "suspendSupplier",
        path: "/api/v1/platform/suppliers/{id}/suspend",
        summary: "Suspend a supplier",
        summary_zh: "暂停供应方",
        about: "Its writes are refused with SUP_SET_4095 and none of its payouts starts; it reads as before.",
        ..MEASURE
    },
    Operation {
        id: "resumeSupplier",
        path: "/api/v1/platform/suppliers/{id}/resume",
        summary: "Let a suspended supplier go on",
        summary_zh: "恢复供应方",
        ..MEASURE
    },
    Operation {
        id: "openRiskCase",
        path: "/api/v1/platform/suppliers/{id}/risk-cases",
        summary: "Open a risk case",
        summary_zh: "登记风险单",
        about: "While one is open, the supplier withdraws nothing, no payout starts and no account is suspended by its owner.",
        ..MEASURE
    },
    Operation {
        id: "closeRiskCase",
        path: "/api/v1/platform/suppliers/{id}/risk-cases/close",
        summary: "Close one of the open risk cases",
        summary_zh: "结清风险单",
        ..MEASURE
    },
];
