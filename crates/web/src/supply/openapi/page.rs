//! The document as one page for people: no scripts, no fonts, nothing from elsewhere; the policy lets in its one style
//! and nothing besides.

use askama::Template;
use base64::Engine as _;
use kernel::Digest;
use serde_json::Value as Json;

const STYLE: &str = include_str!("../../../templates/api.css");

#[derive(Template)]
#[template(path = "api.html")]
struct Page<'a> {
    style: &'static str,
    title: &'a str,
    about: Vec<String>,
    groups: Vec<Group<'a>>,
    codes: Vec<Code<'a>>,
}

/// A code with its fixed texts.
struct Code<'a> {
    name: &'a str,
    status: String,
    message: &'a str,
    message_zh: &'a str,
}

struct Group<'a> {
    name: &'a str,
    about: &'a str,
    operations: Vec<Operation<'a>>,
}

struct Operation<'a> {
    id: &'a str,
    method: String,
    path: &'a str,
    summary: &'a str,
    about: &'a str,
    scopes: String,
    deprecated: bool,
    parameters: Vec<Row>,
    body: Vec<Row>,
    request: String,
    answers: Vec<Answer<'a>>,
}

/// A parameter, a field.
struct Row {
    name: String,
    kind: String,
    needed: bool,
    about: String,
}

struct Answer<'a> {
    status: &'a str,
    lines: Vec<&'a str>,
    fields: Vec<Row>,
    examples: Vec<String>,
}

/// The page and its content policy.
pub(super) fn page(document: &Json) -> (String, String) {
    let groups = list(document, "/tags").iter().map(|tag| group(document, tag)).collect();
    let about = text(document, "/info/description").split("\n\n");
    let page = Page {
        style: STYLE,
        title: text(document, "/info/title"),
        about: about.map(|paragraph| paragraph.replace("**", "").replace('`', "")).collect(),
        groups,
        codes: members(document, "/x-codes").map(code).collect(),
    };
    let hash = base64::engine::general_purpose::STANDARD.encode(Digest::of(STYLE.as_bytes()).as_bytes());
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    // Writing into a string does not fail.
    (page.render().unwrap_or_default(), policy)
}

fn code<'a>((name, json): (&'a String, &'a Json)) -> Code<'a> {
    let status = json.get("status").map(Json::to_string).unwrap_or_default();
    Code { name, status, message: text(json, "/message"), message_zh: text(json, "/message_zh") }
}

fn text<'a>(json: &'a Json, pointer: &str) -> &'a str {
    json.pointer(pointer).and_then(Json::as_str).unwrap_or_default()
}

fn list<'a>(json: &'a Json, pointer: &str) -> &'a [Json] {
    json.pointer(pointer).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

fn members<'a>(json: &'a Json, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Json)> {
    json.pointer(pointer).and_then(Json::as_object).into_iter().flatten()
}

/// What a reference stands for.
fn resolved<'a>(document: &'a Json, json: &'a Json) -> &'a Json {
    let target = json.get("$ref").and_then(Json::as_str).and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(json)
}

fn group<'a>(document: &'a Json, tag: &'a Json) -> Group<'a> {
    let name = text(tag, "/name");
    let of = |(path, methods): (&'a String, &'a Json)| {
        let tagged = |json: &Json| list(json, "/tags").iter().any(|tag| tag == name);
        let methods = members(methods, "").filter(move |(_, json)| tagged(json));
        methods.map(move |(method, json)| operation(document, (path, method), json)).collect::<Vec<_>>()
    };
    let operations = members(document, "/paths").flat_map(of).collect();
    Group { name, about: text(tag, "/description"), operations }
}

fn operation<'a>(document: &'a Json, (path, method): (&'a str, &str), json: &'a Json) -> Operation<'a> {
    let scopes = list(json, "/security").iter().flat_map(|way| list(way, "/bearer")).filter_map(Json::as_str);
    let content = json.pointer("/requestBody/content/application~1json");
    let mut body = Vec::new();
    if let Some(schema) = content.and_then(|content| content.get("schema")) {
        rows(document, schema, "", &mut body);
    }
    Operation {
        id: text(json, "/operationId"),
        method: method.to_uppercase(),
        path,
        summary: text(json, "/summary"),
        about: text(json, "/description"),
        scopes: scopes.collect::<Vec<_>>().join(" / "),
        deprecated: json.get("deprecated").is_some(),
        parameters: list(json, "/parameters").iter().map(|one| parameter(document, one)).collect(),
        body,
        request: content.and_then(|content| content.get("example")).map(pretty).unwrap_or_default(),
        answers: members(json, "/responses").map(|(status, one)| answer(document, status, one)).collect(),
    }
}

fn parameter(document: &Json, json: &Json) -> Row {
    let json = resolved(document, json);
    Row {
        name: text(json, "/name").to_owned(),
        kind: json.get("schema").map(kind).unwrap_or_default(),
        needed: json.get("required") == Some(&Json::Bool(true)),
        about: text(json, "/description").to_owned(),
    }
}

/// The fields of an object and of what is in it: `items[].package_id`.
fn rows(document: &Json, schema: &Json, place: &str, into: &mut Vec<Row>) {
    let schema = resolved(document, schema);
    if let Some(items) = schema.get("items").filter(|_| place.is_empty()) {
        return rows(document, items, "[].", into);
    }
    let required = list(schema, "/required");
    for (name, field) in members(schema, "/properties") {
        let place = format!("{place}{name}");
        into.push(Row {
            kind: kind(field),
            needed: required.iter().any(|one| one == name),
            about: text(field, "/description").to_owned(),
            name: place.clone(),
        });
        if let Some(items) = field.get("items").filter(|items| items.get("properties").is_some()) {
            rows(document, items, &format!("{place}[]."), into);
        } else if field.get("properties").is_some() {
            rows(document, field, &format!("{place}."), into);
        }
    }
}

/// A schema's type and limits in a few words.
fn kind(schema: &Json) -> String {
    let types = match schema.get("type") {
        Some(Json::String(one)) => one.clone(),
        Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" | "),
        _ => String::new(),
    };
    let mut words = vec![types];
    words.extend(schema.get("format").and_then(Json::as_str).map(|format| format!("({format})")));
    if let Some(one_of) = schema.get("enum").and_then(Json::as_array) {
        let one_of: Vec<&str> = one_of.iter().filter_map(Json::as_str).collect();
        words.push(format!(": {}", one_of.join(", ")));
    }
    for (least, most) in [("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")] {
        let limit = |name: &str| schema.get(name).map(Json::to_string).unwrap_or_default();
        let (least, most) = (limit(least), limit(most));
        if !(least.is_empty() && most.is_empty()) {
            words.push(format!("{least}..{most}"));
        }
    }
    words.join(" ").replace(" :", ":")
}

fn answer<'a>(document: &'a Json, status: &'a str, json: &'a Json) -> Answer<'a> {
    let json = resolved(document, json);
    let mut fields = Vec::new();
    let content = json.pointer("/content/application~1json");
    if let Some(data) = content.and_then(|content| content.pointer("/schema/properties/data")) {
        rows(document, data, "", &mut fields);
    }
    let one = content.and_then(|content| content.get("example")).into_iter();
    let several = content
        .into_iter()
        .flat_map(|content| members(content, "/examples"))
        .filter_map(|(_, example)| resolved(document, example).get("value"));
    let examples = one.chain(several).map(pretty).collect();
    Answer { status, lines: text(json, "/description").split("\n\n").collect(), fields, examples }
}

fn pretty(json: &Json) -> String {
    serde_json::to_string_pretty(json).unwrap_or_default()
}
