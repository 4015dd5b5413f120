//! Kinds and shapes as JSON Schema (draft 2020-12, which OpenAPI 3.1 takes as it is). Numbers of money and quota are
//! decimals with a rule for their text: whoever reads them as binary floats loses digits.

use serde_json::{Map, Value as Json, json};

use super::form::{Field, Kind, Least, Need, Shape};

/// Section 4, rule 2: what JSON Schema can't say of a number, because it does not see its text.
const TEXT_RULE: &str = "A JSON number or a JSON string. Its text is read as it stands: digits without sign, exponent or leading zeros";
const EXACT_RULE: &str =
    "Exact decimal number; read its text, not a binary float. Amounts and prices are in major units.";
/// Control characters (Unicode, Cc), as members of a class.
const CONTROLS: &str = r"\x00-\x1f\x7f-\x9f";
/// Further white space (Unicode, `White_Space`), as members of a class.
const BLANKS: &str = r"\x20\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";
/// Any text but U+0000, which no request may hold.
const TEXT: &str = r"^[^\x00]*$";

/// An idempotency key: bare, or as a Structured Field string (RFC 9651) whose content is that long.
pub(super) const KEY: &str = r#"^([!#-~][!-~]{15,127}|"([!#-\[\]-~]|\\["\\]){16,128}")$"#;
/// A scope: lower case, segments joined by colons, the last of which may be `*`.
const SCOPE: &str = r"^(\*|[a-z0-9_-]+(:[a-z0-9_-]+)*(:\*)?)$";

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
        Kind::Line(most) => text(1, most, &line(most)),
        Kind::Padded(most) => {
            let blank = format!(r"[\x09-\x0d\x85{BLANKS}]*");
            let inner = line(most);
            text(
                1,
                2 * most,
                &format!("^{blank}{}{blank}$", inner.trim_start_matches('^').trim_end_matches('$')),
            )
        }
        Kind::Text(most) => text(0, most, TEXT),
        Kind::Secret(least, most) => {
            let mut schema = text(least, most, TEXT);
            set(&mut schema, "writeOnly", true);
            set(&mut schema, "format", "password");
            schema
        }
        Kind::Said => json!({ "type": "string" }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Agreed => json!({ "type": "boolean", "const": true }),
        Kind::Amount(..) | Kind::Price | Kind::Quota(_) => asked(kind),
        Kind::Offered => {
            json!({ "type": ["number", "string"], "pattern": r"^[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?$",
            "description": format!("Major units per 1,000,000 tokens. {TEXT_RULE}, at most 6 decimals, at most 1000000.") })
        }
        Kind::Minor => {
            json!({ "type": "string", "format": "decimal", "pattern": r"^-?(0|[1-9][0-9]*)(\.[0-9]{1,6})?$",
            "description": "Minor units of the currency as text, at most 6 decimals." })
        }
        Kind::Exact => json!({ "type": "number", "format": "decimal", "description": EXACT_RULE }),
        Kind::Currency => json!({ "type": "string", "pattern": "^[A-Z]{3}$" }),
        Kind::Day => json!({ "type": "string", "format": "date" }),
        Kind::Instant if side == Side::Request => {
            json!({ "type": "string", "format": "date-time", "maxLength": 40 })
        }
        Kind::Instant => json!({ "type": "string", "format": "date-time" }),
        Kind::Uuid => json!({ "type": "string", "format": "uuid" }),
        Kind::Phone => {
            json!({ "type": "string", "pattern": r"^\+[1-9][0-9]{7,14}$", "writeOnly": true })
        }
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Path => text(1, 600, r"^/[^\x00]*$"),
        Kind::Key => json!({ "type": "string", "pattern": KEY }),
        Kind::Scopes => json!({ "type": "array", "maxItems": auth::scope::SCOPES_MAX,
            "items": { "type": "string", "maxLength": auth::scope::SCOPE_MAX, "pattern": SCOPE } }),
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

fn text(least: u32, most: u32, pattern: &str) -> Json {
    json!({ "type": "string", "minLength": least, "maxLength": most, "pattern": pattern })
}

/// No control character, no blank at either end, at most so many characters.
fn line(most: u32) -> String {
    let inner = most.saturating_sub(2);
    format!("^[^{CONTROLS}{BLANKS}]([^{CONTROLS}]{{0,{inner}}}[^{CONTROLS}{BLANKS}])?$")
}

/// An exact decimal of a request: its limits as a number, and the same as a text.
fn asked(kind: Kind) -> Json {
    // Every limit is a power of ten; so many zeros.
    let (unit, least, decimals, zeros) = match kind {
        Kind::Amount(least, decimals) => ("Major units of the currency. ", least, decimals, 10),
        Kind::Quota(least) => ("", least, 6, 12),
        _ => ("", Least::Zero, 6, 6),
    };
    let (most, step) = (10_i64.pow(zeros), format!("1e-{decimals}"));
    let mut schema = json!({ "type": ["number", "string"], "format": "decimal", "maximum": most,
        "pattern": decimal(least, decimals, zeros),
        "description": format!("{unit}{TEXT_RULE}, at most {decimals} decimals, at most {most}.") });
    set(&mut schema, if least == Least::Zero { "minimum" } else { "exclusiveMinimum" }, 0);
    set(&mut schema, "multipleOf", serde_json::from_str::<Json>(&step).unwrap_or_default());
    schema
}

/// The text of a decimal with at most so many decimals, up to a one with so many zeros.
fn decimal(least: Least, decimals: u8, zeros: u32) -> String {
    let fraction = format!(r"(\.[0-9]{{1,{decimals}}})?");
    let below_one = match least {
        Least::Zero => format!("0{fraction}"),
        // The first digit that is not 0 stands at one of the places behind the point.
        Least::Above => {
            let places = (0..decimals).map(|n| format!("0{{{n}}}[1-9][0-9]{{0,{}}}", decimals - n - 1));
            format!(r"0\.({})", places.collect::<Vec<_>>().join("|"))
        }
    };
    let zeros_behind = format!(r"(\.0{{1,{decimals}}})?");
    format!("^({below_one}|[1-9][0-9]{{0,{}}}{fraction}|10{{{zeros}}}{zeros_behind})$", zeros - 1)
}
