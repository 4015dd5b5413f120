//! A new row of `supply_earnings`.

use kernel::Time;
use kernel::money::Money;
use store::{Value, Write, values};

use crate::action::Context;

const INSERT: &str = "insert into supply_earnings (id, tenant_id, user_id, supply_account_id, order_id, usage_record_id, earnings_type, amount, available_amount, status, description, earned_at, available_at, source_request_id, currency_code, request_id, idempotency_key, audit_trace_id, updated_ip, updated_at, created_ip, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)";

/// What an earning came of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) account_id: Option<i64>,
    pub(crate) order_id: Option<i64>,
    pub(crate) usage_record_id: Option<i64>,
}

/// An earning that is to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewEarning<'a> {
    pub(crate) id: i64,
    /// The supplier's tenant and principal.
    pub(crate) owner: (i64, i64),
    pub(crate) origin: Origin,
    /// `usage`, `bonus`, `refund`.
    pub(crate) kind: &'static str,
    pub(crate) amount: Money,
    /// Released at once, this much.
    pub(crate) available: Money,
    /// `pending`, `available`, `withdrawn`.
    pub(crate) status: &'static str,
    pub(crate) description: &'a str,
    pub(crate) available_at: Time,
    /// Id of the request that it came of.
    pub(crate) request_id: &'a str,
}

/// The insert for it, earned at `at`.
pub(crate) fn insert(context: &Context, earning: &NewEarning<'_>, at: Time) -> Write {
    let NewEarning { id, owner, origin, kind, amount, available, .. } = earning;
    let row = [
        values![*id, owner.0, owner.1, origin.account_id, origin.order_id, origin.usage_record_id, *kind],
        vec![Value::Money(amount.count()), Value::Money(available.count())],
        values![earning.status, earning.description, at, earning.available_at, earning.request_id],
        values![amount.currency().code()],
        context.stamp(at).to_vec(),
        values![context.caller.client_ip.clone(), at],
    ];
    Write::one("earning.insert", INSERT, row.concat())
}
