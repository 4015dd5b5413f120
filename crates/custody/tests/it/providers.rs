//! Verification against servers that play the providers. Bodies are those of their documentation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use custody::provider::policy::{Policy, TosRule};
use custody::provider::{Addresses, Settings};
use custody::{
    AccountType, BreakerSettings, Cause, CheckItem, Credential, Mark, Provider, Rejection, Unreachable,
    Verification, Verifier, VerifyStatus,
};
use kernel::money::{Quota, QuotaUnit};
use secrecy::SecretString;
use serde_json::{Value as Json, json};
use testkit::{CountingRandom, MovableClock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stub::{Reply, Seen, Stub, shown};

const OPENAI: &str = "sk-CANARYopenai0123456789abcdefghij";
const ANTHROPIC: &str = "sk-ant-api03-CANARYanthropic0123456789";
const GEMINI: &str = "AIzaCANARYgemini0123456789abcdefghijklm";
const BAIDU: &str = "bce-v3/ALTAK-CANARYbaidu0123456789/0123456789abcdef0123456789abcdef01234567";
const XFYUN: &str = "0a1b2c3d:00112233445566778899aabbccddeeff:CANARYxfyun0123456789abcdefghij0";
const TENCENT: &str = "sk-CANARYtencent0123456789abcdefghij";
const TENCENT_PAIR: &str = "AKIDCANARYtencent0123456789:CANARYsecret9876543210zyxwvutsrq";

fn quota(units: u64) -> Quota {
    Quota::whole(units, QuotaUnit::Token).unwrap()
}

/// Every provider at the same server; patient, for a machine under load.
pub(crate) fn settings(stub: &Stub) -> Settings {
    let at = || stub.address.clone();
    let mut settings = Settings {
        addresses: Addresses {
            openai: at(),
            anthropic: at(),
            gemini: at(),
            baidu: at(),
            xfyun: at(),
            tencent: at(),
            tencent_signed: at(),
        },
        connect_within: Duration::from_secs(10),
        ..Settings::default()
    };
    settings.effort.budget = Duration::from_secs(30);
    settings.effort.pause = Duration::from_millis(2);
    settings
}

pub(crate) fn verifier(settings: Settings) -> Verifier {
    with(settings, Policy::standard(quota(5000)))
}

fn with(settings: Settings, policy: Policy) -> Verifier {
    let clock = Arc::new(MovableClock::at(1_774_576_984));
    Verifier::new(settings, policy, clock, Arc::new(CountingRandom::default())).unwrap()
}

async fn verify(verifier: &Verifier, provider: Provider, text: &str) -> Result<Verification, Unreachable> {
    let secret = SecretString::from(text);
    verifier.verify(&Credential { provider, account_type: AccountType::ApiKey, secret: &secret }).await
}

/// The answer of a provider that knows the credential.
fn welcome(seen: &Seen) -> Reply {
    let path = seen.target.split('?').next().unwrap();
    let body = match path {
        "/v1beta/models" => json!({ "models": [{ "name": "models/gemini-2.5-pro" }], "nextPageToken": "x" }),
        "/v1/chat/completions" => json!({
            "code": 0, "message": "Success", "sid": "cha000",
            "choices": [{ "message": { "role": "assistant", "content": "你" }, "index": 0 }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 },
        }),
        "/" => {
            json!({ "Response": { "TokenCount": 1, "CharacterCount": 2, "Tokens": ["hi"], "RequestId": "r" } })
        }
        _ => {
            json!({ "object": "list", "data": [{ "id": "m", "object": "model", "created": 0, "owned_by": "" }] })
        }
    };
    Reply::json(200, &body)
}

fn marks(verification: &Verification) -> [Mark; 5] {
    verification.items.map(|item| item.result)
}

#[tokio::test]
async fn each_provider_is_asked_in_its_own_shape_and_only_in_a_header() {
    let stub = Stub::start(welcome).await;
    let verifier = verifier(settings(&stub));
    let bearer = |text: &str| ("authorization", format!("Bearer {text}"));
    let cases = [
        (Provider::Openai, OPENAI, "GET /v1/models", bearer(OPENAI)),
        (Provider::Anthropic, ANTHROPIC, "GET /v1/models?limit=1", ("x-api-key", ANTHROPIC.into())),
        (Provider::Gemini, GEMINI, "GET /v1beta/models?pageSize=1", ("x-goog-api-key", GEMINI.into())),
        (Provider::Baidu, BAIDU, "GET /v2/models", bearer(BAIDU)),
        (Provider::Xfyun, XFYUN, "POST /v1/chat/completions", bearer(&XFYUN[9..])),
        (Provider::Tencent, TENCENT, "GET /v1/models", bearer(TENCENT)),
    ];
    for (provider, text, line, (name, value)) in cases {
        let result = verify(&verifier, provider, &format!(" {text}\n")).await.unwrap();
        assert_eq!(result.verify_status, VerifyStatus::Pass, "{result:?}");
        assert_eq!((result.available_quota, result.risk_score), (Some(quota(5000)), 20));
        let seen = stub.seen().pop().unwrap();
        assert_eq!(format!("{} {}", seen.method, seen.target), line);
        assert_eq!(seen.header(name), value);
        let others = seen.headers.iter().filter(|(other, _)| other.as_str() != name);
        let others: Vec<_> = others.map(|(_, value)| value.to_str().unwrap()).collect();
        assert_eq!(shown(text, &format!("{} {} {}", seen.target, seen.body, others.join(" "))), None);
    }
    assert_eq!(stub.seen()[1].header("anthropic-version"), "2023-06-01");
    assert_eq!(stub.seen()[4].json()["max_tokens"], 1);
}

#[tokio::test]
async fn a_tencent_pair_signs_its_request_and_the_secret_key_stays_here() {
    let stub = Stub::start(welcome).await;
    let result = verify(&verifier(settings(&stub)), Provider::Tencent, TENCENT_PAIR).await.unwrap();
    assert_eq!(result.verify_status, VerifyStatus::Pass);
    let seen = stub.seen().pop().unwrap();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/"));
    let named =
        ["x-tc-action", "x-tc-version", "x-tc-timestamp", "content-type"].map(|name| seen.header(name));
    assert_eq!(named, ["GetTokenCount", "2023-09-01", "1774576984", "application/json; charset=utf-8"]);
    let (id, key) = TENCENT_PAIR.split_once(':').unwrap();
    let authorization = seen.header("authorization");
    let start = format!(
        "TC3-HMAC-SHA256 Credential={id}/2026-03-27/hunyuan/tc3_request, SignedHeaders=content-type;host;x-tc-action, Signature="
    );
    assert_eq!(authorization.strip_prefix(&start).map(str::len), Some(64), "{authorization}");
    assert_eq!(shown(key, &format!("{:?} {}", seen.headers, seen.body)), None);
    assert_eq!(seen.header("host"), stub.address.trim_start_matches("http://"));
}

/// What an answer must come to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Refused,
    Exhausted,
    Out(Cause),
}

