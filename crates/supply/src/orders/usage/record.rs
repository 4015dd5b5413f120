//! The row of a call, as it is written and as it is found again.

use kernel::Time;
use kernel::money::{Money, Tokens};
use ledger::split::Split;
use serde::Serialize;
use store::{Error, Query, Row, Value, Write, values};

use super::{Call, Ending, RecordUsage};
use crate::action::{Context, Stop};
use crate::exact::{Exact, Stamp};
use crate::rows::{Order, Reader};

const FIND: &str = "select r.id, r.order_id, r.request_tokens, r.response_tokens, r.success, r.currency_code, r.total_cost, r.platform_fee, r.created_at, e.id
from supply_usage_records r
left join supply_earnings e on e.usage_record_id = r.id and e.earnings_type = 'usage'
where r.client_tenant_id = (select o.buyer_tenant_id from supply_orders o where o.id = $1)
  and r.request_id = $2 and r.api_key_id = $3";
const INSERT: &str = "insert into supply_usage_records (id, tenant_id, order_id, buyer_user_id, client_tenant_id, api_key_id, supply_account_id, supplier_user_id, upstream_request_id, trace_id, platform, model, endpoint, billing_unit, quota_unit, currency_code, request_tokens, response_tokens, unit_price, input_cost, output_cost, total_cost, platform_fee, supplier_part, response_status, latency_ms, error_message, success, started_at, completed_at, created_at, request_id, idempotency_key, audit_trace_id, created_ip, updated_ip)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36)";

/// A call on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::orders) struct Recorded {
    pub(in crate::orders) id: i64,
    pub(in crate::orders) order_id: i64,
    pub(in crate::orders) tokens: (i64, i64),
    pub(in crate::orders) ending: Ending,
    pub(in crate::orders) charge: Money,
    pub(in crate::orders) fee: Money,
    pub(in crate::orders) created_at: Time,
    pub(in crate::orders) earning: Option<i64>,
}

/// `data` of the answer, the same for every report of the call.
#[derive(Debug, Serialize)]
pub(super) struct Data {
    usage_record_id: i64,
    order_id: i64,
    total_cost: Exact,
    total_cost_minor: String,
    platform_fee_minor: String,
    currency_code: &'static str,
    earning_id: Option<i64>,
    created_at: Stamp,
}

impl Recorded {
    /// A call that is being recorded.
    pub(in crate::orders) fn of(
        usage: &RecordUsage,
        (id, earning): (i64, Option<i64>),
        split: Split,
        at: Time,
    ) -> Self {
        Self {
            id,
            order_id: usage.order_id,
            tokens: counts(usage.tokens),
            ending: usage.call.ending,
            charge: split.whole(),
            fee: split.fee(),
            created_at: at,
            earning,
        }
    }

    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let (id, order_id, tokens) = (reader.int()?, reader.int()?, (reader.int()?, reader.int()?));
        let ending = if reader.flag()? { Ending::Success } else { Ending::Failure };
        let currency = reader.currency()?;
        let (charge, fee) = (reader.money(currency)?, reader.money(currency)?);
        let (created_at, earning) = (reader.time()?, reader.int_or_null()?);
        Ok(Self { id, order_id, tokens, ending, charge, fee, created_at, earning })
    }

    /// Whether a report tells the same figures: what it would be charged by. How long it took, or the provider's
    /// id, may differ.
    pub(super) fn is_of(&self, usage: &RecordUsage) -> bool {
        self.order_id == usage.order_id
            && self.tokens == counts(usage.tokens)
            && self.ending == usage.call.ending
    }

    pub(super) fn data(&self) -> Data {
        Data {
            usage_record_id: self.id,
            order_id: self.order_id,
            total_cost: self.charge.into(),
            total_cost_minor: self.charge.minor(),
            platform_fee_minor: self.fee.minor(),
            currency_code: self.charge.currency().code(),
            earning_id: self.earning,
            created_at: Stamp(self.created_at),
        }
    }
}

fn counts(tokens: Tokens) -> (i64, i64) {
    let count = |tokens| i64::try_from(tokens).unwrap_or(i64::MAX);
    (count(tokens.input), count(tokens.output))
}

impl RecordUsage {
    /// The call, where it is on record.
    pub(super) fn find(&self) -> Query {
        Query::new("usage.find", FIND, values![self.order_id, &self.request_id, self.api_key_id])
    }

    /// Its row. The cost of the output is what the input leaves of the whole; a failed call has no price to be taken of.
    pub(super) fn insert(
        &self,
        context: &Context,
        (id, order): (i64, &Order),
        split: Split,
        at: Time,
    ) -> Result<Write, Stop> {
        let input = match self.call.ending {
            Ending::Failure => Money::zero(order.currency),
            Ending::Success => {
                let input = Tokens { input: self.tokens.input, output: 0 };
                order.prices().charge(input, order.currency)?.least(split.whole())?
            }
        };
        let output = split.whole().minus(input)?;
        let amounts = [input, output, split.whole(), split.fee(), split.rest()];
        let Call { endpoint, upstream_request_id, error_message, .. } = &self.call;
        let (caller, (request, response)) = (&context.caller, counts(self.tokens));
        let unit = order.unit.as_str();
        let row = [
            values![id, order.tenant_id, order.id, order.buyer_user_id, order.buyer_tenant_id],
            values![self.api_key_id, order.supply_account_id, order.supplier_user_id],
            values![upstream_request_id.clone(), &caller.trace_id, &order.platform, &order.model],
            values![endpoint, unit, unit, order.currency.code(), request, response],
            vec![Value::Money(order.prices().unit().count())],
            amounts.iter().map(|amount| Value::Money(amount.count())).collect(),
            values![self.call.response_status, i64::from(self.call.latency_ms), error_message.clone()],
            values![self.call.ending == Ending::Success, self.call.started_at, self.call.completed_at, at],
            values![&self.request_id, caller.idempotency_key.clone(), &caller.trace_id],
            values![caller.client_ip.clone(), caller.client_ip.clone()],
        ];
        Ok(Write::one("usage.insert", INSERT, row.concat()))
    }
}
