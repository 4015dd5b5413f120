//! One slice of a batch: its packages are locked in the order of their ids, judged, and changed or refused item by
//! item; each item leaves its receipt in the same transaction. Locked, so that no change of theirs can come
//! between: of two batches that meet one waits. Pure but for what it is given.

use std::collections::{HashMap, HashSet};

use door::{AuditRow, OutboxRow, Slice, planted};
use kernel::Time;
use kernel::money::Prices;
use serde_json::{Value as Json, json};
use store::{Error, Query, Row, Value, Write, values};

use super::{EVENT, Item, Job, damaged};
use crate::action::{Context, Event, Refusal};
use crate::code::{Code, Invariant};
use crate::exit;
use crate::packages::floor::{self, Floor};
use crate::packages::found;
use crate::rows::{Package, PackageStatus, Reader};

const RECEIVED: &str = "select i.package_id from supply_batch_items i where i.job_id = $1";

/// Floors of the models of these packages.
const OF_PACKAGES: &str = "where exists (select 1 from supply_packages p
  where p.platform = f.provider and p.model = f.model and p.currency_code = f.currency_code
    and p.tenant_id = $1 and p.id in (IDS))";

const PRICE: &str = "update supply_packages
set price_per_1m_input = $1, price_per_1m_output = $2, version = version + 1,
  request_id = $3, idempotency_key = $4, audit_trace_id = $5, updated_ip = $6, updated_at = $7
where id = $8 and tenant_id = $9 and status in ('draft', 'active', 'paused') and version = $10";

const RECEIPT: &str =
    "insert into supply_batch_items (job_id, package_id, tenant_id, position, result, error_code, created_at)
values ($1, $2, $3, $4, $5, $6, $7)";

/// Provider, model and currency of a floor.
type Model<'a> = (&'a str, &'a str, &'a str);

/// Some of a batch's items, with their places in the request.
#[derive(Debug)]
pub(super) struct Sliced {
    pub(super) context: Context,
    pub(super) job: Job,
    pub(super) items: Vec<(i64, Item)>,
}

/// What the slice wants, item by item.
#[derive(Default)]
struct Wanted {
    writes: Vec<Write>,
    audit: Vec<AuditRow>,
    outbox: Vec<OutboxRow>,
}

impl Sliced {
    /// The packages, locked; which items are done; the floors. Each statement has `size` ids, the last one
    /// again and again where there are fewer, so that its text is the same for every slice.
    pub(super) fn reads(&self, size: usize) -> Vec<Query> {
        let ids: Vec<i64> = self.items.iter().map(|(_, item)| item.package_id).collect();
        let last = ids.last().copied().unwrap_or_default();
        let ids = ids.into_iter().chain(std::iter::repeat(last)).take(size);
        let mut by = values![self.context.caller.tenant_id];
        by.extend(ids.map(Value::from));
        let places = (2..=size + 1).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ");
        let packages = format!(
            "select {} from supply_packages p where p.tenant_id = $1 and p.id in ({places})
             order by p.id {{for_update}}",
            Package::COLUMNS
        );
        let floors = floor::select(&OF_PACKAGES.replace("IDS", &places));
        vec![
            Query::new("batch.packages", packages, by.clone()),
            Query::new("batch.received", RECEIVED, values![self.job.id]),
            Query::new("batch.floors", floors, by),
        ]
    }

    /// What became of each item that has no receipt yet.
    pub(super) fn plan(&self, rows: &[Vec<Row>], at: Time) -> Result<Slice<()>, Error> {
        let [packages, received, floors] = rows else { return Err(damaged()) };
        let packages = packages.iter().map(Package::read).collect::<Result<Vec<_>, _>>()?;
        let packages: HashMap<i64, &Package> = packages.iter().map(|each| (each.id, each)).collect();
        let received = received.iter().map(|row| row.int(0)).collect::<Result<HashSet<_>, _>>()?;
        let mut of_models: HashMap<Model<'_>, Vec<Floor>> = HashMap::new();
        for row in floors {
            let mut reader = Reader::new(row);
            let model = (reader.text()?, reader.text()?, reader.text()?);
            of_models.entry(model).or_default().push(Floor::next(&mut reader)?);
        }
        let mut wanted = Wanted::default();
        // As somebody takes a batch over who does not ask what is done already.
        let blind = planted::is("slice-done-again");
        let open = self.items.iter().filter(|(_, item)| blind || !received.contains(&item.package_id));
        for (position, item) in open {
            let package = packages.get(&item.package_id).copied();
            let floors = package.and_then(|each| {
                of_models.get(&(each.platform.as_str(), each.model.as_str(), each.currency.code()))
            });
            match judge(item, package, floors.map_or(&[], Vec::as_slice), at) {
                Ok((package, prices)) => {
                    self.changed(&mut wanted, package, prices, at);
                    wanted.writes.push(self.receipt(*position, item, None, at));
                }
                Err(refusal) => {
                    wanted.audit.extend(self.violation(item, package, &refusal));
                    wanted.writes.push(self.receipt(*position, item, Some(refusal.code), at));
                }
            }
        }
        let Wanted { writes, audit, outbox } = wanted;
        exit::rows(&self.context.house, &audit, &outbox)?;
        Ok(Slice { writes, audit, outbox, value: () })
    }

