//! The catalogue of the running engine against what the domain specification demands of every table.

use store::dialect::Dialect;
use store::migration::{CORE, SUPPLY};

use super::look::{Look, TAKEN};
use super::rows;

/// Domain specification, section 5.0 (the three classes of field that section 10 of the supply
/// specification demands): column, type, whether it may be null, default, on which tables. Where the
/// section gives a column that must be there no default, it is one that the column's own rule refuses.
const MATRIX: &str = "
credential_cipher_algo        | varchar(32)  | not null | 'AES-256-GCM'   | accounts
credential_kms_key_alias      | varchar(128) | not null | ''              | accounts
credential_key_version        | int          | not null | 0               | accounts
credential_fingerprint        | char(64)     | not null | ''              | accounts
last_rotation_at              | timestamptz  | null     |                 | accounts
payment_account_cipher_algo   | varchar(32)  | not null | 'AES-256-GCM'   | settlements
payment_account_kms_key_alias | varchar(128) | not null | ''              | settlements
payment_account_key_version   | int          | not null | 0               | settlements
payment_account_fingerprint   | char(64)     | not null | ''              | settlements
quota_unit                    | varchar(16)  | not null | 'token'         | accounts packages orders usage_records
price_unit                    | varchar(32)  | not null | 'per_1m_tokens' | packages orders usage_records
amount_unit                   | varchar(16)  | not null | 'minor'         | accounts packages orders usage_records earnings settlements
currency_code                 | char(3)      | not null | 'CNY'           | accounts packages orders usage_records earnings settlements
request_id                    | varchar(64)  | not null | ''              | accounts packages orders usage_records earnings settlements
idempotency_key               | varchar(128) | null     |                 | accounts packages orders usage_records earnings settlements
audit_trace_id                | varchar(64)  | not null | ''              | accounts packages orders usage_records earnings settlements
created_ip                    | inet         | null     |                 | accounts packages orders usage_records earnings settlements
updated_ip                    | inet         | null     |                 | accounts packages orders usage_records earnings settlements
version                       | bigint       | not null | 0               | accounts packages orders usage_records earnings settlements
tenant_id                     | bigint       | not null |                 | accounts packages orders usage_records earnings settlements
";
const KEY_TABLES: [&str; 6] = ["accounts", "packages", "orders", "usage_records", "earnings", "settlements"];

struct Field {
    column: &'static str,
    class: &'static str,
    null: &'static str,
    default: &'static str,
    tables: Vec<&'static str>,
}

fn matrix() -> Vec<Field> {
    let lines = MATRIX.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let parts: Vec<_> = line.split('|').map(str::trim).collect();
            let [column, class, null, default, tables] = parts[..] else { panic!("{line}") };
            Field { column, class, null, default, tables: tables.split(' ').collect() }
        })
        .collect()
}

impl Field {
    /// As the catalogue has it.
    fn line(&self, dialect: Dialect) -> String {
        let class = match dialect {
            Dialect::Sqlite => match self.class.split('(').next().unwrap() {
                "int" | "bigint" | "timestamptz" => "integer".into(),
                _ => "text".into(),
            },
            Dialect::Postgres => match self.class.split_once('(') {
                Some(("varchar", size)) => format!("character varying({size}"),
                Some((_, size)) => format!("character({size}"),
                None => match self.class {
                    "int" => "integer".into(),
                    "timestamptz" => "timestamp with time zone".into(),
                    class => class.into(),
                },
            },
        };
        format!("{} {class} {} {}", self.column, self.null, self.default).trim().to_owned()
    }
}

fn columns(look: &Look, table: &str) -> Vec<String> {
    let sqlite = format!(
        "select name || ' ' || lower(type) || case when \"notnull\" then ' not null' else ' null' end || coalesce(' ' || dflt_value, '')
         from pragma_table_xinfo('supply_{table}')"
    );
    let on_postgres = format!(
        "select column_name || ' ' || data_type || coalesce('(' || character_maximum_length || ')', '')
           || case when is_nullable = 'NO' then ' not null' else ' null' end
           || coalesce(' ' || regexp_replace(column_default, '::.*', ''), '')
         from information_schema.columns where table_name = 'supply_{table}'"
    );
    look.lines(&sqlite, &on_postgres)
}

