//! What the platform's staff and its gateway do (section 8.5).

use auth::scope;
use supply::Code;

use super::form::{
    Answer, Body, Field, Kind, Least, Operation, PROVIDERS, Shape, UNITS, WRITE, may, must, or_null,
};
use super::money::SETTLEMENT_STATE;
use super::risk::REASON;

const NAME: Kind = Kind::Line(100);
const RISK: &[&str] = &[scope::PLATFORM_RISK];
const MONEY: &[&str] = &[scope::PLATFORM_SETTLEMENT];
const ORDER: &[&str] = &[scope::PLATFORM_ORDER];
const ADMIN: &[&str] = &[scope::ALL_PLATFORM];

const PROTECT: Shape = Shape {
    name: "PriceProtection",
    fields: &[
        must("provider", Kind::Word(PROVIDERS), "Provider."),
        must("model", NAME, "Model; with both floors it is on the provider's list."),
        may("official_input", Kind::Price, "The provider's own price: the floor is 80 % of it, rounded up."),
        may("floor_input", Kind::Price, "The floor itself; exactly one of the two."),
        may("official_output", Kind::Price, "As official_input."),
        may("floor_output", Kind::Price, "As floor_input."),
        may(
            "effective_from",
            Kind::Instant,
            "From when on; at once where nothing is said, never in the past.",
        ),
    ],
};
const CURRENCY: Field = must("currency_code", Kind::Currency, "Of all amounts.");
const CREATED: Field = must("created_at", Kind::Instant, "When.");
const UPDATED: Field = must("updated_at", Kind::Instant, "When it was changed.");
const VERSION: Field = must("version", Kind::Whole(0, i64::MAX), "Raised by every change.");

const PROTECTED: Shape = Shape {
    name: "ProtectedPrice",
    fields: &[
        must("provider", Kind::Word(PROVIDERS), "Provider."),
        must("model", Kind::Said, "Model."),
        must("floor_price_per_1m_input", Kind::Exact, "Lowest price of input tokens."),
        must("floor_price_per_1m_output", Kind::Exact, "Lowest price of output tokens."),
        CURRENCY,
        must("effective_from", Kind::Instant, "From when on."),
    ],
};
const PAID_OUT: Shape = Shape {
    name: "PayoutDone",
    fields: &[must("payment_transaction_id", NAME, "The channel's own number of the payout.")],
};
const FAILED: Shape =
    Shape { name: "PayoutFailed", fields: &[must("failure_code", Kind::Line(64), "What the channel said.")] };