    /// Price, audit and event of an item.
    fn changed(&self, wanted: &mut Wanted, package: &Package, new: Prices, at: Time) {
        let context = &self.context;
        let row = [
            vec![Value::Money(new.input.count()), Value::Money(new.output.count())],
            found::bound(context, package, at),
        ];
        wanted.writes.push(Write::one("batch.price", PRICE, row.concat()));
        let old = Prices { input: package.price_input, output: package.price_output };
        let version = package.version + 1;
        let (before, after) = (priced(package, package.version, old), priced(package, version, new));
        let object = found::object(package.id);
        let mut audit = context.caller.audit("supply.package.price.update", &object);
        (audit.before_state, audit.after_state) = (before.clone(), after.clone());
        audit.metadata = json!({ "batch_id": self.job.id.to_string() });
        wanted.audit.push(audit);
        let name = "supply.package.price_update.succeeded";
        wanted.outbox.push(Event { name, object, version, before, after }.row(context, at));
    }

    /// A broken invariant is audited, each item its own (section 8.3).
    fn violation(&self, item: &Item, package: Option<&Package>, refusal: &Refusal) -> Option<AuditRow> {
        let rule = refusal.rule?;
        let mut row = self.context.caller.audit("invariant_violation", &found::object(item.package_id));
        row.action = EVENT;
        row.result_code = refusal.code.as_str().into();
        row.rule_code = Some(Invariant::as_str(rule));
        if let Some(package) = package {
            (row.before_state, row.after_state) = (package.state(), package.state());
        }
        row.metadata = json!({ "details": refusal.details.plain(), "batch_id": self.job.id.to_string() });
        Some(row)
    }

    fn receipt(&self, position: i64, item: &Item, failed: Option<Code>, at: Time) -> Write {
        let result = if failed.is_none() { "success" } else { "failed" };
        let row = [
            values![self.job.id, item.package_id, self.context.caller.tenant_id, position],
            values![result, failed.map(Code::as_str), at],
        ];
        if planted::is("slice-done-again") {
            return Write::any("batch.receipt", format!("{RECEIPT} on conflict do nothing"), row.concat());
        }
        Write::one("batch.receipt", RECEIPT, row.concat())
    }
}

/// What the audit says of a package's prices.
fn priced(package: &Package, version: i64, prices: Prices) -> Json {
    json!({
        "status": package.status.as_str(), "version": version,
        "price_per_1m_input": prices.input.text(), "price_per_1m_output": prices.output.text(),
    })
}

/// Whether an item may be: its form, its package, the package's state, the floors (sections 6.2, 8.3). To change a
/// price is no change of state, so INV-PKG-001 and -002 have no part in it.
pub(super) fn judge<'p>(
    item: &Item,
    package: Option<&'p Package>,
    floors: &[Floor],
    at: Time,
) -> Result<(&'p Package, Prices), Refusal> {
    let prices = item.prices.ok_or_else(|| Refusal::of(Code::PkgPrice))?;
    let package = package.ok_or_else(|| Refusal::of(Code::PkgMissing))?;
    match package.status {
        PackageStatus::SoldOut => return Err(Refusal::of(Code::PkgState)),
        PackageStatus::Expired => return Err(Refusal::of(Code::PkgExpired)),
        // Though the sweeper is late.
        _ if package.end_at.is_some_and(|end| end <= at) => return Err(Refusal::of(Code::PkgExpired)),
        PackageStatus::Draft | PackageStatus::Active | PackageStatus::Paused => {}
    }
    floor::allowed(prices, floors, at)?;
    Ok((package, prices))
}
