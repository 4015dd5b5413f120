//! What is asked for: the five writes on one supplier's settlements, and the code that a withdrawal needs.

use play::{Call, Supplier};
use serde_json::{Value as Json, json};

/// One wish of a client, under one key however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// The supplier asks for a code.
    Code,
    /// It withdraws so many cents with this code.
    Withdraw { cents: u64, code: String },
    /// Something is done to a settlement.
    Step(Step, i64),
}

/// What is done to a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// By the supplier.
    Cancel,
    /// By the platform, as the next two.
    Start,
    Complete,
    Fail,
}

impl Step {
    const fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Start => "start",
            Self::Complete => "complete",
            Self::Fail => "fail",
        }
    }
}

impl Deed {
    /// Name of its event in the audit.
    pub(super) const fn event(&self) -> &'static str {
        match self {
            Self::Code => "supply.settlement.sms.send",
            Self::Withdraw { .. } => "supply.settlement.withdraw.create",
            Self::Step(Step::Cancel, _) => "supply.settlement.withdraw.cancel",
            Self::Step(Step::Start, _) => "supply.settlement.payout.start",
            Self::Step(Step::Complete, _) => "supply.settlement.payout.complete",
            Self::Step(Step::Fail, _) => "supply.settlement.payout.fail",
        }
    }

    /// The request for it.
    pub(super) fn call(&self, supplier: &Supplier, admin: &str, key: &str) -> Call {
        let (path, token, body) = match self {
            Self::Code => ("supply/settlements/withdraw/sms-code".to_owned(), &*supplier.token, Json::Null),
            Self::Withdraw { cents, code } => {
                let amount = format!("{}.{:02}", cents / 100, cents % 100);
                let body = json!({ "withdraw_amount": amount, "payment_method": "alipay",
                    "payment_account": "13800001234", "sms_code": code });
                ("supply/settlements/withdraw".to_owned(), &*supplier.token, body)
            }
            Self::Step(step, id) => {
                let (side, token, body) = match step {
                    Step::Cancel => ("supply", &*supplier.token, Json::Null),
                    Step::Start => ("platform", admin, Json::Null),
                    Step::Complete => {
                        ("platform", admin, json!({ "payment_transaction_id": format!("bank-{id}") }))
                    }
                    Step::Fail => ("platform", admin, json!({ "failure_code": "account_closed" })),
                };
                (format!("{side}/settlements/{id}/{}", step.word()), token, body)
            }
        };
        Call::post(format!("/api/v1/{path}"), token, key, body)
    }
}
