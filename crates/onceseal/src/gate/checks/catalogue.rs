//! The database's catalogue (sections 2.4, 3.3 and 10): files in their fixed order, tables and fields that are demanded,
//! indexes with their conditions, and that a second run changes nothing.

use store::dialect::Dialect;
use store::migration::{CERTIFY, CORE, Chain, File, SUPPLY};

use super::super::check::{Book, Check};
use super::super::database::{Database, Engine};
use super::super::scratch::Scratch;
use super::super::stage::Stage;

/// The order that the specification fixes (section 10), and what runs beyond it.
const ORDER: [&str; 4] = [
    "platform_core_schema_v1",
    "supply_schema_v1",
    "supply_schema_v1_patch_2026-03-27",
    "supply_runtime_schema_v1",
];
/// The third file without the second.
const EARLY: Chain = Chain {
    name: "supply",
    files: match SUPPLY.files {
        [_, third, ..] => std::slice::from_ref(third),
        _ => &[],
    },
};
/// Section 5.0 of the domain's specification: a field, its type on a server, and the tables that have it. A field with a
/// question mark may be null.
const MATRIX: &str = "
credential_cipher_algo        | character varying 32  | accounts
credential_kms_key_alias      | character varying 128 | accounts
credential_key_version        | integer               | accounts
credential_fingerprint        | character 64          | accounts
last_rotation_at?             | timestamp with time zone | accounts
payment_account_cipher_algo   | character varying 32  | settlements
payment_account_kms_key_alias | character varying 128 | settlements
payment_account_key_version   | integer               | settlements
payment_account_fingerprint   | character 64          | settlements
quota_unit                    | character varying 16  | accounts packages orders usage_records
price_unit                    | character varying 32  | packages orders usage_records
amount_unit                   | character varying 16  | accounts packages orders usage_records earnings settlements
currency_code                 | character 3           | accounts packages orders usage_records earnings settlements
request_id                    | character varying 64  | accounts packages orders usage_records earnings settlements
idempotency_key?              | character varying 128 | accounts packages orders usage_records earnings settlements
audit_trace_id                | character varying 64  | accounts packages orders usage_records earnings settlements
created_ip?                   | inet                  | accounts packages orders usage_records earnings settlements
updated_ip?                   | inet                  | accounts packages orders usage_records earnings settlements
version                       | bigint                | accounts packages orders usage_records earnings settlements
tenant_id                     | bigint                | accounts packages orders usage_records earnings settlements
";
/// Section 2.4: columns of the record of keys.
const RECORD: [&str; 13] = [
    "id",
    "tenant_id",
    "operator_id",
    "api_path",
    "idempotency_key",
    "request_id",
    "payload_hash",
    "response_code",
    "response_body",
    "status",
    "expires_at",
    "created_at",
    "updated_at",
];
/// Indexes by name, and what their definition must hold, blanks left out.
const INDEXES: [(&str, &[&str]); 9] = [
    ("uq_settlement_supplier_processing", &["uniqueindex", "(user_id)", "where", "'processing'"]),
    ("uq_settlement_supplier_open", &["uniqueindex", "(user_id)", "where", "'pending'", "'processing'"]),
    ("ix_supply_accounts_user", &["(user_id,status,updated_atdesc)"]),
    ("ix_supply_packages_user", &["(user_id,status,updated_atdesc)"]),
    ("ix_supply_settlements_user", &["(user_id,status,updated_atdesc)"]),
    ("ix_supply_orders_buyer", &["(buyer_user_id,status,created_atdesc)"]),
    ("ix_supply_packages_model", &["(platform,model,status)"]),
    ("ix_supply_packages_active", &["where", "'active'"]),
    ("uq_earning_usage", &["uniqueindex", "where", "'usage'"]),
];
/// Tables of the core that the supply side's point to.
const CORE_TABLES: [&str; 4] = ["auth_api_keys", "billing_accounts", "core_tenants", "iam_users"];

pub(super) async fn run(stage: &Stage, book: &Book) {
    book.check("CAT.files", async |check| files(stage, check).await).await;
    book.check("CAT.again", async |check| again(stage, check).await).await;
    book.check("CAT.early", async |check| early(stage, check).await).await;
    book.check("CAT.indexes", async |check| indexes(&stage.database, check).await).await;
    book.check("CAT.matrix", async |check| matrix(&stage.database, check).await).await;
    book.check("CAT.record", async |check| record(&stage.database, check).await).await;
    book.check("CAT.keys", async |check| keys(&stage.database, check).await).await;
}

fn known() -> Vec<File> {
    [CORE, SUPPLY].iter().flat_map(|chain| chain.files).copied().collect()
}

