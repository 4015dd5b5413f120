//! Packages (sections 8.2, 8.3).

use auth::scope;
use supply::Code;

use super::form::{
    Answer, Body, CRITICAL, Example, Field, Kind, Least, Operation, PAGE, PAGE_SIZE, PROVIDERS, READ, Shape,
    UNITS, WRITE, may, must, or_null,
};

const STATUSES: Kind = Kind::Word(&["draft", "active", "paused", "sold_out", "expired"]);

const DRAFT: Shape = Shape {
    name: "PackageDraft",
    fields: &[
        must("supply_account_id", Kind::Whole(1, i64::MAX), "The mounted account, which may be pending."),
        must("model", Kind::Line(100), "Model, on the provider's list; no blank at either end."),
        must("total_quota", Kind::Quota(Least::Above), "Above 0, whole where the unit is token or request."),
        may("quota_unit", Kind::Word(UNITS), "Unit of the account; token where nothing is said."),
        must("price_per_1m_input", Kind::Price, "Of input tokens; a draft may be below the protected price."),
        must("price_per_1m_output", Kind::Price, "Of output tokens."),
        must("valid_days", Kind::Whole(1, 365), "Days from its first publication."),
        may("max_concurrent", Kind::Whole(1, 1000), "Calls at once; 10 where nothing is said."),
        may("rate_limit_rpm", Kind::Whole(1, 100_000), "Calls a minute; 60 where nothing is said."),
        may(
            "min_purchase",
            Kind::Quota(Least::Above),
            "Above 0, at most total_quota; 1 where nothing is said.",
        ),
    ],
};
const PRICES: Shape = Shape {
    name: "BatchPrice",
    fields: &[must(
        "items",
        Kind::List(
            &[
                must("package_id", Kind::Id, "Which package, each at most once."),
                must("price_per_1m_input", Kind::Offered, "Of input tokens."),
                must("price_per_1m_output", Kind::Offered, "Of output tokens."),
            ],
            1,
            200,
        ),
        "1 to 200. A price that is negative, too large or too fine fails its own item (SUP_PKG_4004), not the batch.",
    )],
};

const ID: Field = must("package_id", Kind::Id, "Its id.");
const STATUS: Field = must("status", STATUSES, "Where it stands.");
const VERSION: Field = must("version", Kind::Whole(0, i64::MAX), "Raised by every change.");
const START: Field = or_null("start_at", Kind::Instant, "First publication.");
const END: Field = or_null("end_at", Kind::Instant, "End of validity.");
const UPDATED: Field = must("updated_at", Kind::Instant, "When it was changed.");
const FROZEN: Field = must("platform_frozen", Kind::Flag, "A freeze by the platform.");

const MOVED: Shape = Shape { name: "PackageState", fields: &[ID, STATUS, VERSION, START, END, UPDATED] };
const FREEZE: Shape = Shape { name: "PackageFreeze", fields: &[ID, STATUS, FROZEN, VERSION, UPDATED] };
/// What freezing answers, which is the platform's.
pub(super) const PACKAGE_FREEZE: Answer = Answer::Data(200, FREEZE);
const PACKAGE: Shape = Shape {
    name: "Package",
    fields: &[
        ID,
        must("supply_account_id", Kind::Id, "The mounted account, never the supplier."),
        must("user_id", Kind::Id, "The supplier's principal."),
        must("platform", Kind::Word(PROVIDERS), "Provider."),
        must("model", Kind::Said, "Model."),
        must("quota_unit", Kind::Word(UNITS), "Unit of the quotas."),
        must("total_quota", Kind::Exact, "Available, reserved and sold together."),
        must("available_quota", Kind::Exact, "May still be bought."),
        must("sold_quota", Kind::Exact, "In orders that are paid."),
        must("reserved_quota", Kind::Exact, "In orders that are not."),
        must("price_per_1m_input", Kind::Exact, "Major units per 1,000,000 input tokens."),
        must("price_per_1m_output", Kind::Exact, "Major units per 1,000,000 output tokens."),
        must("price_unit", Kind::Word(&["per_1m_tokens"]), "What a price is for."),
        must("currency_code", Kind::Currency, "Of the prices."),
        must("min_purchase", Kind::Exact, "Least that may be bought."),
        must("valid_days", Kind::Whole(1, 365), "Days from its first publication."),
        START,
        END,
        STATUS,
        or_null("close_reason", Kind::Word(&["unlisted", "validity_ended"]), "Why it expired."),
        FROZEN,
        must("max_concurrent", Kind::Whole(1, 1000), "Calls at once."),
        must("rate_limit_rpm", Kind::Whole(1, 100_000), "Calls a minute."),
        or_null("cloned_from_id", Kind::Id, "What it was cloned from."),
        VERSION,
        must("created_at", Kind::Instant, "When it was made."),
        UPDATED,
    ],
};
const RECEIPT: Shape = Shape {
    name: "BatchReceipt",
    fields: &[
        must("batch_id", Kind::Said, "Its id."),
        must("total", Kind::Whole(1, 200), "Items of the request."),
        must("success_count", Kind::Whole(0, 200), "Items that have their new price."),
        must("failed_count", Kind::Whole(0, 200), "Items that have not."),
        must(
            "failures",
            Kind::Rows(&[
                must("package_id", Kind::Id, "Which package."),
                must(
                    "error_code",
                    Kind::Word(&[
                        "SUP_PKG_4001",
                        "SUP_PKG_4004",
                        "SUP_PKG_4005",
                        "SUP_PKG_4041",
                        "SUP_PKG_4091",
                        "SUP_PKG_4093",
                    ]),
                    "Why.",
                ),
                must("message", Kind::Said, "The code's fixed text."),
                must("message_zh", Kind::Said, "The same in Chinese."),
            ]),
            "In the order of the request.",
        ),
    ],
};