const SUPPLIER: Shape = Shape {
    name: "CreateSupplier",
    fields: &[
        must("code", Kind::Line(64), "Short name of the tenant, unique."),
        must("name", NAME, "Its name."),
        must("supplier_type", Kind::Word(&["individual", "company"]), "What it is."),
        must("operator", NAME, "Name of the first operator."),
        must("phone", Kind::Phone, "Where SMS codes go; shown masked only."),
    ],
};
const NEW_SUPPLIER: Shape = Shape {
    name: "Supplier",
    fields: &[
        must("supplier_id", Kind::Id, "Its row."),
        must("tenant_id", Kind::Id, "Its tenant."),
        must("user_id", Kind::Id, "Its principal."),
        must("operator_id", Kind::Id, "Its first operator."),
        must("supplier_type", Kind::Word(&["individual", "company"]), "What it is."),
        must("status", Kind::Word(&["active"]), "Where it stands."),
        CURRENCY,
        must("phone_masked", Kind::Said, "`138****0000`."),
        CREATED,
    ],
};
const BUYER: Shape = Shape {
    name: "CreateBuyer",
    fields: &[
        must("code", Kind::Line(64), "Short name of the tenant, unique."),
        must("name", NAME, "Its name."),
    ],
};
const NEW_BUYER: Shape = Shape {
    name: "Buyer",
    fields: &[
        must("buyer_id", Kind::Id, "Its principal."),
        must("tenant_id", Kind::Id, "Its tenant."),
        must("api_key_id", Kind::Id, "Its first key, by which the gateway names it."),
        must("api_key_prefix", Kind::Said, "First 12 characters of the key."),
        must("api_key_expires_at", Kind::Instant, "When the key ends."),
        CURRENCY,
        CREATED,
    ],
};
const TOP_UP: Shape = Shape {
    name: "TopUp",
    fields: &[must("amount", Kind::Amount(Least::Above, 2), "Above 0, in whole minor units.")],
};
const TOPPED_UP: Shape = Shape {
    name: "ToppedUp",
    fields: &[
        must("topup_id", Kind::Id, "Its id."),
        must("buyer_id", Kind::Id, "Whose balance."),
        must("amount", Kind::Exact, "What was paid in."),
        must("amount_minor", Kind::Minor, "The same."),
        must("balance", Kind::Exact, "The prepaid balance after it."),
        must("balance_minor", Kind::Minor, "The same."),
        CURRENCY,
        CREATED,
    ],
};
const ORDERING: Shape = Shape {
    name: "CreateOrder",
    fields: &[
        must("buyer_id", Kind::Id, "Who buys."),
        must("package_id", Kind::Id, "Of which package."),
        must("quota_amount", Kind::Quota(Least::Above), "How much, in the package's unit."),
    ],
};
const ORDER_ID: Field = must("order_id", Kind::Id, "Its id.");
const ORDER_TOTAL: Field = must("total_amount", Kind::Exact, "What it costs at most, held in escrow.");
const ORDER_TOTAL_MINOR: Field = must("total_amount_minor", Kind::Minor, "The same.");
const ORDERED: Shape = Shape {
    name: "Order",
    fields: &[
        ORDER_ID,
        must("order_no", Kind::Said, "Its number."),
        must("status", Kind::Word(&["pending"]), "Where it stands."),
        must("package_id", Kind::Id, "Of which package."),
        must("provider", Kind::Word(PROVIDERS), "Provider."),
        must("model", Kind::Said, "Model."),
        must("quota_amount", Kind::Exact, "How much."),
        must("quota_unit", Kind::Word(UNITS), "Unit of the quota."),
        must("price_per_1m_input", Kind::Exact, "Fixed for this order."),
        must("price_per_1m_output", Kind::Exact, "Fixed for this order."),
        ORDER_TOTAL,
        ORDER_TOTAL_MINOR,
        CURRENCY,
        must("pay_before", Kind::Instant, "Until when it may be paid."),
        VERSION,
        CREATED,
    ],
};
const PAID: Shape = Shape {
    name: "OrderPaid",
    fields: &[
        ORDER_ID,
        must("status", Kind::Word(&["paid"]), "Where it stands."),
        ORDER_TOTAL,
        ORDER_TOTAL_MINOR,
        CURRENCY,
        must("paid_at", Kind::Instant, "When."),
        must("expired_at", Kind::Instant, "Until when it may be used."),
        VERSION,
    ],
};
const ENDED: Shape = Shape {
    name: "OrderEnded",
    fields: &[
        ORDER_ID,
        must("status", Kind::Word(&["expired"]), "Where it stands."),
        must("close_reason", Kind::Word(&["buyer_cancelled"]), "Why."),
        VERSION,
        UPDATED,
    ],
};
const REFUND: Shape = Shape {
    name: "RefundOrder",
    fields: &[may(
        "charge_amount",
        Kind::Amount(Least::Zero, 8),
        "How much of what calls were charged is given back, 0 allowed; all where nothing is said.",
    )],
};
const REFUNDED: Shape = Shape {
    name: "OrderRefunded",
    fields: &[
        ORDER_ID,
        must("status", Kind::Said, "Where it stands."),
        or_null("refund_id", Kind::Id, "The refund of charges, if there was one."),
        must("returned_amount", Kind::Exact, "Given back from escrow and charges together."),
        must("returned_amount_minor", Kind::Minor, "The same."),
        must("refunded_amount", Kind::Exact, "Of it, from charges."),
        must("refunded_amount_minor", Kind::Minor, "The same."),
        CURRENCY,
        VERSION,
        UPDATED,
    ],
};
const USAGE: Shape = Shape {
    name: "UsageReport",
    fields: &[
        must("order_id", Kind::Id, "Against which order."),
        must("api_key_id", Kind::Id, "With which key of the buyer."),
        must("request_id", Kind::Line(64), "The gateway's id of the call: one call is charged once."),
        must("request_tokens", Kind::Whole(0, 1_000_000_000_000), "Input tokens."),
        must("response_tokens", Kind::Whole(0, 1_000_000_000_000), "Output tokens."),
        must("success", Kind::Flag, "A call that failed costs nothing."),
        must("endpoint", Kind::Line(200), "What was called; what stands behind a ? is not kept."),
        may("upstream_request_id", Kind::Line(128), "The provider's id of the call."),
        must("response_status", Kind::Whole(100, 599), "What the provider answered."),
        must("latency_ms", Kind::Whole(0, 86_400_000), "How long it took."),
        may("error_message", Kind::Text(500), "What went wrong; credentials in it are masked."),
        must("started_at", Kind::Instant, "When it began."),
        must("completed_at", Kind::Instant, "When it ended, not before started_at."),
    ],
};
const RECORDED: Shape = Shape {
    name: "UsageRecord",
    fields: &[
        must("usage_record_id", Kind::Id, "Its id."),
        ORDER_ID,
        must("total_cost", Kind::Exact, "What the call was charged."),
        must("total_cost_minor", Kind::Minor, "The same."),
        must("platform_fee_minor", Kind::Minor, "The platform's part."),
        CURRENCY,
        or_null("earning_id", Kind::Id, "What the supplier earned with it."),
        CREATED,
    ],
};

