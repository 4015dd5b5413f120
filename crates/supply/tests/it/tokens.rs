//! Tokens through the door, and what the edge makes of them.

use std::sync::Arc;
use std::time::Duration;

use auth::{
    Callers, Grant, Issuer, IssuerKey, Principal, Refusal, Role, Scopes, Statuses, Token, UserType, Verifier,
};
use store::{Write, values};
use supply::tokens::{Issue, Refresh, Revoke, Shown, TokenRows};

use crate::market::{ADMIN, BUYER, BUYER_TENANT, Market, OPERATOR, SUPPLIER_TENANT, Told, market};

fn issuer(market: &Market) -> Arc<Issuer> {
    let key = IssuerKey::random(&*market.house.random).unwrap();
    Arc::new(Issuer::new("https://onceseal.example", "supply", vec![key]).unwrap())
}

/// The edge, as it asks at every request.
fn callers(market: &Market, issuer: &Issuer) -> Callers {
    let verifier = Verifier::new(issuer.name(), issuer.audience(), issuer.keys().unwrap());
    let rows = TokenRows::new(market.door.store().clone());
    Callers::new(verifier, Statuses::believing_for(Arc::new(rows), Duration::ZERO))
}

async fn identify(market: &Market, callers: &Callers, token: &Token) -> Result<Principal, Refusal> {
    let header = format!("Bearer {}", token.expose());
    callers.identify([header.as_bytes()], kernel::Clock::now(&*market.clock)).await
}

fn grant(operator_id: i64) -> Grant {
    Grant {
        operator_id,
        tenant_id: SUPPLIER_TENANT,
        role: Role::Owner,
        user_type: UserType::Supply,
        scopes: Scopes::new(["supply:account:read"]).unwrap(),
        ttl: Duration::from_secs(900),
    }
}

async fn issue(market: &Market, issuer: &Arc<Issuer>, key: &str) -> (Told, Option<Token>) {
    let shown = Shown::default();
    let action = Issue { grant: grant(OPERATOR), issuer: Arc::clone(issuer), shown: shown.clone() };
    let told = market.run_as(market.caller(1, ADMIN, key), action).await;
    (told, shown.take())
}

#[tokio::test]
async fn a_token_is_shown_once_and_opens_until_it_is_revoked() {
    let market = market().await;
    let issuer = issuer(&market);
    let callers = callers(&market, &issuer);
    let (first, token) = issue(&market, &issuer, "key-0000000000001").await;
    assert_eq!((first.code, first.replayed), (201, false), "{first:?}");
    let token = token.unwrap();
    let who = identify(&market, &callers, &token).await.unwrap();
    assert_eq!((who.tenant_id, who.operator_id), (SUPPLIER_TENANT, OPERATOR));
    let (repeat, none) = issue(&market, &issuer, "key-0000000000001").await;
    assert!(repeat.replayed && none.is_none());
    assert_eq!(
        (&repeat.body["data"], &repeat.body["data"]["access_token"]),
        (&first.body["data"], &serde_json::Value::Null)
    );
    let token_id = first.body["data"]["token_id"].as_i64().unwrap();
    let revoker = market.caller(SUPPLIER_TENANT, ADMIN, "key-0000000000002");
    assert_eq!(market.run_as(revoker, Revoke { token_id }).await.code, 200);
    let refused = identify(&market, &callers, &token).await.unwrap_err();
    assert_eq!(refused.code().name(), "AUTH_TOKEN_INACTIVE");
    let again = market.caller(SUPPLIER_TENANT, ADMIN, "key-0000000000003");
    assert_eq!(market.run_as(again, Revoke { token_id }).await.error(), "SUP_COM_4091");
}

#[tokio::test]
async fn a_renewed_token_leaves_the_old_one_worthless() {
    let market = market().await;
    let issuer = issuer(&market);
    let callers = callers(&market, &issuer);
    let (first, old) = issue(&market, &issuer, "key-0000000000001").await;
    let (old, token_id) = (old.unwrap(), first.body["data"]["token_id"].as_i64().unwrap());
    market.clock.advance(Duration::from_secs(60));
    let shown = Shown::default();
    let refresh = Refresh {
        token_id,
        fingerprint: old.fingerprint(),
        grant: grant(OPERATOR),
        issuer: Arc::clone(&issuer),
        shown: shown.clone(),
    };
    let told = market.run("key-0000000000002", refresh.clone()).await;
    assert_eq!(told.code, 200, "{told:?}");
    let new = shown.take().unwrap();
    assert!(identify(&market, &callers, &new).await.is_ok());
    assert!(identify(&market, &callers, &old).await.is_err());
    let twice = market.run("key-0000000000003", refresh).await;
    assert_eq!((twice.code, twice.error()), (409, "SUP_COM_4091"), "it is renewed with itself only");
}

