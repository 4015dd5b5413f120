//! What allows no identity: a clear 4xx with a code, nothing written.

use axum::body::Body;
use axum::http::{Method, Request};
use source::samples::CHECKOUT_PAID;

use crate::house::{House, NOW, delivery, payment, signed};

const ID: &str = "evt_1SkQl3B7WZ01zgkWh3b8kqQe";

fn with_signature(signature: &str) -> Request<Body> {
    let request = Request::post("/webhooks/stripe").header("Stripe-Signature", signature);
    request.body(Body::from(CHECKOUT_PAID)).expect("a request")
}

fn with_header(name: &str, value: &str) -> Request<Body> {
    let mut request = delivery("stripe", CHECKOUT_PAID.as_bytes(), NOW);
    request
        .headers_mut()
        .insert(axum::http::HeaderName::try_from(name).expect("a name"), value.try_into().expect("a value"));
    request
}

fn body(text: impl AsRef<[u8]>) -> Request<Body> {
    delivery("stripe", text.as_ref(), NOW)
}

fn with_id(id: &str) -> Request<Body> {
    body(CHECKOUT_PAID.replace(&format!("\"{ID}\""), id))
}

fn signature() -> String {
    signed(CHECKOUT_PAID.as_bytes(), NOW)[1].1.clone()
}

async fn refused(cases: Vec<(&str, Request<Body>, u16, &'static str)>) {
    let house = House::new().await;
    let before = house.written().await;
    for (what, request, status, code) in cases {
        let got = house.call(request).await;
        assert_eq!(got.problem(), (status, code.to_owned()), "{what}: {}", got.text());
        assert_eq!(web::codes::named(code).status, status, "the table says the same");
    }
    assert_eq!(house.written().await, before, "nothing was written");
    assert_eq!(house.deliver(CHECKOUT_PAID).await.status, 200, "and the next one is served");
}

#[tokio::test]
async fn bad_signatures_are_refused_and_leave_nothing() {
    let right = signature();
    let mac = right.split("v1=").nth(1).expect("a mac").to_owned();
    let flipped = if mac.starts_with('0') { mac.replacen('0', "1", 1) } else { format!("0{}", &mac[1..]) };
    let cut = |length: usize| format!("t={NOW},v1={}", "a".repeat(length));
    let mut missing = delivery("stripe", CHECKOUT_PAID.as_bytes(), NOW);
    missing.headers_mut().remove("Stripe-Signature");
    let mut doubled = delivery("stripe", CHECKOUT_PAID.as_bytes(), NOW);
    doubled.headers_mut().append("Stripe-Signature", right.parse().expect("a value"));
    let stale = signed(CHECKOUT_PAID.as_bytes(), NOW - 301)[1].1.clone();
    let future = signed(CHECKOUT_PAID.as_bytes(), NOW + 301)[1].1.clone();
    refused(vec![
        ("wrong", with_signature(&format!("t={NOW},v1={flipped}")), 401, "SIG_MISMATCH"),
        ("stale", with_signature(&stale), 400, "SIG_STALE"),
        ("future", with_signature(&future), 400, "SIG_FUTURE"),
        ("missing", missing, 401, "SIG_MISSING"),
        ("empty", with_signature(""), 401, "SIG_MISSING"),
        ("doubled", doubled, 400, "SIG_MALFORMED"),
        ("downgraded", with_signature(&format!("t={NOW},v0={mac}")), 400, "SIG_MALFORMED"),
        ("length 0", with_signature(&cut(0)), 400, "SIG_MALFORMED"),
        ("length 1", with_signature(&cut(1)), 400, "SIG_MALFORMED"),
        ("length 63", with_signature(&cut(63)), 400, "SIG_MALFORMED"),
        ("length 65", with_signature(&cut(65)), 400, "SIG_MALFORMED"),
        ("length 128", with_signature(&cut(128)), 400, "SIG_MALFORMED"),
        ("length 10 000", with_signature(&cut(10_000)), 400, "SIG_MALFORMED"),
    ])
    .await;
}

#[tokio::test]
async fn bad_bodies_are_refused_and_leave_nothing() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let twice = CHECKOUT_PAID.replacen(
        &format!("\"id\": \"{ID}\""),
        &format!("\"id\": \"evt_x\", \"id\": \"{ID}\""),
        1,
    );
    refused(vec![
        ("empty", body(""), 400, "BODY_EMPTY"),
        ("not UTF-8", body([b'{', 0xff, b'}']), 400, "BODY_NOT_UTF8"),
        ("not JSON", body("{\"id\":"), 400, "BODY_NOT_JSON"),
        ("null", body("null"), 400, "BODY_NOT_OBJECT"),
        ("a list", body("[{}]"), 400, "BODY_NOT_OBJECT"),
        ("a text", body("\"x\""), 400, "BODY_NOT_OBJECT"),
        ("a number", body("1"), 400, "BODY_NOT_OBJECT"),
        ("no members", body("{}"), 400, "ID_MISSING"),
        ("100,000 deep", body(deep), 400, "BODY_TOO_DEEP"),
        ("a name twice", body(twice), 400, "BODY_DUPLICATE_NAME"),
        ("huge", body(" ".repeat(256 * 1024 + 1)), 413, "BODY_TOO_LARGE"),
    ])
    .await;
}

