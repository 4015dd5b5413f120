//! A keyed transfer behind the crate `axum-idempotent`, with its answers in Redis and the debited row in
//! PostgreSQL: laid out as the crate's documentation shows.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use fred::clients::Pool;
use fred::interfaces::ClientLike;
use fred::types::config::Config;
use ruts::store::Ttl;
use ruts::store::redis::RedisStore;
use ruts::{CookieOptions, Session, SessionLayer};
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::PgPool;
use tower_cookies::CookieManagerLayer;

/// How long answers and sessions live, in seconds.
const DAY: i64 = 86_400;
/// Connections to Redis.
const REDIS_CONNECTIONS: usize = 4;

type Sessions = RedisStore<Pool>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::WARN).init();
    let pool = PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    let redis = Config::from_url(&std::env::var("REDIS_URL")?)?;
    let redis = Pool::new(redis, None, None, None, REDIS_CONNECTIONS)?;
    redis.init().await?;
    let sessions: Arc<Sessions> = Arc::new(RedisStore::new(Arc::new(redis)).await?);
    let options = IdempotentOptions::default()
        .use_idempotency_key_header(Some("idempotency-key"), true)
        .expire_after(DAY);
    let cookie = CookieOptions::build().name("session").max_age(DAY.unsigned_abs());
    let routes = Router::new()
        .route("/transfers", post(transfer))
        .layer(IdempotentLayer::<Sessions>::new(options))
        .route("/sessions", post(begin))
        .layer(SessionLayer::new(sessions).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
        .route("/health", get(|| async { "up" }))
        .with_state(pool);
    let listener = tokio::net::TcpListener::bind(std::env::var("LISTEN")?).await?;
    axum::serve(listener, routes).await?;
    Ok(())
}

/// Gives the sender a session.
async fn begin(session: Session<Sessions>) -> Result<(), StatusCode> {
    let day = Ttl::new(DAY).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    session.set("sender", &1, day, None).await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

#[derive(Deserialize)]
struct Order {
    account: i64,
    amount: i64,
}

async fn transfer(
    State(pool): State<PgPool>,
    headers: HeaderMap,
    Json(order): Json<Order>,
) -> Result<(StatusCode, Json<Value>), StatusCode> {
    let key = headers.get("idempotency-key").and_then(|it| it.to_str().ok()).unwrap_or_default();
    debited(&pool, key, &order).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

async fn debited(pool: &PgPool, key: &str, order: &Order) -> sqlx::Result<(StatusCode, Json<Value>)> {
    let Order { account, amount } = *order;
    let mut tx = pool.begin().await?;
    let debited = sqlx::query("update accounts set balance = balance - $2 where id = $1 and balance >= $2")
        .bind(account)
        .bind(amount)
        .execute(&mut *tx)
        .await?;
    if debited.rows_affected() == 0 {
        let refused = json!({ "status": "refused", "account": account, "amount": amount });
        return Ok((StatusCode::PAYMENT_REQUIRED, Json(refused)));
    }
    let number: i64 =
        sqlx::query_scalar("insert into transfers (key, account, amount) values ($1, $2, $3) returning id")
            .bind(key)
            .bind(account)
            .bind(amount)
            .fetch_one(&mut *tx)
            .await?;
    tx.commit().await?;
    let answer = json!({ "status": "succeeded", "transfer": number, "account": account, "amount": amount });
    Ok((StatusCode::OK, Json(answer)))
}
