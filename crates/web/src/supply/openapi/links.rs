//! Which operation goes on from which answer (OpenAPI's links): an id that one answers with is what stands in another's
//! path. Derived from the descriptions, so that a new operation has its links by being described.

use serde_json::{Map, Value as Json, json};

use super::document::all;
use super::form::{Answer, Kind, Operation};
use super::schema::set;

/// Field that names what a path parameter stands for. `id` alone is of the kind that its path says.
fn named_by(operation: &Operation) -> Option<(&'static str, &'static str)> {
    let (before, rest) = operation.path.split_once("/{")?;
    let (parameter, _) = rest.split_once('}')?;
    let kind = before.rsplit('/').next()?;
    let field = match kind {
        "accounts" => "account_id",
        "packages" => "package_id",
        "settlements" => "settlement_id",
        "orders" => "order_id",
        "buyers" => "buyer_id",
        "suppliers" => "supplier_id",
        "tokens" => "token_id",
        "events" => "event_id",
        _ => return None,
    };
    Some((parameter, field))
}

/// The links of an operation's success: to each other operation on an object that it answers with.
pub(super) fn of(operation: &Operation) -> Map<String, Json> {
    let Answer::Data(_, shape) = operation.answer else { return Map::new() };
    let answers = |field: &str| {
        shape.fields.iter().any(|told| told.name == field && matches!(told.kind, Kind::Id | Kind::Uuid))
    };
    let others = all().map(|(_, other)| other).filter(|other| other.id != operation.id);
    let linked = others.filter(|other| named_by(other).is_some_and(|(_, field)| answers(field)));
    linked
        .map(|other| (other.id.to_owned(), json!({ "$ref": format!("#/components/links/{}", other.id) })))
        .collect()
}

/// Every link once: the same to whatever answer it is attached.
pub(super) fn every() -> Json {
    let mut links = json!({});
    for (_, operation) in all() {
        if let Some((parameter, field)) = named_by(operation) {
            let link = json!({ "operationId": operation.id, "description": operation.summary,
                "parameters": { parameter: format!("$response.body#/data/{field}") } });
            set(&mut links, operation.id, link);
        }
    }
    links
}