async fn files(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let names: Vec<&str> = known().iter().map(|file| file.name).collect();
    check.equal("the files of this program", &ORDER.to_vec(), &names);
    let order = match stage.engine {
        // All files of one start have its time.
        Engine::Sqlite => "rowid",
        Engine::Postgres => "applied_at",
    };
    let sql = format!("select name, checksum from schema_migrations order by {order}");
    let rows = stage.database.rows(&sql).await?;
    let registered: Vec<(String, String)> = rows
        .into_iter()
        .filter_map(|row| Some((row.first()?.clone(), row.get(1)?.clone())))
        .filter(|(name, _)| ORDER.contains(&name.as_str()))
        .collect();
    let expected: Vec<(String, String)> =
        known().iter().map(|file| (file.name.to_owned(), file.checksum())).collect();
    for (name, checksum) in &registered {
        check.value(name.clone(), checksum.clone());
    }
    check.equal("applied in this order, with these checksums", &expected, &registered);
    Ok(())
}

/// A database of its own is brought up twice, and then every file is run once more by hand.
async fn again(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let scratch = Scratch::make(stage).await?;
    let chains = [CORE, CERTIFY, SUPPLY];
    scratch.opened(&chains).await?;
    let database = scratch.database().await?;
    let first = catalogue(&database).await?;
    check.value("lines of the catalogue", first.len());
    check.so("a clean database takes all files", first.len() > 500);
    scratch.opened(&chains).await?;
    check.equal("the catalogue after a second start", &first, &catalogue(&database).await?);
    let dialect = match stage.engine {
        Engine::Sqlite => Dialect::Sqlite,
        Engine::Postgres => Dialect::Postgres,
    };
    for file in known() {
        let ran = database.run(&format!("begin; {}; commit", dialect.render(file.sql))).await;
        // SQLite can't be told to add a column only where it is absent; the program does not ask it again.
        let told = ran.err().map(|cause| cause.rsplit("duplicate column").count() > 1);
        let added = (stage.engine, file.name) == (Engine::Sqlite, ORDER[2]);
        check.equal(format!("{} runs once more", file.name), &added.then_some(true), &told);
        if added {
            database.run("rollback").await?;
        }
    }
    check.equal("the catalogue after that", &first, &catalogue(&database).await?);
    drop(database);
    scratch.end().await
}

async fn early(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let scratch = Scratch::make(stage).await?;
    let told = scratch.opened(&[CORE, EARLY]).await.err().unwrap_or_default();
    check.value("what is told", told.clone());
    check.so(
        "the third file is refused before the second",
        told.contains(ORDER[2]) && told.contains(ORDER[1]),
    );
    check.so("it says what to do", told.contains("apply the files in their order"));
    let database = scratch.database().await?;
    let made = match stage.engine {
        Engine::Sqlite => "select count(*) from sqlite_schema where name like 'supply%'",
        Engine::Postgres => "select count(*) from information_schema.tables where table_name like 'supply%'",
    };
    check.equal("nothing of it was made", &0, &database.count(made).await?);
    check.so("where it is made, it is found", stage.database.count(made).await? > 0);
    drop(database);
    scratch.end().await
}

/// Everything that the engine says of its tables, columns, indexes and rules.
async fn catalogue(database: &Database) -> Result<Vec<String>, String> {
    let sql = match database.engine() {
        Engine::Sqlite => {
            "select type || ' ' || name || ' ' || coalesce(sql, '') from sqlite_schema union all
             select m.name || '.' || c.name || ' ' || c.type || c.\"notnull\" || coalesce(c.dflt_value, '')
             from sqlite_schema m, pragma_table_xinfo(m.name) c where m.type = 'table' union all
             select name || ' ' || checksum || ' ' || applied_at from schema_migrations order by 1"
        }
        Engine::Postgres => {
            "select line from (
             select table_name || '.' || column_name || ' ' || data_type || is_nullable || coalesce(column_default, '')
             as line from information_schema.columns where table_schema = 'public' union all
             select indexdef from pg_indexes where schemaname = 'public' union all
             select conrelid::regclass::text || ' ' || conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
             where connamespace = 'public'::regnamespace union all
             select tgrelid::regclass::text || ' ' || tgname from pg_trigger where not tgisinternal union all
             select name || ' ' || checksum || ' ' || applied_at::text from schema_migrations) all_lines order by 1"
        }
    };
    database.texts(sql).await
}

