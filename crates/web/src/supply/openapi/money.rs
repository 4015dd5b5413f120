//! Money of a supplier: withdrawals, billing, earnings, settlements (section 8.4).

use auth::scope;
use supply::Code;

use super::form::{
    Answer, Body, CRITICAL, Example, Field, Kind, Least, Operation, PAGE, PAGE_SIZE, PROVIDERS, READ, Shape,
    Standing, WRITE, may, must, or_null,
};

const STATUSES: Kind = Kind::Word(&["pending", "processing", "completed", "failed"]);
const REASONS: Kind = Kind::Word(&["cancelled", "risk_rejected", "payout_failed"]);
const METHODS: Kind = Kind::Word(&["bank", "alipay", "wechat"]);

const ASK: Shape = Shape {
    name: "Withdraw",
    fields: &[
        must("withdraw_amount", Kind::Amount(Least::Above, 2), "Above 0, in the supplier's currency."),
        must("payment_method", METHODS, "How it is paid out."),
        must(
            "payment_account",
            Kind::Secret(2, 100),
            "Where to, in the form of its method; shown masked only.",
        ),
        must("sms_code", Kind::Secret(4, 10), "The code that the supplier's phone got."),
    ],
};
const SENT: Shape = Shape {
    name: "SmsCode",
    fields: &[must("expires_in_seconds", Kind::Whole(1, 86_400), "Life of the code that was sent.")],
};

const ID: Field = must("settlement_id", Kind::Id, "Its id.");
const NO: Field = must("settlement_no", Kind::Said, "`STL`, a day, 12 random characters.");
const STATUS: Field = must("status", STATUSES, "Where it stands.");
const TOTAL: Field = must("total_amount", Kind::Exact, "What was withdrawn.");
const TOTAL_MINOR: Field = must("total_amount_minor", Kind::Minor, "The same.");
const FEE: Field = must("fee_amount", Kind::Exact, "The platform's fee.");
const FEE_MINOR: Field = must("fee_amount_minor", Kind::Minor, "The same.");
const NET: Field = must("net_amount", Kind::Exact, "What is paid out.");
const NET_MINOR: Field = must("net_amount_minor", Kind::Minor, "The same.");
const CURRENCY: Field = must("currency_code", Kind::Currency, "Of all amounts.");
const METHOD: Field = must("payment_method", METHODS, "How it is paid out.");
const MASKED: Field = must("payment_account_masked", Kind::Said, "`138****0000`.");
const VERSION: Field = must("version", Kind::Whole(0, i64::MAX), "Raised by every change.");
const CREATED: Field = must("created_at", Kind::Instant, "When it was asked for.");
const UPDATED: Field = must("updated_at", Kind::Instant, "When it was changed.");

const ASKED: Shape = Shape {
    name: "Withdrawal",
    fields: &[
        ID,
        NO,
        STATUS,
        TOTAL,
        TOTAL_MINOR,
        FEE,
        FEE_MINOR,
        NET,
        NET_MINOR,
        CURRENCY,
        METHOD,
        MASKED,
        VERSION,
        CREATED,
    ],
};
const STEPPED: Shape = Shape {
    name: "SettlementState",
    fields: &[
        ID,
        STATUS,
        may("fail_reason", REASONS, "Only where it failed."),
        may("payment_transaction_id", Kind::Said, "The channel's number, only where it was paid."),
        VERSION,
        UPDATED,
    ],
};
/// What a step of a settlement answers; also the platform's.
pub(super) const SETTLEMENT_STATE: Answer = Answer::Data(200, STEPPED);

const SETTLEMENT: Shape = Shape {
    name: "Settlement",
    fields: &[
        ID,
        NO,
        STATUS,
        or_null("fail_reason", REASONS, "Why it failed."),
        TOTAL,
        TOTAL_MINOR,
        FEE,
        FEE_MINOR,
        NET,
        NET_MINOR,
        CURRENCY,
        METHOD,
        MASKED,
        or_null("payment_transaction_id", Kind::Said, "The channel's own number, once paid."),
        must("period_start", Kind::Day, "First day on which it was earned, in Shanghai."),
        must("period_end", Kind::Day, "Last day on which it was earned."),
        must("total_orders", Kind::Whole(0, i64::MAX), "Orders that it was earned with."),
        must("total_usage_records", Kind::Whole(0, i64::MAX), "Calls that it was earned with."),
        or_null("processing_at", Kind::Instant, "When its payout began."),
        or_null("paid_at", Kind::Instant, "When it was paid."),
        or_null("closed_at", Kind::Instant, "When it ended."),
        or_null("returned_at", Kind::Instant, "When the bank sent it back."),
        VERSION,
        CREATED,
        UPDATED,
    ],
};

