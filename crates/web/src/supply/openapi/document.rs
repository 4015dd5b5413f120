//! The descriptions as one OpenAPI 3.1 document.

use serde_json::{Map, Value as Json, json};

use super::form::{Answer, Body, Example, Field, Keys, Kind, Operation, Standing, must};
use super::schema::set;
use super::{GROUPS, Group, codes, links, schema};
use crate::supply::envelope::{Fixed, LINK_ENDED};

/// Version of the API, which is that of its paths; the server's own is nobody's business here.
const VERSION: &str = "1.0.0";

const ABOUT: &str = "\
Supply side of the marketplace: suppliers mount upstream accounts, publish packages and withdraw what they earn.
供应侧接口：挂载账号、发布套餐、结算提现。

**Repeats.** Five writes need X-Request-Id and Idempotency-Key: mount, publish, batch price, withdraw, cancel. On \
other writes both are optional; a key that is sent counts as on the five. A repeat with the same key and the same \
payload gets the first status and the same data, with `idempotent_replay: true` and the header Idempotent-Replayed. \
Another payload under a key is 409 IDEMPOTENCY_PAYLOAD_MISMATCH. While the first request is running the answer is \
202 IDEMPOTENCY_IN_PROGRESS with an `error` and without `data`: look at `error`, not at the class of the status. \
Keys live 24 hours, those of withdraw and cancel 72 hours.

**Errors.** One envelope; the first three digits of a code's number are its status. `message` and `message_zh` are \
fixed texts. 错误统一封装，code 前三位即 HTTP 状态码。

**Numbers.** Amounts, prices and quotas are exact decimals. Requests take a JSON number or a JSON string of the form \
`^(0|[1-9][0-9]*)(\\.[0-9]+)?$`; answers have JSON numbers in major units and, beside amounts, strings in minor \
units (`*_minor`). 金额、单价、额度均为精确小数，请按文本读取，不要转成二进制浮点数。

**Credentials** belong into `Authorization: Bearer` only. A URL that holds one is refused with 401 \
QUERY_KEY_NOT_ALLOWED on every path. 凭证只允许放在 Authorization: Bearer 中。

**Objects of other tenants** are answered as missing ones.";

/// The document.
pub(super) fn document() -> Json {
    let mut paths: Map<String, Json> = Map::new();
    let mut schemas = common_schemas();
    for (group, operation) in all() {
        let path = paths.entry(operation.path).or_insert_with(|| path(operation));
        set(path, operation.method, self::operation(group, operation));
        name_shapes(&mut schemas, operation);
    }
    let tags: Vec<Json> =
        GROUPS.iter().map(|group| json!({ "name": group.tag, "description": group.about })).collect();
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": { "title": "Onceseal supply API", "version": VERSION, "description": ABOUT },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "x-codes": all_codes(),
        "components": {
            "schemas": schemas,
            "parameters": parameters(),
            "headers": headers(),
            "links": links::every(),
            "examples": examples(),
            "responses": usual_responses(),
            "securitySchemes": { "bearer": {
                "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                "description": "A platform token: a JWT signed RS256 or ES256. The names beside it are the scopes of which an operation needs one; where there is none, any good token will do. scope、role、user_type 与租户须同时满足。",
            } },
        },
    })
}

/// All operations with their groups.
pub(super) fn all() -> impl Iterator<Item = (&'static Group, &'static Operation)> {
    GROUPS.iter().flat_map(|group| group.operations.iter().map(move |operation| (group, operation)))
}

const SPELLING: &str = "In its one spelling, without leading zeros; another is answered as a missing object.";

/// What all methods of a path share: the parameters in it.
fn path(operation: &Operation) -> Json {
    let names = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Json> = names
        .map(|name| {
            let (kind, about) = match name {
                "event_id" => (Kind::Uuid, SPELLING),
                "metric" => (Kind::Word(super::audit::SLUGS), "Which metric."),
                _ => (Kind::Id, SPELLING),
            };
            let schema = schema::parameter(&must("", kind, ""));
            json!({ "name": name, "in": "path", "required": true, "schema": schema, "description": about })
        })
        .collect();
    if parameters.is_empty() { json!({}) } else { json!({ "parameters": parameters }) }
}

