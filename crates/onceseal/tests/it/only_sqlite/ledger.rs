//! A balance that somebody changed past all rules is found.

use std::sync::Arc;

use onceseal::random::{OsRandom, SystemClock};
use serde_json::json;
use store::migration::{CERTIFY, CORE, SUPPLY};
use store::{Settings, Sqlite, Store, Write};

use crate::supply::{admin, done, home};

#[test]
fn a_tampered_balance_is_listed_by_ledger_verify() {
    let home = home();
    let server = home.serve();
    let supplier = json!({ "code": "one", "name": "One", "supplier_type": "individual", "operator": "ann",
        "phone": "+8613800000000" });
    done(&server, ("POST", "/api/v1/platform/suppliers"), (&admin(&home), "1"), &supplier);
    assert!(home.run(&["ledger", "verify"]).out().contains("everything adds up"));
    server.stop();
    let tamper = async {
        let settings = Settings::Sqlite(Sqlite::new(home.path("data")));
        let store = Store::open(&settings, &[CORE, CERTIFY, SUPPLY], Arc::new(SystemClock)).await.unwrap();
        let sql = "update billing_accounts set balance = balance + 5000000 where account_code = 'supplier_available'";
        let door = door::Door::new(store.clone(), Arc::new(OsRandom));
        let plan = move |_, _| Ok((vec![Write::any("tamper", sql, vec![])], ()));
        door.maintain("tamper", vec![], plan).await.unwrap();
        store.close();
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(tamper);
    let ran = home.run(&["ledger", "verify"]);
    assert!(ran.code() == 1 && ran.out().contains("supplier_available"), "{}", ran.all());
    assert!(ran.out().contains("5000000 found"), "{}", ran.out());
}
