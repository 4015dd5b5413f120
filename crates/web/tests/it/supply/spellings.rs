//! Equal numbers make one payload (section 7.2), so that a spelling which is refused must burn no key: under the same
//! key the right one is answered as if nothing had been.

use serde_json::json;

use super::desk::{BATCH, Desk, WITHDRAW, asks, code, is};

/// A withdrawal's body with this literal as its amount.
fn literal(sms: &str, amount: &str) -> String {
    asks("AMOUNT", sms).replace(r#""AMOUNT""#, amount)
}

/// A batch of one item with this literal as its first price.
fn offering(package: i64, price: &str) -> String {
    format!(
        r#"{{"items":[{{"package_id":{package},"price_per_1m_input":{price},"price_per_1m_output":32}}]}}"#
    )
}

#[tokio::test]
async fn an_amount_that_is_no_amount_burns_no_key() {
    let desk = Desk::funded(100).await;
    desk.done("/api/v1/supply/settlements/withdraw/sms-code", "").await;
    let sms = desk.api.sms_code().await;
    let key = desk.api.key();
    for amount in [
        "1e1",
        "10.000",
        "1.0E+1",
        "-10",
        "0",
        "-0",
        "10.001",
        "20000000000",
        "\"10.\"",
        "\"010\"",
        "\"NaN\"",
    ] {
        let got = desk.post(WITHDRAW, &key, &literal(&sms, amount)).await;
        assert_eq!(code(&got), is(400, "SUP_SET_4004"), "{amount}: {}", got.text());
        assert!(got.json().get("idempotent_replay").is_none_or(|replay| *replay == false), "{amount}");
        assert_eq!(got.json()["error"]["details"]["field"], "withdraw_amount", "{amount}");
    }
    assert_eq!(desk.audited("supply.write.refused", "SUP_SET_4004").await, 11);
    let made = desk.post(WITHDRAW, &key, &literal(&sms, "10.00")).await;
    assert_eq!((made.status, &made.json()["idempotent_replay"]), (201, &json!(false)), "{}", made.text());
    let again = desk.post(WITHDRAW, &key, &literal(&sms, "10")).await;
    assert_eq!((again.status, &again.json()["idempotent_replay"]), (201, &json!(true)));
    assert_eq!(code(&desk.post(WITHDRAW, &key, &literal(&sms, "1e1")).await), is(400, "SUP_SET_4004"));
    desk.sound().await;
}

#[tokio::test]
async fn a_price_that_is_no_spelling_fails_the_batch_and_burns_no_key() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let package = desk.draft(account, ("9", "33"), 30).await;
    let key = desk.api.key();
    for (price, rule) in [
        ("8e0", "exponent"),
        ("8.0000000", "decimals"),
        ("\"8e0\"", "exponent"),
        ("\"08\"", "leading_zero"),
        ("\"\"", "empty"),
        ("\"cheap\"", "character"),
        ("true", "number"),
        ("-0", "sign"),
    ] {
        let got = desk.post(BATCH, &key, &offering(package, price)).await;
        assert_eq!(code(&got), is(400, "SUP_COM_4001"), "{price}: {}", got.text());
        let fault = json!({ "field": "items[0].price_per_1m_input", "rule": rule });
        assert_eq!(got.json()["error"]["details"]["fields"], json!([fault]), "{price}");
    }
    let made = desk.post(BATCH, &key, &offering(package, "8.00")).await;
    assert_eq!((made.status, &made.json()["data"]["success_count"]), (200, &json!(1)), "{}", made.text());
    // What is a number and no price is the item's own matter.
    for price in ["-1", "8.0000001", "1000001", "\"-1\""] {
        let receipt = desk.done(BATCH, &offering(package, price)).await;
        assert_eq!(receipt["failures"][0]["error_code"], "SUP_PKG_4004", "{price}");
    }
}

#[tokio::test]
async fn numbers_of_drafts_top_ups_and_orders_burn_no_key_either() {
    let desk = Desk::new().await;
    let account = desk.account("a").await;
    let draft = |quota: &str, price: &str| {
        format!(
            r#"{{"supply_account_id":{account},"model":"gpt-x","total_quota":{quota},"price_per_1m_input":{price},"price_per_1m_output":32,"valid_days":30}}"#
        )
    };
    let (path, key) = ("/api/v1/supply/packages/draft", desk.api.key());
    for (quota, price, wrong) in [
        ("5000000.000", "8", "SUP_COM_4001"),
        ("5e6", "8", "SUP_COM_4001"),
        ("5000000", "8e0", "SUP_PKG_4004"),
        ("5000000", "8.0000000", "SUP_PKG_4004"),
    ] {
        assert_eq!(
            code(&desk.post(path, &key, &draft(quota, price)).await),
            is(400, wrong),
            "{quota} {price}"
        );
    }
    let made = desk.post(path, &key, &draft("5000000", "8")).await;
    assert_eq!((made.status, &made.json()["idempotent_replay"]), (201, &json!(false)), "{}", made.text());
    let (admin, key) = (desk.api.admin_token().to_owned(), desk.api.key());
    let buyer = desk.api.admin("/api/v1/platform/buyers", r#"{"code":"b","name":"B"}"#).await;
    let path = format!("/api/v1/platform/buyers/{}/topups", buyer["buyer_id"]);
    for (amount, status) in [("2e2", 400), ("200.000", 400), ("200.00", 201), ("200", 201)] {
        let call = (axum::http::Method::POST, path.as_str());
        let got = desk.api.write(call, &admin, &key, &format!(r#"{{"amount":{amount}}}"#)).await;
        assert_eq!(got.status, status, "{amount}: {}", got.text());
    }
}
