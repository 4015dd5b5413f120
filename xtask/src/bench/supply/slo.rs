//! The service levels of section 18 under the loads it names: 50 withdrawals at once of one supplier, and
//! verifications at a fixed rate.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use futures::future::join_all;
use play::{Call, Client, Market, Phone, Supplier};
use serde_json::{Value as Json, json};

use super::load::Sample;

/// Withdrawals of one supplier at once.
const AT_ONCE: usize = 50;
/// How often that is done.
const WAVES: usize = 20;
/// Verifications a second.
const RATE: u64 = 100;
const WITHDRAW: &str = "/api/v1/supply/settlements/withdraw";

/// What came of waves of withdrawals.
pub(super) struct Waves {
    /// Of all answers.
    pub(super) sample: Sample,
    /// Withdrawals that went through: one a wave.
    pub(super) made: usize,
    /// Waves.
    pub(super) waves: usize,
}

/// Sends 50 withdrawals at once, each under a key of its own, cancels the one that went through, and again.
/// Everything else than 201 and 409 `SUP_SET_4091` is a failure.
///
/// # Errors
/// No answer.
pub(super) async fn withdrawals(market: &Market, phone: &Phone, owner: &Supplier) -> Result<Waves> {
    let (mut latencies, mut failures, mut made) = (Vec::new(), 0, 0);
    let began = Instant::now();
    for _ in 0..WAVES {
        let body = asked(market, phone, owner).await.map_err(|cause| anyhow!(cause))?;
        let calls =
            (0..AT_ONCE).map(|_| Call::post(WITHDRAW, &owner.token, &market.client.key(), body.clone()));
        let calls: Vec<Call> = calls.collect();
        for (answer, took) in join_all(calls.iter().map(|call| timed(&market.client, call))).await {
            let answer = answer.map_err(|cause| anyhow!(cause))?;
            match (answer.code(), answer.error().as_str()) {
                (201, _) => {
                    made += 1;
                    let path =
                        format!("/api/v1/supply/settlements/{}/cancel", answer.member("settlement_id"));
                    let cancelled = market.client.make(&path, &owner.token, Json::Null).await;
                    cancelled.map_err(|cause| anyhow!(cause))?;
                }
                (409, "SUP_SET_4091") => {}
                _ => failures += 1,
            }
            latencies.push(took);
        }
    }
    Ok(Waves { sample: Sample::of(latencies, began.elapsed(), failures), made, waves: WAVES })
}

async fn asked(market: &Market, phone: &Phone, owner: &Supplier) -> Result<Json, String> {
    let before = phone.count(&owner.phone);
    market.client.make(&format!("{WITHDRAW}/sms-code"), &owner.token, Json::Null).await?;
    let code = phone.code(&owner.phone, before).await?;
    Ok(
        json!({ "withdraw_amount": 50, "payment_method": "alipay", "payment_account": "13800000000", "sms_code": code }),
    )
}

async fn timed(client: &Client, call: &Call) -> (Result<play::Answer, String>, u64) {
    let began = Instant::now();
    let answer = client.send(call).await;
    (answer, u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX))
}

/// Verifies at a fixed rate, whether answers come or not; latency counts from the time at which a request was due.
///
/// # Errors
/// A task failed.
pub(super) async fn verifications(market: &Market, owner: &Supplier, time: Duration) -> Result<Sample> {
    let began = Instant::now();
    let count = time.as_secs().saturating_mul(RATE);
    let tasks = (0..count).map(|number| {
        let (client, token) = (market.client.clone(), owner.token.clone());
        tokio::spawn(async move {
            let due = began + Duration::from_micros(number.saturating_mul(1_000_000 / RATE));
            tokio::time::sleep_until(due.into()).await;
            let body = json!({ "provider": "openai", "account_type": "api_key",
                "credential_input": format!("sk-{number:08}{}", "v6".repeat(20)) });
            let call = Call::post("/api/v1/supply/accounts/verify", &token, &client.key(), body);
            let answer = client.send(&call).await;
            let took = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
            (answer.is_ok_and(|answer| answer.code() == 200), took)
        })
    });
    let (mut latencies, mut failures) = (Vec::new(), 0);
    for task in tasks.collect::<Vec<_>>() {
        let (well, took) = task.await?;
        latencies.push(took);
        failures += u64::from(!well);
    }
    Ok(Sample::of(latencies, began.elapsed(), failures))
}
