//! Every refusal of an order's commands, in its order of precedence; and what charges, quota and refunds come to.

use std::time::Duration;

use kernel::money::{Currency, Money, QuotaUnit, Rate, Tokens};
use ledger::{Account as Ledger, ids};
use serde_json::json;

use super::create::State as CreateState;
use super::found::{Found, Shift};
use super::pay::State as PayState;
use super::refund::State as RefundState;
use super::usage::State as UsageState;
use super::*;
use crate::books::Books;
use crate::fixtures::{self, NOW, PRINCIPAL, TENANT, price, tokens};
use crate::rows::{Earning, EarningStatus, Order, OrderStatus, Package, PackageStatus};
use crate::{Action, Capacity, Change, Context, Policy, Stop};

mod refunds;

const BUYER: i64 = 80;
const DAY: Duration = Duration::from_secs(24 * 3600);

fn cny(minor: &str) -> Money {
    Money::parse_minor(minor, Currency::CNY).unwrap()
}

fn context() -> Context {
    fixtures::context(Capacity::System)
}

fn package() -> Package {
    let (start_at, end_at) = (Some(NOW), Some(NOW.plus(DAY)));
    Package { status: PackageStatus::Active, start_at, end_at, ..fixtures::package() }
}

/// A paid order of 500 tokens at 8 and 32: an escrow of 2 minor units (1.6, rounded up).
fn found() -> Found {
    let account = crate::rows::Account { frozen: tokens(500), available: tokens(0), ..fixtures::account() };
    let package = Package { available: tokens(500), sold: tokens(500), ..package() };
    let order = Order {
        id: 9,
        order_no: "ORD20260327000000000000".into(),
        tenant_id: TENANT,
        buyer_user_id: BUYER,
        buyer_tenant_id: 8,
        supply_account_id: account.id,
        supplier_user_id: PRINCIPAL,
        supply_package_id: package.id,
        platform: "openai".into(),
        model: "gpt-x".into(),
        status: OrderStatus::Paid,
        version: 1,
        unit: QuotaUnit::Token,
        currency: Currency::CNY,
        quota: tokens(500),
        used: tokens(0),
        remaining: tokens(500),
        price_input: price("8"),
        price_output: price("32"),
        total: cny("2"),
        platform_fee: cny("0"),
        supplier_earnings: cny("0"),
        expired_at: Some(NOW.plus(DAY)),
        created_at: NOW,
    };
    Found { account, package, order }
}

fn pending() -> Found {
    let mut found = found();
    (found.order.status, found.order.expired_at) = (OrderStatus::Pending, None);
    (found.package.reserved, found.package.sold) = (tokens(500), tokens(0));
    found
}

fn books(prepaid: &str, escrow: &str, earned: (&str, &str)) -> Books {
    let supplier = ids::Supplier(PRINCIPAL);
    Books::holding(&[
        (Ledger::prepaid(ids::Buyer(BUYER)), cny(prepaid)),
        (Ledger::escrow(ids::Order(9)), cny(escrow)),
        (Ledger::pending(supplier), cny(earned.0)),
        (Ledger::available(supplier), cny(earned.1)),
        (Ledger::receivable(supplier), cny("0")),
    ])
}

fn code(decided: Result<Change, Stop>) -> &'static str {
    match decided {
        Err(Stop::Refused(refusal)) => refusal.code.as_str(),
        other => panic!("not refused: {other:?}"),
    }
}

fn data(change: &Change) -> serde_json::Value {
    serde_json::from_str(&change.data).unwrap()
}

fn names(change: &Change) -> Vec<&'static str> {
    let mut names: Vec<_> = change.writes.iter().map(|write| write.name).collect();
    names.dedup();
    names
}

fn create(quota: i64, change: impl Fn(&mut CreateState)) -> Result<Change, Stop> {
    let mut state = CreateState { package: Some(package()), currencies: vec![Currency::CNY], order: 9 };
    change(&mut state);
    Create { buyer_id: BUYER, package_id: 17, quota_count: quota }.decide(&context(), &(), &state, NOW)
}