const STATEMENT: Shape = Shape {
    name: "Statement",
    fields: &[
        ID,
        must("file_name", Kind::Said, "`statement_` and the settlement's number."),
        must(
            "download_url",
            Kind::Said,
            "GET it without a token: 200 `text/csv; charset=utf-8` as an attachment; 410 `SUP_SET_4101` once it has ended, 404 `SUP_SET_4041` if it was changed, 503 `SUP_COM_5031` while the file is out of reach.",
        ),
        must("expires_at", Kind::Instant, "When the link ends."),
    ],
};

const PERIOD: Field = must(
    "period",
    Kind::Object(&[must("start", Kind::Day, "First day."), must("end", Kind::Day, "Last day, inclusive.")]),
    "The days that were added up.",
);
const SUMMARY: Field = must(
    "summary",
    Kind::Object(&[
        must("total_revenue", Kind::Exact, "Gross charges."),
        must("total_revenue_minor", Kind::Minor, "The same."),
        must("total_orders", Kind::Whole(0, i64::MAX), "Different orders."),
        must("total_usage", Kind::Whole(0, i64::MAX), "Tokens of both directions."),
        must("total_requests", Kind::Whole(0, i64::MAX), "Calls."),
        must("avg_success_rate", Kind::Exact, "Percent, two decimals."),
        must("platform_fee", Kind::Exact, "The platform's part, from the ledger."),
        must("platform_fee_minor", Kind::Minor, "The same."),
        must("net_earnings", Kind::Exact, "Revenue without the fee and the supplier's part of refunds."),
        must("net_earnings_minor", Kind::Minor, "The same."),
    ]),
    "Sums of the period.",
);
const BY_PLATFORM: Field = must(
    "by_platform",
    Kind::Rows(&[
        must("platform", Kind::Word(PROVIDERS), "Provider."),
        must("revenue", Kind::Exact, "Gross charges."),
        must("revenue_minor", Kind::Minor, "The same."),
        must("orders", Kind::Whole(0, i64::MAX), "Different orders."),
        must("tokens", Kind::Whole(0, i64::MAX), "Tokens of both directions."),
        must("success_rate", Kind::Exact, "Percent, two decimals."),
    ]),
    "The same for each provider.",
);
const BALANCE: Field = must(
    "balance",
    Kind::Object(&[
        must("available_amount", Kind::Exact, "May be withdrawn, but for a fraction of a minor unit."),
        must("available_amount_minor", Kind::Minor, "The same."),
        must("pending_amount", Kind::Exact, "Earned, not yet released."),
        must("pending_amount_minor", Kind::Minor, "The same."),
        must("frozen_amount", Kind::Exact, "In open settlements."),
        must("frozen_amount_minor", Kind::Minor, "The same."),
        must("withdrawn_amount", Kind::Exact, "Paid out, and not sent back."),
        must("withdrawn_amount_minor", Kind::Minor, "The same."),
        must("receivable_amount", Kind::Exact, "Owed after refunds."),
        must("receivable_amount_minor", Kind::Minor, "The same."),
    ]),
    "The supplier's balances now, whatever the period.",
);
const BILLING: Shape = Shape { name: "Billing", fields: &[PERIOD, SUMMARY, CURRENCY, BY_PLATFORM, BALANCE] };
const OLD_BILLING: Shape = Shape {
    name: "OldBilling",
    fields: &[
        PERIOD,
        SUMMARY,
        CURRENCY,
        BY_PLATFORM,
        must("deprecation_notice", Kind::Said, "Which path to use instead."),
    ],
};
const RECORD: Shape = Shape {
    name: "Earning",
    fields: &[
        must("record_id", Kind::Id, "Its id."),
        must("user_id", Kind::Id, "The supplier's principal."),
        or_null("settlement_id", Kind::Id, "The last settlement that took a part of it."),
        must("earnings_type", Kind::Word(&["usage", "bonus", "refund"]), "What it comes from."),
        must("amount", Kind::Exact, "Below 0 for a refund."),
        must("amount_minor", Kind::Minor, "The same."),
        CURRENCY,
        must("status", EARNING_STATUSES, "Where it stands."),
        must("description", Kind::Said, "What it is for."),
        must("earned_at", Kind::Instant, "When it was earned."),
        must("available_at", Kind::Instant, "When its hold ends."),
    ],
};
const EARNING_STATUSES: Kind = Kind::Word(&["pending", "available", "frozen", "withdrawn"]);

const START_DATE: Field =
    may("start_date", Kind::Day, "First day, in Shanghai; 30 days up to the end where nothing is said.");
const END_DATE: Field =
    may("end_date", Kind::Day, "Last day, inclusive, at most 366 days; today where nothing is said.");
const PERIOD_QUERY: &[Field] = &[START_DATE, END_DATE, PAGE, PAGE_SIZE];

const WITHDRAWS: &[&str] = &[scope::SETTLEMENT_WITHDRAW];
const READS: &[&str] = &[scope::BILLING_READ];

