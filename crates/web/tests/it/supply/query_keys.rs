//! FI-007: every variant of section 14, on known and unknown paths, with and without a bearer token.

use axum::body::Body;
use axum::http::Request;

use super::desk::{Desk, code, is};

const NAMES: &str = "key, apikey, xapikey, xgoogapikey, appkey, apisecret, apipassword, appsecret, accesskey,
accesskeyid, secretkey, secretid, secret, clientsecret, ak, sk, token, accesstoken, refreshtoken, idtoken, authtoken,
apitoken, sessiontoken, bearer, bearertoken, auth, authorization, xauthtoken, password, passwd, pwd, credential,
credentials, credentialinput, subscriptionkey, jwt, signature, sig";
const CANARY: &str = "CanaryZebra7";
const PATHS: [&str; 6] = [
    "/api/v1/supply/accounts",
    "/api/v1/supply/settlements/withdraw",
    "/v1/chat/completions",
    "/v1beta/models/gemini:generateContent",
    "/nowhere/at/all",
    "/healthz",
];

/// `name` in other spellings.
fn variants(name: &str) -> Vec<String> {
    let (first, rest) = name.split_at(1);
    let hex: String = first.bytes().map(|byte| format!("{byte:02x}")).collect();
    let wide: String = name
        .bytes()
        .map(|byte| {
            // Full-width forms stand 0xFEE0 above ASCII; all three bytes of their UTF-8 are encoded.
            let wide = char::from_u32(u32::from(byte) + 0xfee0).expect("a letter").to_string();
            wide.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>()
        })
        .collect();
    vec![
        format!("{name}={CANARY}"),
        format!("{}={CANARY}", name.to_uppercase()),
        name.to_owned(),
        format!("{name}="),
        format!("%{hex}{rest}={CANARY}"),
        format!("%25{hex}{rest}={CANARY}"),
        format!("{first}_{rest}={CANARY}"),
        format!("{first}%5F{rest}={CANARY}"),
        format!("{first}-{rest}={CANARY}"),
        format!("{first}.{rest}={CANARY}"),
        format!("{first}+{rest}={CANARY}"),
        format!("{first}%E2%80%8B{rest}={CANARY}"),
        format!("{name}[]={CANARY}"),
        format!("{name}%5Ba%5D={CANARY}"),
        format!("{wide}={CANARY}"),
        format!("page=1&{name}={CANARY}"),
        format!("page=1;{name}={CANARY}"),
        format!("page=1&{name}={CANARY}&{name}=2"),
        format!("page=%zz&{name}={CANARY}"),
    ]
}

#[tokio::test]
async fn fi_007_each_spelling_of_a_credentials_name_is_refused_and_its_value_is_kept_nowhere() {
    let desk = Desk::new().await;
    let (before, mut sent) = (desk.business().await, 0);
    for (nth, name) in NAMES.split(',').map(str::trim).enumerate() {
        for (of, query) in variants(name).into_iter().enumerate() {
            let path = format!("{}?{query}", PATHS[(nth + of) % PATHS.len()]);
            let got = match (nth + of) % 3 {
                0 => desk.api.read(&path, &desk.token).await,
                1 => desk.api.read(&path, "no.such.token").await,
                _ => desk.api.house.get(&path).await,
            };
            assert_eq!(code(&got), is(401, "QUERY_KEY_NOT_ALLOWED"), "{path}");
            assert!(!got.text().contains(CANARY), "{path}");
            sent += 1;
        }
    }
    assert_eq!(desk.audited("token.query_key.rejected", "QUERY_KEY_NOT_ALLOWED").await, sent);
    assert_eq!(desk.business().await, before);
    let rows = "select cast(metadata as text) || object_id || request_id || trace_id from audit_events";
    assert!(desk.api.texts(rows).await.iter().all(|row| !row.contains(CANARY)));
}

#[tokio::test]
async fn fi_007_a_value_that_is_a_credential_and_one_in_the_path_are_refused() {
    let desk = Desk::new().await;
    let jwt = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ";
    let openai = format!("sk-{}", "Ab1".repeat(12));
    let anthropic = format!("sk-ant-api03-{}", "Ab1_".repeat(12));
    let google = format!("AIza{}", "b".repeat(35));
    let platform = format!("lgw_{}", "Ab1".repeat(10));
    // base64 of the first.
    let encoded = data_encoding(&openai);
    for value in [
        jwt,
        &openai,
        &anthropic,
        &google,
        &platform,
        &encoded,
        "Bearer%20abcdefgh",
        &openai.replace("sk-", "sk%252D"),
    ] {
        for target in
            [format!("/v1/models?model={value}"), format!("/api/v1/supply/packages?page=1&x={value}")]
        {
            let got = desk.api.read(&target, &desk.token).await;
            assert_eq!(code(&got), is(401, "QUERY_KEY_NOT_ALLOWED"), "{target}");
            assert!(!got.text().contains(value), "{target}");
        }
    }
    for target in ["/api/v1/supply/accounts;key=1", "/v1/models;api_key=x/y", "/nowhere;token"] {
        assert_eq!(code(&desk.api.house.get(target).await), is(401, "QUERY_KEY_NOT_ALLOWED"), "{target}");
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] {
        let request = Request::builder().method(method).uri("/v1/completions?key=1").body(Body::empty());
        assert_eq!(desk.api.house.call(request.expect("a request")).await.status, 401, "{method}");
    }
}

/// Base64 without padding, by hand: this crate has no codec among its tests.
fn data_encoding(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    let digit = |bits: &[u8]| {
        let bits = std::str::from_utf8(bits).expect("bits");
        let number = usize::from_str_radix(&format!("{bits:0<6}"), 2).expect("a number");
        char::from(DIGITS[number])
    };
    bits.as_bytes().chunks(6).map(digit).collect()
}

#[tokio::test]
async fn fi_007_names_that_only_look_alike_pass() {
    let desk = Desk::new().await;
    for query in ["page=1&page_size=20", "status=active&provider=openai"] {
        assert_eq!(
            desk.api.read(&format!("/api/v1/supply/accounts?{query}"), &desk.token).await.status,
            200,
            "{query}"
        );
    }
    for query in
        ["model=x", "monkey=1", "keyword=a", "tokenizer=b", "start_date=2026-01-01&end_date=2026-01-02"]
    {
        let got = desk.api.read(&format!("/api/v1/supply/accounts?{query}"), &desk.token).await;
        assert_eq!(code(&got), is(400, "SUP_COM_4002"), "{query}: known to nobody here, but no credential");
    }
    for query in ["page=%zz", "page=%", "page=1;page_size=2"] {
        assert_eq!(
            code(&desk.api.house.get(&format!("/nowhere?{query}")).await),
            is(400, "SUP_COM_4002"),
            "{query}"
        );
    }
    assert_eq!(desk.audited("token.query_key.rejected", "QUERY_KEY_NOT_ALLOWED").await, 0);
}
