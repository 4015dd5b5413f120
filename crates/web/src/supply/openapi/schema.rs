//! Kinds and shapes as JSON Schema (draft 2020-12, which OpenAPI 3.1 takes as it is). Numbers of money and quota are
//! decimals with a rule for their text: whoever reads them as binary floats loses digits.

use serde_json::{Map, Value as Json, json};

use super::form::{Field, Kind, Need, Shape};

/// Section 4, rule 2.
const UNSIGNED: &str = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$";
const TEXT_RULE: &str = "A JSON number or a JSON string. Its text is read as it stands: digits without sign, exponent or leading zeros";
const EXACT_RULE: &str =
    "Exact decimal number; read its text, not a binary float. Amounts and prices are in major units.";

/// Sets a member of an object; what is no object has none.
pub(super) fn set(object: &mut Json, name: &str, value: impl Into<Json>) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value.into());
    }
}

/// A closed object, as requests have them.
pub(super) fn closed(shape: &Shape) -> Json {
    let mut schema = object(shape.fields, Side::Request);
    set(&mut schema, "additionalProperties", false);
    schema
}

/// An object of an answer, which may get more members in time.
pub(super) fn open(shape: &Shape) -> Json {
    object(shape.fields, Side::Answer)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Request,
    Answer,
}

fn object(fields: &[Field], side: Side) -> Json {
    let required: Vec<&str> =
        fields.iter().filter(|field| field.need != Need::Maybe).map(|field| field.name).collect();
    let properties: Map<String, Json> =
        fields.iter().map(|field| (field.name.to_owned(), property(field, side))).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        set(&mut schema, "required", required);
    }
    schema
}

fn property(field: &Field, side: Side) -> Json {
    let mut schema = kind(field.kind, side);
    if field.need == Need::Nullable {
        nullable(&mut schema);
    }
    let rule = schema.get("description").and_then(Json::as_str).map(ToOwned::to_owned);
    let about = rule.map_or_else(|| field.about.to_owned(), |rule| format!("{} {rule}", field.about));
    set(&mut schema, "description", about);
    schema
}

/// The schema of a parameter, without its description.
pub(super) fn parameter(field: &Field) -> Json {
    kind(field.kind, Side::Request)
}

fn nullable(schema: &mut Json) {
    if let Some(one) = schema.get("type").and_then(Json::as_str).map(ToOwned::to_owned) {
        set(schema, "type", json!([one, "null"]));
    }
    if let Some(words) = schema.get_mut("enum").and_then(Json::as_array_mut) {
        words.push(Json::Null);
    }
}

fn kind(kind: Kind, side: Side) -> Json {
    match kind {
        Kind::Id => json!({ "type": "integer", "format": "int64", "minimum": 1 }),
        Kind::Whole(least, most) => whole(least, most),
        Kind::WholeText(least, most) => {
            let mut schema = whole(least, most);
            set(&mut schema, "type", json!(["integer", "string"]));
            set(&mut schema, "pattern", "^[1-9][0-9]*$");
            set(&mut schema, "description", "As text, its digits.");
            schema
        }
        Kind::Text(least, most) => json!({ "type": "string", "minLength": least, "maxLength": most }),
        Kind::Secret(least, most) => {
            json!({ "type": "string", "minLength": least, "maxLength": most, "writeOnly": true, "format": "password" })
        }
        Kind::Said => json!({ "type": "string" }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Agreed => json!({ "type": "boolean", "const": true }),
        Kind::Amount(_) | Kind::Price | Kind::Quota | Kind::Exact | Kind::Minor => number(kind),
        Kind::Currency => json!({ "type": "string", "pattern": "^[A-Z]{3}$" }),
        Kind::Day => json!({ "type": "string", "format": "date" }),
        Kind::Instant => json!({ "type": "string", "format": "date-time" }),
        Kind::Uuid => json!({ "type": "string", "format": "uuid" }),
        Kind::Phone => {
            json!({ "type": "string", "minLength": 5, "maxLength": 20, "pattern": r"^\+[1-9][0-9]{7,14}$", "writeOnly": true })
        }
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Scopes => json!({ "type": "array", "maxItems": auth::scope::SCOPES_MAX,
            "items": { "type": "string", "maxLength": auth::scope::SCOPE_MAX } }),
        Kind::State => json!({ "type": "object" }),
        Kind::Object(fields) => object(fields, side),
        Kind::List(fields, least, most) => {
            let mut items = object(fields, side);
            if side == Side::Request {
                set(&mut items, "additionalProperties", false);
            }
            json!({ "type": "array", "minItems": least, "maxItems": most, "items": items })
        }
        Kind::Rows(fields) => json!({ "type": "array", "items": object(fields, side) }),
    }
}

fn whole(least: i64, most: i64) -> Json {
    let mut schema = json!({ "type": "integer", "format": "int64", "minimum": least });
    if most < i64::MAX {
        set(&mut schema, "maximum", most);
    }
    schema
}

fn number(kind: Kind) -> Json {
    let asked = |decimals: u8, most: i64| {
        json!({ "type": ["number", "string"], "format": "decimal", "minimum": 0, "maximum": most, "pattern": UNSIGNED,
            "description": format!("{TEXT_RULE}, at most {decimals} decimals, at most {most}.") })
    };
    match kind {
        Kind::Amount(decimals) => {
            let mut schema = asked(decimals, 10_000_000_000);
            let rule = schema.get("description").and_then(Json::as_str).unwrap_or_default().to_owned();
            set(&mut schema, "description", format!("Major units of the currency. {rule}"));
            schema
        }
        Kind::Price => asked(6, 1_000_000),
        Kind::Quota => asked(6, 1_000_000_000_000),
        Kind::Minor => {
            json!({ "type": "string", "format": "decimal", "pattern": r"^-?(0|[1-9][0-9]*)(\.[0-9]{1,6})?$",
            "description": "Minor units of the currency as text, at most 6 decimals." })
        }
        _ => json!({ "type": "number", "format": "decimal", "description": EXACT_RULE }),
    }
}
