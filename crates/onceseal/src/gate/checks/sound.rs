//! What holds over the whole run: no success without its audit, no version without its event, and a ledger that adds up
//! (sections 5.1 and 6).

use std::collections::BTreeSet;

use serde_json::json;

use super::super::check::{Book, Check};
use super::super::proven::Question;
use super::super::stage::Stage;

/// What a ledger and its settlements must be free of.
const NONE: [Question<'_>; 7] = [
    Question {
        what: "journals that do not balance",
        sql: "select journal_id from billing_ledger_entries group by journal_id
         having sum(case direction when 'dr' then amount else -amount end) <> 0",
        tables: &["billing_ledger_entries"],
        plants: &["update billing_ledger_entries set amount = amount + 1
         where id = (select min(id) from billing_ledger_entries)"],
    },
    Question {
        what: "journals without entries",
        sql: "select j.id from billing_journals j
         where not exists (select 1 from billing_ledger_entries e where e.journal_id = j.id)",
        tables: &["billing_ledger_entries"],
        plants: &["delete from billing_ledger_entries
         where journal_id = (select max(id) from billing_journals)"],
    },
    Question {
        what: "balances below zero",
        sql: "select id from billing_accounts where balance < 0",
        tables: &["billing_accounts"],
        plants: &["update billing_accounts set balance = -1
         where id = (select min(id) from billing_accounts where balance is not null)"],
    },
    Question {
        what: "settlements whose items differ from them",
        sql: "select s.id from supply_settlements s where s.total_amount <> coalesce((select sum(i.amount)
         from supply_settlement_items i where i.settlement_id = s.id), 0)",
        tables: &["supply_settlement_items"],
        plants: &[
            "delete from supply_settlement_items where settlement_id = (select max(id) from supply_settlements)",
            "update supply_settlement_items set amount = amount + 1
             where settlement_id = (select max(id) from supply_settlements)",
        ],
    },
    Question {
        what: "suppliers with two open settlements",
        sql: "select user_id from supply_settlements where status in ('pending', 'processing')
         group by user_id having count(*) > 1",
        tables: &["supply_settlements"],
        plants: &[
            "update supply_settlements set status = 'pending' where user_id = (select min(x.user_id) from
             (select user_id from supply_settlements group by user_id having count(*) > 1) x)",
            "update supply_settlements set status = 'processing' where user_id = (select min(x.user_id) from
             (select user_id from supply_settlements group by user_id having count(*) > 1) x)",
        ],
    },
    Question {
        what: "facts that were posted twice",
        sql: "select journal_type, source_type, source_id from billing_journals
         group by journal_type, source_type, source_id having count(*) > 1",
        tables: &["billing_journals"],
        plants: &["insert into billing_journals select * from billing_journals
         where id = (select min(id) from billing_journals)"],
    },
    Question {
        what: "settlements with two ends",
        sql: "select source_id from billing_journals where source_type = 'settlement'
         and journal_type in ('J-CANCEL', 'J-PAYOUT-OK', 'J-PAYOUT-FAIL') group by source_id having count(*) > 1",
        tables: &["billing_journals"],
        plants: &[
            "update billing_journals set journal_type = 'J-PAYOUT-OK' where journal_type = 'J-WITHDRAW'
             and source_id in (select source_id from billing_journals where journal_type = 'J-CANCEL')",
            "update billing_journals set journal_type = 'J-PAYOUT-FAIL' where journal_type = 'J-WITHDRAW'
             and source_id in (select source_id from billing_journals where journal_type = 'J-CANCEL')",
            "update billing_journals set journal_type = 'J-CANCEL' where journal_type = 'J-WITHDRAW'
             and source_id in (select source_id from billing_journals where journal_type = 'J-PAYOUT-OK')",
        ],
    },
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
        let one = format!("{object} with more or fewer events than steps");
        let off = format!(
            "select cast(t.id as text) from {table} t where t.version + 1 <> (select count(*) from outbox o
             where o.object_type = '{object}' and o.object_id = cast(t.id as text)
             and o.event_name <> 'supply.alert.raise.succeeded') {sold}"
        );
        let last = format!(
            "select max(o.id) from outbox o where o.object_type = '{object}' and o.object_id = (
               select cast(max(t.id) as text) from {table} t where t.version > 0 {sold})
             and o.event_name <> 'supply.alert.raise.succeeded'"
        );
        let gone = format!("delete from outbox where id = ({last})");
        let again = format!("insert into outbox select * from outbox where id = ({last})");
        asked(stage, check, (&one, &off, &[gone, again.clone()])).await?;
        let other = format!("versions of {object} with two events");
        let twice = format!(
            "select object_id from outbox where object_type = '{object}' and event_name <> 'supply.alert.raise.succeeded'
             group by object_id, aggregate_version having count(*) > 1"
        );
        asked(stage, check, (&other, &twice, &[again])).await?;
    }
    let lame = "select event_name from outbox where event_name like 'supply.%'
        and (event_name not like 'supply.%.%.%' or event_name like 'supply.%.%.%.%')";
    let plants = ["supply.package.publish", "supply.package.price.batch_update.succeeded"].map(|name| {
        format!("update outbox set event_name = '{name}' where id = (select max(id) from outbox)")
    });
    asked(stage, check, ("events that are not named in four parts", lame, &plants)).await
}

/// Nothing is found in the outbox, and what is planted there is.
async fn asked(
    stage: &Stage,
    check: &mut Check,
    (what, sql, plants): (&str, &str, &[String]),
) -> Result<(), String> {
    let plants: Vec<&str> = plants.iter().map(String::as_str).collect();
    let question = Question { what, sql, tables: &["outbox"], plants: &plants };
    question.none(&stage.database, check).await
}

async fn ledger(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let journals = stage.database.count("select count(*) from billing_journals").await?;
    check.value("journals", journals);
    check.so("there are journals", journals > 100);
    for question in NONE {
        question.none(&stage.database, check).await?;
    }
    let seen = stage.operated("/ledger").await?;
    check.equal("what `onceseal ledger verify` finds", &Some(&json!([])), &seen.get("violations"));
    Ok(())
}
