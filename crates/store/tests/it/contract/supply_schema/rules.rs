//! Every rule of the chain's tables, tried on the running engine: `rules.txt` has what each refuses.

use std::collections::BTreeSet;

use store::dialect::Dialect;
use store::migration::{CORE, SUPPLY};

use super::files;
use super::look::{Look, TAKEN};
use super::rows::{self, Value, parsed};

/// Unique only so that other tables can point at them; no row can break them before the primary key.
const POINTED_AT: [&str; 2] = ["uq_account_of_tenant", "uq_package_of_tenant"];
/// Tables that only grow.
const APPEND_ONLY: [&str; 5] = [
    "audit_events",
    "billing_journals",
    "billing_ledger_entries",
    "supply_settlement_items",
    "supply_usage_records",
];

struct Case {
    rule: &'static str,
    /// Of a unique rule.
    columns: Option<&'static str>,
    table: &'static str,
    values: Vec<Value>,
}

fn cases() -> Vec<Case> {
    let (_, lines) = include_str!("rules.txt").split_once("\n\n").unwrap();
    let lines = lines.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (rule, rest) = line.split_once(": ").unwrap();
            let (table, values) = rest.split_once(": ").unwrap();
            let (rule, columns) = rule
                .split_once(" (")
                .map_or((rule, None), |(rule, columns)| (rule, Some(columns.trim_end_matches(')'))));
            Case { rule, columns, table, values: parsed(values) }
        })
        .collect()
}

impl Case {
    /// What the engine says of it.
    fn is_expected(&self, dialect: Dialect, end: &str) -> bool {
        match (self.rule, self.columns, dialect) {
            (TAKEN, _, _) => end == TAKEN,
            (rule, None, Dialect::Sqlite) => end == format!("CHECK constraint failed: {rule}"),
            (rule, None, Dialect::Postgres) => end == format!("23514 {rule}"),
            (rule, Some(_), Dialect::Postgres) => end == format!("23505 {rule}"),
            (_, Some(columns), Dialect::Sqlite) => columns.split(" or ").any(|columns| {
                let columns: Vec<_> =
                    columns.split(", ").map(|column| format!("{}.{column}", self.table)).collect();
                end == format!("UNIQUE constraint failed: {}", columns.join(", "))
            }),
        }
    }
}

async fn filled() -> Look {
    let look = Look::at(&[CORE, SUPPLY]).await;
    let rows: Vec<_> = rows::all().iter().map(|row| row.insert(look.dialect())).collect();
    look.run(&rows);
    look
}

#[tokio::test]
async fn a_second_row_of_each_table_is_taken() {
    let look = filled().await;
    let tables: BTreeSet<_> = rows::all().iter().map(|row| row.table).collect();
    let rows: Vec<_> = tables.iter().map(|table| rows::of(table)).filter(|row| !row.is_fixture()).collect();
    let statements: Vec<_> = rows.iter().map(|row| row.second(look.dialect(), &[])).collect();
    for (row, end) in rows.iter().zip(look.tried(&statements)) {
        assert_eq!(end, TAKEN, "{}", row.table);
    }
}

