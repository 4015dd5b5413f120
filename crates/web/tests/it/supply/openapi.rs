//! The description of the supply API against the router, the codes, the specification and real exchanges.

mod checker;
mod examples;
mod exchanges;
mod names;

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::Value as Json;

use super::api::Api;
use super::life::supplier;

/// Methods that a route may have.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// The description itself is not described.
const OURS: [&str; 2] = ["/api/v1/openapi.json", "/api/docs"];
/// What a link opens is described by the link.
const LINKED: &str = "/api/v1/supply/statements/";
/// The five of section 7.1.
const FIVE: [&str; 5] = ["createAccount", "publishPackage", "batchPrice", "withdraw", "cancelWithdrawal"];

/// Method, path and description of each operation.
pub(super) fn operations(document: &Json) -> Vec<(String, String, Json)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            if METHODS.contains(&method.as_str()) {
                found.push((method.clone(), path.clone(), operation.clone()));
            }
        }
    }
    found
}

pub(super) async fn document(api: &Api) -> Json {
    let got = api.house.get("/api/v1/openapi.json").await;
    assert_eq!((got.status, got.header("content-type")), (200, "application/json"));
    got.json()
}

/// What a reference stands for.
pub(super) fn resolved<'a>(document: &'a Json, json: &'a Json) -> &'a Json {
    match json["$ref"].as_str() {
        Some(target) => document.pointer(target.trim_start_matches('#')).expect(target),
        None => json,
    }
}

/// The codes that an operation may answer, with their statuses.
pub(super) fn codes(document: &Json, operation: &Json) -> Vec<(u16, String)> {
    let place = "/content/application~1json/schema/allOf/1/properties/error/properties/code/enum";
    let mut found = Vec::new();
    for (status, response) in operation["responses"].as_object().expect("responses") {
        let codes = resolved(document, response).pointer(place).and_then(Json::as_array);
        for code in codes.into_iter().flatten() {
            let status = status.parse().expect("a status");
            found.push((status, code.as_str().expect("a code").to_owned()));
        }
    }
    found
}

/// A path whose parameters are filled in, with what nothing has as its id.
fn filled(path: &str) -> String {
    let part = |part: &str| match part {
        "{event_id}" => "6f1c0000-0000-4000-8000-000000000001".to_owned(),
        part if part.starts_with('{') => "999999".to_owned(),
        part => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

pub(super) fn bare(method: &str, path: &str) -> Request<Body> {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
    Request::builder().method(method).uri(filled(path)).body(Body::empty()).expect("a request")
}

/// The paths that stand in the sources of the routes, tests left out.
fn paths_of_sources() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/supply");
    let mut paths = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let source = std::fs::read_to_string(path).expect("a source");
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let texts = code.split('"').filter(|text| text.starts_with("/api/v1/") && text.len() > 8);
        paths.extend(texts.map(ToOwned::to_owned));
    }
    paths
}

#[tokio::test]
async fn the_document_is_pinned() {
    let api = Api::new().await;
    let text = serde_json::to_string_pretty(&document(&api).await).expect("JSON");
    insta::assert_snapshot!("openapi", text);
}

#[tokio::test]
async fn every_route_is_described_and_every_description_has_its_route() {
    let api = Api::new().await;
    let document = document(&api).await;
    let described: BTreeSet<_> =
        operations(&document).into_iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let mut routed = BTreeSet::new();
    let sources = paths_of_sources();
    let paths: BTreeSet<_> = document["paths"].as_object().expect("paths").keys().cloned().collect();
    for path in sources.union(&paths).filter(|path| !path.starts_with(LINKED)) {
        for method in METHODS {
            let got = api.house.call(bare(method, path)).await;
            match (got.status, got.json()["error"]["code"].as_str()) {
                (401, Some("AUTH_MISSING_BEARER")) => _ = routed.insert(format!("{method} {path}")),
                other => assert_eq!(other, (405, Some("SUP_COM_4051")), "{method} {path}"),
            }
        }
    }
    assert!(routed.len() >= 48, "{}", routed.len());
    assert_eq!(described, routed);
}

#[tokio::test]
async fn ids_of_operations_and_parameters_of_paths_are_whole() {
    let api = Api::new().await;
    let document = document(&api).await;
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        assert!(ids.insert(operation["operationId"].as_str().expect("an id").to_owned()), "{method} {path}");
        let summary = operation["summary"].as_str().expect("a summary");
        assert!(summary.chars().any(|one| one > '\u{4e00}'), "in Chinese, too: {summary}");
        let names: Vec<_> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let own = document["paths"][&path]["parameters"].as_array().cloned().unwrap_or_default();
        let given: Vec<_> = own.iter().map(|one| one["name"].as_str().expect("a name")).collect();
        assert_eq!(names, given, "{path}");
    }
}

