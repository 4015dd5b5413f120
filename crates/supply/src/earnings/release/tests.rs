//! Refusals of a release, and what it takes for a debt.

use std::time::Duration;

use kernel::money::Currency;

use super::*;
use crate::Capacity;
use crate::fixtures::{NOW, PRINCIPAL, TENANT, context};

fn cny(minor: &str) -> Money {
    Money::parse_minor(minor, Currency::CNY).unwrap()
}

fn earning(id: i64, reversed: &str) -> Earning {
    Earning {
        id,
        tenant_id: TENANT,
        user_id: PRINCIPAL,
        order_id: None,
        usage_record_id: None,
        status: EarningStatus::Pending,
        version: 2,
        currency: Currency::CNY,
        amount: cny("10"),
        available: cny("0"),
        frozen: cny("0"),
        withdrawn: cny("0"),
        reversed: cny(reversed),
        earned_at: NOW,
        available_at: NOW,
    }
}

fn state(earning: Option<Earning>, (pending, available, debt): (&str, &str, &str)) -> State {
    let supplier = ids::Supplier(PRINCIPAL);
    let books = Books::holding(&[
        (Account::pending(supplier), cny(pending)),
        (Account::available(supplier), cny(available)),
        (Account::receivable(supplier), cny(debt)),
    ]);
    State { books, earning, released: vec![] }
}

fn decided(state: &State, at: Time) -> Result<Change, Stop> {
    Release { earning_id: 1 }.decide(&context(Capacity::System), &(), state, at)
}

fn code(state: &State, at: Time) -> &'static str {
    match decided(state, at) {
        Err(Stop::Refused(refusal)) => refusal.code.as_str(),
        other => panic!("not refused: {other:?}"),
    }
}

fn names(change: &Change) -> Vec<&'static str> {
    change.writes.iter().map(|write| write.name).filter(|name| !name.starts_with("books.b")).collect()
}

#[test]
fn only_an_earning_that_pends_is_released_and_not_before_its_time() {
    let balances = ("10", "0", "0");
    let before = NOW.minus(Duration::from_micros(1));
    assert_eq!(code(&state(None, balances), before), "SUP_COM_4041");
    for status in [EarningStatus::Available, EarningStatus::Frozen, EarningStatus::Withdrawn] {
        assert_eq!(
            code(&state(Some(Earning { status, ..earning(1, "0") }), balances), before),
            "SUP_COM_4091"
        );
    }
    let refund = Earning { amount: Money::from_count(-1, Currency::CNY), ..earning(1, "0") };
    assert_eq!(code(&state(Some(refund), balances), NOW), "SUP_COM_4091");
    assert_eq!(code(&state(Some(earning(1, "0")), balances), before), "SUP_COM_4091");
    assert!(decided(&state(Some(earning(1, "0")), balances), NOW).is_ok());
}

#[test]
fn what_was_taken_back_is_not_released() {
    let change = decided(&state(Some(earning(1, "3.000001")), ("6.999999", "0", "0")), NOW).unwrap();
    assert_eq!(change.after["available_amount_minor"], "6.999999");
    let none = decided(&state(Some(earning(1, "10")), ("0", "0", "0")), NOW).unwrap();
    assert_eq!((&none.after["status"], names(&none)), (&json!("withdrawn"), vec!["earning.release"]));
}

#[test]
fn a_debt_is_taken_out_of_what_was_released_the_oldest_first() {
    let change = decided(&state(Some(earning(1, "0")), ("10", "0", "4")), NOW).unwrap();
    assert_eq!(change.metadata["recovered_minor"], "4");
    let reversed = change.writes.iter().find(|write| write.name == "earning.reverse").unwrap();
    assert_eq!(reversed.values[..2], [Value::Money(4_000_000), Value::Money(6_000_000)]);
    assert_eq!(reversed.values.last(), Some(&Value::Int(3)), "the version that the release made");
    let after = &change.after;
    assert_eq!((&after["version"], &after["available_amount_minor"]), (&json!(4), &json!("6")));
    assert_eq!(after["reversed_amount_minor"], "4");
    let data: serde_json::Value = serde_json::from_str(&change.data).unwrap();
    assert_eq!((&data["version"], &data["released_amount_minor"]), (&json!(4), &json!("10")));
    let events: Vec<_> = change.events.iter().map(|event| (event.name, event.version)).collect();
    assert_eq!(events, [("supply.earning.release.succeeded", 4), ("supply.earning.reverse.succeeded", 4)]);
    assert!(change.events.iter().all(|event| event.after == *after && event.before == change.before));
    let audit: Vec<_> = change.audit.iter().map(|row| (row.event_name, &row.after_state)).collect();
    assert_eq!(audit, [("supply.earning.reverse", after)]);

    // An older one, compensated meanwhile, is taken first.
    let older = Earning {
        status: EarningStatus::Available,
        available: cny("3"),
        amount: cny("3"),
        available_at: NOW.minus(Duration::from_secs(1)),
        ..earning(7, "0")
    };
    let mut state = state(Some(earning(1, "0")), ("10", "3", "4"));
    state.released = vec![older];
    let change = decided(&state, NOW).unwrap();
    let names = names(&change);
    assert!(names.contains(&"earnings.reverse") && names.contains(&"earning.reverse"), "{names:?}");
    let last = change.writes.iter().find(|write| write.name == "earning.reverse").unwrap();
    assert_eq!(last.values[..2], [Value::Money(1_000_000), Value::Money(9_000_000)]);
    let touched: Vec<_> = change.audit.iter().map(|row| row.object_id.as_str()).collect();
    assert_eq!((touched, change.events.len()), (vec!["7", "1"], 3));
    assert_eq!(change.audit[0].after_state["status"], "withdrawn");
}

#[test]
fn what_a_debt_takes_whole_is_withdrawn_and_said_so() {
    let change = decided(&state(Some(earning(1, "0")), ("10", "0", "40")), NOW).unwrap();
    assert_eq!((&change.after["status"], &change.after["version"]), (&json!("withdrawn"), &json!(4)));
    assert_eq!(change.after["available_amount_minor"], "0");
}
