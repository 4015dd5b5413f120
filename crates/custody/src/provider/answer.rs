//! What a provider's answer means for the credential. Error codes are compared with tables; texts are never
//! read, since vendors quote part of the key in them, and nothing of the body is kept.
//!
//! An answer that tells nothing of the credential (a redirect, a page of a gateway, a fault of our own
//! clock) is no refusal: the supplier could do nothing about it.

use serde_json::Value as Json;

use super::request::Route;
use crate::wire::{Answer, Cause};

/// How an answer is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The provider knows the credential.
    Accepted,
    /// It does not, or does not let it in.
    Refused,
    /// It knows it, and its quota or money is used up.
    Exhausted,
    /// Try again.
    Again(Cause),
    /// Nothing that is documented.
    Unexpected,
}

/// Codes by which a provider refuses with a status other than 401 and 403 (prefixes).
const REFUSED: [&str; 4] = ["API_KEY_INVALID", "AuthFailure", "UnauthorizedOperation", "invalid_api_key"];
/// Codes of `AuthFailure` that are about our clock, not about the key.
const OURS: [&str; 1] = ["AuthFailure.SignatureExpire"];
/// Codes of used-up quota or money (prefixes).
const EXHAUSTED: [&str; 13] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "account_overdue",
    "insufficient_balance",
    // iFlytek: no licence for, or the day's tokens of, this service.
    "11200",
    "11201",
    // Tencent.
    "FailedOperation.ResourcePackExhausted",
    "FailedOperation.FreeResourcePackExhausted",
    "FailedOperation.ServiceNotActivated",
    "FailedOperation.ServiceStop",
    "ResourceInsufficient",
];
/// Codes of a rate limit (prefixes).
const LIMITED: [&str; 5] = ["RequestLimitExceeded", "LimitExceeded", "11202", "11203", "10007"];
/// Codes of the provider's own faults (prefixes).
const FAULTY: [&str; 3] = ["InternalError", "ServiceUnavailable", "10008"];

pub(super) fn judge(route: Route, answer: &Answer) -> Said {
    let body = serde_json::from_slice::<Json>(&answer.body).unwrap_or(Json::Null);
    let codes = codes(&body);
    let has = |table: &[&str]| codes.iter().any(|code| table.iter().any(|known| matches_code(code, known)));
    match answer.status {
        429 if has(&EXHAUSTED) => Said::Exhausted,
        429 => Said::Again(Cause::RateLimited),
        408 | 500..=599 => Said::Again(Cause::OutOfOrder),
        402 => Said::Exhausted,
        401 | 403 if has(&EXHAUSTED) => Said::Exhausted,
        401 | 403 => Said::Refused,
        200 if expected(route, &body) => Said::Accepted,
        200 | 400 if has(&OURS) => Said::Unexpected,
        200 | 400 if has(&REFUSED) => Said::Refused,
        200 | 400 if has(&EXHAUSTED) => Said::Exhausted,
        200 | 400 if has(&LIMITED) => Said::Again(Cause::RateLimited),
        200 | 400 if has(&FAULTY) => Said::Again(Cause::OutOfOrder),
        _ => Said::Unexpected,
    }
}

/// Numbers are equal, words begin so: `AuthFailure` stands for `AuthFailure.SecretIdNotFound`.
fn matches_code(code: &str, known: &str) -> bool {
    let number = known.bytes().all(|byte| byte.is_ascii_digit());
    if number { code == known } else { code.starts_with(known) }
}

/// Whether the body is the one that only a known credential gets.
fn expected(route: Route, body: &Json) -> bool {
    let list = |field: &str| body.get(field).is_some_and(Json::is_array);
    match route {
        Route::Openai | Route::Anthropic | Route::Baidu | Route::Tencent => list("data"),
        Route::Gemini => list("models"),
        // `{"code":0,…,"choices":[…]}`.
        Route::Xfyun => list("choices") && body.get("code").is_none_or(|code| code == 0),
        Route::TencentSigned => body
            .get("Response")
            .is_some_and(|response| response.get("RequestId").is_some() && response.get("Error").is_none()),
    }
}

/// Every place where the providers put a code.
fn codes(body: &Json) -> Vec<String> {
    let mut found = Vec::new();
    let mut take = |value: Option<&Json>| match value {
        Some(Json::String(text)) => found.push(text.clone()),
        Some(Json::Number(number)) => found.push(number.to_string()),
        _ => {}
    };
    take(body.get("code"));
    take(body.pointer("/Response/Error/Code"));
    take(body.pointer("/header/code"));
    let error = body.get("error");
    for field in ["code", "type", "status"] {
        take(error.and_then(|error| error.get(field)));
    }
    let details = error.and_then(|error| error.get("details")).and_then(Json::as_array);
    for detail in details.into_iter().flatten() {
        take(detail.get("reason"));
    }
    found
}