#[tokio::test]
async fn every_rule_refuses_what_breaks_it_and_takes_every_state_that_may_be() {
    let look = filled().await;
    let cases = cases();
    let statements: Vec<_> =
        cases.iter().map(|case| rows::of(case.table).second(look.dialect(), &case.values)).collect();
    let mut wrong = Vec::new();
    for (case, end) in cases.iter().zip(look.tried(&statements)) {
        if !case.is_expected(look.dialect(), &end) {
            wrong.push(format!("{} {:?}: {end}", case.rule, case.values));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Names stand in the files, so that a refusal can be read in a log on either engine.
#[test]
fn no_rule_is_without_a_name_and_a_case() {
    let (mut named, mut checks) = (BTreeSet::new(), 0);
    for file in SUPPLY.files {
        let words: Vec<_> = file.sql.split_whitespace().collect();
        checks += words.windows(2).filter(|pair| pair[0] == "check" && pair[1].starts_with('(')).count();
        for pair in words.windows(3).filter(|words| words[0] == "constraint") {
            assert!(["check", "unique"].contains(&pair[2]), "{pair:?}");
            checks -= usize::from(pair[2] == "check");
            assert!(named.insert(pair[1].to_owned()), "{} twice", pair[1]);
        }
        for index in file.sql.split("create unique index if not exists ").skip(1) {
            named.insert(index.split_whitespace().next().unwrap().to_owned());
        }
        let mut table = "";
        for line in file.sql.lines() {
            table = line
                .strip_prefix("create table if not exists ")
                .map_or(table, |rest| rest.trim_end_matches(" ("));
            if line.trim_start().starts_with("primary key (") {
                named.insert(format!("{table}_pkey"));
            }
        }
    }
    assert_eq!(checks, 0, "checks without a name");
    let tried: BTreeSet<_> = cases().iter().map(|case| case.rule.to_owned()).collect();
    let left: Vec<_> = named.difference(&tried).filter(|name| !POINTED_AT.contains(&name.as_str())).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Every column of limited length, with its table, kind and size.
fn sized() -> Vec<(&'static str, &'static str, &'static str, usize)> {
    let (mut columns, mut table) = (Vec::new(), "");
    for line in files().iter().flat_map(|file| file.sql.lines()) {
        for start in ["create table if not exists ", "alter table "] {
            table = line.strip_prefix(start).map_or(table, |rest| rest.split(' ').next().unwrap());
        }
        for token in line.split('{').filter_map(|rest| rest.split_once('}')).map(|(token, _)| token) {
            if let [kind @ ("varchar" | "char"), column, size] = token.split(' ').collect::<Vec<_>>()[..] {
                columns.push((table, kind, column, size.parse().unwrap()));
            }
        }
    }
    columns
}

#[tokio::test]
async fn a_text_that_is_too_long_or_a_code_that_is_too_short_is_refused() {
    let look = filled().await;
    for (table, kind, column, size) in sized() {
        let of = |length: usize| rows::of(table).second(look.dialect(), &[(column, quoted(length))]);
        let ends = look.tried(&[of(size + 1), of(size - 1)]);
        let (long, short) = match (look.dialect(), kind) {
            (Dialect::Sqlite, "char") => {
                let rule = format!("CHECK constraint failed: length({column}) = {size}");
                (rule.clone(), Some(rule))
            }
            (Dialect::Sqlite, _) => (format!("CHECK constraint failed: length({column}) <= {size}"), None),
            (Dialect::Postgres, "char") => (
                format!("22001 value too long for type character({size})"),
                Some(format!("23514 {table}_{column}_check")),
            ),
            (Dialect::Postgres, _) => {
                (format!("22001 value too long for type character varying({size})"), None)
            }
        };
        assert_eq!(ends[0], long, "{table}.{column}");
        if let Some(short) = short {
            assert_eq!(ends[1], short, "{table}.{column}");
        }
    }
}

fn quoted(length: usize) -> &'static str {
    Box::leak(format!("'{}'", "X".repeat(length)).into_boxed_str())
}

#[tokio::test]
async fn rows_of_money_usage_and_audit_can_neither_be_changed_nor_deleted() {
    let look = filled().await;
    for table in APPEND_ONLY {
        let touches = [format!("update {table} set created_at = created_at"), format!("delete from {table}")];
        for end in look.tried(&touches) {
            assert!(end.ends_with(&format!("{table} is append-only")), "{table}: {end}");
        }
    }
}

/// Each as `table.columns -> table.columns`; the same on both engines.
fn foreign_keys(look: &Look) -> Vec<String> {
    let sqlite = "select m.name || '.' || group_concat(f.\"from\", ',') || ' -> ' || f.\"table\" || '.' || group_concat(f.\"to\", ',')
         from sqlite_schema m, pragma_foreign_key_list(m.name) f
         where m.type = 'table' and m.name like 'supply%' group by m.name, f.id order by 1";
    let names = |relation: &str, columns: &str| {
        format!(
            "{relation}::regclass::text || '.' || (select string_agg(a.attname, ',' order by k.n)
               from unnest({columns}) with ordinality k (number, n)
               join pg_attribute a on a.attrelid = {relation} and a.attnum = k.number)"
        )
    };
    let on_postgres = format!(
        "select line from (select {} || ' -> ' || {} as line from pg_constraint
         where contype = 'f' and conrelid::regclass::text like 'supply%') k order by line collate \"C\"",
        names("conrelid", "conkey"),
        names("confrelid", "confkey")
    );
    look.lines(sqlite, &on_postgres)
}

#[tokio::test]
async fn the_foreign_keys_are_the_ones_that_were_reviewed_and_refuse_what_is_not_there() {
    let look = filled().await;
    let keys = foreign_keys(&look);
    insta::assert_snapshot!("foreign_keys", keys.join("\n"));
    for key in &keys {
        let (table, rest) = key.split_once('.').unwrap();
        let column: &str = rest.split(" -> ").next().unwrap().rsplit(',').next().unwrap();
        let column: &'static str = Box::leak(column.to_owned().into_boxed_str());
        let nobody = if column == "payout_ref" { "'nobody'" } else { "999999" };
        let end = look.tried(&[rows::of(table).second(look.dialect(), &[(column, nobody)])]);
        let expected =
            if look.dialect() == Dialect::Sqlite { "FOREIGN KEY constraint failed" } else { "23503 " };
        assert!(end[0].starts_with(expected), "{key}: {}", end[0]);
    }
}
