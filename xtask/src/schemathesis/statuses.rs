//! Which refusals business rules allow each operation though the request fits its description: `statuses.toml`, a table
//! an operation, in it statuses, codes and reasons. Everything else that is not the described success is a finding.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde_json::Value as Json;

/// Reasons by code.
type Codes = BTreeMap<String, String>;

/// Allowed refusals by operation, then status.
#[derive(Debug)]
pub(super) struct Statuses(BTreeMap<String, BTreeMap<String, Codes>>);

/// The file.
pub(super) const FILE: &str = include_str!("statuses.toml");

impl Statuses {
    /// Reads the file.
    ///
    /// # Errors
    /// It is no TOML of this shape.
    pub(super) fn read() -> anyhow::Result<Self> {
        Ok(Self(toml::from_str(FILE).context("xtask/src/schemathesis/statuses.toml")?))
    }

    /// Statuses that an operation may answer: its success, and what is allowed.
    pub(super) fn of(&self, operation: &Operation) -> Vec<String> {
        let allowed = self.0.get(&operation.id).into_iter().flat_map(|statuses| statuses.keys().cloned());
        std::iter::once(operation.success.clone()).chain(allowed).collect()
    }

    /// Checks it against the document: each operation has its table, no table is without operation, every code and
    /// status is one that the document gives the operation.
    ///
    /// # Errors
    /// Lists what does not agree.
    pub(super) fn agree_with(&self, document: &Json) -> anyhow::Result<()> {
        let described = operations(document);
        let ids: BTreeSet<&String> = described.iter().map(|operation| &operation.id).collect();
        let mut wrong: Vec<String> =
            self.0.keys().filter(|id| !ids.contains(id)).map(|id| format!("{id} is no operation")).collect();
        for operation in &described {
            let Some(statuses) = self.0.get(&operation.id) else {
                wrong.push(format!("{} is missing", operation.id));
                continue;
            };
            for (status, code) in
                statuses.iter().flat_map(|(status, codes)| codes.keys().map(move |code| (status, code)))
            {
                if !operation.refusals.contains(&(status.clone(), code.clone())) {
                    wrong.push(format!("{}: {status} {code} is not described", operation.id));
                }
            }
        }
        ensure!(wrong.is_empty(), "statuses.toml and the document disagree:\n  {}", wrong.join("\n  "));
        Ok(())
    }
}

/// What the document says of an operation.
#[derive(Debug)]
pub(super) struct Operation {
    /// `operationId`.
    pub(super) id: String,
    /// Path, with its parameters in braces.
    pub(super) path: String,
    /// The status of success.
    pub(super) success: String,
    /// Statuses and codes of refusals.
    refusals: BTreeSet<(String, String)>,
}

impl Operation {
    /// Its parameter in the path, and what it is: `id` and `account_id`.
    pub(super) fn of(&self) -> Option<(&str, &'static str)> {
        let (before, rest) = self.path.split_once("/{")?;
        let (parameter, _) = rest.split_once('}')?;
        let known = match before.rsplit('/').next()? {
            "accounts" => "account_id",
            "packages" => "package_id",
            "settlements" => "settlement_id",
            "orders" => "order_id",
            "buyers" => "buyer_id",
            "tokens" => "token_id",
            "events" => "event_id",
            _ => return None,
        };
        Some((parameter, known))
    }
}

/// All operations of the document.
pub(super) fn operations(document: &Json) -> Vec<Operation> {
    let members = |json: &Json| json.as_object().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for (path, methods) in members(&document["paths"]) {
        for operation in members(&methods).values() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            let responses = members(&operation["responses"]);
            let success = responses.keys().find(|status| status.starts_with('2') && *status != "202");
            let refusals = responses.iter().flat_map(|(status, response)| {
                let response = response["$ref"]
                    .as_str()
                    .map_or(Some(response), |target| document.pointer(target.trim_start_matches('#')));
                codes(response).into_iter().map(move |code| (status.clone(), code))
            });
            let refusals = refusals.collect();
            let success = success.cloned().unwrap_or_default();
            found.push(Operation { id: id.to_owned(), path: path.clone(), success, refusals });
        }
    }
    found
}

fn codes(response: Option<&Json>) -> Vec<String> {
    let place = "/content/application~1json/schema/allOf/1/properties/error/properties/code/enum";
    let codes = response.and_then(|response| response.pointer(place)?.as_array());
    codes.into_iter().flatten().filter_map(Json::as_str).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document as a test of `web` pins what is served.
    fn pinned() -> Json {
        let path =
            crate::lab::root().join("crates/web/tests/it/supply/snapshots/it__supply__openapi__openapi.snap");
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str(text.splitn(3, "---\n").last().unwrap()).unwrap()
    }

    #[test]
    fn the_file_agrees_with_the_document() {
        let document = pinned();
        assert!(operations(&document).len() >= 48);
        Statuses::read().unwrap().agree_with(&document).unwrap();
    }

    #[test]
    fn every_reason_says_something() {
        for (id, statuses) in Statuses::read().unwrap().0 {
            for (code, reason) in statuses.values().flatten() {
                assert!(reason.split(' ').count() >= 3, "{id}: {code}: {reason}");
            }
        }
    }

    #[test]
    fn whatever_does_not_agree_is_told() {
        let document = pinned();
        let told = |change: &dyn Fn(&mut Statuses)| {
            let mut statuses = Statuses::read().unwrap();
            change(&mut statuses);
            statuses.agree_with(&document).unwrap_err().to_string()
        };
        let pin = |id: &str, status: &str, code: &str| {
            let codes = BTreeMap::from([(code.to_owned(), "as the rule says".to_owned())]);
            let row = (id.to_owned(), BTreeMap::from([(status.to_owned(), codes)]));
            told(&move |all| all.0.extend([row.clone()]))
        };
        assert!(told(&|all| drop(all.0.remove("withdraw"))).contains("withdraw is missing"));
        assert!(pin("sleep", "409", "SUP_COM_4091").contains("sleep is no operation"));
        assert!(
            pin("payOrder", "418", "SUP_ORD_4091").contains("payOrder: 418 SUP_ORD_4091 is not described")
        );
        assert!(
            pin("payOrder", "409", "SUP_ACC_4091").contains("payOrder: 409 SUP_ACC_4091 is not described")
        );
    }
}