#[tokio::test]
async fn each_key_table_has_the_fields_of_the_matrix_and_none_that_is_not_its_own() {
    let look = Look::at(&[CORE, SUPPLY]).await;
    for table in KEY_TABLES {
        let matrix = matrix();
        let mut expected: Vec<_> = matrix
            .iter()
            .filter(|field| field.tables.contains(&table))
            .map(|field| field.line(look.dialect()))
            .collect();
        expected.sort();
        let named = |line: &String| matrix.iter().any(|field| line.split(' ').next() == Some(field.column));
        let mut found: Vec<_> = columns(&look, table).into_iter().filter(named).collect();
        found.sort();
        assert_eq!(found, expected, "{table}");
    }
}

/// Where the matrix says no value, none may be forgotten; where it gives one, it is taken.
#[tokio::test]
async fn a_field_of_the_matrix_can_be_left_out_only_where_it_has_a_value_of_its_own() {
    let look = Look::at(&[CORE, SUPPLY]).await;
    look.run(&rows::all().iter().map(|row| row.insert(look.dialect())).collect::<Vec<_>>());
    for field in matrix() {
        for table in &field.tables {
            let row = rows::of(&format!("supply_{table}"));
            let without = row.second_without(look.dialect(), field.column);
            let with_null = row.second(look.dialect(), &[(field.column, "null")]);
            let ends = look.tried(&[without, with_null]);
            let has_value = !matches!(field.default, "" | "''") && !field.column.ends_with("key_version");
            assert_eq!(
                ends[0] == TAKEN,
                has_value || field.null == "null",
                "{table}.{}: {}",
                field.column,
                ends[0]
            );
            let refused = match look.dialect() {
                Dialect::Sqlite => format!("NOT NULL constraint failed: supply_{table}.{}", field.column),
                Dialect::Postgres => format!("23502 {}", field.column),
            };
            let expected = if field.null == "null" { TAKEN.to_owned() } else { refused };
            assert_eq!(ends[1], expected, "{table}");
        }
    }
}

/// The record of keys as section 2.4 of the supply specification writes it; what the door adds comes after.
#[tokio::test]
async fn the_idempotency_record_has_the_columns_of_the_specification() {
    let look = Look::at(&[CORE, SUPPLY]).await;
    let on_postgres = [
        "tenant_id bigint not null",
        "operator_id bigint not null",
        "api_path character varying(200) not null",
        "idempotency_key character varying(128) not null",
        "request_id character varying(64) not null",
        "payload_hash character(64) not null",
        "response_code integer null",
        "response_body jsonb null",
        "status character varying(20) not null",
        "expires_at timestamp with time zone not null",
        "created_at timestamp with time zone not null now()",
        "updated_at timestamp with time zone not null now()",
    ];
    let on_sqlite = [
        "tenant_id integer not null",
        "operator_id integer not null",
        "api_path text not null",
        "idempotency_key text not null",
        "request_id text not null",
        "payload_hash text not null",
        "response_code integer null",
        "response_body text null",
        "status text not null",
        "expires_at integer not null",
        "created_at integer not null unixepoch() * 1000000",
        "updated_at integer not null unixepoch() * 1000000",
    ];
    let found = columns(&look, "idempotency_record");
    let expected = if look.dialect() == Dialect::Sqlite { on_sqlite } else { on_postgres };
    for line in expected {
        assert!(found.iter().any(|found| found == line), "{line}\n{found:#?}");
    }
}

