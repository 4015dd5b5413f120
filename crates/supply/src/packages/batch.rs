//! Changes the prices of many packages (sections 3.2 of XR-001, 8.3): in slices, each a transaction of its own, with
//! an itemised receipt; an item that fails takes no other with it. What became of an item is a row, by the
//! record of the key and its generation, so that whoever takes the work over goes on behind the last slice.
//!
//! What a slice does is in `slice`.

mod slice;

use std::sync::Arc;

use door::{Failure, Form, Slice, Steps};
use kernel::Time;
use kernel::money::{Malformed, Price, Prices};
use serde::Serialize;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Write, values};

use self::slice::Sliced;
use super::fields::field;
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::policy::Policy;
use crate::rows::Reader;
use crate::standing;

const FIND_JOB: &str = "select j.id from supply_batch_jobs j
where j.idempotency_record_id = $1 and j.claim_generation = $2";
const NEXT_ID: &str = "select {next_id supply_batch_jobs}";
const INSERT_JOB: &str = "insert into supply_batch_jobs (id, tenant_id, operator_id, idempotency_record_id, claim_generation, request_id, audit_trace_id, total, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const RECEIPTS: &str = "select i.package_id, i.error_code from supply_batch_items i
where i.job_id = $1 and i.tenant_id = $2 order by i.position";
const FINISH: &str = "update supply_batch_jobs set success_count = $1, failed_count = $2, finished_at = $3
where id = $4 and tenant_id = $5 and total = $6 and finished_at is null";

const KIND: &str = "supply_batch_job";
const EVENT: &str = "supply.package.price.batch_update";
/// What the tables have room for, whatever the policy says.
pub const ITEMS_MOST: usize = 200;

/// New prices of one package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Which package.
    pub package_id: i64,
    /// `None` where one of them is no price: this item fails with `SUP_PKG_4004`, the others don't.
    pub prices: Option<Prices>,
}

impl Item {
    /// Reads the texts that stood in the JSON.
    #[must_use]
    pub fn parse(package_id: i64, price_per_1m_input: &str, price_per_1m_output: &str) -> Self {
        let (input, output) = (Price::parse(price_per_1m_input), Price::parse(price_per_1m_output));
        let prices = input.ok().zip(output.ok()).map(|(input, output)| Prices { input, output });
        Self { package_id, prices }
    }

    /// Whether a price is a number that can be judged, by its text and the same in plain decimal (which is the text
    /// itself where a string was sent). One that is negative, too large or too fine fails its item; what is no
    /// spelling of an amount (section 4, rule 2), or only a spelling and no value away from a price, fails the
    /// request, before its key is claimed: numbers that are equal make one payload (section 7.2).
    ///
    /// # Errors
    /// The rule that the spelling breaks.
    pub fn spelt(text: &str, plain: &str) -> Result<(), Malformed> {
        match Price::parse(text) {
            Ok(_) => Ok(()),
            Err(Malformed::Sign | Malformed::Decimals { .. } | Malformed::TooLarge { .. })
                if Price::parse(plain).is_err() && !text.contains(['e', 'E']) =>
            {
                // The sign is what is looked at first: behind it there must be a number, too.
                match Price::parse(text.strip_prefix(['+', '-']).unwrap_or(text)) {
                    Ok(_) | Err(Malformed::Decimals { .. } | Malformed::TooLarge { .. }) => Ok(()),
                    Err(malformed) => Err(malformed),
                }
            }
            Err(malformed) => Err(malformed),
        }
    }
}

/// `POST /api/v1/supply/packages/batch-price`. Under a key only: the edge sees to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPrice {
    /// In the order of the request.
    items: Arc<[Item]>,
}

