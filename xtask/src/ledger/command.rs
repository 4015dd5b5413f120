//! What is asked of the market, as plain figures: read by whoever sends it and by the model that judges it. Not
//! here: the product's own types.

use serde_json::Value as Json;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct By {
    /// Whose objects.
    pub(super) tenant: i64,
    /// Who acts.
    pub(super) operator: i64,
    /// In which capacity.
    pub(super) capacity: Capacity,
}

impl By {
    /// Whether it asks under a key: of the system's facts the state alone tells whether they happened.
    pub(super) fn keys(self) -> bool {
        self.capacity != Capacity::System
    }
}

/// In which capacity somebody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capacity {
    /// An operator of the tenant.
    User,
    /// Staff of the platform.
    Admin,
    /// The scheduler.
    System,
}

/// A package and its new prices, in 10^-6 major units per 1,000,000 tokens.
pub(super) type Repriced = (i64, i64, i64);

/// A command. Ids are rows'; amounts are counts of 10^-6 minor units, quotas of 10^-6 tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    TopUp { buyer: i64, amount: i64 },
    Create { buyer: i64, package: i64, quota: i64 },
    Pay { order: i64 },
    CancelOrder { order: i64 },
    TimeOut { order: i64 },
    Close { order: i64 },
    Refund { order: i64, charge: Option<i64> },
    Use { order: i64, key: i64, call: String, tokens: (u64, u64), success: bool, started: i64 },
    Bonus { amount: i64 },
    CompensateSupplier { supplier: i64, amount: i64 },
    CompensateBuyer { buyer: i64, amount: i64 },
    Release { earning: i64 },
    SendCode,
    Withdraw { amount: String, code: String, payee: String },
    Cancel { settlement: i64 },
    Reject { settlement: i64 },
    Start { settlement: i64 },
    Complete { settlement: i64 },
    Fail { settlement: i64 },
    Return { settlement: i64 },
    Draft { account: i64, model: String, total: i64, least: i64, prices: (i64, i64), days: i64 },
    Publish { package: i64 },
    Pause { package: i64 },
    Unlist { package: i64 },
    Reprice { items: Vec<Repriced> },
    Expire { package: i64 },
    SellOut { package: i64 },
    Restock { package: i64 },
}

/// Every kind, in the order of the report.
pub(super) const KINDS: [&str; 28] = [
    "top-up",
    "order create",
    "order pay",
    "order cancel",
    "order time-out",
    "order close",
    "order refund",
    "usage",
    "bonus",
    "compensate supplier",
    "compensate buyer",
    "release",
    "send code",
    "withdraw",
    "cancel",
    "reject",
    "payout start",
    "payout complete",
    "payout fail",
    "payout return",
    "package draft",
    "package publish",
    "package pause",
    "package unlist",
    "batch price",
    "package expire",
    "package sell out",
    "package restock",
];

impl What {
    /// Its name in reports, and the path of its key.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::TopUp { .. } => "top-up",
            Self::Create { .. } => "order create",
            Self::Pay { .. } => "order pay",
            Self::CancelOrder { .. } => "order cancel",
            Self::TimeOut { .. } => "order time-out",
            Self::Close { .. } => "order close",
            Self::Refund { .. } => "order refund",
            Self::Use { .. } => "usage",
            Self::Bonus { .. } => "bonus",
            Self::CompensateSupplier { .. } => "compensate supplier",
            Self::CompensateBuyer { .. } => "compensate buyer",
            Self::Release { .. } => "release",
            Self::SendCode => "send code",
            Self::Withdraw { .. } => "withdraw",
            Self::Cancel { .. } => "cancel",
            Self::Reject { .. } => "reject",
            Self::Start { .. } => "payout start",
            Self::Complete { .. } => "payout complete",
            Self::Fail { .. } => "payout fail",
            Self::Return { .. } => "payout return",
            Self::Draft { .. } => "package draft",
            Self::Publish { .. } => "package publish",
            Self::Pause { .. } => "package pause",
            Self::Unlist { .. } => "package unlist",
            Self::Reprice { .. } => "batch price",
            Self::Expire { .. } => "package expire",
            Self::SellOut { .. } => "package sell out",
            Self::Restock { .. } => "package restock",
        }
    }
}

/// A command of somebody under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// Who.
    pub(super) by: By,
    /// What.
    pub(super) what: What,
    /// Idempotency key, where it asks under one ([`By::keys`]); names one fact with [`What::kind`] and [`By`].
    pub(super) key: String,
}

/// What was answered.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// HTTP status.
    pub(super) code: u16,
    /// Text of the body.
    pub(super) body: String,
    /// Whether the answer was given before.
    pub(super) replayed: bool,
    /// Whether the key's payload was this one; what HTTP answers with 409 otherwise.
    pub(super) same: bool,
    /// Whether nothing formal came of it: another payload has the key, which nothing came of.
    pub(super) open: bool,
}

impl Told {
    /// The body, read.
    pub(super) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Code of the error; nothing where it is none.
    pub(super) fn error(&self) -> String {
        let code = self.json().pointer("/error/code").and_then(Json::as_str).map(ToOwned::to_owned);
        code.unwrap_or_default()
    }
}

/// A command that was sent and answered.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// The command.
    pub(super) command: Command,
    /// Id of the request that it was sent under.
    pub(super) request: String,
    /// Place of its sending and of its answer in the sequence of all sendings and answers.
    pub(super) span: (u64, u64),
    /// The answer.
    pub(super) told: Told,
    /// Of a sent code: its reference and row.
    pub(super) code_ref: Option<(String, i64)>,
}

/// When it happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// In the order of commits, counted within a batch from 1.
    pub(super) at: u64,
    /// The last one that had been answered before this one was sent; 0: none.
    pub(super) since: u64,
    /// The store's time of its decision, in microseconds.
    pub(super) time: i64,
    /// The store's time of its answer: another one where it came in slices.
    pub(super) answered: i64,
}