#[test]
fn an_order_reserves_quota_and_fixes_prices_and_escrow() {
    let change = create(500_000_000, |_| {}).unwrap();
    assert_eq!(names(&change), ["package.shift", "order.insert", "books.open"]);
    let data = data(&change);
    assert_eq!((&data["total_amount"], &data["total_amount_minor"]), (&json!(0.02), &json!("2")));
    assert_eq!(data["pay_before"], "2026-03-27T02:18:04.000Z");
    assert_eq!((data["order_no"].as_str().unwrap().len(), change.status), (23, 201));
    assert!(!change.data.contains("account") && !change.data.contains("supplier"), "{}", change.data);
}

#[test]
fn creating_is_refused_in_this_order() {
    let wrong = |step: usize| {
        move |state: &mut CreateState| {
            let package = state.package.as_mut().unwrap();
            package.status = if step > 2 { PackageStatus::Active } else { PackageStatus::Paused };
            package.platform_frozen = step <= 3;
            package.end_at = Some(NOW.plus(if step > 4 { DAY } else { Duration::ZERO }));
            package.min_purchase = tokens(501);
            state.currencies = match step {
                0 => vec![],
                1..=5 => vec![Currency::from_code("USD").unwrap()],
                _ => vec![Currency::CNY],
            };
            if step == 1 {
                package.status = PackageStatus::Draft;
            }
        }
    };
    let codes: Vec<_> = (0..=6).map(|step| code(create(500_000_000, wrong(step)))).collect();
    assert_eq!(
        codes,
        [
            "SUP_COM_4041",
            "SUP_PKG_4041",
            "SUP_PKG_4091",
            "SUP_PKG_4094",
            "SUP_PKG_4091",
            "SUP_COM_4003",
            "SUP_ORD_4001"
        ]
    );
    assert_eq!(code(create(1_000_000, |state| state.package = None)), "SUP_PKG_4041");
}

#[test]
fn no_order_is_below_the_minimum_above_what_is_left_or_of_half_a_token() {
    for quota in [0, -1_000_000, 1, 999_999, 1_500_000, 1_001_000_000, i64::MAX, i64::MIN] {
        assert_eq!(code(create(quota, |_| {})), "SUP_ORD_4001", "{quota}");
    }
    assert!(create(1_000_000_000, |_| {}).is_ok());
    let half = create(500_000, |state| state.package.as_mut().unwrap().unit = QuotaUnit::Credit);
    assert_eq!(code(half), "SUP_ORD_4001", "below the minimum of one");
}

fn pay(prepaid: &str, found: Option<Found>) -> Result<Change, Stop> {
    let state = PayState { found, books: books(prepaid, "0", ("0", "0")) };
    Pay { order_id: 9 }.decide(&context(), &(), &state, NOW)
}

#[test]
fn paying_needs_a_pending_order_in_time_and_the_money() {
    let with = |change: fn(&mut Found)| {
        let mut found = pending();
        change(&mut found);
        Some(found)
    };
    assert_eq!(code(pay("0", None)), "SUP_ORD_4041");
    for status in [OrderStatus::Paid, OrderStatus::Using, OrderStatus::Expired, OrderStatus::Refunded] {
        let mut found = pending();
        found.order.status = status;
        assert_eq!(code(pay("0", Some(found))), "SUP_ORD_4091", "{status:?}");
    }
    let late = with(|found| found.order.created_at = NOW.minus(Duration::from_secs(900)));
    assert_eq!(code(pay("0", late)), "SUP_ORD_4091");
    let over = with(|found| found.package.end_at = Some(NOW));
    assert_eq!(code(pay("0", over)), "SUP_ORD_4091");
    assert_eq!(code(pay("1.999999", Some(pending()))), "SUP_ORD_4021");
    let change = pay("2", with(|found| found.package.status = PackageStatus::Paused)).unwrap();
    assert_eq!(data(&change)["expired_at"], "2026-03-28T02:03:04.000Z");
    assert_eq!(change.events[0].name, "supply.order.pay.succeeded");
}