/// A step of a payout: same scope, same answer.
const STEP: Operation = Operation { scopes: MONEY, answer: SETTLEMENT_STATE, ..WRITE };
const STEPPED: &[Code] = &[Code::ComField, Code::SetMissing, Code::SetState, Code::SetUnbalanced];

/// Section 8.5.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "protectPrice",
        method: "put",
        path: "/api/v1/platform/price-protection",
        summary: "Set the protected prices of a model",
        summary_zh: "设置保护价",
        scopes: RISK,
        body: Body::Fields(PROTECT),
        answer: Answer::Data(200, PROTECTED),
        codes: &[Code::ComField, Code::ComMissing, Code::ComState],
        ..WRITE
    },
    Operation {
        id: "startPayout",
        path: "/api/v1/platform/settlements/{id}/start",
        summary: "Begin the payout of a settlement",
        summary_zh: "开始打款",
        codes: &[Code::SetMissing, Code::SetState],
        ..STEP
    },
    Operation {
        id: "completePayout",
        path: "/api/v1/platform/settlements/{id}/complete",
        summary: "Record that a payout arrived",
        summary_zh: "打款成功",
        body: Body::Fields(PAID_OUT),
        codes: STEPPED,
        ..STEP
    },
    Operation {
        id: "failPayout",
        path: "/api/v1/platform/settlements/{id}/fail",
        summary: "Record that a payout failed; the money is available again",
        summary_zh: "打款失败",
        body: Body::Fields(FAILED),
        codes: STEPPED,
        ..STEP
    },
    Operation {
        id: "rejectWithdrawal",
        path: "/api/v1/platform/settlements/{id}/reject",
        summary: "Reject a withdrawal before its payout",
        summary_zh: "风控拒绝提现",
        body: Body::Fields(REASON),
        codes: STEPPED,
        ..STEP
    },
    Operation {
        id: "returnPayout",
        path: "/api/v1/platform/settlements/{id}/return",
        summary: "Record that the bank sent a payout back",
        summary_zh: "打款退回",
        codes: &[Code::SetMissing, Code::SetState, Code::SetUnbalanced],
        ..STEP
    },
    Operation {
        id: "createSupplier",
        path: "/api/v1/platform/suppliers",
        summary: "Create a supplier with its tenant and first operator",
        summary_zh: "创建供应方",
        scopes: ADMIN,
        body: Body::Fields(SUPPLIER),
        answer: Answer::Data(201, NEW_SUPPLIER),
        codes: &[Code::ComField, Code::ComState],
        ..WRITE
    },
    Operation {
        id: "createBuyer",
        path: "/api/v1/platform/buyers",
        summary: "Create a buyer with its tenant and first key",
        summary_zh: "创建需求方",
        scopes: ADMIN,
        body: Body::Fields(BUYER),
        answer: Answer::Data(201, NEW_BUYER),
        codes: &[Code::ComField, Code::ComState],
        ..WRITE
    },
    Operation {
        id: "topUpBuyer",
        path: "/api/v1/platform/buyers/{id}/topups",
        summary: "Add to a buyer's prepaid balance",
        summary_zh: "需求方充值",
        scopes: ADMIN,
        body: Body::Fields(TOP_UP),
        answer: Answer::Data(201, TOPPED_UP),
        codes: &[Code::ComField, Code::ComCurrency, Code::ComMissing, Code::SetUnbalanced],
        ..WRITE
    },
    Operation {
        id: "createOrder",
        path: "/api/v1/platform/orders",
        summary: "Place an order for a buyer",
        summary_zh: "创建订单",
        scopes: ORDER,
        body: Body::Fields(ORDERING),
        answer: Answer::Data(201, ORDERED),
        codes: &[
            Code::OrdQuota,
            Code::ComCurrency,
            Code::ComMissing,
            Code::PkgMissing,
            Code::PkgState,
            Code::PkgLocked,
        ],
        ..WRITE
    },
    Operation {
        id: "payOrder",
        path: "/api/v1/platform/orders/{id}/pay",
        summary: "Pay an order from the prepaid balance",
        summary_zh: "支付订单",
        scopes: ORDER,
        answer: Answer::Data(200, PAID),
        codes: &[Code::OrdFunds, Code::OrdMissing, Code::OrdState, Code::SetUnbalanced],
        ..WRITE
    },
    Operation {
        id: "cancelOrder",
        path: "/api/v1/platform/orders/{id}/cancel",
        summary: "Cancel an order that is not paid",
        summary_zh: "取消订单",
        scopes: ADMIN,
        answer: Answer::Data(200, ENDED),
        codes: &[Code::OrdMissing, Code::OrdState],
        ..WRITE
    },
    Operation {
        id: "refundOrder",
        path: "/api/v1/platform/orders/{id}/refund",
        summary: "Refund an order: what is left in escrow, and charges",
        summary_zh: "订单退款",
        scopes: ADMIN,
        body: Body::Fields(REFUND),
        answer: Answer::Data(200, REFUNDED),
        codes: &[Code::ComField, Code::ComCurrency, Code::OrdMissing, Code::OrdState, Code::SetUnbalanced],
        ..WRITE
    },
    Operation {
        id: "recordUsage",
        path: "/api/v1/platform/usage-records",
        summary: "Report one call of a buyer",
        summary_zh: "上报用量",
        about: "A report of a call that is on record gets the first answer again; with other figures it is refused.",
        scopes: &[scope::PLATFORM_USAGE],
        body: Body::Fields(USAGE),
        answer: Answer::Data(200, RECORDED),
        codes: &[
            Code::ComField,
            Code::OrdCalls,
            Code::OrdMissing,
            Code::OrdState,
            Code::ComUsage,
            Code::SetUnbalanced,
        ],
        ..WRITE
    },
];