type Case = (Provider, &'static str, u16, Json, End);

/// An error as OpenAI and most others word it, with the key in its text.
fn error(code: &str) -> Json {
    json!({ "error": { "message": format!("Incorrect API key provided: {OPENAI}"), "type": "x", "code": code } })
}

fn by_status() -> Vec<Case> {
    let gemini = json!({ "error": { "code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
        "details": [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID" }] } });
    let anthropic = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": "x" } });
    let long = json!({ "data": ["x".repeat(1 << 20)] });
    let argument = json!({ "error": { "status": "INVALID_ARGUMENT" } });
    let unexpected = End::Out(Cause::Unexpected);
    vec![
        (Provider::Openai, OPENAI, 401, error("invalid_api_key"), End::Refused),
        (Provider::Openai, OPENAI, 403, error("unsupported_country_region_territory"), End::Refused),
        (Provider::Openai, OPENAI, 429, error("insufficient_quota"), End::Exhausted),
        (Provider::Openai, OPENAI, 429, error("rate_limit_exceeded"), End::Out(Cause::RateLimited)),
        (Provider::Openai, OPENAI, 503, error("x"), End::Out(Cause::OutOfOrder)),
        (Provider::Openai, OPENAI, 404, error("x"), unexpected),
        (Provider::Openai, OPENAI, 200, json!("<html>a page of a gateway"), unexpected),
        (Provider::Openai, OPENAI, 200, json!({ "models": [] }), unexpected),
        (Provider::Openai, OPENAI, 200, long, unexpected),
        (Provider::Anthropic, ANTHROPIC, 401, anthropic("authentication_error"), End::Refused),
        (Provider::Anthropic, ANTHROPIC, 402, anthropic("billing_error"), End::Exhausted),
        (Provider::Anthropic, ANTHROPIC, 529, anthropic("overloaded_error"), End::Out(Cause::OutOfOrder)),
        (Provider::Gemini, GEMINI, 400, gemini, End::Refused),
        (Provider::Gemini, GEMINI, 400, argument, unexpected),
        (Provider::Baidu, BAIDU, 401, error("invalid_iam_token"), End::Refused),
    ]
}

fn by_code() -> Vec<Case> {
    let tencent = |code: &str, end| {
        let body = json!({ "Response": { "Error": { "Code": code, "Message": OPENAI }, "RequestId": "r" } });
        (Provider::Tencent, TENCENT_PAIR, 200, body, end)
    };
    let xfyun = |status, body, end| (Provider::Xfyun, XFYUN, status, body, end);
    vec![
        xfyun(401, json!({ "message": "HMAC signature cannot be verified" }), End::Refused),
        xfyun(200, json!({ "code": 11200, "message": "AppIdNoAuthError" }), End::Exhausted),
        xfyun(200, json!({ "error": { "code": "11202" } }), End::Out(Cause::RateLimited)),
        tencent("AuthFailure.SecretIdNotFound", End::Refused),
        tencent("AuthFailure.SignatureExpire", End::Out(Cause::Unexpected)),
        tencent("UnauthorizedOperation.X", End::Refused),
        tencent("FailedOperation.ServiceStopArrears", End::Exhausted),
        tencent("RequestLimitExceeded", End::Out(Cause::RateLimited)),
        tencent("InternalError", End::Out(Cause::OutOfOrder)),
        tencent("InvalidParameter", End::Out(Cause::Unexpected)),
    ]
}

#[tokio::test]
async fn answers_are_understood_by_status_and_code() {
    let cases = [by_status(), by_code()].concat();
    for (provider, text, status, body, end) in cases {
        let stub = Stub::always(Reply::json(status, &body)).await;
        let result = verify(&verifier(settings(&stub)), provider, text).await;
        let said = format!("{result:?}");
        let got = match result {
            Err(Unreachable { cause, .. }) => End::Out(cause),
            Ok(result) if result.rejection() == Some(Rejection::Provider) => End::Refused,
            Ok(result) => {
                assert_eq!(
                    (result.verify_status, result.available_quota),
                    (VerifyStatus::ReviewRequired, None)
                );
                End::Exhausted
            }
        };
        assert_eq!(got, end, "{provider:?} {status} {body:.200}");
        assert!(!said.contains("CANARY") && !said.contains("Incorrect"), "{said}");
        let passing = matches!(end, End::Out(cause) if cause != Cause::Unexpected);
        assert_eq!(stub.count(), if passing { 3 } else { 1 }, "{body:.200}");
    }
}

#[tokio::test]
async fn the_third_try_may_succeed() {
    let count = AtomicUsize::new(0);
    let stub = Stub::start(move |seen| match count.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Reply::json(502, &"bad gateway"),
        _ => welcome(seen),
    });
    let stub = stub.await;
    let result = verify(&verifier(settings(&stub)), Provider::Openai, OPENAI).await.unwrap();
    assert_eq!((result.verify_status, stub.count()), (VerifyStatus::Pass, 3));
}

#[tokio::test]
async fn a_provider_that_hangs_costs_the_budget_and_then_rests() {
    let stub = Stub::always(Reply::Hangs).await;
    let mut settings = settings(&stub);
    settings.effort.budget = Duration::from_millis(200);
    settings.breaker = BreakerSettings { after: 2, rest: Duration::from_secs(600) };
    let verifier = verifier(settings);
    let start = Instant::now();
    let out = |provider, cause| Err(Unreachable { provider, cause });
    for _ in 0..2 {
        assert_eq!(verify(&verifier, Provider::Openai, OPENAI).await, out(Provider::Openai, Cause::Time));
    }
    assert!(start.elapsed() >= Duration::from_millis(400));
    assert_eq!(verify(&verifier, Provider::Openai, OPENAI).await, out(Provider::Openai, Cause::Resting));
    // Another provider's circuit is its own.
    assert_eq!(verify(&verifier, Provider::Baidu, BAIDU).await, out(Provider::Baidu, Cause::Time));
    assert!(stub.count() <= 3);
}

#[tokio::test(start_paused = true)]
async fn by_default_a_verification_ends_within_700_ms() {
    // With a clock that jumps whenever all wait, so that only the clock's own time counts.
    let stub = Stub::always(Reply::Hangs).await;
    let usual = Settings::default();
    let settings = Settings { addresses: settings(&stub).addresses, ..usual };
    let start = tokio::time::Instant::now();
    assert!(verify(&verifier(settings), Provider::Openai, OPENAI).await.is_err());
    assert!(start.elapsed() <= Duration::from_millis(701), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_refused_connection_and_a_redirect_end_without_the_credential_elsewhere() {
    let elsewhere = Stub::start(welcome).await;
    let location = ("location", format!("{}/v1/models", elsewhere.address));
    let stub = Stub::always(Reply::Says(302, location, String::new())).await;
    let error = verify(&verifier(settings(&stub)), Provider::Openai, OPENAI).await.unwrap_err();
    assert_eq!((error.cause, elsewhere.count()), (Cause::Unexpected, 0));
    let mut closed = settings(&stub);
    closed.addresses.openai = "http://127.0.0.1:1".into();
    let error = verify(&verifier(closed), Provider::Openai, OPENAI).await.unwrap_err();
    assert_eq!(error.to_string(), "openai is out of reach (no connection); try again later");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_tried_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = settings(&Stub::start(welcome).await);
    settings.addresses.openai = format!("http://{}", listener.local_addr().unwrap());
    let half = async {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 70\r\n\r\n{\"da").await.unwrap();
        }
    };
    let verifier = verifier(settings);
    let (result, ()) = tokio::join!(verify(&verifier, Provider::Openai, OPENAI), half);
    assert_eq!(result.unwrap_err().cause, Cause::Broken);
}

#[tokio::test]
async fn a_wrong_format_is_never_sent_and_all_five_items_are_there() {
    let stub = Stub::start(welcome).await;
    let result = verify(&verifier(settings(&stub)), Provider::Openai, ANTHROPIC).await.unwrap();
    assert_eq!((result.verify_status, result.rejection()), (VerifyStatus::Reject, Some(Rejection::Format)));
    assert_eq!((stub.count(), result.available_quota), (0, None));
    let names = result.items.map(|item| item.item.as_str());
    assert_eq!(names, ["credential_format", "provider_connectivity", "quota_availability", "tos", "risk"]);
    assert_eq!(marks(&result), [Mark::Fail, Mark::Warn, Mark::Warn, Mark::Pass, Mark::Pass]);
}

#[tokio::test]
async fn what_can_t_be_asked_is_a_warning_and_nothing_is_sent() {
    let stub = Stub::start(welcome).await;
    let verifier = verifier(settings(&stub));
    let pair = "CANARYak0123456789abcdef:CANARYsk0123456789abcdef";
    let result = verify(&verifier, Provider::Baidu, pair).await.unwrap();
    assert_eq!(result.verify_status, VerifyStatus::ReviewRequired);
    assert_eq!(marks(&result), [Mark::Pass, Mark::Warn, Mark::Warn, Mark::Pass, Mark::Pass]);
    let secret = SecretString::from(r#"{"refresh_token":"1//0CANARY"}"#);
    let oauth = Credential { provider: Provider::Gemini, account_type: AccountType::Oauth, secret: &secret };
    let result = verifier.verify(&oauth).await.unwrap();
    assert_eq!((result.verify_status, result.risk_score), (VerifyStatus::ReviewRequired, 75));
    assert_eq!(marks(&result), [Mark::Pass, Mark::Warn, Mark::Warn, Mark::Warn, Mark::Warn]);
    assert!(!result.tos_compliant());
    assert_eq!(stub.count(), 0);
}

#[tokio::test]
async fn terms_and_risk_are_decided_by_the_policy() {
    let stub = Stub::start(welcome).await;
    let mut forbidden = Policy::standard(quota(1));
    forbidden
        .tos
        .insert(0, TosRule { provider: Some(Provider::Openai), account_type: None, mark: Mark::Fail });
    let result = verify(&with(settings(&stub), forbidden.clone()), Provider::Openai, OPENAI).await.unwrap();
    assert_eq!((result.rejection(), result.tos_compliant()), (Some(Rejection::Tos), false));
    let other = verify(&with(settings(&stub), forbidden), Provider::Anthropic, ANTHROPIC).await.unwrap();
    assert_eq!((other.rejection(), other.tos_compliant()), (None, true));
    for (points, status, mark) in [
        (39, VerifyStatus::Pass, Mark::Pass),
        (40, VerifyStatus::ReviewRequired, Mark::Warn),
        (60, VerifyStatus::ReviewRequired, Mark::Warn),
        (61, VerifyStatus::Reject, Mark::Fail),
        (255, VerifyStatus::Reject, Mark::Fail),
    ] {
        let mut policy = Policy::standard(quota(1));
        policy.risk.providers = vec![(Provider::Openai, points)];
        let result = verify(&with(settings(&stub), policy), Provider::Openai, OPENAI).await.unwrap();
        assert_eq!((result.verify_status, result.items[4].result), (status, mark), "{points}");
        assert!(result.risk_score <= 100 && result.items[4].item == CheckItem::Risk);
    }
}

#[tokio::test]
async fn a_quota_that_a_gateway_tells_is_taken() {
    for (told, expected, mark) in [
        ("1200", Some(quota(1200)), Mark::Pass),
        ("0", Some(quota(0)), Mark::Warn),
        ("-3", Some(quota(5000)), Mark::Pass),
        ("many", Some(quota(5000)), Mark::Pass),
    ] {
        let body = json!({ "data": [] }).to_string();
        let stub = Stub::always(Reply::Says(200, ("x-quota-left", told.into()), body)).await;
        let mut settings = settings(&stub);
        settings.quota_header = Some("X-Quota-Left".into());
        let result = verify(&verifier(settings), Provider::Openai, OPENAI).await.unwrap();
        assert_eq!((result.available_quota, result.items[2].result), (expected, mark), "{told}");
    }
}

#[test]
fn an_address_in_the_open_is_refused() {
    let mut settings = Settings::default();
    settings.addresses.gemini = "http://generativelanguage.googleapis.com".into();
    let clock = Arc::new(MovableClock::at(0));
    let made =
        Verifier::new(settings, Policy::standard(quota(1)), clock, Arc::new(CountingRandom::default()));
    assert!(made.unwrap_err().to_string().contains("loopback"));
}