#[test]
fn cancelling_ends_what_is_not_paid_and_the_time_out_waits_for_its_time() {
    let cancel = |cause, found: Option<Found>, after: u64| {
        let at = NOW.plus(Duration::from_secs(after));
        Cancel { order_id: 9, cause }.decide(&context(), &(), &found, at)
    };
    assert_eq!(code(cancel(Cause::Buyer, None, 0)), "SUP_ORD_4041");
    assert_eq!(code(cancel(Cause::Buyer, Some(found()), 0)), "SUP_ORD_4091");
    assert_eq!(code(cancel(Cause::Timeout, Some(pending()), 899)), "SUP_ORD_4091");
    for (cause, after, reason) in
        [(Cause::Buyer, 0, "buyer_cancelled"), (Cause::Timeout, 900, "payment_timeout")]
    {
        let change = cancel(cause, Some(pending()), after).unwrap();
        assert_eq!(change.after, json!({ "status": "expired", "version": 2, "close_reason": reason }));
        assert_eq!(names(&change), ["package.shift", "order.end"]);
    }
}

#[test]
fn quota_goes_back_to_where_the_ended_package_gave_its_own() {
    let mut found = pending();
    assert_eq!(Shift::GiveBack.account(&found, tokens(500)).unwrap(), None);
    assert_eq!(Shift::Return.account(&found, tokens(500)).unwrap(), Some((tokens(0), tokens(1000))));
    assert_eq!(Shift::Sell.account(&found, tokens(500)).unwrap(), Some((tokens(0), tokens(0))));
    found.package.status = PackageStatus::Expired;
    assert_eq!(Shift::GiveBack.account(&found, tokens(500)).unwrap(), Some((tokens(500), tokens(0))));
    assert_eq!(Shift::Return.account(&found, tokens(500)).unwrap(), Some((tokens(500), tokens(500))));
    assert!(Shift::Sell.account(&found, tokens(501)).is_err(), "more than is frozen");
}

#[test]
fn closing_needs_an_open_order_that_is_over() {
    let close = |found: Option<Found>, at| {
        let state = PayState { found, books: books("0", "2", ("0", "0")) };
        Close { order_id: 9 }.decide(&context(), &(), &state, at)
    };
    let end = NOW.plus(DAY);
    assert_eq!(code(close(None, end)), "SUP_ORD_4041");
    assert_eq!(code(close(Some(pending()), end)), "SUP_ORD_4091");
    assert_eq!(code(close(Some(found()), end.minus(Duration::from_micros(1)))), "SUP_ORD_4091");
    let change = close(Some(found()), end).unwrap();
    assert_eq!(change.after["close_reason"], "validity_ended");
    assert_eq!(names(&change), ["order.end", "books.journal", "books.entry", "books.balance"]);
}

fn usage(input: u64, output: u64) -> RecordUsage {
    RecordUsage {
        order_id: 9,
        api_key_id: 3,
        request_id: "call-1".into(),
        tokens: Tokens { input, output },
        call: Call {
            ending: Ending::Success,
            endpoint: "/v1/chat/completions".into(),
            upstream_request_id: None,
            response_status: 200,
            latency_ms: 12,
            error_message: None,
            started_at: NOW,
            completed_at: NOW,
        },
    }
}

fn usage_state(found: Option<Found>, escrow: &str) -> UsageState {
    let books = books("0", escrow, ("0", "0"));
    UsageState {
        found,
        books,
        recorded: None,
        key_known: true,
        statistics: (3, 66_666_666),
        record: 1,
        earning: 2,
    }
}

fn used(call: &RecordUsage, state: &UsageState) -> Result<Change, Stop> {
    call.decide(&context(), &(), state, NOW)
}

#[test]
fn a_call_is_refused_in_this_order() {
    let none = UsageState { key_known: false, ..usage_state(None, "2") };
    let bad = RecordUsage { request_id: String::new(), ..usage(501, 0) };
    assert_eq!(code(used(&bad, &none)), "SUP_COM_4001");
    assert_eq!(code(used(&usage(501, 0), &none)), "SUP_ORD_4041");
    let keyless = UsageState { found: Some(pending()), ..none };
    assert_eq!(code(used(&usage(501, 0), &keyless)), "SUP_COM_4001");
    assert_eq!(code(used(&usage(501, 0), &usage_state(Some(pending()), "2"))), "SUP_ORD_4091");
    let mut ended = found();
    ended.order.expired_at = Some(NOW);
    assert_eq!(code(used(&usage(501, 0), &usage_state(Some(ended), "2"))), "SUP_ORD_4091");
    assert_eq!(code(used(&usage(501, 0), &usage_state(Some(found()), "2"))), "SUP_ORD_4022");
    assert_eq!(code(used(&usage(u64::MAX, 0), &usage_state(Some(found()), "2"))), "SUP_COM_4001");
    assert!(used(&usage(500, 0), &usage_state(Some(found()), "2")).is_ok());
}