fn operation(group: &Group, operation: &Operation) -> Json {
    let mut said = json!({
        "operationId": operation.id,
        "tags": [group.tag],
        "summary": format!("{} · {}", operation.summary, operation.summary_zh),
        "security": ways(operation.scopes),
        "parameters": asked(operation),
        "responses": responses(operation),
    });
    if !operation.about.is_empty() {
        set(&mut said, "description", operation.about);
    }
    if operation.standing == Standing::Deprecated {
        set(&mut said, "deprecated", true);
    }
    if let Some(body) = request_body(operation) {
        set(&mut said, "requestBody", body);
    }
    said
}

/// A way in for each scope; without one, any good token.
fn ways(scopes: &[&str]) -> Json {
    match scopes {
        [] => json!([{ "bearer": [] }]),
        scopes => scopes.iter().map(|scope| json!({ "bearer": [scope] })).collect(),
    }
}

/// Headers and query.
fn asked(operation: &Operation) -> Vec<Json> {
    let headers: &[&str] = match operation.keys {
        Keys::Read => &["RequestId"],
        Keys::Optional => &["RequestId", "IdempotencyKey"],
        Keys::Required => &["RequiredRequestId", "RequiredIdempotencyKey"],
    };
    let headers = headers.iter().map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }));
    let query = operation.query.iter().map(|field: &Field| {
        json!({ "name": field.name, "in": "query", "required": false, "description": field.about,
            "schema": schema::parameter(field) })
    });
    headers.chain(query).collect()
}

fn request_body(operation: &Operation) -> Option<Json> {
    match operation.body {
        Body::None if operation.keys == Keys::Read || operation.method == "delete" => None,
        Body::None => Some(json!({
            "required": false,
            "description": "None, or an empty object.",
            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Empty" } } },
        })),
        Body::Fields(shape) => {
            let mut content = json!({ "schema": { "$ref": format!("#/components/schemas/{}", shape.name) } });
            if let Some(request) = operation.example.and_then(|example| example.request) {
                set(&mut content, "example", parsed(request));
            }
            let optional = shape.fields.iter().all(|field| field.need == super::form::Need::Maybe);
            Some(json!({ "required": !optional, "content": { "application/json": content } }))
        }
    }
}

fn responses(operation: &Operation) -> Json {
    let mut responses = Map::new();
    responses.insert(operation.answer.status().to_string(), success(operation));
    let usual = codes::usual(operation.keys);
    for (status, codes) in codes::of(operation) {
        let response = if usual.get(&status) == Some(&codes) {
            json!({ "$ref": format!("#/components/responses/{}", usual_name(operation.keys, status)) })
        } else {
            refusal(status, &codes)
        };
        responses.insert(status.to_string(), response);
    }
    responses.into()
}

/// Name of a response that has nothing of its operation's own. What reads answer has the shortest.
fn usual_name(keys: Keys, status: u16) -> String {
    let codes = codes::usual(keys).remove(&status);
    let same = |other: Keys| codes::usual(other).remove(&status) == codes;
    let name = match keys {
        _ if same(Keys::Read) => "",
        _ if same(Keys::Optional) => "Write",
        _ => "CriticalWrite",
    };
    format!("{name}{status}")
}

fn usual_responses() -> Map<String, Json> {
    let of = |keys: Keys| {
        codes::usual(keys)
            .into_iter()
            .map(move |(status, codes)| (usual_name(keys, status), refusal(status, &codes)))
    };
    [Keys::Read, Keys::Optional, Keys::Required].into_iter().flat_map(of).collect()
}

/// Every code that is described, with its fixed texts.
fn all_codes() -> Map<String, Json> {
    let of = |(_, operation)| codes::of(operation).into_values().flatten();
    let told = |code: Fixed| {
        let Fixed { name, status, message, message_zh } = code;
        (name.to_owned(), json!({ "status": status, "message": message, "message_zh": message_zh }))
    };
    // What a link to a statement answers has no operation of its own.
    all().flat_map(of).chain([LINK_ENDED]).map(told).collect()
}