impl BatchPrice {
    /// A batch that can be worked on.
    ///
    /// # Errors
    /// `SUP_COM_4001`: no item or more than `batch_max_items`, an id that is none, an id that stands twice.
    pub fn of(policy: &Policy, items: Vec<Item>) -> Result<Self, Refusal> {
        let most = policy.batch_max.min(ITEMS_MOST);
        if items.is_empty() || items.len() > most {
            return Err(field("items", "count"));
        }
        let name = |n: usize| format!("items[{n}].package_id");
        if let Some(n) = items.iter().position(|item| item.package_id < 1) {
            return Err(field(name(n), "positive"));
        }
        let mut seen = std::collections::HashSet::new();
        match items.iter().position(|item| !seen.insert(item.package_id)) {
            Some(n) => Err(field(name(n), "duplicate")),
            None => Ok(Self { items: items.into() }),
        }
    }

    /// The items with their places in the request, in the order in which packages are locked.
    fn sorted(&self) -> Vec<(i64, Item)> {
        let mut sorted: Vec<_> = (0..).zip(self.items.iter().copied()).collect();
        sorted.sort_unstable_by_key(|(_, item)| item.package_id);
        sorted
    }

    /// The job of this use of the key: the one that is there, or a new one.
    /// `None` where the supplier may not write, which is asked before the first slice.
    async fn job(&self, context: &Context, steps: &Steps) -> Result<Option<Job>, Failure> {
        let keyless = || Failure::Step { step: "batch", cause: "a batch needs an idempotency key".into() };
        let (record, generation) = steps.record().ok_or_else(keyless)?;
        let reads = vec![
            Query::new("batch.find", FIND_JOB, values![record, generation]),
            Query::new("batch.next_id", NEXT_ID, vec![]),
            standing::of_tenant(context),
        ];
        let (caller, total) = (context.caller.clone(), i64::try_from(self.items.len()).unwrap_or(i64::MAX));
        let plan = move |rows: &[Vec<Row>], at: Time| {
            let [found, next, supplier] = rows else { return Err(damaged()) };
            let job = |id: Option<i64>, writes| {
                let value = id.map(|id| Job { id });
                Ok(Slice { writes, audit: Vec::new(), outbox: Vec::new(), value })
            };
            if let Some(row) = found.first() {
                return job(Some(row.int(0)?), Vec::new());
            }
            if standing::refused(supplier)?.is_some() {
                return job(None, Vec::new());
            }
            let id = next.first().ok_or_else(damaged)?.int(0)?;
            let row = [
                values![id, caller.tenant_id, caller.operator_id, record, generation],
                values![&caller.request_id, &caller.trace_id, total, at],
            ];
            job(Some(id), vec![Write::one("batch.job", INSERT_JOB, row.concat())])
        };
        steps.slice("batch.job", reads, plan).await
    }
}

/// The row that the items' receipts belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub(super) id: i64,
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    package_id: i64,
    failed: Option<Code>,
}

impl Receipt {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let (package_id, code) = (reader.int()?, reader.text_or_null()?);
        let known = |word: &str| Code::ALL.iter().find(|code| code.as_str() == word).copied();
        let failed = code.map(|word| known(word).ok_or_else(damaged)).transpose()?;
        Ok(Self { package_id, failed })
    }
}

fn damaged() -> Error {
    Error::Corrupt { table: "supply_batch_items", column: "answers".into() }
}

/// `data` of the answer; failures in the order of the request.
#[derive(Debug, Serialize)]
struct Done {
    batch_id: String,
    total: usize,
    success_count: usize,
    failed_count: usize,
    failures: Vec<FailedItem>,
}

#[derive(Debug, Serialize)]
struct FailedItem {
    package_id: i64,
    error_code: &'static str,
    message: &'static str,
    message_zh: &'static str,
}

impl Done {
    fn of(job: Job, receipts: &[Receipt]) -> Self {
        let failed = receipts.iter().filter_map(|receipt| Some((receipt.package_id, receipt.failed?)));
        let failures: Vec<FailedItem> = failed
            .map(|(package_id, code)| FailedItem {
                package_id,
                error_code: code.as_str(),
                message: code.message(),
                message_zh: code.message_zh(),
            })
            .collect();
        let (total, failed_count) = (receipts.len(), failures.len());
        let success_count = total - failed_count;
        Self { batch_id: job.id.to_string(), total, success_count, failed_count, failures }
    }

