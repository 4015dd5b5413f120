//! What the guard costs on a usual answer: `cargo run --release --example cost -p guard`.
//!
//! Prints megabytes a second and microseconds an answer of 1 KiB, once for each layer: expressions alone, with
//! the cheap search in front, with live secrets, a whole body, a query. On Linux the time is the processor's.

use std::hint::black_box;
use std::time::{Duration, Instant};

use guard::query::judge;
use guard::{Guard, Scanner, TOKEN_EXCEPTIONS};
use serde_json::json;

/// How long each line is measured.
const SPAN: Duration = Duration::from_millis(600);

fn main() -> Result<(), guard::BadPattern> {
    let scanner = Scanner::standard()?;
    let guard = Guard::new(Scanner::standard()?, TOKEN_EXCEPTIONS.to_vec(), &[1; 32]);
    let body = answer();
    println!("an answer of {} bytes", body.len());
    line("expressions only", body.len(), || scanner.find_by_expressions_only(&body).is_some());
    line("with the cheap search", body.len(), || scanner.find(&body).is_some());
    line("guard, no secret known", body.len(), || {
        guard.body("GET /x", "body", body.as_bytes()).clean().is_err()
    });
    for count in [100_u64, 1_000, 10_000] {
        for index in guard.secrets() as u64..count {
            // No more than a secret of 51 bytes that differs from the others.
            let secret =
                format!("sk-{:016x}{:016x}{:016x}", mixed(index), mixed(index + 77), mixed(index + 991));
            let _ = guard.remember(&index.to_string(), &secret);
        }
        line(&format!("guard, {count} secrets known"), body.len(), || {
            guard.body("GET /x", "body", body.as_bytes()).clean().is_err()
        });
    }
    let escaped = serde_json::Value::from(body.as_str()).to_string();
    line("the same, as a JSON text in JSON", escaped.len(), || {
        guard.body("GET /x", "body", escaped.as_bytes()).clean().is_err()
    });
    let target = "/api/v1/supply/packages?page=1&page_size=20&status=active&model=gpt-4o-2024-08-06";
    line("a request target", target.len(), || {
        judge(target.as_bytes(), guard.scanner()) != guard::query::Judgement::Clean
    });
    Ok(())
}

fn line(name: &str, bytes: usize, mut once: impl FnMut() -> bool) {
    let (started, before) = (Instant::now(), on_processor());
    let mut rounds = 0_u128;
    while started.elapsed() < SPAN {
        for _ in 0..64 {
            assert!(!black_box(once()), "a hit in a clean text");
        }
        rounds += 64;
    }
    let nanos = match (before, on_processor()) {
        (Some(before), Some(after)) => after.saturating_sub(before).max(1),
        _ => started.elapsed().as_nanos(),
    };
    let (each, rate) = (nanos / rounds, bytes as u128 * rounds * 1000 / nanos);
    println!("{name:36} {rate:6} MB/s {:4}.{:02} us each", each / 1000, each % 1000 / 10);
}

/// Nanoseconds this program was on a processor: on a busy machine the wall clock measures the neighbours.
fn on_processor() -> Option<u128> {
    std::fs::read_to_string("/proc/self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

fn mixed(value: u64) -> u64 {
    let value = (value ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (value ^ (value >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// A list of settlements as the API gives it.
fn answer() -> String {
    let item = |number: u64| {
        json!({
            "settlement_id": 4100 + number,
            "settlement_no": format!("STL20260327{}ABCD", 10_000_000 + number),
            "amount": "1234.50", "fee": "12.35", "currency_code": "CNY", "status": "completed",
            "payment_method": "bank", "payment_account": "6222****1234", "version": 4,
            "created_at": "2026-03-27T02:03:04.123Z", "completed_at": "2026-03-27T04:03:04.123Z",
        })
    };
    json!({
        "request_id": "0190d2c1-6f3e-7abc-8def-0123456789ab",
        "data": [item(1), item(2), item(3)],
        "pagination": { "page": 1, "page_size": 20, "total": 3 },
    })
    .to_string()
}
