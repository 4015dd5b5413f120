//! Accounts and their audit (sections 8.1, 8.5).

use auth::scope;
use supply::Code;

use super::form::{
    Answer, Body, CRITICAL, Example, Field, Kind, Least, Operation, PAGE, PAGE_SIZE, PROVIDERS, READ, Shape,
    UNITS, WRITE, may, must, or_null,
};

const STATUSES: Kind = Kind::Word(&["pending", "active", "suspended", "disabled"]);
const TYPES: Kind = Kind::Word(&["api_key", "oauth"]);
const CREDENTIAL: Field = must(
    "credential_input",
    Kind::Secret(8, 4096),
    "The credential. Goes in only: no answer, log or audit has it; which form it has is the provider's.",
);
const THRESHOLD: Field =
    may("min_quota_threshold", Kind::Quota(Least::Zero), "Alert when the available quota falls below it.");
const PROVIDER: Field = must("provider", Kind::Word(PROVIDERS), "Whose account it is.");
const ACCOUNT_TYPE: Field = must("account_type", TYPES, "Kind of credential.");

const VERIFY: Shape =
    Shape { name: "VerifyAccount", fields: &[PROVIDER, ACCOUNT_TYPE, CREDENTIAL, THRESHOLD] };
const CREATE: Shape = Shape {
    name: "CreateAccount",
    fields: &[
        PROVIDER,
        ACCOUNT_TYPE,
        CREDENTIAL,
        may(
            "account_alias",
            Kind::Padded(100),
            "A name for it: 1 to 100 characters after trimming, no control characters, nothing that looks like a credential.",
        ),
        THRESHOLD,
        must("risk_ack", Kind::Agreed, "The risk agreement is accepted; else SUP_ACC_4004."),
    ],
};
const ROTATE: Shape = Shape { name: "RotateCredential", fields: &[CREDENTIAL] };

const LOOK_UP: Shape = Shape {
    name: "LookUpOperation",
    fields: &[
        must("path", Kind::Path, "Path that it was sent to: `/api/v1/supply/packages/17/publish`."),
        must("idempotency_key", Kind::Key, "Its key, as it stood in the header."),
    ],
};
const OPERATION: Shape = Shape {
    name: "Operation",
    fields: &[
        must(
            "state",
            Kind::Word(&["processing", "succeeded", "failed"]),
            "`failed` with a response_code is a refusal for good; without one the same request may be sent again.",
        ),
        may("original_request_id", Kind::Said, "The attempt that its state came of."),
        may("response_code", Kind::Whole(200, 599), "Status of the answer that stands."),
        may("retry_after_ms", Kind::Whole(0, i64::MAX), "When to ask again, while it is processing."),
        may("expires_at", Kind::Instant, "When its key is free again."),
    ],
};

const VERIFIED: Shape = Shape {
    name: "Verification",
    fields: &[
        must(
            "verify_status",
            Kind::Word(&["pass", "review_required", "reject"]),
            "What mounting it would come to.",
        ),
        must("available_quota", Kind::Exact, "What the provider says there is."),
        must("risk_score", Kind::Whole(0, 100), "Above 80 is rejected, 60 to 80 is reviewed."),
        must(
            "check_items",
            Kind::Rows(&[
                must(
                    "item",
                    Kind::Word(&[
                        "credential_format",
                        "provider_connectivity",
                        "quota_availability",
                        "tos",
                        "risk",
                    ]),
                    "What was checked.",
                ),
                must("result", Kind::Word(&["pass", "fail", "warn"]), "How it ended."),
                must("message", Kind::Said, "A fixed text."),
            ]),
            "One for each check.",
        ),
    ],
};

const ID: Field = must("account_id", Kind::Id, "Its id.");
const KEY_ID: Field =
    must("key_id", Kind::Said, "`ck_` and 22 random characters; no part of the secret is in it.");
const STATUS: Field = must("status", STATUSES, "Where it stands.");
const VERSION: Field = must("version", Kind::Whole(0, i64::MAX), "Raised by every change.");
const CREATED: Field = must("created_at", Kind::Instant, "When it was mounted.");
const UPDATED: Field = must("updated_at", Kind::Instant, "When it was changed.");
const ALIAS: Field = or_null("account_alias", Kind::Said, "Its name.");
const AVAILABLE: Field = must("available_quota", Kind::Exact, "Not committed to packages.");
const UNIT: Field = must("quota_unit", Kind::Word(UNITS), "Unit of the quotas.");
const SCORE: Field = must("risk_score", Kind::Whole(0, 100), "0 to 100.");
const IS_VERIFIED: Field = must("is_verified", Kind::Flag, "Whether the last verification passed.");