const WRITES: &[&str] = &[scope::PACKAGE_WRITE];
const READS: &[&str] = &[scope::PACKAGE_READ];
const OFFLINE: &[&str] = &[scope::PACKAGE_OFFLINE];
const LEAVING: &[Code] =
    &[Code::PkgMissing, Code::PkgState, Code::PkgSoldOut, Code::PkgLocked, Code::SetBlocked];

/// Sections 8.2 and 8.3.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "savePackageDraft",
        path: "/api/v1/supply/packages/draft",
        summary: "Save a new draft",
        summary_zh: "保存套餐草稿",
        scopes: WRITES,
        body: Body::Fields(DRAFT),
        answer: Answer::Data(201, PACKAGE),
        codes: &[Code::ComField, Code::PkgPrice, Code::PkgModel, Code::AccMissing, Code::SetBlocked],
        ..WRITE
    },
    Operation {
        id: "editPackageDraft",
        method: "put",
        path: "/api/v1/supply/packages/{package_id}/draft",
        summary: "Replace the fields of a draft",
        summary_zh: "修改套餐草稿",
        scopes: WRITES,
        body: Body::Fields(DRAFT),
        answer: Answer::Data(200, PACKAGE),
        codes: &[
            Code::ComField,
            Code::PkgPrice,
            Code::PkgModel,
            Code::PkgMissing,
            Code::AccMissing,
            Code::PkgState,
            Code::SetBlocked,
        ],
        ..WRITE
    },
    Operation {
        id: "publishPackage",
        path: "/api/v1/supply/packages/{package_id}/publish",
        summary: "Publish a draft, or resume a paused package",
        summary_zh: "发布套餐",
        about: "INV-PKG-001, INV-PKG-002 and INV-PKG-003 are judged here.",
        scopes: &[scope::PACKAGE_PUBLISH],
        answer: Answer::Data(200, MOVED),
        codes: &[
            Code::PkgMissing,
            Code::PkgState,
            Code::PkgSoldOut,
            Code::PkgExpired,
            Code::PkgAccount,
            Code::PkgModel,
            Code::PkgFloor,
            Code::PkgQuota,
            Code::PkgLocked,
            Code::SetBlocked,
        ],
        example: Some(Example {
            request: None,
            data: r#"{"package_id":17,"status":"active","version":1,"start_at":"2026-03-27T02:03:04.123Z","end_at":"2026-04-26T02:03:04.123Z","updated_at":"2026-03-27T02:03:04.123Z"}"#,
        }),
        ..CRITICAL
    },
    Operation {
        id: "pausePackage",
        path: "/api/v1/supply/packages/{package_id}/pause",
        summary: "Pause an active package",
        summary_zh: "暂停套餐",
        scopes: OFFLINE,
        answer: Answer::Data(200, MOVED),
        codes: LEAVING,
        ..WRITE
    },
    Operation {
        id: "unlistPackage",
        path: "/api/v1/supply/packages/{package_id}/unlist",
        summary: "Take an active or paused package off for good",
        summary_zh: "下架套餐",
        scopes: OFFLINE,
        answer: Answer::Data(200, MOVED),
        codes: LEAVING,
        ..WRITE
    },
    Operation {
        id: "clonePackage",
        path: "/api/v1/supply/packages/{package_id}/clone",
        summary: "Make a new draft of a package",
        summary_zh: "克隆套餐",
        scopes: WRITES,
        answer: Answer::Data(201, PACKAGE),
        codes: &[Code::PkgMissing, Code::SetBlocked],
        ..WRITE
    },
    Operation {
        id: "batchPrice",
        path: "/api/v1/supply/packages/batch-price",
        summary: "Set the prices of up to 200 packages",
        summary_zh: "批量调价",
        about: "Each item succeeds or fails by itself; the answer is 200 even when all of them failed.",
        scopes: WRITES,
        body: Body::Fields(PRICES),
        answer: Answer::Data(200, RECEIPT),
        codes: &[Code::ComField, Code::SetBlocked],
        example: Some(Example {
            request: Some(
                r#"{"items":[{"package_id":17,"price_per_1m_input":8.5,"price_per_1m_output":32},{"package_id":18,"price_per_1m_input":0.01,"price_per_1m_output":32},{"package_id":99,"price_per_1m_input":9,"price_per_1m_output":33}]}"#,
            ),
            data: r#"{"batch_id":"5","total":3,"success_count":1,"failed_count":2,"failures":[{"package_id":18,"error_code":"SUP_PKG_4001","message":"…","message_zh":"…"},{"package_id":99,"error_code":"SUP_PKG_4041","message":"…","message_zh":"…"}]}"#,
        }),
        ..CRITICAL
    },
    Operation {
        id: "listPackages",
        path: "/api/v1/supply/packages",
        summary: "List the tenant's packages, the newest first",
        summary_zh: "套餐列表",
        scopes: READS,
        query: &[
            PAGE,
            PAGE_SIZE,
            may("status", STATUSES, "Only in this state."),
            may("provider", Kind::Word(PROVIDERS), "Only of this provider."),
        ],
        answer: Answer::Page(PACKAGE),
        ..READ
    },
    Operation {
        id: "getPackage",
        path: "/api/v1/supply/packages/{package_id}",
        summary: "Read one package",
        summary_zh: "套餐详情",
        scopes: READS,
        answer: Answer::Data(200, PACKAGE),
        codes: &[Code::PkgMissing],
        ..READ
    },
];
