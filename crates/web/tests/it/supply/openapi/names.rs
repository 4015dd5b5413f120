//! What a refusal names as a field is a field of its request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::{document, operations, resolved};
use crate::supply::api::Api;

/// The commands whose refusals name fields, and the operations that run them.
const COMMANDS: &[(&str, &[&str])] = &[
    ("accounts/checked.rs", &["verifyAccount", "createAccount", "rotateCredential"]),
    ("accounts/create.rs", &["createAccount"]),
    ("accounts/review.rs", &["reviewAccount"]),
    ("orders/create.rs", &["createOrder"]),
    ("orders/refund.rs", &["refundOrder"]),
    ("orders/usage.rs", &["recordUsage"]),
    ("packages/batch.rs", &["batchPrice"]),
    ("packages/draft.rs", &["savePackageDraft", "editPackageDraft"]),
    ("packages/fields.rs", &["savePackageDraft", "editPackageDraft"]),
    ("platform/buyer.rs", &["createBuyer"]),
    ("platform/egress.rs", &["reportEgress"]),
    ("platform/price_protection.rs", &["protectPrice"]),
    ("platform/supplier.rs", &["createSupplier"]),
    ("platform/topup.rs", &["topUpBuyer"]),
    ("settlements/complete.rs", &["completePayout"]),
    ("settlements/fail.rs", &["failPayout"]),
    ("settlements/reject.rs", &["rejectWithdrawal"]),
    ("settlements/withdraw.rs", &["withdraw"]),
    ("tokens/issue.rs", &["issueToken"]),
    ("tokens/mod.rs", &["issueToken"]),
];
/// No operation runs them; or they name what is published, which its request does not say.
const OTHERS: [&str; 4] =
    ["earnings/bonus.rs", "earnings/compensate.rs", "packages/floor.rs", "platform/staff.rs"];

/// Of the buyer's first key, which the edge makes.
const MADE: &str = "key_";

/// What stands before the name of a field.
const MARKERS: [&str; 12] = [
    "fields::refused(\"",
    ":field(\"",
    "(field(\"",
    "with(\"field\", \"",
    "payee(\"",
    ":text(\"",
    "whole(\"",
    "given(\"",
    "rule(\"",
    "rule::<()>(\"",
    "quota(\"",
    "price(\"",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The fields that a source names in refusals.
fn named(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let after = |marker: &str| code.split(marker).skip(1).map(str::to_owned).collect::<Vec<_>>();
    let mut texts: Vec<String> = MARKERS.iter().flat_map(|marker| after(marker)).collect();
    // The rules of a whole form, each on its line.
    let rules = code.split("checked(&[").skip(1).filter_map(|text| text.split("])").next());
    texts.extend(
        rules
            .flat_map(|rules| rules.lines().map(str::trim))
            .filter_map(|line| line.strip_prefix("(\"").map(ToOwned::to_owned)),
    );
    let name = |text: &String| text.split('"').next().unwrap_or_default().to_owned();
    let is_name = |name: &String| {
        !name.is_empty()
            && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
    };
    texts.iter().map(name).filter(is_name).filter(|name| !name.starts_with(MADE)).collect()
}

/// The fields of each operation's request.
fn requests(document: &Json) -> BTreeMap<String, BTreeSet<String>> {
    let fields = |operation: &Json| {
        let schema = operation.pointer("/requestBody/content/application~1json/schema");
        let schema = schema.map(|schema| resolved(document, schema));
        let properties = schema.and_then(|schema| schema["properties"].as_object());
        properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let operations = operations(document);
    let id = |operation: &Json| operation["operationId"].as_str().expect("an id").to_owned();
    operations.iter().map(|(_, _, operation)| (id(operation), fields(operation))).collect()
}

#[tokio::test]
async fn every_field_that_a_command_refuses_is_one_of_its_request() {
    let api = Api::new().await;
    let requests = requests(&document(&api).await);
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../supply/src"));
    let mut paths = Vec::new();
    sources(root, &mut paths);
    let (mut judged, mut unknown) = (0, Vec::new());
    for path in paths {
        let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).expect("a source");
        let names_some = ["with(\"field\", \"", "refused(\"", ":field(\"", "checked(&["];
        let fields = named(&source);
        let Some((_, ids)) = COMMANDS.iter().find(|(file, _)| *file == name) else {
            let silent = !names_some.iter().any(|marker| source.contains(marker)) || fields.is_empty();
            assert!(
                silent || OTHERS.contains(&name.as_str()),
                "{name} names {fields:?}: of which operation?"
            );
            continue;
        };
        for (id, field) in ids.iter().flat_map(|id| fields.iter().map(move |field| (id, field))) {
            if !requests[*id].contains(field) {
                unknown.push(format!("{name}: {id} has no {field}"));
            }
            judged += 1;
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(judged >= 40, "{judged}");
}

#[test]
fn a_name_is_found_in_each_form() {
    let source = "fields::refused(\"a\", 1) fields::field(\"b\", 2) fields::checked(&[\n(\"c\", \"d\", x),\n]) with(\"field\", \"e\")";
    assert_eq!(named(source), ["a", "b", "c", "e"].map(str::to_owned).into());
}