fn success(operation: &Operation) -> Json {
    let mut headers = json!({ "X-Request-Id": header("RequestId") });
    if operation.keys != Keys::Read {
        set(&mut headers, "Idempotent-Replayed", header("IdempotentReplayed"));
        set(&mut headers, "Idempotency-Expires", header("IdempotencyExpires"));
    }
    let (data, page) = match operation.answer {
        Answer::Nothing => return json!({ "description": "Done; no body.", "headers": headers }),
        Answer::Data(_, shape) => (json!({ "$ref": format!("#/components/schemas/{}", shape.name) }), false),
        Answer::Page(shape) => (
            json!({ "type": "array", "items": { "$ref": format!("#/components/schemas/{}", shape.name) } }),
            true,
        ),
    };
    let mut required = vec!["request_id", "data"];
    let mut properties = json!({ "request_id": said_request_id(), "data": data });
    if page {
        set(&mut properties, "pagination", json!({ "$ref": "#/components/schemas/Pagination" }));
        required.push("pagination");
    }
    if operation.keys != Keys::Read {
        replayed(&mut properties);
    }
    if operation.keys == Keys::Required {
        required.push("idempotent_replay");
    }
    let mut content =
        json!({ "schema": { "type": "object", "required": required, "properties": properties } });
    if let Some(Example { data, .. }) = operation.example {
        set(
            &mut content,
            "example",
            json!({ "request_id": EXAMPLE_ID, "idempotent_replay": false, "data": parsed(data) }),
        );
    }
    let mut response =
        json!({ "description": "Success.", "headers": headers, "content": { "application/json": content } });
    let links = links::of(operation);
    if !links.is_empty() {
        set(&mut response, "links", links);
    }
    response
}

/// A refusal. Codes of the operation's own are told with their texts, those that any may answer by name; the texts of
/// all stand in `x-codes`.
fn refusal(status: u16, codes: &[Fixed]) -> Json {
    let names: Vec<&str> = codes.iter().map(|code| code.name).collect();
    let usual = codes::usual(Keys::Required).remove(&status).unwrap_or_default();
    let (usual, own): (Vec<&Fixed>, Vec<&Fixed>) =
        codes.iter().partition(|code| usual.iter().any(|one| one.name == code.name));
    let told = |code: &&Fixed| format!("{}: {} · {}", code.name, code.message, code.message_zh);
    let mut lines: Vec<String> = own.iter().map(told).collect();
    if !usual.is_empty() {
        lines.push(usual.iter().map(|code| code.name).collect::<Vec<_>>().join(", "));
    }
    let mut headers = json!({ "X-Request-Id": header("RequestId") });
    if matches!(status, 202 | 429 | 503) {
        set(&mut headers, "Retry-After", header("RetryAfter"));
    }
    if status == 401 {
        set(&mut headers, "WWW-Authenticate", header("WwwAuthenticate"));
    }
    let mut content = json!({ "schema": { "allOf": [
        { "$ref": "#/components/schemas/Refusal" },
        { "properties": { "error": { "properties": { "code": { "enum": names } } } } },
    ] } });
    let shown: Map<String, Json> = names
        .iter()
        .filter(|name| ["IDEMPOTENCY_IN_PROGRESS", "IDEMPOTENCY_PAYLOAD_MISMATCH"].contains(name))
        .map(|name| ((*name).to_owned(), json!({ "$ref": format!("#/components/examples/{name}") })))
        .collect();
    if !shown.is_empty() {
        set(&mut content, "examples", shown);
    }
    json!({ "description": lines.join("\n\n"), "headers": headers, "content": { "application/json": content } })
}

fn name_shapes(schemas: &mut Map<String, Json>, operation: &Operation) {
    if let Body::Fields(shape) = &operation.body {
        schemas.insert(shape.name.to_owned(), schema::closed(shape));
    }
    if let Answer::Data(_, shape) | Answer::Page(shape) = &operation.answer {
        schemas.insert(shape.name.to_owned(), schema::open(shape));
    }
}