#[tokio::test]
async fn money_quotas_and_prices_have_six_decimals_and_are_never_floats() {
    let look = Look::at(&[CORE, SUPPLY]).await;
    let sqlite =
        "select m.name || '.' || c.name || ' ' || c.type from sqlite_schema m, pragma_table_xinfo(m.name) c
        where m.type = 'table' and lower(c.type) not in ('text', 'integer', 'blob')";
    let on_postgres =
        "select table_name || '.' || column_name || ' ' || data_type from information_schema.columns
        where table_schema = 'public' and (data_type in ('real', 'double precision', 'money')
          or data_type = 'numeric' and (numeric_precision, numeric_scale) is distinct from (20, 6))";
    assert_eq!(look.lines(sqlite, on_postgres), Vec::<String>::new());
    let sqlite = "select count(*) || '' from sqlite_schema m, pragma_table_xinfo(m.name) c
        where m.type = 'table' and m.name like 'supply%'";
    let on_postgres = "select count(*)::text from information_schema.columns where table_name like 'supply%'";
    assert!(look.lines(sqlite, on_postgres)[0].parse::<u32>().unwrap() > 250);
}

/// Names and conditions of the indexes that the specifications name.
#[tokio::test]
async fn the_named_indexes_are_unique_over_the_rows_that_they_are_named_for() {
    let look = Look::at(&[CORE, SUPPLY]).await;
    let sql = |name: &str| {
        look.lines(
            &format!("select sql from sqlite_schema where name = '{name}'"),
            &format!("select indexdef from pg_indexes where indexname = '{name}'"),
        )
        .concat()
    };
    let (processing, open) = (sql("uq_settlement_supplier_processing"), sql("uq_settlement_supplier_open"));
    if look.dialect() == Dialect::Sqlite {
        let index = "CREATE UNIQUE INDEX uq_settlement_supplier";
        assert_eq!(
            processing,
            format!("{index}_processing\n  on supply_settlements (user_id) where status = 'processing'")
        );
        assert_eq!(
            open,
            format!(
                "{index}_open\n  on supply_settlements (user_id) where status in ('pending', 'processing')"
            )
        );
    } else {
        let tail = "ON public.supply_settlements USING btree (user_id) WHERE ((status)::text";
        let index = "CREATE UNIQUE INDEX uq_settlement_supplier";
        assert_eq!(processing, format!("{index}_processing {tail} = 'processing'::text)"));
        assert_eq!(
            open,
            format!(
                "{index}_open {tail} = ANY ((ARRAY['pending'::character varying, 'processing'::character varying])::text[]))"
            )
        );
    }
}

/// Steps belong to a record by its id, which has a tenant; the record's own rows are the door's.
#[tokio::test]
async fn every_table_of_the_chain_but_the_steps_names_its_tenant() {
    let look = Look::at(&[CORE, SUPPLY]).await;
    let sqlite = "select m.name from sqlite_schema m where m.type = 'table' and m.name like 'supply%'
        and not exists (select 1 from pragma_table_info(m.name) c where c.name = 'tenant_id' and c.\"notnull\")";
    let on_postgres = "select t.table_name from information_schema.tables t where t.table_name like 'supply%'
        and not exists (select 1 from information_schema.columns c where c.table_name = t.table_name
          and c.column_name = 'tenant_id' and c.is_nullable = 'NO')";
    assert_eq!(look.lines(sqlite, on_postgres), ["supply_steps"]);
}

/// From an alert to every row of its request in one hop.
#[tokio::test]
async fn what_has_a_request_or_a_trace_is_found_by_it() {
    let look = Look::at(&[CORE, SUPPLY]).await;
    let sqlite = "select m.name || '.' || c.name from sqlite_schema m, pragma_table_info(m.name) c
        where m.type = 'table' and c.name in ('request_id', 'trace_id', 'audit_trace_id')
          and not exists (select 1 from pragma_index_list(m.name) i, pragma_index_info(i.name) k
            where k.seqno = 0 and k.name = c.name)
        order by 1";
    let on_postgres = "select line from (select c.table_name || '.' || c.column_name as line from information_schema.columns c
        where c.table_schema = 'public' and c.column_name in ('request_id', 'trace_id', 'audit_trace_id')
          and not exists (select 1 from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
            where i.indrelid = c.table_name::text::regclass and a.attname = c.column_name)) k
        order by line collate \"C\"";
    // A call has its own trace beside the one of its row, which is the same for calls of ours.
    assert_eq!(look.lines(sqlite, on_postgres), ["supply_usage_records.trace_id"]);
}
