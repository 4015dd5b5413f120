//! Rows of the chain through the store itself: what goes in comes out, as the types have it.

use kernel::Time;
use store::dialect::Dialect;
use store::migration::{CORE, SUPPLY};
use store::{Error, Query, Raise, RaiseKind, Value, Write, values};

use super::rows;
use crate::scene::{Scene, open};

async fn filled() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), &[CORE, SUPPLY]).await.unwrap();
    let engine = testkit::postgres::beside(folder.path()).map_or(Dialect::Sqlite, |_| Dialect::Postgres);
    let scene = Scene { store, folder };
    let rows = rows::all();
    let writes = rows.iter().map(|row| Write::any("fixture", row.insert(engine), vec![])).collect();
    scene.write(writes).await.unwrap();
    scene
}

const RECORD: &str = "insert into supply_idempotency_record (tenant_id, operator_id, api_path, idempotency_key, request_id,
  payload_hash, status, claim_token, attempt_no, locked_until, response_code, response_body, expires_at, updated_at, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

fn record(key: &str, hash: &str) -> Write {
    let at = Time::from_micros(1_774_576_984_123_456);
    let row = values![
        201_i64,
        12_i64,
        "/api/v1/supply/accounts",
        key,
        "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        hash,
        "processing",
        [7_u8; 16],
        1_i64,
        at,
        None::<i64>,
        None::<String>,
        at,
        at,
        at
    ];
    Write::one("record.insert", RECORD, row)
}

#[tokio::test]
async fn a_record_of_a_key_goes_in_is_settled_and_comes_out() {
    let scene = filled().await;
    let hash = "ab".repeat(32);
    scene.write(vec![record("key-0123456789-0123", &hash)]).await.unwrap();
    let settle = "update supply_idempotency_record set status = $1, response_code = $2, response_body = $3, claim_token = $4, locked_until = $5
        where payload_hash = $6 and claim_token = $7";
    let row = values![
        "succeeded",
        201_i64,
        "{\"data\":{\"b\":1,\"a\":2}}",
        None::<Vec<u8>>,
        None::<Time>,
        &hash,
        [7_u8; 16]
    ];
    scene.write(vec![Write::one("record.settle", settle, row)]).await.unwrap();
    let read = "select payload_hash, status, response_code, claim_generation, attempt_no, claim_token, expires_at, response_body
        from supply_idempotency_record where tenant_id = $1 and operator_id = $2 and api_path = $3 and idempotency_key = $4";
    let key = values![201_i64, 12_i64, "/api/v1/supply/accounts", "key-0123456789-0123"];
    let row = scene.store.query(Query::new("record.read", read, key)).await.unwrap().remove(0);
    assert_eq!((row.text(0), row.text(1)), (Ok(hash.as_str()), Ok("succeeded")));
    assert_eq!((row.int(2), row.int(3), row.int(4)), (Ok(201), Ok(1), Ok(1)));
    assert_eq!(row.bytes_or_null(5), Ok(None));
    assert_eq!(row.time(6), Ok(Time::from_micros(1_774_576_984_123_456)));
    assert!(row.text(7).unwrap().contains("\"data\""));
}

#[tokio::test]
async fn the_same_key_twice_is_told_from_a_rule_that_is_broken() {
    let scene = filled().await;
    let hash = "ab".repeat(32);
    scene.write(vec![record("key-0123456789-0123", &hash)]).await.unwrap();
    let raised = |kind| Err(Error::Raised(Raise { write: "record.insert", kind }));
    assert_eq!(scene.write(vec![record("key-0123456789-0123", &hash)]).await, raised(RaiseKind::Unique));
    assert_eq!(scene.write(vec![record("", &hash)]).await, raised(RaiseKind::Rule));
    assert_eq!(scene.write(vec![record(&"k".repeat(129), &hash)]).await, raised(RaiseKind::Rule));
    assert_eq!(scene.write(vec![record("key-0123456789-0124", "ab")]).await, raised(RaiseKind::Rule));
}

#[tokio::test]
async fn amounts_days_addresses_and_versions_of_a_settlement_come_out_as_they_went_in() {
    let scene = filled().await;
    let change =
        "update supply_settlements set total_amount = $1, fee_amount = $2, net_amount = $3, period_end = $4,
        updated_ip = $5, updated_at = $6, version = version + 1 where id = $7 and version = $8";
    let at = Time::from_micros(1_774_576_984_123_456);
    let [total, fee, net] = [5_000_000_000_000, 50_000_000_000, 4_950_000_000_000].map(Value::Money);
    let row = vec![
        total,
        fee,
        net,
        "2026-03-28".into(),
        "2001:db8::1".into(),
        at.into(),
        Value::Int(1001),
        Value::Int(0),
    ];
    scene.write(vec![Write::one("settlement.change", change, row)]).await.unwrap();
    let read = "select total_amount, fee_amount, net_amount, period_start, period_end, updated_ip, updated_at, version, currency_code,
        payment_account_key_version from supply_settlements where user_id = $1 and status = 'processing' {for_update}";
    let row =
        scene.store.query(Query::new("settlement.read", read, values![11_i64])).await.unwrap().remove(0);
    let amounts: Vec<_> = (0..3).map(|column| row.int(column).unwrap()).collect();
    assert_eq!(amounts, [5_000_000_000_000, 50_000_000_000, 4_950_000_000_000]);
    assert_eq!((row.text(3), row.text(4)), (Ok("2026-03-01"), Ok("2026-03-28")));
    assert_eq!((row.text(5), row.time(6)), (Ok("2001:db8::1"), Ok(at)));
    assert_eq!((row.int(7), row.text(8), row.int(9)), (Ok(1), Ok("CNY"), Ok(1)));
}

#[tokio::test]
async fn prices_quotas_and_sums_are_read_with_all_six_decimals() {
    let scene = filled().await;
    let change = "update supply_packages set price_per_1m_input = $1, quota_unit = $2, available_quota = $3, sold_quota = $4 where id = 1001";
    let row =
        vec![Value::Money(8_000_001), "credit".into(), Value::Money(60_000_001), Value::Money(29_999_999)];
    scene.write(vec![Write::one("package.change", change, row)]).await.unwrap();
    let read = "select price_per_1m_input, available_quota, min_purchase, (select sum(amount) from supply_earnings), total_tokens, success
        from supply_packages cross join supply_usage_records u where u.id = 1001";
    let row = scene.store.query(Query::new("package.read", read, vec![])).await.unwrap().remove(0);
    let found: Vec<_> = (0..5).map(|column| row.int(column).unwrap()).collect();
    assert_eq!(found, [8_000_001, 60_000_001, 1_000_000, 14_000_000, 5]);
    assert_eq!(row.flag(5), Ok(true));
}
