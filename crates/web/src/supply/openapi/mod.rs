//! The supply API described: as an OpenAPI 3.1 document at `GET /api/v1/openapi.json`, and as a page for people at
//! `GET /api/docs`, made of the same document. Nobody has to say who they are to read them; a credential in their
//! URL is refused as everywhere.
//!
//! Modules in reading order: `form` (the words), then the descriptions beside their routes: `accounts`, `audit`,
//! `packages`, `money`, `platform`, `risk`, `egress`, `tokens`; `codes` (what an operation can answer), `links` (what goes on from an
//! answer), `schema`, `document` and `page` (how it is written). Tests ask the router for every route: one without a
//! description fails, as does the other way round.

mod accounts;
mod audit;
mod codes;
mod document;
mod egress;
mod form;
mod links;
mod money;
mod packages;
mod page;
mod platform;
mod risk;
mod schema;
mod tokens;

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::Response;
use axum::routing::get;

use super::Shared;
use form::Operation;

/// Operations under one heading.
#[derive(Debug)]
pub(super) struct Group {
    tag: &'static str,
    about: &'static str,
    operations: &'static [Operation],
}

const GROUPS: &[Group] = &[
    Group {
        tag: "accounts",
        about: "Upstream accounts and audit · 供应账号与审计",
        operations: accounts::OPERATIONS,
    },
    Group { tag: "audit", about: "Metrics of the gate · 门禁指标", operations: audit::OPERATIONS },
    Group { tag: "packages", about: "Packages · 套餐", operations: packages::OPERATIONS },
    Group {
        tag: "money", about: "Billing and withdrawals · 账单与提现", operations: money::OPERATIONS
    },
    Group {
        tag: "platform",
        about: "The platform's staff and gateway · 平台与网关",
        operations: platform::OPERATIONS,
    },
    Group { tag: "risk", about: "The platform's risk control · 风控", operations: risk::OPERATIONS },
    Group {
        tag: "egress",
        about: "Calls past the platform · 绕过平台的直连",
        operations: egress::OPERATIONS,
    },
    Group { tag: "tokens", about: "Tokens · 令牌", operations: tokens::OPERATIONS },
];

/// Made once; nothing in them depends on the installation.
static WRITTEN: LazyLock<Written> = LazyLock::new(|| {
    let document = document::document();
    let (page, policy) = page::page(&document);
    // A tree of strings and numbers always has a JSON form.
    Written { json: serde_json::to_string(&document).unwrap_or_default(), page, policy }
});

struct Written {
    json: String,
    page: String,
    policy: String,
}

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/api/v1/openapi.json", get(json)).route("/api/docs", get(page))
}

async fn json() -> Response {
    written("application/json", &WRITTEN.json)
}

async fn page() -> Response {
    let mut response = written("text/html; charset=utf-8", &WRITTEN.page);
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::try_from(&WRITTEN.policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn written(kind: &'static str, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // A new server may tell more.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