async fn indexes(database: &Database, check: &mut Check) -> Result<(), String> {
    for (name, parts) in INDEXES {
        let sql = match database.engine() {
            Engine::Sqlite => {
                format!("select sql from sqlite_schema where type = 'index' and name = '{name}'")
            }
            Engine::Postgres => format!("select indexdef from pg_indexes where indexname = '{name}'"),
        };
        let text = database.texts(&sql).await?.concat();
        let bare: String = text.to_lowercase().split_whitespace().collect();
        let absent: Vec<&str> = parts.iter().copied().filter(|part| !bare.contains(part)).collect();
        check.value(name, text);
        check.equal(format!("{name} is as it is named"), &Vec::<&str>::new(), &absent);
        if name == "uq_settlement_supplier_processing" {
            check.so("it is about processing ones alone", !bare.contains("pending"));
        }
    }
    Ok(())
}

/// Columns of a table: name, type where the engine has types, and whether it may be null.
async fn columns(database: &Database, table: &str) -> Result<Vec<String>, String> {
    let sql = match database.engine() {
        Engine::Sqlite => format!(
            "select name || case when \"notnull\" then '' else '?' end from pragma_table_xinfo('{table}')"
        ),
        Engine::Postgres => format!(
            "select column_name || case when is_nullable = 'NO' then '' else '?' end || ' ' || data_type
               || coalesce(' ' || character_maximum_length, '')
             from information_schema.columns where table_schema = 'public' and table_name = '{table}'"
        ),
    };
    database.texts(&sql).await
}

async fn matrix(database: &Database, check: &mut Check) -> Result<(), String> {
    let mut cells = 0;
    for table in ["accounts", "packages", "orders", "usage_records", "earnings", "settlements"] {
        let found = columns(database, &format!("supply_{table}")).await?;
        let (mut absent, mut stray) = (Vec::new(), Vec::new());
        for line in MATRIX.lines().filter(|line| !line.is_empty()) {
            let mut parts = line.split('|').map(str::trim);
            let (Some(name), Some(kind), Some(tables)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let wanted = match database.engine() {
                Engine::Sqlite => name.to_owned(),
                Engine::Postgres => format!("{name} {kind}"),
            };
            let named = |one: &&String| {
                one.split(' ').next().map(|found| found.trim_end_matches('?'))
                    == Some(name.trim_end_matches('?'))
            };
            let there = found.contains(&wanted);
            match tables.split(' ').any(|one| one == table) {
                true if there => cells += 1,
                true => absent.push(wanted),
                false => stray.extend(found.iter().find(named).cloned()),
            }
        }
        check.equal(format!("fields that supply_{table} lacks"), &Vec::<String>::new(), &absent);
        check.equal(format!("fields of others that supply_{table} has"), &Vec::<String>::new(), &stray);
    }
    check.value("cells of the matrix", cells);
    check.equal("cells of the matrix", &70, &cells);
    Ok(())
}

async fn record(database: &Database, check: &mut Check) -> Result<(), String> {
    let found = columns(database, "supply_idempotency_record").await?;
    let names: Vec<&str> = found.iter().filter_map(|line| line.split([' ', '?']).next()).collect();
    let absent: Vec<&str> = RECORD.into_iter().filter(|name| !names.contains(name)).collect();
    check.value("columns", names.len());
    check.equal("columns that the record lacks", &Vec::<&str>::new(), &absent);
    let sql = match database.engine() {
        Engine::Sqlite => {
            "select group_concat(k.name, ',') from pragma_index_list('supply_idempotency_record') i,
             pragma_index_info(i.name) k where i.\"unique\" and i.origin = 'u' group by i.name"
        }
        Engine::Postgres => {
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'uq_supply_idempotency_record'"
        }
    };
    let unique = database.texts(sql).await?.concat().replace(' ', "");
    let scope = "tenant_id,operator_id,api_path,idempotency_key";
    check.so(format!("one record a key: {unique}"), unique.contains(scope));
    Ok(())
}

async fn keys(database: &Database, check: &mut Check) -> Result<(), String> {
    let sql = match database.engine() {
        Engine::Sqlite => {
            "select distinct k.\"table\" from sqlite_schema m, pragma_foreign_key_list(m.name) k
             where m.type = 'table' and m.name like 'supply%' order by 1"
        }
        Engine::Postgres => {
            "select distinct confrelid::regclass::text from pg_constraint where contype = 'f'
             and conrelid::regclass::text like 'supply%' order by 1"
        }
    };
    let pointed = database.texts(sql).await?;
    check.value("tables that the supply side points to", pointed.clone());
    for table in CORE_TABLES {
        check.so(
            format!("the supply side is no island: it points to {table}"),
            pointed.iter().any(|one| one == table),
        );
    }
    Ok(())
}
