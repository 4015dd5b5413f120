//! Certificates given out: headers, tags, what is missing, who may fetch.

use axum::body::Body;
use axum::http::{Method, Request};
use certify::policy::{Access, Policy};
use kernel::Digest;
use source::samples::CHECKOUT_PAID;
use web::Limits;

use crate::house::{Got, House, path};

async fn fetch(house: &House, path: &str, headers: &[(&str, &str)]) -> Got {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    house.call(request.body(Body::empty()).expect("a request")).await
}

#[tokio::test]
async fn each_form_has_its_tag_and_its_fences() {
    let house = House::new().await;
    let answer = house.deliver(CHECKOUT_PAID).await.json();
    for (member, kind, how) in [
        ("html_url", "text/html; charset=utf-8", "inline"),
        ("zip_url", "application/zip", "attachment"),
        ("json_url", "application/json", "inline"),
    ] {
        let path = path(&answer, member);
        let got = fetch(&house, &path, &[]).await;
        assert_eq!((got.status, got.header("content-type")), (200, kind));
        assert_eq!(got.header("etag"), format!("\"{}\"", Digest::of(&got.body)));
        assert_eq!(got.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(got.header("x-content-type-options"), "nosniff");
        assert_eq!(got.header("x-robots-tag"), "noindex, nofollow");
        assert_eq!(got.header("referrer-policy"), "no-referrer");
        assert!(got.header("content-security-policy").starts_with("default-src 'none'"));
        let name = path.strip_prefix("/d/").expect("a file");
        assert_eq!(got.header("content-disposition"), format!("{how}; filename=\"onceseal-{name}\""));
        assert!(got.header("last-modified").ends_with(" GMT"), "{}", got.header("last-modified"));
    }
}

#[tokio::test]
async fn only_the_page_may_have_a_style_and_nothing_may_run() {
    let house = House::new().await;
    let answer = house.deliver(CHECKOUT_PAID).await.json();
    let page = house.get(&path(&answer, "html_url")).await;
    let policy = page.header("content-security-policy");
    assert_eq!(policy, certify::page::content_policy());
    assert!(!policy.contains("script-src") && !page.text().contains("<script"));
}

#[tokio::test]
async fn whoever_has_the_bytes_gets_304() {
    let house = House::new().await;
    let path = path(&house.deliver(CHECKOUT_PAID).await.json(), "html_url");
    let tag = house.get(&path).await.header("etag").to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".into()] {
        let got = fetch(&house, &path, &[("if-none-match", &known)]).await;
        assert_eq!((got.status, got.body.len(), got.header("etag")), (304, 0, tag.as_str()), "{known}");
        assert!(got.header("cache-control").contains("immutable"));
    }
    assert_eq!(fetch(&house, &path, &[("if-none-match", "\"x\"")]).await.status, 200);
}

#[tokio::test]
async fn head_has_the_headers_and_no_body() {
    let house = House::new().await;
    let path = path(&house.deliver(CHECKOUT_PAID).await.json(), "zip_url");
    let whole = house.get(&path).await;
    let head = Request::head(&path).body(Body::empty()).expect("a request");
    let got = house.call(head).await;
    assert_eq!((got.status, got.body.len()), (200, 0));
    assert_eq!(got.header("content-length"), whole.body.len().to_string());
    assert_eq!(got.header("etag"), whole.header("etag"));
}

#[tokio::test]
async fn what_is_not_there_is_told_to_programs_and_to_people() {
    let house = House::new().await;
    for path in ["/d/0123.html", "/d/0123.exe", "/d/0123", "/d/..%2f..%2fetc.html", "/d/%00.html"] {
        let got = fetch(&house, path, &[]).await;
        assert_eq!(got.problem(), (404, "CERTIFICATE_UNKNOWN".into()), "{path}");
        assert_eq!(got.header("cache-control"), "no-store");
    }
    let got = fetch(&house, "/d/0123.html", &[("accept", "text/html,application/xhtml+xml,*/*;q=0.8")]).await;
    assert_eq!((got.status, got.header("content-type")), (404, "text/html; charset=utf-8"));
    assert!(got.text().contains("该地址没有证书") && got.text().contains("There is no certificate"));
    assert_eq!(got.header("x-robots-tag"), "noindex, nofollow");
}

#[tokio::test]
async fn an_erased_certificate_is_gone() {
    let house = House::new().await;
    let path = path(&house.deliver(CHECKOUT_PAID).await.json(), "html_url");
    let erased = house.order(Method::POST, "events/evt_1SkQl3B7WZ01zgkWh3b8kqQe/erase").await;
    assert_eq!(erased.status, 200, "{}", erased.text());
    assert_eq!(fetch(&house, &path, &[]).await.problem(), (410, "CERTIFICATE_ERASED".into()));
}

#[tokio::test]
async fn a_damaged_file_is_mended_before_it_is_served() {
    let house = House::new().await;
    let path = path(&house.deliver(CHECKOUT_PAID).await.json(), "html_url");
    let right = house.get(&path).await.body;
    let file = house.folder.path().join("deliveries").join(path.strip_prefix("/d/").expect("a file"));
    std::fs::write(file, b"<script>").expect("written");
    assert_eq!(house.get(&path).await.body, right);
}

#[tokio::test]
async fn a_policy_can_ask_for_a_token() {
    let policy = Policy { delivery: Access::Token, ..Policy::default() };
    let house = House::with(policy, Limits::default()).await;
    let path = path(&house.deliver(CHECKOUT_PAID).await.json(), "html_url");
    let without = fetch(&house, &path, &[]).await;
    assert_eq!(without.problem(), (401, "AUTH_MISSING_BEARER".into()));
    let bearer = format!("Bearer {}", house.token.expose());
    let with = fetch(&house, &path, &[("authorization", &bearer)]).await;
    assert_eq!((with.status, with.header("cache-control")), (200, "private, max-age=31536000, immutable"));
    let unknown = fetch(&house, "/d/0123.html", &[]).await;
    assert_eq!(unknown.status, 401, "who has no token learns nothing of what is there");
}

#[tokio::test]
async fn the_anchor_keys_are_public_and_keep_the_retired() {
    let house = House::new().await;
    let keys = "/.well-known/onceseal/keys.json";
    let got = house.get(keys).await;
    assert_eq!((got.status, got.header("content-type")), (200, "application/jwk-set+json"));
    assert_eq!(got.json()["keys"].as_array().map(Vec::len), Some(1));
    assert_eq!(house.order(Method::POST, "keys/rotate").await.status, 200);
    assert_eq!(house.get(keys).await.json()["keys"].as_array().map(Vec::len), Some(2));
}