#[tokio::test]
async fn bad_ids_are_refused_and_leave_nothing() {
    refused(vec![
        ("empty", with_id("\"\""), 400, "ID_INVALID"),
        ("blank", with_id("\"  \""), 400, "ID_INVALID"),
        ("null", with_id("null"), 400, "ID_MISSING"),
        ("a number", with_id("7"), 400, "ID_INVALID"),
        ("10 kB", with_id(&format!("\"{}\"", "x".repeat(10_000))), 400, "ID_INVALID"),
        ("NUL", with_id(r#""evt_\u0000""#), 400, "ID_INVALID"),
        ("CR LF", with_id(r#""evt_1\r\nSet-Cookie: a""#), 400, "ID_INVALID"),
    ])
    .await;
}

#[tokio::test]
async fn an_id_that_looks_like_a_path_stays_a_text() {
    let house = House::new().await;
    for id in ["../../etc/passwd", "%2e%2e%2fx", "a/b", "evt_%00"] {
        let got = house.deliver(payment(id)).await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(got.json()["event_id"], id);
    }
    for file in house.files() {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let (slug, _) = name.split_once('.').expect("an extension");
        assert!(slug.len() == 40 && slug.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    }
    let shown = house.order(Method::GET, "events/..%2F..%2Fetc%2Fpasswd").await;
    assert_eq!(shown.json()["event_id"], "../../etc/passwd");
}

#[tokio::test]
async fn wrong_addresses_methods_and_types_are_refused_and_leave_nothing() {
    let get = Request::get("/webhooks/stripe").body(Body::empty()).expect("a request");
    refused(vec![
        ("unknown source", delivery("nope", CHECKOUT_PAID.as_bytes(), NOW), 404, "SOURCE_UNKNOWN"),
        ("upper case", delivery("STRIPE", CHECKOUT_PAID.as_bytes(), NOW), 404, "SOURCE_UNKNOWN"),
        ("escaped", delivery("%73tripe", CHECKOUT_PAID.as_bytes(), NOW), 404, "SOURCE_UNKNOWN"),
        ("a slash at the end", delivery("stripe/", CHECKOUT_PAID.as_bytes(), NOW), 404, "ROUTE_UNKNOWN"),
        ("no name", delivery("", CHECKOUT_PAID.as_bytes(), NOW), 404, "ROUTE_UNKNOWN"),
        ("GET", get, 405, "METHOD_NOT_ALLOWED"),
        (
            "multipart",
            with_header("content-type", "multipart/form-data; boundary=x"),
            415,
            "CONTENT_TYPE_UNSUPPORTED",
        ),
        ("image", with_header("content-type", "image/png"), 415, "CONTENT_TYPE_UNSUPPORTED"),
        ("packed", with_header("content-encoding", "gzip"), 415, "ENCODING_UNSUPPORTED"),
        ("packed twice", with_header("content-encoding", "identity, br"), 415, "ENCODING_UNSUPPORTED"),
    ])
    .await;
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_one() {
    let house = House::new().await;
    for (method, path, allow) in [
        (Method::GET, "/webhooks/stripe", "POST"),
        (Method::DELETE, "/webhooks/stripe", "POST"),
        (Method::POST, "/d/x.html", "GET,HEAD"),
        (Method::POST, "/healthz", "GET,HEAD"),
        (Method::GET, "/api/v1/certify/reconcile", "POST"),
    ] {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).expect("a request");
        let got = house.call(request).await;
        assert_eq!(got.problem(), (405, "METHOD_NOT_ALLOWED".into()), "{path}");
        assert_eq!(got.header("allow"), allow, "{path}");
    }
}

#[tokio::test]
async fn types_that_senders_use_are_taken() {
    let house = House::new().await;
    for kind in
        ["application/json; charset=utf-8", "APPLICATION/JSON", "application/cloudevents+json", "text/plain"]
    {
        assert_eq!(house.call(with_header("content-type", kind)).await.status, 200, "{kind}");
    }
    assert_eq!(house.call(with_header("content-encoding", "identity")).await.status, 200);
    let mut untyped = delivery("stripe", CHECKOUT_PAID.as_bytes(), NOW);
    untyped.headers_mut().remove("content-type");
    assert_eq!(house.call(untyped).await.status, 200);
}
