//! What the audit says of checks at providers, and what M-011 makes of it, with a provider on loopback.

use std::time::Duration;

use custody::AccountType;
use kernel::Time;
use secrecy::SecretString;
use store::{Query, values};
use supply::Policy;
use supply::accounts::{Activate, Create, Kind, Rotate, Verify, view};
use supply::slo::{Metric, Period};

use crate::market::{Market, SUPPLIER_TENANT, market_of, told};
use crate::provider::Provider;

const KIND: Kind = Kind { provider: custody::Provider::Baidu, account_type: AccountType::ApiKey };

/// A key that the provider can be asked about.
fn passing(letter: &str) -> String {
    format!("bce-v3/ALTAK-{}/{}", letter.repeat(21), "0a".repeat(20))
}

/// A pair that it can't: somebody has to look.
fn uncheckable(letter: &str) -> String {
    format!("{}:{}", letter.repeat(24), letter.repeat(40))
}

fn create(secret: impl Into<SecretString>) -> Create {
    Create { kind: KIND, secret: secret.into(), alias: None, min_quota_threshold: None, risk_ack: true }
}

async fn with(status: u16) -> (Market, Provider) {
    let provider = Provider::answering(status).await;
    (market_of(Policy::default(), provider.settings()).await, provider)
}

/// Numerator and denominator of M-011.
async fn accepted(market: &Market) -> (u64, Option<u64>) {
    let period = Period { from: Time::from_seconds(0), to: market.now().plus(Duration::from_secs(1)) };
    let reading = Metric::of("m011").unwrap().read(market.door.store(), period).await.unwrap();
    (reading.numerator, reading.denominator)
}

#[tokio::test]
async fn a_check_that_did_not_reject_counts_whatever_refused_the_command_after_it() {
    let (market, _provider) = with(200).await;
    assert_eq!(accepted(&market).await, (0, Some(0)));
    // Ten at once under keys of their own: one is mounted, nine are refused before or in the insert.
    let tries = (0..10).map(|n| {
        let caller = market.operator(&format!("key-000000000000{n}"));
        let submission = market.submission(caller, create(passing("a")), Duration::from_secs(20));
        let door = if n % 2 == 0 { market.door.clone() } else { market.other.clone() };
        tokio::spawn(async move { door.submit(submission).await })
    });
    let mut mounted = Vec::new();
    for tried in tries.collect::<Vec<_>>() {
        let told = told(tried.await.unwrap());
        match told.code {
            201 => mounted.push(told.body["data"]["account_id"].as_i64().unwrap()),
            _ => assert_eq!((told.code, told.error()), (409, "SUP_ACC_4094"), "{told:?}"),
        }
    }
    assert_eq!((mounted.len(), accepted(&market).await), (1, (10, Some(10))));
    let account_id = mounted[0];
    assert_eq!(market.run("key-0000000000010", Activate { account_id }).await.code, 200);
    let target = view::kind_of(market.door.store(), SUPPLIER_TENANT, account_id).await.unwrap();
    let rotate = Rotate { account_id, target, secret: uncheckable("b").into() };
    assert_eq!(market.run("key-0000000000011", rotate).await.error(), "SUP_ACC_4096");
    assert_eq!(accepted(&market).await, (11, Some(11)), "one that needs a review");
    assert_eq!(market.run("key-0000000000012", create("no-key-at-all")).await.error(), "SUP_ACC_4001");
    let verify = Verify { kind: KIND, secret: passing("c").into() };
    assert_eq!(market.run("", verify).await.code, 200);
    let unread = Create { risk_ack: false, ..create(passing("d")) };
    assert_eq!(market.run("key-0000000000013", unread).await.error(), "SUP_ACC_4004");
    assert_eq!(accepted(&market).await, (12, Some(13)), "nobody was asked without an agreement");
}

#[tokio::test]
async fn what_is_refused_counts_against_it_and_who_is_out_of_reach_says_nothing() {
    for (status, code, whole) in [(401, "SUP_ACC_4002", 2), (503, "SUP_ACC_5031", 0)] {
        let (market, _provider) = with(status).await;
        assert_eq!(market.run("key-0000000000001", create(passing("a"))).await.error(), code);
        let verify = Verify { kind: KIND, secret: passing("a").into() };
        assert_eq!(market.run("", verify).await.error(), code);
        assert_eq!(accepted(&market).await, (0, Some(whole)), "{status}");
    }
}

/// Result and fingerprint of every attempt with a credential, in the order of their making.
async fn attempts(market: &Market) -> Vec<(String, String)> {
    let sql = "select result_code, cast(metadata as text) from audit_events
        where event_name in ('supply.account.verify', 'supply.account.create', 'supply.credential.rotate') order by id";
    let rows = market.door.store().query(Query::new("attempts", sql, values![])).await.unwrap();
    let attempt = |row: &store::Row| {
        let (code, text) = (row.text(0).unwrap().to_owned(), row.text(1).unwrap());
        assert!(!text.contains("ALTAK") && !text.contains("aaaaaaaa"), "{text}");
        let metadata: serde_json::Value = serde_json::from_str(text).unwrap();
        (code, metadata["fingerprint"].as_str().unwrap().to_owned())
    };
    rows.iter().map(attempt).collect()
}

#[tokio::test]
async fn every_try_of_a_credential_has_its_fingerprint_whatever_came_of_it() {
    let verify = |secret: &str| Verify { kind: KIND, secret: secret.into() };
    for (status, code) in [(200, "OK"), (401, "SUP_ACC_4002"), (503, "SUP_ACC_5031")] {
        let (market, _provider) = with(status).await;
        market.run("", verify(&passing("a"))).await;
        market.run("", verify(&passing("b"))).await;
        market.run("", verify("no-key-at-all")).await;
        market.run("key-0000000000001", create(passing("a"))).await;
        let told = market.run("key-0000000000002", create(passing("a"))).await;
        let (codes, prints): (Vec<_>, Vec<_>) = attempts(&market).await.into_iter().unzip();
        let again = if code == "OK" { "SUP_ACC_4094" } else { code };
        assert_eq!(codes, [code, code, "SUP_ACC_4001", code, again], "{told:?}");
        assert!(prints.iter().all(|print| print.len() == 64), "{prints:?}");
        assert!(prints[0] == prints[3] && prints[0] == prints[4], "one credential: {prints:?}");
        assert!(prints[0] != prints[1] && prints[0] != prints[2] && prints[1] != prints[2], "{prints:?}");
    }
}
