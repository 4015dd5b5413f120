//! What a batch may be, what an item is refused with, and what the receipt says.

use super::slice::judge;
use super::*;
use crate::fixtures::{NOW, price};
use crate::packages::fixture::{floors, in_state, operator};
use crate::rows::{Package, PackageStatus};

fn item(package_id: i64) -> Item {
    Item::parse(package_id, "8", "32")
}

fn refused(items: Vec<Item>) -> String {
    let refusal = BatchPrice::of(&Policy::default(), items).unwrap_err();
    assert_eq!(refusal.code, Code::ComField);
    let plain = refusal.details.plain();
    let field = &plain["fields"][0];
    format!("{} {}", field["field"].as_str().unwrap(), field["rule"].as_str().unwrap())
}

#[test]
fn a_batch_has_1_to_200_items_and_each_package_once() {
    assert!(BatchPrice::of(&Policy::default(), (1..=200).map(item).collect()).is_ok());
    assert_eq!(refused(vec![]), "items count");
    assert_eq!(refused((1..=201).map(item).collect()), "items count");
    assert_eq!(refused(vec![item(1), item(2), item(1)]), "items[2].package_id duplicate");
    assert_eq!(refused(vec![item(1), item(0)]), "items[1].package_id positive");
    let wide = Policy { batch_max: 1000, ..Policy::default() };
    assert!(BatchPrice::of(&wide, (1..=201).map(item).collect()).is_err());
}

#[test]
fn items_are_worked_on_by_id_and_keep_their_places() {
    let batch = BatchPrice::of(&Policy::default(), vec![item(9), item(3), item(5)]).unwrap();
    let order: Vec<_> = batch.sorted().iter().map(|(place, item)| (*place, item.package_id)).collect();
    assert_eq!(order, [(1, 3), (2, 5), (0, 9)]);
}

#[test]
fn every_refusal_of_an_item_comes_before_those_that_are_asked_later() {
    use PackageStatus::{Active, Draft, Expired, Paused, SoldOut};
    let code = |item: &Item, package: Option<&Package>, floors: &[_]| {
        let refusal = judge(item, package, floors, NOW).unwrap_err();
        (refusal.code.as_str(), refusal.rule.map(crate::Invariant::as_str))
    };
    for (input, output) in [("-1", "32"), ("8", "1e2"), ("8.0000001", "32"), ("8", "1000001")] {
        let malformed = Item::parse(17, input, output);
        assert_eq!(code(&malformed, None, &[]), ("SUP_PKG_4004", None), "{input} {output}");
    }
    assert_eq!(code(&item(17), None, &[]), ("SUP_PKG_4041", None));
    assert_eq!(code(&item(17), Some(&in_state(SoldOut)), &[]), ("SUP_PKG_4091", None));
    assert_eq!(code(&item(17), Some(&in_state(Expired)), &[]), ("SUP_PKG_4093", None));
    let over = Package { end_at: Some(NOW), ..in_state(Paused) };
    assert_eq!(code(&item(17), Some(&over), &[]), ("SUP_PKG_4093", None));
    for status in [Draft, Active, Paused] {
        let package = in_state(status);
        assert_eq!(code(&item(17), Some(&package), &[]), ("SUP_PKG_4005", None));
        let below = ("SUP_PKG_4001", Some("INV-PKG-003"));
        assert_eq!(code(&item(17), Some(&package), &floors("8.000001", "32")), below);
        assert_eq!(code(&item(17), Some(&package), &floors("8", "32.000001")), below);
        assert_eq!(code(&Item::parse(17, "0", "32"), Some(&package), &floors("0.000001", "32")), below);
        let (_, prices) = judge(&item(17), Some(&package), &floors("8", "32"), NOW).unwrap();
        assert_eq!(prices, Prices { input: price("8"), output: price("32") });
    }
}