#[test]
fn a_call_on_record_is_answered_as_it_was_whatever_became_of_the_order() {
    let first = used(&usage(100, 50), &usage_state(Some(found()), "2")).unwrap();
    let recorded = |over: fn(&mut Found)| {
        let mut found = found();
        over(&mut found);
        let mut state = usage_state(Some(found), "0");
        // As it is read back.
        let call = usage(100, 50);
        let split = ledger::split::Split::of_charge(cny("0.24"), Rate::percent(15)).unwrap();
        state.recorded = Some(usage::Recorded::of(&call, (1, Some(2)), split, NOW));
        state
    };
    let state = recorded(|found| found.order.status = OrderStatus::Refunded);
    let again = used(&usage(100, 50), &state).unwrap();
    assert_eq!((&again.data, again.writes.len(), again.events.len()), (&first.data, 0, 0));
    assert_eq!(data(&first)["total_cost_minor"], "0.24");
    for other in [usage(101, 50), usage(100, 51), RecordUsage { order_id: 10, ..usage(100, 50) }] {
        assert_eq!(code(used(&other, &state)), "SUP_COM_4092");
    }
    let mut failed = usage(100, 50);
    failed.call.ending = Ending::Failure;
    assert_eq!(code(used(&failed, &state)), "SUP_COM_4092");
}

#[test]
fn a_failed_call_is_recorded_and_costs_nothing() {
    let mut call = usage(400, 400);
    call.call.ending = Ending::Failure;
    let change = used(&call, &usage_state(Some(found()), "2")).unwrap();
    assert_eq!(names(&change), ["account.count", "usage.insert"]);
    assert_eq!((&change.before, &data(&change)["total_cost"]), (&change.after, &json!(0)));
}

#[test]
fn a_call_of_any_size_costs_nothing_where_it_failed_and_too_much_where_it_did_not() {
    let most = 1_000_000_000_000;
    for (input, output) in [(most, 0), (0, most), (most, most)] {
        let mut found = found();
        (found.order.price_input, found.order.price_output) = (price("1000000"), price("1000000"));
        let state = usage_state(Some(found), "2");
        let mut call = usage(input, output);
        assert_eq!(code(used(&call, &state)), "SUP_ORD_4022", "{input} {output}");
        call.call.ending = Ending::Failure;
        let change = used(&call, &state).unwrap();
        assert_eq!(data(&change)["total_cost_minor"], "0", "{input} {output}");
    }
}

#[test]
fn the_quota_that_a_call_uses_up_closes_the_order() {
    let change = used(&usage(100, 400), &usage_state(Some(found()), "2")).unwrap();
    assert_eq!(change.after, json!({ "status": "expired", "version": 2, "close_reason": "quota_used_up" }));
    assert_eq!(change.events[0].name, "supply.order.close.succeeded");
    assert_eq!(change.audited_as, Some("supply.order.close"));
    // 100 * 8 + 400 * 32 per million, in minor units.
    assert_eq!(data(&change)["total_cost_minor"], "1.36");
    let journals = change.writes.iter().filter(|write| write.name == "books.journal").count();
    assert_eq!(journals, 2, "the rest of the escrow goes back in the same commit");
}

#[test]
fn roundings_of_single_calls_are_not_charged_beyond_the_escrow() {
    let mut found = found();
    (found.order.used, found.order.remaining) = (tokens(499), tokens(1));
    let change = used(&usage(0, 1), &usage_state(Some(found.clone()), "0.003199")).unwrap();
    assert_eq!(data(&change)["total_cost_minor"], "0.003199", "0.0032 is what it would have been");
    // A quota of requests bounds no tokens: there it is no rounding.
    for quota in [&mut found.order.quota, &mut found.order.used, &mut found.order.remaining] {
        *quota = kernel::money::Quota::whole(7, QuotaUnit::Request).unwrap();
    }
    found.order.unit = QuotaUnit::Request;
    assert_eq!(code(used(&usage(0, 1), &usage_state(Some(found.clone()), "0.003199"))), "SUP_ORD_4022");
    assert!(used(&usage(0, 1), &usage_state(Some(found), "0.0032")).is_ok());
}