const MOUNTED: Shape = Shape {
    name: "MountedAccount",
    fields: &[
        ID,
        PROVIDER,
        ACCOUNT_TYPE,
        ALIAS,
        KEY_ID,
        STATUS,
        AVAILABLE,
        UNIT,
        SCORE,
        IS_VERIFIED,
        VERSION,
        CREATED,
    ],
};
const MOVED: Shape = Shape { name: "AccountState", fields: &[ID, STATUS, VERSION, UPDATED] };
/// What moving an account answers; also for the platform's disabling.
pub(super) const ACCOUNT_STATE: Answer = Answer::Data(200, MOVED);
const ROTATED: Shape = Shape {
    name: "RotatedCredential",
    fields: &[
        ID,
        KEY_ID,
        STATUS,
        VERSION,
        must("last_rotation_at", Kind::Instant, "When it was replaced."),
        UPDATED,
    ],
};
const ACCOUNT: Shape = Shape {
    name: "Account",
    fields: &[
        ID,
        PROVIDER,
        ACCOUNT_TYPE,
        ALIAS,
        KEY_ID,
        STATUS,
        must("risk_level", Kind::Word(&["low", "normal", "high"]), "The score in words."),
        SCORE,
        UNIT,
        must("total_quota", Kind::Exact, "What the provider said there is."),
        AVAILABLE,
        must("frozen_quota", Kind::Exact, "Committed to packages."),
        or_null("min_quota_threshold", Kind::Exact, "Alert below it."),
        IS_VERIFIED,
        or_null("verified_at", Kind::Instant, "When it passed."),
        or_null("last_check_at", Kind::Instant, "When the provider was asked last."),
        must("tos_compliant", Kind::Flag, "Whether the provider's terms allow it."),
        must("is_frozen", Kind::Flag, "A freeze by the platform."),
        must("total_requests", Kind::Whole(0, i64::MAX), "Calls of its orders."),
        must("total_tokens", Kind::Whole(0, i64::MAX), "Tokens of these calls."),
        must("total_cost", Kind::Exact, "What they were charged."),
        must("total_cost_minor", Kind::Minor, "The same."),
        must("currency_code", Kind::Currency, "Of the cost."),
        must("success_rate", Kind::Exact, "How many of a hundred went well, cut to two decimals."),
        VERSION,
        CREATED,
        UPDATED,
    ],
};

pub(super) const EVENT: Shape = Shape {
    name: "AuditEvent",
    fields: &[
        must("event_id", Kind::Uuid, "Its id."),
        must("event_name", Kind::Said, "`supply.account.create`."),
        must("operator_id", Kind::Whole(0, i64::MAX), "Who acted."),
        must("tenant_id", Kind::Id, "Whose object."),
        must("object_type", Kind::Said, "Kind of object."),
        must("object_id", Kind::Said, "Which object."),
        must("action", Kind::Said, "What was attempted."),
        must("result_code", Kind::Said, "`OK` or a code."),
        or_null("rule_code", Kind::Said, "The invariant, where one was violated."),
        must("before_state", Kind::State, "State before."),
        must("after_state", Kind::State, "State after."),
        must("request_id", Kind::Said, "The request."),
        must("created_at", Kind::Instant, "When."),
    ],
};

const WRITES: &[&str] = &[scope::ACCOUNT_WRITE];
const READS: &[&str] = &[scope::ACCOUNT_READ];

