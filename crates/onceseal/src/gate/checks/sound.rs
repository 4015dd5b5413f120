//! What holds over the whole run: no success without its audit, no version without its event, and a ledger that adds up
//! (sections 5.1 and 6).

use std::collections::BTreeSet;

use serde_json::json;

use super::super::check::{Book, Check};
use super::super::stage::Stage;

/// Each must count nothing.
const ZERO: [(&str, &str); 6] = [
    (
        "journals that do not balance",
        "select count(*) from (select journal_id from billing_ledger_entries group by journal_id
         having sum(case direction when 'dr' then amount else -amount end) <> 0) x",
    ),
    ("balances of a supplier below zero", "select count(*) from billing_accounts where balance < 0"),
    (
        "settlements whose items differ from them",
        "select count(*) from supply_settlements s where s.total_amount <> (select sum(i.amount)
         from supply_settlement_items i where i.settlement_id = s.id)",
    ),
    (
        "suppliers with two open settlements",
        "select count(*) from (select user_id from supply_settlements where status in ('pending', 'processing')
         group by user_id having count(*) > 1) x",
    ),
    (
        "facts that were posted twice",
        "select count(*) from (select journal_type, source_type, source_id from billing_journals
         group by journal_type, source_type, source_id having count(*) > 1) x",
    ),
    (
        "settlements with two ends",
        "select count(*) from (select source_id from billing_journals where source_type = 'settlement'
         and journal_type in ('cancel', 'payout_ok', 'payout_fail') group by source_id having count(*) > 1) x",
    ),
];

pub(super) async fn run(stage: &Stage, book: &Book) {
    book.check("FI-004.count", async |check| audited(stage, check).await).await;
    book.check("FI-005.join", async |check| told(stage, check).await).await;
    book.check("LED-001", async |check| ledger(stage, check).await).await;
}

/// The keys that succeeded are the keys that the audit knows as successes.
async fn audited(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let done = "select distinct idempotency_key from supply_idempotency_record where status = 'succeeded'";
    let told = "select distinct idempotency_key from audit_events where result_code = 'OK'
        and coalesce(idempotency_key, '') <> '' and event_name not like 'idempotency.%' and operator_type <> 'system'";
    let set = async |sql: &str| {
        Ok::<_, String>(stage.database.texts(sql).await?.into_iter().collect::<BTreeSet<_>>())
    };
    let (done, told) = (set(done).await?, set(told).await?);
    check.value("keys that succeeded", done.len());
    check.so("there are some", done.len() > 100);
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).cloned().collect()
    };
    check.equal("successes without their audit", &Vec::<String>::new(), &only(&done, &told));
    check.equal("successes in the audit alone", &Vec::<String>::new(), &only(&told, &done));
    Ok(())
}

/// Each step of a version has one event.
async fn told(stage: &Stage, check: &mut Check) -> Result<(), String> {
    for (table, object) in
        [("supply_packages", "supply_package"), ("supply_settlements", "supply_settlement")]
    {
        // What is ordered moves a package's quota, and is the order's event.
        let sold = match object {
            "supply_package" => {
                "and not exists (select 1 from supply_orders b where b.supply_package_id = t.id)"
            }
            _ => "",
        };
        let steps = format!("select sum(version) + count(*) from {table}");
        let steps = stage.database.count(&steps).await?;
        check.value(format!("steps of {object}"), steps);
        check.so(format!("there are steps of {object}"), steps > 20);
        let off = format!(
            "select cast(t.id as text) from {table} t where t.version + 1 <> (select count(*) from outbox o
             where o.object_type = '{object}' and o.object_id = cast(t.id as text)
             and o.event_name <> 'supply.alert.raise.succeeded') {sold}"
        );
        let off = stage.database.texts(&off).await?;
        check.equal(format!("{object} with more or fewer events than steps"), &Vec::<String>::new(), &off);
        let twice = format!(
            "select object_id from outbox where object_type = '{object}' and event_name <> 'supply.alert.raise.succeeded'
             group by object_id, aggregate_version having count(*) > 1"
        );
        let twice = stage.database.texts(&twice).await?;
        check.equal(format!("versions of {object} with two events"), &Vec::<String>::new(), &twice);
    }
    let lame =
        "select count(*) from outbox where event_name like 'supply.%' and event_name not like 'supply.%.%.%'";
    check.equal("events that are not named in four parts", &0, &stage.database.count(lame).await?);
    Ok(())
}

async fn ledger(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let journals = stage.database.count("select count(*) from billing_journals").await?;
    check.value("journals", journals);
    check.so("there are journals", journals > 100);
    for (what, sql) in ZERO {
        check.equal(what, &0, &stage.database.count(sql).await?);
    }
    let seen = stage.operated("/ledger").await?;
    check.equal("what `onceseal ledger verify` finds", &Some(&json!([])), &seen.get("violations"));
    Ok(())
}
