//! What a refund takes back, and from whom.

use super::*;

fn earning(id: i64, amount: &str, available: &str) -> Earning {
    let held = available.is_empty();
    Earning {
        id,
        tenant_id: TENANT,
        user_id: PRINCIPAL,
        order_id: None,
        usage_record_id: None,
        status: if held { EarningStatus::Pending } else { EarningStatus::Available },
        version: 0,
        currency: Currency::CNY,
        amount: cny(amount),
        available: if held { cny("0") } else { cny(available) },
        frozen: cny("0"),
        withdrawn: cny("0"),
        reversed: cny("0"),
        earned_at: NOW,
        available_at: NOW.plus(DAY),
    }
}

fn refund(charge: Option<&str>, change: impl Fn(&mut RefundState)) -> Result<Change, Stop> {
    let mut found = found();
    (found.order.status, found.order.used, found.order.remaining) =
        (OrderStatus::Using, tokens(300), tokens(200));
    (found.order.platform_fee, found.order.supplier_earnings) = (cny("0.150001"), cny("0.85"));
    let mut state = RefundState {
        found: Some(found),
        books: books("0", "0.999999", ("0.5", "0.2")),
        held: vec![earning(1, "0.3", ""), earning(2, "0.2", "")],
        released: vec![earning(3, "0.2", "0.2")],
        refund: 40,
        earning: 50,
    };
    change(&mut state);
    Refund { order_id: 9, charge: charge.map(cny) }.decide(&context(), &(), &state, NOW)
}

#[test]
fn a_refund_of_all_takes_fee_and_part_exactly_and_what_is_not_there_is_owed() {
    let change = refund(None, |_| {}).unwrap();
    let data = data(&change);
    assert_eq!(
        (&data["refunded_amount_minor"], &data["returned_amount_minor"]),
        (&json!("1.000001"), &json!("0.999999"))
    );
    assert_eq!(change.metadata["supplier_part_minor"], "0.85", "0.850001 would be by the rate");
    assert_eq!(
        names(&change),
        [
            "account.shift",
            "package.shift",
            "order.end",
            "earning.insert",
            "earnings.reverse",
            "earning.reverse",
            "books.journal",
            "books.entry",
            "books.journal",
            "books.entry",
            "books.balance",
            "books.pending",
            "books.available",
            "books.balance"
        ]
    );
    let entries = change.writes.iter().filter(|write| write.name == "books.entry").count();
    assert_eq!(entries, 5 + 2, "pending, available, owed, fee, buyer; escrow, buyer");
}

#[test]
fn a_refund_is_of_an_open_order_and_within_its_charges() {
    assert_eq!(code(refund(Some("9"), |state| state.found = None)), "SUP_ORD_4041");
    for status in [OrderStatus::Pending, OrderStatus::Expired, OrderStatus::Refunded] {
        let decided = refund(Some("9"), |state| state.found.as_mut().unwrap().order.status = status);
        assert_eq!(code(decided), "SUP_ORD_4091", "{status:?}");
    }
    assert_eq!(code(refund(Some("1.000002"), |_| {})), "SUP_COM_4001");
    let negative = Refund { order_id: 9, charge: Some(Money::from_count(-1, Currency::CNY)) };
    let state = RefundState {
        found: Some(found()),
        books: books("0", "2", ("0", "0")),
        held: vec![],
        released: vec![],
        refund: 1,
        earning: 1,
    };
    assert_eq!(code(negative.decide(&context(), &(), &state, NOW)), "SUP_COM_4001");
    let dollar = Money::from_count(1, Currency::from_code("USD").unwrap());
    let foreign = Refund { order_id: 9, charge: Some(dollar) };
    assert_eq!(code(foreign.decide(&context(), &(), &state, NOW)), "SUP_COM_4003");
}

#[test]
fn a_refund_of_nothing_ends_the_order_and_leaves_earnings_alone() {
    let change = refund(Some("0"), |_| {}).unwrap();
    assert_eq!(data(&change)["refund_id"], json!(null));
    assert!(!names(&change).iter().any(|name| name.starts_with("earning")));
    assert_eq!(change.events.len(), 1);
}

#[test]
fn earnings_that_do_not_hold_what_the_balance_says_stop_the_refund() {
    assert_eq!(code(refund(None, |state| state.held.truncate(1))), "SUP_SET_5002");
}

#[test]
fn all_of_a_charge_may_be_the_platforms() {
    let policy = Policy { platform_fee_rate: Rate::ONE, ..Policy::default() };
    let context = fixtures::context_in(crate::House::for_tests(policy), Capacity::System);
    let state = usage_state(Some(found()), "2");
    let change = usage(1, 1).decide(&context, &(), &state, NOW).unwrap();
    assert!(!names(&change).contains(&"earning.insert"));
    assert_eq!(data(&change)["earning_id"], json!(null));
}