fn common_schemas() -> Map<String, Json> {
    let mut refused = json!({ "request_id": said_request_id(), "error": {
        "type": "object",
        "required": ["code", "message", "message_zh", "details"],
        "properties": {
            "code": { "type": "string", "description": "What to decide by." },
            "message": { "type": "string", "description": "The code's fixed text." },
            "message_zh": { "type": "string", "description": "The same in Chinese." },
            "details": { "type": "object", "description": "Fields, rules, limits; never a secret. `fields` lists `field` and `rule`; `rule_code` names a broken invariant; `retryable` tells whether to ask again; when, `retry_after_ms` (202, and 503 of the protocol of repeats) or `retry_after_seconds` (all other 429 and 503), as the header Retry-After does." },
        },
    } });
    replayed(&mut refused);
    let refusal = json!({ "type": "object", "required": ["request_id", "error"], "properties": refused });
    let count = || json!({ "type": "integer", "format": "int64", "minimum": 0 });
    let pagination = json!({ "type": "object", "required": ["page", "page_size", "total"], "properties": {
        "page": count(), "page_size": count(), "total": count(),
    } });
    let empty = json!({ "type": "object", "additionalProperties": false });
    [("Refusal", refusal), ("Pagination", pagination), ("Empty", empty)]
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
}

/// Members that only answers to keyed requests have.
fn replayed(properties: &mut Json) {
    set(
        properties,
        "idempotent_replay",
        json!({ "type": "boolean", "description": "Whether this is the answer of an earlier request." }),
    );
    set(
        properties,
        "original_request_id",
        json!({ "type": "string", "description": "The request that was answered first; only in a repeat." }),
    );
}

fn said_request_id() -> Json {
    json!({ "type": "string", "minLength": 1, "description": "This attempt's: the client's, or a new one." })
}

const EXAMPLE_ID: &str = "6f1c0000-0000-4000-8000-000000000001";
const UUID: &str = "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$";

/// Section 7.2.
fn parameters() -> Json {
    let id = json!({ "type": "string", "format": "uuid", "pattern": UUID, "minLength": 36, "maxLength": 36,
        "not": { "const": "00000000-0000-0000-0000-000000000000" } });
    let key = json!({ "type": "string", "pattern": schema::KEY });
    let any = json!({ "type": "string" });
    let header = |(name, required, about): (&str, bool, &str), schema: &Json| json!({ "name": name, "in": "header", "required": required, "description": about, "schema": schema });
    let about_id = "Trace id of this attempt: a UUID of the form 8-4-4-4-12, not the nil UUID, sent once.";
    let about_key = "The same for every attempt of one operation: 16 to 128 visible ASCII characters, case counts, sent once. Quotes around it are taken off first.";
    let loose_id = "Trace id of this attempt; where it is missing or no UUID the server makes one.";
    json!({
        "RequiredRequestId": header(("X-Request-Id", true, about_id), &id),
        "RequiredIdempotencyKey": header(("Idempotency-Key", true, about_key), &key),
        "RequestId": header(("X-Request-Id", false, loose_id), &any),
        "IdempotencyKey": header(("Idempotency-Key", false, about_key), &key),
    })
}

fn header(name: &str) -> Json {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

fn headers() -> Json {
    let text = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    json!({
        "RequestId": text("The same as request_id."),
        "IdempotentReplayed": text("`true` in a repeat, else absent."),
        "IdempotencyExpires": text("Until when the key is good (RFC 3339); absent without a key."),
        "RetryAfter": { "description": "Seconds.", "schema": { "type": "integer", "minimum": 1 } },
        "WwwAuthenticate": text("`Bearer`."),
    })
}

/// The two of section 7.5 that are no result.
fn examples() -> Json {
    let refused = |code: onceseal_http::code::Code, details: Json| {
        json!({ "summary": code.title, "value": { "request_id": EXAMPLE_ID, "error": {
            "code": code.name, "message": code.message, "message_zh": code.message_zh, "details": details,
        } } })
    };
    json!({
        "IDEMPOTENCY_IN_PROGRESS": refused(
            onceseal_http::code::IN_PROGRESS,
            json!({ "retry_after_ms": 2000, "retryable": true }),
        ),
        "IDEMPOTENCY_PAYLOAD_MISMATCH": refused(
            onceseal_http::code::MISMATCH,
            json!({ "retryable": false, "expected_action": "reuse_same_payload_or_new_idempotency_key" }),
        ),
    })
}

/// An example's text; a test reads all of them.
fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_default()
}