/// Section 8.4.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "sendWithdrawCode",
        path: "/api/v1/supply/settlements/withdraw/sms-code",
        summary: "Send the SMS code that a withdrawal needs",
        summary_zh: "发送提现短信验证码",
        scopes: WITHDRAWS,
        answer: Answer::Data(200, SENT),
        codes: &[Code::SetBlocked, Code::SetCodes, Code::SetOff],
        ..WRITE
    },
    Operation {
        id: "withdraw",
        path: "/api/v1/supply/settlements/withdraw",
        summary: "Withdraw from the available balance",
        summary_zh: "申请提现",
        about: "Its key is good for 72 hours. INV-SET-002 and INV-SET-003 are judged here. Limits of one withdrawal and of a day are the platform's settings; their refusals name them.",
        scopes: WITHDRAWS,
        body: Body::Fields(ASK),
        answer: Answer::Data(201, ASKED),
        codes: &[
            Code::SetAmount,
            Code::SetPayee,
            Code::SetMinimum,
            Code::SetSingle,
            Code::ComCurrency,
            Code::SetDaily,
            Code::SetFunds,
            Code::SetCode,
            Code::SetBlocked,
            Code::SetOpen,
            Code::SetCooling,
            Code::SetUnbalanced,
            Code::SetOff,
        ],
        example: Some(Example {
            request: Some(
                r#"{"withdraw_amount":"50.00","payment_method":"alipay","payment_account":"13800000000","sms_code":"246810"}"#,
            ),
            data: r#"{"settlement_id":301,"settlement_no":"STL20260327…","status":"pending","total_amount":50,"total_amount_minor":"5000","fee_amount":0.5,"fee_amount_minor":"50","net_amount":49.5,"net_amount_minor":"4950","currency_code":"CNY","payment_method":"alipay","payment_account_masked":"138****0000","version":0,"created_at":"2026-03-27T02:03:04.123Z"}"#,
        }),
        ..CRITICAL
    },
    Operation {
        id: "cancelWithdrawal",
        path: "/api/v1/supply/settlements/{settlement_id}/cancel",
        summary: "Cancel a withdrawal that is not yet being paid out",
        summary_zh: "撤销提现",
        about: "Its key is good for 72 hours. INV-SET-001 is judged here.",
        scopes: WITHDRAWS,
        answer: SETTLEMENT_STATE,
        codes: &[Code::SetMissing, Code::SetFixed, Code::SetState, Code::SetUnbalanced, Code::SetBlocked],
        example: Some(Example {
            request: None,
            data: r#"{"settlement_id":301,"status":"failed","fail_reason":"cancelled","version":1,"updated_at":"2026-03-27T02:03:04.123Z"}"#,
        }),
        ..CRITICAL
    },
    Operation {
        id: "getBilling",
        path: "/api/v1/supply/billing",
        summary: "Sums of a period, and the balance",
        summary_zh: "账单汇总与余额",
        scopes: READS,
        query: PERIOD_QUERY,
        answer: Answer::Data(200, BILLING),
        codes: &[Code::ComField, Code::ComMissing],
        ..READ
    },
    Operation {
        id: "getSupplierBilling",
        path: "/api/v1/supplier/billing",
        summary: "Old name of the billing summary, without balance",
        summary_zh: "账单汇总（旧路径，已弃用）",
        about: "Answers with the headers Deprecation and Link to its successor.",
        scopes: READS,
        query: PERIOD_QUERY,
        answer: Answer::Data(200, OLD_BILLING),
        codes: &[Code::ComField, Code::ComMissing],
        standing: Standing::Deprecated,
        ..READ
    },
    Operation {
        id: "listEarnings",
        path: "/api/v1/supply/earnings/records",
        summary: "List earnings, the newest first",
        summary_zh: "收益明细",
        scopes: READS,
        query: &[
            START_DATE,
            END_DATE,
            PAGE,
            PAGE_SIZE,
            may("status", EARNING_STATUSES, "Only in this state."),
        ],
        answer: Answer::Page(RECORD),
        codes: &[Code::ComField],
        ..READ
    },
    Operation {
        id: "listSettlements",
        path: "/api/v1/supply/settlements",
        summary: "List settlements, the newest first",
        summary_zh: "结算单列表",
        scopes: READS,
        query: &[PAGE, PAGE_SIZE, may("status", STATUSES, "Only in this state.")],
        answer: Answer::Page(SETTLEMENT),
        ..READ
    },
    Operation {
        id: "getSettlement",
        path: "/api/v1/supply/settlements/{settlement_id}",
        summary: "Read one settlement",
        summary_zh: "结算单详情",
        scopes: READS,
        answer: Answer::Data(200, SETTLEMENT),
        codes: &[Code::SetMissing],
        ..READ
    },
    Operation {
        id: "getStatement",
        path: "/api/v1/supply/settlements/{settlement_id}/statement",
        summary: "Get a link to a settlement's statement",
        summary_zh: "导出结算对账单",
        about: "The file is made after each change of the settlement; until it is there, 503 with Retry-After.",
        scopes: READS,
        answer: Answer::Data(200, STATEMENT),
        codes: &[Code::SetMissing],
        ..READ
    },
];
