//! What the guard costs: the texts that it looks through for one withdrawal, its answer and its rows, looked through
//! again and again in this process.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use guard::{Guard, Scanner, TOKEN_EXCEPTIONS};
use serde_json::Value as Json;

use crate::services::psql::Psql;

/// How long each measurement goes on.
const TIME: Duration = Duration::from_secs(1);
/// Credentials that are alive, which the guard looks for parts of.
const LIVE: usize = 1_000;

/// Rows of the newest withdrawal as JSON, an array.
const ROWS: &str = "select coalesce(json_agg(row), '[]') from (
  select to_jsonb(a) as row from (select * from audit_events where event_name = 'supply.settlement.withdraw.create'
    and result_code = 'OK' order by id desc limit 1) a
  union all select payload from (select payload from outbox where event_name = 'supply.settlement.withdraw.succeeded'
    order by id desc limit 1) o) rows";

/// Nanoseconds of the guard for one withdrawal with this answer.
///
/// # Errors
/// As `psql` says; or the guard finds something, or has no patterns.
pub(super) fn nanoseconds(admin: &str, answer: &[u8]) -> Result<u64> {
    let rows: Vec<Json> =
        serde_json::from_str(&Psql::at(admin)?.ask(ROWS)?).context("rows of a withdrawal")?;
    let scanner = Scanner::standard().map_err(|cause| anyhow!("the guard's patterns: {cause}"))?;
    let guard = Guard::new(scanner, TOKEN_EXCEPTIONS.to_vec(), &[7; 32]);
    for number in 0..LIVE {
        let secret = format!("sk-live-{number:04}-{}", "q7Zx".repeat(9));
        guard.remember(&format!("account:{number}"), &secret).map_err(|cause| anyhow!("{cause}"))?;
    }
    let began = Instant::now();
    let mut count = 0_u32;
    while began.elapsed() < TIME {
        // Stored and sent: both are looked through.
        for place in ["outcome", "body"] {
            black_box(guard.body("", place, black_box(answer)).clean())
                .map_err(|_| anyhow!("a hit in an answer"))?;
        }
        for row in &rows {
            black_box(guard.json("", "row", black_box(row)).clean())
                .map_err(|_| anyhow!("a hit in a row"))?;
        }
        count += 1;
    }
    Ok(u64::try_from(began.elapsed().as_nanos() / u128::from(count.max(1)))?)
}
