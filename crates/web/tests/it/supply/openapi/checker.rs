//! A check of JSON against the part of JSON Schema that the document uses. Not here: the rest of JSON Schema, and
//! `format`. A keyword that is not known here fails, so that nothing is passed over.

use regex_automata::meta::Regex;
use serde_json::Value as Json;

use super::resolved;

/// Keywords that say something to people, or are judged by nobody here.
const WORDS: [&str; 3] = ["description", "format", "writeOnly"];

/// Whether unknown members are taken where the schema says nothing of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Taken,
    Refused,
}

/// Checks, with unknown members of answers taken, as a client must.
pub(super) fn check(document: &Json, schema: &Json, value: &Json) -> Result<(), String> {
    Checker { document, rest: Rest::Taken }.at(schema, value, "$")
}

/// Checks that an answer of this server has nothing that is not described.
pub(super) fn check_all(document: &Json, schema: &Json, value: &Json) -> Result<(), String> {
    Checker { document, rest: Rest::Refused }.at(schema, value, "$")
}

struct Checker<'a> {
    document: &'a Json,
    rest: Rest,
}

impl Checker<'_> {
    fn at(&self, schema: &Json, value: &Json, place: &str) -> Result<(), String> {
        let schema = resolved(self.document, schema);
        for (keyword, limit) in schema.as_object().expect("a schema") {
            self.keyword((keyword, limit), value, place)
                .then_some(())
                .ok_or_else(|| format!("{place}: {keyword} {limit} against {value}"))?;
        }
        self.members(schema, value, place)
    }

    fn keyword(&self, (keyword, limit): (&str, &Json), value: &Json, place: &str) -> bool {
        let length = value.as_str().map(|text| text.chars().count() as u64);
        let count = value.as_array().map(|list| list.len() as u64);
        let list = limit.as_array();
        match keyword {
            "type" => list.map_or_else(|| is(limit, value), |types| types.iter().any(|one| is(one, value))),
            "enum" => list.is_some_and(|words| words.contains(value)),
            "const" => limit == value,
            "not" => self.at(limit, value, place).is_err(),
            "pattern" => value.as_str().is_none_or(|text| {
                Regex::new(limit.as_str().expect("a pattern")).expect("a pattern").is_match(text)
            }),
            "minimum" => value.as_f64().is_none_or(|it| it >= limit.as_f64().expect("a number")),
            "exclusiveMinimum" => value.as_f64().is_none_or(|it| it > limit.as_f64().expect("a number")),
            "multipleOf" => !value.is_number() || decimals(value) <= decimals(limit),
            "maximum" => value.as_f64().is_none_or(|it| it <= limit.as_f64().expect("a number")),
            "minLength" => length.is_none_or(|it| it >= limit.as_u64().expect("a length")),
            "maxLength" => length.is_none_or(|it| it <= limit.as_u64().expect("a length")),
            "minItems" => count.is_none_or(|it| it >= limit.as_u64().expect("a count")),
            "maxItems" => count.is_none_or(|it| it <= limit.as_u64().expect("a count")),
            // With their places in `members`.
            "properties" | "items" | "allOf" => true,
            "required" => list.is_some_and(|names| {
                names.iter().all(|name| value.get(name.as_str().expect("a name")).is_some())
            }),
            "additionalProperties" => limit == &Json::Bool(false),
            known => WORDS.contains(&known),
        }
    }

    fn members(&self, schema: &Json, value: &Json, place: &str) -> Result<(), String> {
        for all in schema["allOf"].as_array().into_iter().flatten() {
            Checker { rest: Rest::Taken, ..*self }.at(all, value, place)?;
        }
        for (n, item) in value.as_array().into_iter().flatten().enumerate() {
            self.at(&schema["items"], item, &format!("{place}[{n}]"))?;
        }
        let properties = &schema["properties"];
        let closed =
            schema["additionalProperties"] == false || (self.rest == Rest::Refused && properties.is_object());
        for (name, member) in value.as_object().into_iter().flatten() {
            match properties.get(name) {
                Some(schema) => self.at(schema, member, &format!("{place}.{name}"))?,
                None if closed => return Err(format!("{place}: {name} is not described")),
                None => {}
            }
        }
        Ok(())
    }
}

/// Digits behind the point of a number; steps are powers of ten.
fn decimals(number: &Json) -> usize {
    let text = format!("{:.10}", number.as_f64().expect("a number"));
    text.trim_end_matches('0').split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

fn is(kind: &Json, value: &Json) -> bool {
    match kind.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    }
}