#[tokio::test]
async fn a_token_is_renewed_for_seven_days_from_its_issue_however_often() {
    let market = market().await;
    let issuer = issuer(&market);
    let (first, token) = issue(&market, &issuer, "key-0000000000001").await;
    let (mut token, token_id) = (token.unwrap(), first.body["data"]["token_id"].as_i64().unwrap());
    let three_days = Duration::from_secs(259_200);
    let renew = async |token: &Token, key: &str| {
        let shown = Shown::default();
        let refresh = Refresh {
            token_id,
            fingerprint: token.fingerprint(),
            grant: Grant { ttl: three_days, ..grant(OPERATOR) },
            issuer: Arc::clone(&issuer),
            shown: shown.clone(),
        };
        (market.run(key, refresh).await, shown.take())
    };
    // At once, after three days, after six; the last one lives into the tenth day.
    for (key, pause) in
        [("key-0000000000002", 0), ("key-0000000000003", 259_199), ("key-0000000000004", 259_199)]
    {
        market.clock.advance(Duration::from_secs(pause));
        let (told, renewed) = renew(&token, key).await;
        assert_eq!(told.code, 200, "{told:?}");
        assert_eq!(told.body["data"]["refresh_until"], first.body["data"]["refresh_until"]);
        token = renewed.unwrap();
    }
    market.clock.advance(Duration::from_secs(86_402));
    let callers = callers(&market, &issuer);
    assert!(identify(&market, &callers, &token).await.is_ok(), "it is good");
    let (late, none) = renew(&token, "key-0000000000005").await;
    assert_eq!((late.code, late.error(), none.is_none()), (409, "SUP_COM_4091", true));
}

#[tokio::test]
async fn nobody_of_another_tenant_gets_a_token_and_a_forged_one_is_unknown() {
    let market = market().await;
    let issuer = issuer(&market);
    let action = Issue { grant: grant(999), issuer: Arc::clone(&issuer), shown: Shown::default() };
    let told = market.run_as(market.caller(1, ADMIN, "key-0000000000001"), action).await;
    assert_eq!((told.code, told.error()), (404, "SUP_COM_4041"));
    // Signed with the right key, but not by the token service.
    let minted =
        issuer.mint(&grant(OPERATOR), kernel::Clock::now(&*market.clock), &*market.house.random).unwrap();
    let refused = identify(&market, &callers(&market, &issuer), &minted.token).await.unwrap_err();
    assert_eq!(refused.code().status(), 401);
}

#[tokio::test]
async fn no_row_has_the_token() {
    let market = market().await;
    let issuer = issuer(&market);
    let (_, token) = issue(&market, &issuer, "key-0000000000001").await;
    let signature = token.unwrap().expose().rsplit('.').next().unwrap().to_owned();
    for (table, column) in [
        ("audit_events", "cast(after_state as text)"),
        ("audit_events", "cast(metadata as text)"),
        ("supply_idempotency_record", "cast(response_body as text)"),
        ("auth_tokens", "name"),
    ] {
        let sql = format!("select count(*) from {table} where {column} like $1");
        assert_eq!(market.count(&sql, store::values![format!("%{signature}%")]).await, 0, "{table}.{column}");
    }
}

#[tokio::test]
async fn a_token_says_of_its_user_what_the_tenant_is() {
    let market = market().await;
    let issuer = issuer(&market);
    let kinds = [UserType::Supply, UserType::Consumer, UserType::Platform];
    let users = [(SUPPLIER_TENANT, OPERATOR), (BUYER_TENANT, BUYER), (1, ADMIN)];
    for (fits, (tenant_id, operator_id)) in kinds.into_iter().zip(users) {
        for user_type in kinds {
            let admin = user_type == UserType::Platform;
            let role = if admin { Role::Admin } else { Role::Owner };
            let scopes = Scopes::new([if admin { "*" } else { "supply:account:read" }]).unwrap();
            let ttl = Duration::from_secs(900);
            let grant = Grant { operator_id, tenant_id, role, user_type, scopes, ttl };
            let shown = Shown::default();
            let action = Issue { grant, issuer: Arc::clone(&issuer), shown: shown.clone() };
            let key = format!("key-{tenant_id:09}-{}", user_type.as_str());
            let told = market.run_as(market.caller(1, ADMIN, &key), action).await;
            let expected = if fits == user_type { (201, true) } else { (400, false) };
            assert_eq!((told.code, shown.take().is_some()), expected, "{tenant_id} {user_type:?} {told:?}");
        }
    }
}

#[tokio::test]
async fn a_token_is_not_renewed_for_somebody_who_is_gone_or_is_not_what_it_says() {
    let market = market().await;
    let issuer = issuer(&market);
    let (first, old) = issue(&market, &issuer, "key-0000000000001").await;
    let (old, token_id) = (old.unwrap(), first.body["data"]["token_id"].as_i64().unwrap());
    let renewed = async |key: &str, grant: Grant| {
        let (issuer, shown) = (Arc::clone(&issuer), Shown::default());
        let refresh = Refresh { token_id, fingerprint: old.fingerprint(), grant, issuer, shown };
        market.run(key, refresh).await.code
    };
    let staff = Grant { role: Role::Admin, user_type: UserType::Platform, ..grant(OPERATOR) };
    assert_eq!(renewed("key-0000000000002", staff).await, 400);
    let becomes = |status: &str| {
        let sql = "update iam_users set status = $1 where id = $2";
        vec![Write::one("user", sql, values![status, OPERATOR])]
    };
    market.force(becomes("disabled")).await;
    assert_eq!(renewed("key-0000000000003", grant(OPERATOR)).await, 404);
    market.force(becomes("active")).await;
    assert_eq!(renewed("key-0000000000004", grant(OPERATOR)).await, 200);
}