    /// How it ended, and what the outbox calls that.
    const fn result(&self) -> (&'static str, &'static str) {
        match (self.success_count, self.failed_count) {
            (_, 0) => ("succeeded", "supply.package.batch_price.succeeded"),
            (0, _) => ("failed", "supply.package.batch_price.failed"),
            _ => ("partial", "supply.package.batch_price.partial"),
        }
    }

    /// What the audit must say of a batch (section 3.2 of XR-001).
    fn metadata(&self) -> Json {
        let items = self.failures.iter();
        let items: Vec<Json> = items
            .map(|item| json!({ "package_id": item.package_id, "error_code": item.error_code }))
            .collect();
        json!({
            "batch_id": self.batch_id, "total": self.total, "success": self.success_count,
            "failed": self.failed_count, "failed_items": items,
        })
    }
}

impl Action for BatchPrice {
    type Prepared = Option<Job>;
    type State = Vec<Receipt>;

    fn event(&self) -> &'static str {
        EVENT
    }

    fn object(&self) -> Object {
        Object::new_of(KIND)
    }

    fn form(&self, context: &Context) -> Form {
        Form::Leased(context.house.policy.lease)
    }

    fn prepares(&self) -> bool {
        true
    }

    /// Asked before the first slice; what began is ended.
    fn is_write_of_supplier(&self) -> bool {
        false
    }

    /// All the slices.
    async fn prepare(&self, context: &Context, steps: &Steps) -> Result<Option<Job>, Failure> {
        let Some(job) = self.job(context, steps).await? else { return Ok(None) };
        let size = context.house.policy.batch_slice.clamp(1, ITEMS_MOST);
        for items in self.sorted().chunks(size) {
            let sliced = Arc::new(Sliced { context: context.clone(), job, items: items.to_vec() });
            let reads = sliced.reads(size);
            steps.slice("batch.slice", reads, move |rows, at| sliced.plan(rows, at)).await?;
        }
        Ok(Some(job))
    }

    fn load(&self, context: &Context, job: &Option<Job>) -> Vec<Query> {
        let Some(job) = job else { return Vec::new() };
        vec![Query::new("batch.receipts", RECEIPTS, values![job.id, context.caller.tenant_id])]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Vec<Receipt>, Error> {
        rows.iter().flatten().map(Receipt::read).collect()
    }

    fn decide(
        &self,
        context: &Context,
        job: &Option<Job>,
        receipts: &Vec<Receipt>,
        at: Time,
    ) -> Result<Change, Stop> {
        let job = job.as_ref().ok_or_else(|| Refusal::of(Code::SetBlocked))?;
        if !receipts
            .iter()
            .map(|receipt| receipt.package_id)
            .eq(self.items.iter().map(|item| item.package_id))
        {
            return Err(damaged().into());
        }
        let done = Done::of(*job, receipts);
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let (succeeded, failed) = (count(done.success_count), count(done.failed_count));
        let row = values![succeeded, failed, at, job.id, context.caller.tenant_id, count(done.total)];
        let writes = vec![Write::one("batch.finish", FINISH, row)];
        let (status, name) = done.result();
        let object = Object::row(KIND, job.id);
        let after = json!({
            "status": status, "version": 1,
            "total": done.total, "success": done.success_count, "failed": done.failed_count,
        });
        let (told, before) = (object.clone(), json!({}));
        let event = Event { name, object: told, version: 1, before, after: after.clone() };
        let metadata = done.metadata();
        Ok(Change { after, metadata, writes, events: vec![event], ..Change::of(object, &done)? })
    }
}

#[cfg(test)]
mod tests;