#[tokio::test]
async fn every_code_that_is_described_exists_with_its_status() {
    let mut known: BTreeSet<(String, u16)> = BTreeSet::new();
    known.extend(supply::Code::ALL.iter().map(|code| (code.as_str().to_owned(), code.status())));
    known.extend(onceseal_http::code::ALL.iter().map(|code| (code.name.to_owned(), code.seed)));
    known.extend(auth::code::ALL.iter().map(|code| (code.name().to_owned(), code.status())));
    // The edge's own, of section 9.5.
    let edge =
        [("QUERY_KEY_NOT_ALLOWED", 401), ("SUP_COM_4002", 400), ("SUP_COM_4291", 429), ("SUP_COM_5002", 500)];
    known.extend(edge.map(|(name, status)| (name.to_owned(), status)));
    let api = Api::new().await;
    let document = document(&api).await;
    for (_, path, operation) in operations(&document) {
        for (status, code) in codes(&document, &operation) {
            assert!(known.contains(&(code.clone(), status)), "{path}: {status} {code}");
            assert_eq!(document["x-codes"][&code]["status"], status, "{code}");
        }
    }
}

#[tokio::test]
async fn the_five_need_both_headers_and_show_the_answers_that_are_no_result() {
    let api = Api::new().await;
    let document = document(&api).await;
    for (method, path, operation) in operations(&document) {
        let id = operation["operationId"].as_str().expect("an id");
        let headers: Vec<_> = operation["parameters"]
            .as_array()
            .expect("parameters")
            .iter()
            .map(|one| resolved(&document, one))
            .filter(|one| one["in"] == "header" && one["required"] == true)
            .map(|one| one["name"].as_str().expect("a name"))
            .collect();
        if !FIVE.contains(&id) {
            assert!(headers.is_empty(), "{method} {path}");
            continue;
        }
        assert_eq!(headers, ["X-Request-Id", "Idempotency-Key"], "{method} {path}");
        for (status, code) in [("202", "IDEMPOTENCY_IN_PROGRESS"), ("409", "IDEMPOTENCY_PAYLOAD_MISMATCH")] {
            let response = resolved(&document, &operation["responses"][status]);
            let content = &response["content"]["application/json"];
            let shown = &resolved(&document, &content["examples"][code])["value"];
            assert_eq!(shown["error"]["code"], code, "{path}");
            checker::check(&document, &content["schema"], shown).expect(code);
        }
    }
}

#[tokio::test]
async fn headers_and_scopes_are_those_of_the_gates() {
    let api = Api::new().await;
    let (tenant, operator, _) = supplier(&api, "one").await;
    for (method, path, operation) in operations(&document(&api).await) {
        let ways = operation["security"].as_array().expect("security");
        // Where a good token is all, one that opens nothing else.
        let scope = ways[0]["bearer"][0].as_str().unwrap_or("router:invoke");
        let staff = scope.starts_with("platform:");
        let token =
            if staff { api.admin_token().to_owned() } else { api.token((tenant, operator), &[scope]).await };
        let call = async |token: &str| {
            let mut request = bare(&method, &path);
            let bearer = format!("Bearer {token}").parse().expect("a header");
            request.headers_mut().insert("authorization", bearer);
            let got = api.house.call(request).await;
            (got.status, got.text())
        };
        let (status, text) = call(&token).await;
        assert_ne!(status, 403, "{method} {path}: {text}");
        let five = FIVE.iter().any(|id| operation["operationId"] == **id);
        assert_eq!(text.contains("REQUEST_ID_MISSING"), five, "{method} {path}: {text}");
        if scope == "router:invoke" {
            continue;
        }
        let stranger = api.token((tenant, operator), &["router:invoke"]).await;
        let (status, text) = call(&stranger).await;
        assert_eq!((status, text.contains("AUTH_SCOPE_DENIED")), (403, true), "{method} {path}: {text}");
    }
}

#[tokio::test]
async fn the_page_has_every_operation_no_script_and_a_policy_that_lets_nothing_in() {
    let api = Api::new().await;
    let got = api.house.get("/api/docs").await;
    assert_eq!((got.status, got.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = got.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    let page = got.text();
    for word in ["<script", "javascript:", "src=", "http://", "https://", "onclick"] {
        assert!(!page.contains(word), "{word}");
    }
    for (_, path, operation) in operations(&document(&api).await) {
        let id = operation["operationId"].as_str().expect("an id");
        assert!(page.contains(&format!("<section id=\"{id}\">")) && page.contains(&path), "{id}");
    }
    assert!(page.contains("items[].package_id"), "fields of lists");
}

#[tokio::test]
async fn a_credential_in_the_url_is_refused_here_too() {
    let api = Api::new().await;
    for path in OURS {
        let got = api.house.get(&format!("{path}?api_key=x")).await;
        assert_eq!((got.status, got.json()["error"]["code"].as_str()), (401, Some("QUERY_KEY_NOT_ALLOWED")));
        assert_eq!(api.house.get(path).await.status, 200);
    }
}
