//! What a withdrawal is decided from, in the order of its locks: balances, then everything that only changes
//! under them.

use std::time::Duration;

use kernel::Time;
use kernel::money::Money;
use ledger::draw::Lot;
use ledger::ids;
use serde_json::json;
use store::{Error, Query, Row, Value, values};

use crate::action::{Context, Refusal};
use crate::books::{self, Books};
use crate::caller::Object;
use crate::rows::{Reader, Supplier};

/// The open settlement, and when the last one became processing.
const STANDING: &str = "select s.version,
  (select min(t.id) from supply_settlements t where t.user_id = s.user_id and t.status in ('pending', 'processing')),
  (select max(t.processing_at) from supply_settlements t where t.user_id = s.user_id)
from supply_suppliers s where s.tenant_id = $1";

/// What counts for the daily limit: all that did not fail.
const RECENT: &str = "select t.created_at, t.currency_code, t.total_amount
from supply_settlements t join supply_suppliers s on s.user_id = t.user_id and s.currency_code = t.currency_code
where s.tenant_id = $1 and t.status <> 'failed' and t.created_at >= $2";

/// The newest code, whatever became of it: an older one does not come back to life.
const CODE: &str =
    "select c.id, c.code_ref, c.code_hash, c.key_version, c.expires_at, c.attempts, c.consumed_at
from supply_sms_codes c join supply_suppliers s on s.id = c.supplier_id
where s.tenant_id = $1 and c.purpose = 'withdraw' order by c.created_at desc, c.id desc limit 1";

const NEXT_ID: &str = "select {next_id supply_settlements}";

/// Earnings that one settlement takes at the most: what its statements write is to be done well within the time that
/// the database gives a statement, and others' withdrawals wait for it on a store with one writer.
pub(super) const MOST: i64 = 100_000;

/// The oldest earnings, as many as the sum takes, and no more than [`MOST`]. Whose they are is asked by itself, so that
/// the index on open earnings gives them in their order and is read no further.
const EARNINGS: &str = "select e.id, e.currency_code, e.available_at, e.available_amount, e.earned_at, e.order_id, e.usage_record_id
from supply_earnings e where e.id in (
  select x.id from (
    select p.id, sum(p.available_amount) over (order by p.available_at, p.id) - p.available_amount as older
    from (
      select o.id, o.available_at, o.available_amount from supply_earnings o
      where o.user_id = (select s.user_id from supply_suppliers s where s.tenant_id = $1)
        and o.currency_code = (select s.currency_code from supply_suppliers s where s.tenant_id = $2)
        and o.available_amount > 0 order by o.available_at, o.id limit $3
    ) p
  ) x where x.older < $4)
order by e.available_at, e.id {for_update}";

/// Settlements of the last days are looked at; the day itself is the decision's, by the store's clock.
const LOOK_BACK: Duration = Duration::from_secs(48 * 3600);

/// What is decided from.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) books: Books,
    pub(super) supplier: Option<Supplier>,
    pub(super) standing: Standing,
    /// Recent settlements that did not fail: when, how much.
    pub(super) recent: Vec<(Time, Money)>,
    pub(super) code: Option<SmsCode>,
    /// Of the settlement to come.
    pub(super) id: i64,
    pub(super) portions: Vec<Portion>,
}

/// How the supplier stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) version: i64,
    pub(super) open: Option<i64>,
    pub(super) processing_at: Option<Time>,
}

/// A row of `supply_sms_codes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SmsCode {
    pub(super) id: i64,
    pub(super) code_ref: String,
    pub(super) code_hash: String,
    pub(super) key_version: i64,
    pub(super) expires_at: Time,
    pub(super) attempts: i64,
    pub(super) consumed_at: Option<Time>,
}

/// An earning that may be taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Portion {
    pub(super) lot: Lot,
    pub(super) earned_at: Time,
    pub(super) order_id: Option<i64>,
    pub(super) usage_record_id: Option<i64>,
}

impl State {
    pub(super) fn load(context: &Context, total: Money) -> Vec<Query> {
        let tenant = context.caller.tenant_id;
        let since = context.house.clock.now().minus(LOOK_BACK);
        let query = |name, sql: &'static str, by| Query::new(name, sql, by);
        vec![
            books::of_supplier(tenant),
            query("withdraw.supplier", Supplier::OF_TENANT, values![tenant]),
            query("withdraw.standing", STANDING, values![tenant]),
            query("withdraw.recent", RECENT, values![tenant, since]),
            query("withdraw.code", CODE, values![tenant]),
            query("withdraw.id", NEXT_ID, vec![]),
            query("withdraw.earnings", EARNINGS, values![tenant, tenant, MOST, Value::Money(total.count())]),
        ]
    }

    pub(super) fn read(rows: &[Vec<Row>]) -> Result<Self, Error> {
        let [balances, supplier, standing, recent, code, id, portions] = rows else {
            return Err(Error::Corrupt { table: "supply_settlements", column: "answers".into() });
        };
        let missing = || Error::Corrupt { table: "supply_settlements", column: "next id".into() };
        Ok(Self {
            books: Books::read(balances)?,
            supplier: supplier.first().map(Supplier::read).transpose()?,
            standing: standing.first().map(Standing::read).transpose()?.unwrap_or_default(),
            recent: recent.iter().map(created).collect::<Result<_, _>>()?,
            code: code.first().map(SmsCode::read).transpose()?,
            id: Reader::new(id.first().ok_or_else(missing)?).int()?,
            portions: portions.iter().map(Portion::read).collect::<Result<_, _>>()?,
        })
    }

    /// A refusal as it is put on record: about the supplier, as it stood (section 16.1).
    pub(super) fn seen(&self, refusal: Refusal) -> Refusal {
        let Some(supplier) = &self.supplier else { return refusal };
        let id = format!("supplier:{}", supplier.user_id);
        let before = json!({ "status": supplier.status.as_str(), "version": self.standing.version,
            "open_settlement_id": self.standing.open });
        refusal.about(Object { kind: Supplier::KIND, id }, before)
    }
}

impl Standing {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        Ok(Self {
            version: reader.int()?,
            open: reader.int_or_null()?,
            processing_at: reader.time_or_null()?,
        })
    }
}

impl SmsCode {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        Ok(Self {
            id: reader.int()?,
            code_ref: reader.text()?.to_owned(),
            code_hash: reader.text()?.to_owned(),
            key_version: reader.int()?,
            expires_at: reader.time()?,
            attempts: reader.int()?,
            consumed_at: reader.time_or_null()?,
        })
    }
}

impl Portion {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let (id, currency) = (reader.int()?, reader.currency()?);
        let (available_at, amount) = (reader.time()?, reader.money(currency)?);
        Ok(Self {
            lot: Lot { earning: ids::Earning(id), available_at, amount },
            earned_at: reader.time()?,
            order_id: reader.int_or_null()?,
            usage_record_id: reader.int_or_null()?,
        })
    }
}

fn created(row: &Row) -> Result<(Time, Money), Error> {
    let mut reader = Reader::new(row);
    let (at, currency) = (reader.time()?, reader.currency()?);
    Ok((at, reader.money(currency)?))
}