#[test]
fn what_is_no_spelling_fails_the_request_and_what_is_no_price_its_item() {
    for (text, plain) in [
        ("8", "8"),
        ("8.500000", "8.5"),
        ("-1", "-1"),
        ("-1.0", "-1"),
        ("8.0000001", "8.0000001"),
        ("1000000.1", "1000000.1"),
        ("99999999999999999999999", "99999999999999999999999"),
    ] {
        assert_eq!(Item::spelt(text, plain), Ok(()), "{text}");
    }
    for (text, plain, rule) in [
        ("8e0", "8", "exponent"),
        ("8E-9", "0.000000008", "exponent"),
        ("-8e0", "-8", "sign"),
        ("-0", "0", "sign"),
        ("8.0000000", "8", "decimals"),
        ("", "", "empty"),
        ("NaN", "NaN", "not_finite"),
        ("08", "08", "leading_zero"),
        (".5", ".5", "bare_point"),
        ("８", "８", "character"),
        (" 8", " 8", "character"),
        ("-8*", "-8*", "character"),
        ("- 8", "- 8", "character"),
        ("-", "-", "empty"),
        ("--1", "--1", "sign"),
        ("-+1", "-+1", "sign"),
        ("-08", "-08", "leading_zero"),
        ("-.5", "-.5", "bare_point"),
        ("-8.", "-8.", "bare_point"),
        ("+NaN", "+NaN", "not_finite"),
        ("-8.0000001x", "-8.0000001x", "character"),
        ("8.0000001x", "8.0000001x", "character"),
        ("99999999999999999999999x", "99999999999999999999999x", "character"),
    ] {
        assert_eq!(Item::spelt(text, plain).unwrap_err().rule(), rule, "{text}");
    }
}

fn decided(receipts: &[(i64, Option<Code>)]) -> Change {
    let items = receipts.iter().map(|(id, _)| item(*id)).collect();
    let batch = BatchPrice::of(&Policy::default(), items).unwrap();
    let receipts =
        receipts.iter().map(|(package_id, failed)| Receipt { package_id: *package_id, failed: *failed });
    batch.decide(&operator(), &Some(Job { id: 4 }), &receipts.collect(), NOW).unwrap()
}

#[test]
fn the_receipt_counts_and_names_what_failed_in_the_order_of_the_request() {
    let failed = [(9, Some(Code::PkgMissing)), (3, None), (5, Some(Code::PkgFloor))];
    let change = decided(&failed);
    let data: Json = serde_json::from_str(&change.data).unwrap();
    assert_eq!((change.status, &data["batch_id"], &data["total"]), (200, &json!("4"), &json!(3)));
    assert_eq!((&data["success_count"], &data["failed_count"]), (&json!(1), &json!(2)));
    assert_eq!(
        (&data["failures"][0]["package_id"], &data["failures"][1]["error_code"]),
        (&json!(9), &json!("SUP_PKG_4001"))
    );
    assert_eq!(data["failures"][0]["message_zh"], "套餐不存在");
    let items = json!([
        { "package_id": 9, "error_code": "SUP_PKG_4041" }, { "package_id": 5, "error_code": "SUP_PKG_4001" },
    ]);
    let metadata = json!({ "batch_id": "4", "total": 3, "success": 1, "failed": 2, "failed_items": items });
    assert_eq!(change.metadata, metadata);
}

#[test]
fn a_batch_is_succeeded_partial_or_failed_and_always_answered_with_200() {
    for (receipts, name) in [
        (vec![(1, None), (2, None)], "supply.package.batch_price.succeeded"),
        (vec![(1, None), (2, Some(Code::PkgState))], "supply.package.batch_price.partial"),
        (vec![(1, Some(Code::PkgState))], "supply.package.batch_price.failed"),
    ] {
        let change = decided(&receipts);
        assert_eq!((change.status, change.events[0].name), (200, name));
    }
}

#[test]
fn a_receipt_that_is_missing_is_no_answer() {
    let batch = BatchPrice::of(&Policy::default(), vec![item(1), item(2)]).unwrap();
    let one = vec![Receipt { package_id: 1, failed: None }];
    assert!(matches!(batch.decide(&operator(), &Some(Job { id: 4 }), &one, NOW), Err(Stop::Broken(_))));
}
