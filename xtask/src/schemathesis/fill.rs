//! What is on the market before the run, and how it is called: ids for the tool's dictionaries. Everything is made over
//! the API, once for each of two suppliers, so that what is foreign looks like what is one's own.

use std::collections::BTreeMap;
use std::time::Duration;

use play::{Market, Phone, Supplier};
use serde_json::{Value as Json, json};

/// Values by what they are: `account_id`, `payment_account`.
pub(super) type Known = BTreeMap<&'static str, Vec<Json>>;

/// Objects of each kind and supplier.
const EACH: usize = 6;
/// Tokens that may be revoked.
const TOKENS: usize = 40;
/// Credentials that are mounted nowhere yet.
const CREDENTIALS: usize = 400;
/// What a supplier earns before the run, in CNY: more than the run can withdraw.
const EARNED: u64 = 100_000;
/// How long the scheduler may take to release what was earned.
const RELEASED_WITHIN: Duration = Duration::from_secs(30);

/// Makes it all.
///
/// # Errors
/// The server refuses a step; says which.
pub(super) async fn fill(market: &Market, owners: [&Supplier; 2], phone: &Phone) -> Result<Known, String> {
    let mut known = Known::new();
    for (letter, owner) in ['a', 'b'].into_iter().zip(owners) {
        goods(market, owner, letter, &mut known).await?;
        money(market, owner, phone, letter, &mut known).await?;
        note(&mut known, "tenant_id", owner.tenant_id);
        note(&mut known, "user_id", owner.operator_id);
    }
    // Forms that only a provider, a channel and the price list know.
    for n in 0..CREDENTIALS {
        note(&mut known, "credential_input", format!("sk-z{n:039}"));
    }
    note(&mut known, "payment_account", "13800000000");
    note(&mut known, "withdraw_amount", "10.50");
    note(&mut known, "model", play::market::MODEL);
    for _ in 0..TOKENS {
        let grant = json!({ "tenant_id": owners[0].tenant_id, "user_id": owners[0].operator_id, "role": "viewer",
            "user_type": "supply", "scope": ["billing:read"], "ttl_seconds": 259_200 });
        let made = market.platform("/api/v1/platform/tokens/issue", grant).await?;
        note(&mut known, "token_id", number(&made, "token_id")?);
    }
    Ok(known)
}

/// A token of an administrator, and its id.
///
/// # Errors
/// The server refuses it.
pub(super) async fn administrator(market: &Market) -> Result<(String, i64), String> {
    let said =
        market.platform("/api/v1/platform/tokens/introspect", json!({ "token": market.admin })).await?;
    let grant = json!({ "tenant_id": said.get("tenant_id"), "user_id": said.get("user_id"), "role": "admin",
        "user_type": "platform", "scope": ["*"], "ttl_seconds": 259_200 });
    let made = market.platform("/api/v1/platform/tokens/issue", grant).await?;
    let token = made.get("access_token").and_then(Json::as_str).ok_or("no access_token")?;
    Ok((token.to_owned(), number(&made, "token_id")?))
}

fn note(known: &mut Known, place: &'static str, value: impl Into<Json>) {
    known.entry(place).or_default().push(value.into());
}

fn number(made: &Json, name: &str) -> Result<i64, String> {
    made.get(name).and_then(Json::as_i64).ok_or_else(|| format!("no {name} in {made}"))
}

/// Accounts that are pending, active and suspended; drafts, packages on sale and paused ones; orders on them.
async fn goods(market: &Market, owner: &Supplier, letter: char, known: &mut Known) -> Result<(), String> {
    let client = &market.client;
    let buyer = market.buyer(1_000_000).await?;
    note(known, "buyer_id", buyer.buyer_id);
    note(known, "api_key_id", buyer.api_key_id);
    for n in 0..EACH {
        let account = market.account(owner, &format!("sk-{letter}{n:039}")).await?;
        if n % 3 == 1 {
            client
                .make(&format!("/api/v1/supply/accounts/{account}/suspend"), &owner.token, Json::Null)
                .await?;
        }
        note(known, "account_id", account);
        let log = client.read(&format!("/api/v1/supply/accounts/{account}/audit-logs"), &owner.token).await?;
        known.entry("event_id").or_default().extend(log.pointer("/0/event_id").cloned());
        let account = market.account(owner, &format!("sk-{letter}x{n:038}")).await?;
        let draft = market.draft(owner, account, 1_000_000_000).await?;
        let package = market.package(owner, account, 1_000_000_000).await?;
        note(known, "package_id", draft);
        note(known, "package_id", package);
        let order = market.order(&buyer, package, 50_000_000).await?;
        note(known, "order_id", order);
        let wish = json!({ "buyer_id": buyer.buyer_id, "package_id": package, "quota_amount": 1000 });
        let order = market.platform("/api/v1/platform/orders", wish).await?;
        note(known, "order_id", number(&order, "order_id")?);
        if n % 3 == 1 {
            client
                .make(&format!("/api/v1/supply/packages/{package}/pause"), &owner.token, Json::Null)
                .await?;
        }
    }
    Ok(())
}

/// Earnings, and settlements that are paid, cancelled and open.
async fn money(
    market: &Market,
    owner: &Supplier,
    phone: &Phone,
    letter: char,
    known: &mut Known,
) -> Result<(), String> {
    market.earn(owner, &format!("sk-{letter}y{:038}", 0), EARNED, &crate::lab::market::now()).await?;
    released(market, owner).await?;
    for ending in ["complete", "cancel", "fail", "open"] {
        let settlement = withdrawn(market, owner, phone).await?;
        note(known, "settlement_id", settlement);
        let step = async |path: &str, body: Json| {
            let path = format!("/api/v1/platform/settlements/{settlement}/{path}");
            market.platform(&path, body).await
        };
        match ending {
            "complete" => {
                step("start", Json::Null).await?;
                step("complete", json!({ "payment_transaction_id": format!("bank-{settlement}") })).await?;
            }
            "cancel" => {
                let path = format!("/api/v1/supply/settlements/{settlement}/cancel");
                market.client.make(&path, &owner.token, Json::Null).await?;
            }
            "fail" => {
                step("start", Json::Null).await?;
                step("fail", json!({ "failure_code": "E1" })).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

async fn released(market: &Market, owner: &Supplier) -> Result<(), String> {
    let path = "/api/v1/supply/billing";
    let all = async {
        loop {
            let seen = market.client.read(path, &owner.token).await?;
            let free = seen.pointer("/balance/available_amount").and_then(Json::as_f64);
            if free.is_some_and(|amount| amount > 0.0) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(RELEASED_WITHIN, all).await.map_err(|_| "no earning was released".to_owned())?
}

async fn withdrawn(market: &Market, owner: &Supplier, phone: &Phone) -> Result<i64, String> {
    let before = phone.count(&owner.phone);
    let path = "/api/v1/supply/settlements/withdraw/sms-code";
    market.client.make(path, &owner.token, Json::Null).await?;
    let ask = json!({ "withdraw_amount": "10.00", "payment_method": "alipay", "payment_account": "13800000000",
        "sms_code": phone.code(&owner.phone, before).await? });
    number(
        &market.client.make("/api/v1/supply/settlements/withdraw", &owner.token, ask).await?,
        "settlement_id",
    )
}