/// Sections 8.1 and 8.5.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "verifyAccount",
        path: "/api/v1/supply/accounts/verify",
        summary: "Check a credential without mounting it",
        summary_zh: "验证上游凭证（不挂载）",
        about: "Nothing is kept but the audit. At most 10 a minute for each operator.",
        scopes: WRITES,
        body: Body::Fields(VERIFY),
        answer: Answer::Data(200, VERIFIED),
        codes: &[Code::AccFormat, Code::AccRefused, Code::AccTos, Code::AccUnreachable],
        ..WRITE
    },
    Operation {
        id: "createAccount",
        path: "/api/v1/supply/accounts",
        summary: "Mount an upstream account",
        summary_zh: "挂载供应账号",
        about: "The credential is verified again by the server. What needs a review is mounted with is_verified false.",
        scopes: WRITES,
        body: Body::Fields(CREATE),
        answer: Answer::Data(201, MOUNTED),
        codes: &[
            Code::AccFormat,
            Code::AccRefused,
            Code::AccTos,
            Code::AccRiskAck,
            Code::AccMounted,
            Code::ComMissing,
            Code::AccUnreachable,
            Code::SetBlocked,
        ],
        example: Some(Example {
            request: Some(
                r#"{"provider":"openai","account_type":"api_key","credential_input":"<secret>","account_alias":"spare-1","min_quota_threshold":1000,"risk_ack":true}"#,
            ),
            data: r#"{"account_id":7,"provider":"openai","account_type":"api_key","account_alias":"spare-1","key_id":"ck_…","status":"pending","available_quota":5000000,"quota_unit":"token","risk_score":10,"is_verified":true,"version":0,"created_at":"2026-03-27T02:03:04.123Z"}"#,
        }),
        ..CRITICAL
    },
    Operation {
        id: "listAccounts",
        path: "/api/v1/supply/accounts",
        summary: "List the tenant's accounts, the newest first",
        summary_zh: "供应账号列表",
        scopes: READS,
        query: &[
            PAGE,
            PAGE_SIZE,
            may("status", STATUSES, "Only in this state."),
            may("provider", Kind::Word(PROVIDERS), "Only of this provider."),
        ],
        answer: Answer::Page(ACCOUNT),
        ..READ
    },
    Operation {
        id: "getAccount",
        path: "/api/v1/supply/accounts/{account_id}",
        summary: "Read one account",
        summary_zh: "供应账号详情",
        scopes: READS,
        answer: Answer::Data(200, ACCOUNT),
        codes: &[Code::AccMissing],
        ..READ
    },
    Operation {
        id: "activateAccount",
        path: "/api/v1/supply/accounts/{account_id}/activate",
        summary: "Activate a pending or suspended account",
        summary_zh: "启用供应账号",
        about: "A disabled account is restored by an administrator only (INV-ACC-002).",
        scopes: &[scope::ACCOUNT_WRITE, scope::PLATFORM_RISK],
        answer: ACCOUNT_STATE,
        codes: &[Code::AccMissing, Code::AccDisabled, Code::AccState, Code::AccGuard, Code::SetBlocked],
        ..WRITE
    },
    Operation {
        id: "suspendAccount",
        path: "/api/v1/supply/accounts/{account_id}/suspend",
        summary: "Suspend an active account",
        summary_zh: "暂停供应账号",
        scopes: WRITES,
        answer: ACCOUNT_STATE,
        codes: &[Code::AccMissing, Code::AccState, Code::AccRiskCase, Code::SetBlocked],
        ..WRITE
    },
    Operation {
        id: "deleteAccount",
        method: "delete",
        path: "/api/v1/supply/accounts/{account_id}",
        summary: "Delete an account that is not active",
        summary_zh: "删除供应账号",
        about: "Success has no body; the request's id is in the header. An active account is not deleted (INV-ACC-001).",
        scopes: WRITES,
        answer: Answer::Nothing,
        codes: &[Code::AccMissing, Code::AccState, Code::AccActive, Code::AccBlocked, Code::SetBlocked],
        ..WRITE
    },
    Operation {
        id: "rotateCredential",
        path: "/api/v1/supply/accounts/{account_id}/rotate-credential",
        summary: "Replace a mounted credential",
        summary_zh: "轮换上游凭证",
        about: "The new credential is verified first; until it stands, the old one stays. What the check says replaces what the old one's said, quota and risk included. An active account takes only one that passes: suspend it for one that needs a review.",
        scopes: &[scope::CREDENTIAL_MANAGE],
        body: Body::Fields(ROTATE),
        answer: Answer::Data(200, ROTATED),
        codes: &[
            Code::AccFormat,
            Code::AccRefused,
            Code::AccTos,
            Code::AccMissing,
            Code::AccState,
            Code::AccMounted,
            Code::AccGuard,
            Code::AccUnreachable,
            Code::SetBlocked,
        ],
        ..WRITE
    },
    Operation {
        id: "listAccountAuditLogs",
        path: "/api/v1/supply/accounts/{account_id}/audit-logs",
        summary: "List the audit events of one account, the newest first",
        summary_zh: "账号审计日志",
        scopes: &[scope::SUPPLY_AUDIT_READ],
        query: &[PAGE, PAGE_SIZE],
        answer: Answer::Page(EVENT),
        codes: &[Code::AccMissing],
        ..READ
    },
    Operation {
        id: "getAuditEvent",
        path: "/api/v1/audit/events/{event_id}",
        summary: "Read one audit event",
        summary_zh: "审计事件详情",
        about: "Another tenant's event is not found; the platform's staff see all of them.",
        scopes: &[scope::SUPPLY_AUDIT_READ, scope::PLATFORM_AUDIT_READ],
        answer: Answer::Data(200, EVENT),
        codes: &[Code::ComMissing],
        ..READ
    },
    Operation {
        id: "lookUpOperation",
        path: "/api/v1/supply/operations/look-up",
        summary: "Look an operation up by its key",
        summary_zh: "按幂等键查询操作",
        about: "Only what the caller sent itself. Nothing stands under a key until the operation's commit, except of those that ask a provider or work in slices. The result itself comes with the same request again.",
        scopes: &[scope::SUPPLY_AUDIT_READ, scope::PLATFORM_AUDIT_READ],
        body: Body::Fields(LOOK_UP),
        answer: Answer::Data(200, OPERATION),
        codes: &[Code::ComMissing],
        ..WRITE
    },
];
