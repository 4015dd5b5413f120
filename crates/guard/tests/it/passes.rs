//! What looks a little like a credential and must pass (section 15.2, "False positives").

use guard::Verdict;
use proptest::prelude::{any, proptest};
use proptest::prop_assert_eq;

use crate::made_up::{BASE32, BASE62, HEX, letters, new_guard, scanner};

/// Texts of a usual day.
pub(crate) const INNOCENT: &[&str] = &[
    "0190d2c1-6f3e-7abc-8def-0123456789ab",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "2026-03-27T02:03:04.123Z",
    "gpt-4o-2024-08-06",
    "claude-3-5-sonnet-20241022",
    "gemini-1.5-pro-002",
    "ernie-4.0-turbo-8k-latest",
    "hunyuan-turbos-20250313",
    "task-0123456789abcdefghijklmnop",
    "risk-0123456789abcdefghijklmnop",
    "disk-0123456789abcdefghijklmnop, desk-0123456789abcdefghijklmnop",
    "sk-short",
    "AIza",
    "AKID",
    "ALTAK",
    "lgw_",
    "eyJ",
    "sk-",
    "sk-ant-",
    "Bearer",
    "supply:account:read supply:settlement:withdraw billing:read",
    "SUP_COM_5002 IDEMPOTENCY_PAYLOAD_MISMATCH",
    "the field credential_input is missing; api_key: string; authorization: required",
    "{\"credential_fingerprint\":\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"}",
    "{\"token_id\":\"0190d2c1-6f3e-7abc-8def-0123456789ab\",\"access_token\":null}",
    "https://api.example.com/api/v1/supply/accounts?page=1&page_size=20",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "供应方上游凭证仅平台托管",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "1234567.250000,24.5,25.75,1//2",
    "-----BEGIN CERTIFICATE-----",
];

/// Numbers of our own, as section 15.2 names them.
fn of_ours(seed: u32) -> Vec<String> {
    vec![
        format!("STL20260327{}", letters(BASE32, 12, seed)),
        format!("ORD20260327{}", letters(BASE32, 12, seed)),
        format!("ck_{}", letters(BASE62, 22, seed)),
        format!("statement_STL20260327{}.csv", letters(BASE32, 12, seed)),
        letters(HEX, 64, seed),
        format!("av_evt_1{}", letters(BASE62, 24, seed)),
    ]
}

#[test]
fn innocent_texts_pass_alone_and_together() {
    for text in INNOCENT {
        assert_eq!(scanner().find(text), None, "{text}");
        assert_eq!(scanner().find(&serde_json::to_string(text).unwrap()), None, "{text}");
    }
    assert_eq!(scanner().find(&INNOCENT.join("\n")), None);
    assert_eq!(scanner().find(&serde_json::to_string(INNOCENT).unwrap()), None);
}

proptest! {
    #[test]
    fn our_own_numbers_pass(seed in any::<u32>()) {
        for text in of_ours(seed) {
            prop_assert_eq!(scanner().find(&text), None, "{}", text);
        }
        prop_assert_eq!(scanner().find(&of_ours(seed).join(" ")), None);
    }
}

#[test]
fn usual_answers_pass_a_guard_that_knows_secrets() {
    let guard = new_guard();
    for seed in 0..50 {
        guard.remember(&seed.to_string(), &format!("sk-{}", letters(BASE62, 48, seed))).unwrap();
    }
    let texts: Vec<String> =
        (100..300).flat_map(of_ours).chain(INNOCENT.iter().map(ToString::to_string)).collect();
    let body = serde_json::json!({ "request_id": texts[0], "data": texts, "pagination": { "page": 1 } });
    assert_eq!(guard.json("GET /x", "body", &body), Verdict::Clean);
    assert_eq!(guard.body("GET /x", "body", body.to_string().as_bytes()), Verdict::Clean);
}
