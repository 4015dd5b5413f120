//! Every refusal, in its order of precedence: each case sets one thing right, and leaves everything that is asked
//! later wrong.

use std::time::Duration;

use kernel::money::Currency;
use ledger::draw::Lot;
use ledger::{Account, ids};
use secrecy::ExposeSecret;
use store::{Value, Write, values};

use super::state::{Portion, SmsCode, Standing};
use super::*;
use crate::action::Action;
use crate::books::Books;
use crate::caller::Capacity;
use crate::code::Invariant;
use crate::fixtures::{NOW, PRINCIPAL, TENANT, context, context_in, house};
use crate::rows::{Supplier, SupplierStatus};

const REF: &str = "reference-0123456789";

fn cny(minor: &str) -> Money {
    Money::parse_minor(minor, Currency::CNY).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn sms_code() -> SmsCode {
    let code_hash = house().keys.sms.unwrap().hash(1, REF).unwrap();
    let expires_at = NOW.plus(seconds(300));
    SmsCode {
        id: 3,
        code_ref: REF.into(),
        code_hash,
        key_version: 1,
        expires_at,
        attempts: 4,
        consumed_at: None,
    }
}

fn portion(id: i64, minor: &str, order: Option<i64>) -> Portion {
    let lot = Lot { earning: ids::Earning(id), available_at: NOW.minus(seconds(900)), amount: cny(minor) };
    Portion { lot, earned_at: NOW.minus(seconds(8 * 86_400)), order_id: order, usage_record_id: order }
}

/// 5442.38136 fen of three earnings.
fn good() -> State {
    let supplier = Supplier {
        id: 2,
        tenant_id: TENANT,
        user_id: PRINCIPAL,
        status: SupplierStatus::Active,
        open_risk_cases: 0,
        currency: Currency::CNY,
        phone_masked: "138****0000".into(),
    };
    let user = ids::Supplier(PRINCIPAL);
    let books =
        Books::holding(&[(Account::available(user), cny("5442.38136")), (Account::frozen(user), cny("0"))]);
    State {
        books,
        supplier: Some(supplier),
        standing: Standing { version: 6, open: None, processing_at: None },
        recent: vec![],
        code: Some(sms_code()),
        id: 301,
        portions: vec![
            portion(11, "2000.5", Some(5)),
            portion(12, "2000", None),
            portion(13, "1441.88136", Some(5)),
        ],
    }
}

fn asked(amount: &str) -> Withdraw {
    let code = house().keys.sms.unwrap().code(1, REF).unwrap();
    Withdraw { amount: amount.into(), method: "alipay".into(), account: "13800000000".into(), code }
}

fn prepared() -> Prepared {
    let sealed = Sealed {
        envelope: "v1.sealed".into(),
        cipher_algo: "AES-256-GCM",
        kms_key_alias: "local".into(),
        key_version: 1,
    };
    let masked = "138****0000".into();
    let payee = Payee { method: Method::Alipay, masked, sealed, fingerprint: "f".repeat(64) };
    Prepared { settlement_no: "STL20260327AAAAAAAAAAAA".into(), payee: Some(payee) }
}

fn decided(withdraw: &Withdraw, state: &State) -> Result<Change, Stop> {
    withdraw.decide(&context(Capacity::User), &prepared(), state, NOW)
}

fn refusal(decided: Result<Change, Stop>) -> Refusal {
    match decided {
        Err(Stop::Refused(refusal)) => *refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn named<'a>(change: &'a Change, name: &str) -> &'a Write {
    change.writes.iter().find(|write| write.name == name).unwrap()
}

#[test]
fn fifty_yuan_are_frozen_oldest_first_and_the_fraction_stays() {
    // Rows 5 of section 11.6 and the answer of section 25.
    let change = decided(&asked("50.00"), &good()).unwrap();
    let data: serde_json::Value = serde_json::from_str(&change.data).unwrap();
    let expected = json!({ "settlement_id": 301, "settlement_no": "STL20260327AAAAAAAAAAAA", "status": "pending",
        "total_amount": 50, "total_amount_minor": "5000", "fee_amount": 0.5,
        "fee_amount_minor": "50", "net_amount": 49.5, "net_amount_minor": "4950",
        "currency_code": "CNY", "payment_method": "alipay", "payment_account_masked": "138****0000",
        "version": 0, "created_at": "2026-03-27T02:03:04.000Z" });
    assert_eq!((change.status, &data), (201, &expected));
    let names: Vec<_> = change.writes.iter().map(|write| write.name).collect();
    assert_eq!(
        names,
        [
            "settlement.insert",
            "settlement.items",
            "settlement.last",
            "settlement.parts",
            "books.journal",
            "books.entry",
            "books.entry",
            "books.available",
            "books.balance",
            "settlement.code",
            "settlement.balanced"
        ]
    );
    let last = &named(&change, "settlement.last").values;
    assert_eq!((&last[1], &last[3]), (&13_i64.into(), &Value::Money(999_500_000)));
    let balances: Vec<_> = change
        .writes
        .iter()
        .filter(|write| ["books.available", "books.balance"].contains(&write.name))
        .map(|it| it.values[0].clone())
        .collect();
    assert_eq!(balances, [Value::Money(442_381_360), Value::Money(5_000_000_000)]);
}

#[test]
fn a_settlement_tells_its_days_and_counts_each_order_once() {
    let row = named(&decided(&asked("50"), &good()).unwrap(), "settlement.insert").values.clone();
    let day = Value::from("2026-03-19");
    assert_eq!(row[14..18], [day.clone(), day, 1_i64.into(), 2_i64.into()]);
}

#[test]
fn all_whole_fen_of_the_balance_may_go_and_not_one_more() {
    assert!(decided(&asked("54.42"), &good()).is_ok());
    let refused = refusal(decided(&asked("54.43"), &good()));
    assert_eq!((refused.code.as_str(), refused.rule), ("SUP_SET_4001", Some(Invariant::Set002)));
    let seen = json!({ "available_amount": "54.42", "asked": "54.43", "currency_code": "CNY" });
    assert_eq!(refused.details.plain(), seen);
    assert_eq!(refused.object.unwrap().id, "supplier:70");
}

/// Everything wrong but the fields.
fn all_wrong() -> State {
    let mut state = good();
    let supplier = state.supplier.as_mut().unwrap();
    (supplier.open_risk_cases, supplier.currency) = (1, Currency::from_code("USD").unwrap());
    state.standing = Standing { version: 6, open: Some(9), processing_at: Some(NOW.minus(seconds(899))) };
    state.recent = vec![(NOW, cny("20000000"))];
    state.books = Books::holding(&[
        (Account::available(ids::Supplier(PRINCIPAL)), cny("999.999999")),
        (Account::frozen(ids::Supplier(PRINCIPAL)), cny("0")),
    ]);
    state.code = None;
    state
}

#[test]
fn the_fields_are_asked_first_and_in_their_order() {
    let wrong = |amount: &str, method: &str, account: &str| Withdraw {
        amount: amount.into(),
        method: method.into(),
        account: account.into(),
        code: "000000".into(),
    };
    let off = context_in(House { policy: Policy::default(), ..house() }, Capacity::User);
    let switched_off = wrong("-1", "cash", "x").decide(&off, &prepared(), &all_wrong(), NOW);
    assert_eq!(refusal(switched_off).code, Code::SetOff);
    let mut silent = House { policy: house().policy, ..house() };
    silent.keys.sms = None;
    let silent = context_in(silent, Capacity::User);
    assert_eq!(refusal(asked("50").decide(&silent, &prepared(), &good(), NOW)).code, Code::SetOff);
    for (asked, code) in [
        (wrong("-1", "cash", "x"), Code::SetAmount),
        (wrong("9.99", "cash", "x"), Code::SetPayee),
        (wrong("9.99", "bank", "x"), Code::SetPayee),
        (wrong("9.99", "bank", "6222021234561234"), Code::SetMinimum),
        (wrong("50000.01", "wechat", "13800000000"), Code::SetSingle),
        (wrong("50000", "wechat", "13800000000"), Code::SetBlocked),
        (wrong("10", "wechat", "13800000000"), Code::SetBlocked),
    ] {
        assert_eq!(refusal(decided(&asked, &all_wrong())).code, code, "{asked:?}");
    }
}

#[test]
fn what_the_fields_refuse_loads_no_earnings() {
    let loaded = |withdraw: Withdraw| {
        let mut queries = withdraw.load(&context(Capacity::User), &prepared());
        queries.pop().unwrap().values
    };
    let wanted = |minor| values![TENANT, TENANT, state::MOST, Value::Money(cny(minor).count())];
    assert_eq!(loaded(asked("50")), wanted("5000"));
    for wrong in
        [asked("50000.01"), asked("1"), asked("x"), Withdraw { method: "cash".into(), ..asked("50") }]
    {
        assert_eq!(loaded(wrong), wanted("0"));
    }
}

#[test]
fn what_is_no_amount_above_zero_with_two_decimals_is_refused() {
    let long = "9".repeat(100_000);
    for text in [
        "",
        "0",
        "0.00",
        "-1",
        "+1",
        "−1",
        "-0",
        "1e2",
        "50.001",
        "1.000",
        "050",
        ".5",
        "5.",
        " 50",
        "1,00",
        "NaN",
        "Infinity",
        "null",
        "１.00",
        "9223372036854775808",
        "20000000000",
        &long,
    ] {
        let refused = refusal(decided(&asked(text), &good()));
        assert_eq!(refused.code, Code::SetAmount, "{text:.20}");
        assert!(refused.details.get("rule").is_some());
    }
}

/// A refusal, and what puts its cause right.
type Step = (Code, fn(&mut State));

#[test]
fn every_rule_comes_before_those_that_are_asked_later() {
    let steps: [Step; 7] = [
        (Code::SetBlocked, |state| state.supplier.as_mut().unwrap().open_risk_cases = 0),
        (Code::ComCurrency, |state| state.supplier.as_mut().unwrap().currency = Currency::CNY),
        (Code::SetOpen, |state| state.standing.open = None),
        (Code::SetCooling, |state| state.standing.processing_at = Some(NOW.minus(seconds(900)))),
        (Code::SetDaily, |state| state.recent.clear()),
        (Code::SetFunds, |state| state.books = good().books),
        (Code::SetCode, |state| state.code = good().code),
    ];
    let mut state = all_wrong();
    for (code, put_right) in steps {
        assert_eq!(refusal(decided(&asked("10"), &state)).code, code);
        put_right(&mut state);
    }
    assert!(decided(&asked("10"), &state).is_ok());
}

#[test]
fn a_supplier_that_is_not_there_or_not_active_is_blocked() {
    let mut state = good();
    state.supplier.as_mut().unwrap().status = SupplierStatus::Suspended;
    assert_eq!(refusal(decided(&asked("10"), &state)).code, Code::SetBlocked);
    state.supplier = None;
    assert_eq!(refusal(decided(&asked("10"), &state)).code, Code::SetBlocked);
}

#[test]
fn the_cool_down_tells_its_rest_in_whole_seconds_and_leaves_the_key_open() {
    let mut state = good();
    state.standing.processing_at = Some(NOW.minus(Duration::from_millis(899_500)));
    let refused = refusal(decided(&asked("10"), &state));
    assert_eq!((refused.code.as_str(), refused.code.is_passing()), ("SUP_SET_4291", true));
    assert_eq!(refused.details.plain(), json!({ "retry_after_seconds": 1 }));
}

#[test]
fn the_day_begins_at_midnight_in_shanghai_and_the_limit_is_inclusive() {
    let midnight = NOW.shanghai_midnight();
    let mut state = good();
    state.recent =
        vec![(midnight, cny("19999000")), (midnight.minus(Duration::from_micros(1)), cny("5000000"))];
    assert!(decided(&asked("10"), &state).is_ok());
    let refused = refusal(decided(&asked("10.01"), &state));
    assert_eq!((refused.code, refused.details.plain()), (Code::SetDaily, json!({ "left": "10" })));
}

#[test]
fn a_wrong_code_costs_a_try_and_a_dead_one_does_not() {
    let wrong = Withdraw { code: "24681".into(), ..asked("50") };
    let refused = refusal(decided(&wrong, &good()));
    assert_eq!((refused.code, refused.writes[0].name), (Code::SetCode, "settlement.try"));
    assert_eq!(refused.writes[0].values, store::values![3_i64, 4_i64]);
    let dead: [fn(&mut SmsCode); 4] = [
        |code| code.attempts = 5,
        |code| code.consumed_at = Some(NOW),
        |code| code.expires_at = NOW,
        |code| code.key_version = 9,
    ];
    for kill in dead {
        let mut state = good();
        kill(state.code.as_mut().unwrap());
        let refused = refusal(decided(&asked("50"), &state));
        assert_eq!((refused.code, refused.writes.len()), (Code::SetCode, 0));
    }
}

#[test]
fn earnings_that_do_not_cover_the_balance_are_our_fault() {
    let mut state = good();
    state.portions.truncate(1);
    let refused = refusal(decided(&asked("50"), &state));
    assert_eq!((refused.code.as_str(), refused.rule), ("SUP_SET_5002", Some(Invariant::Set003)));
}

#[test]
fn a_lost_race_is_an_open_withdrawal_and_a_sum_that_is_off_is_our_fault() {
    let outrun = |write| asked("50").outrun(write, &good()).map(|refusal| refusal.code);
    assert_eq!(outrun("settlement.insert"), Some(Code::SetOpen));
    assert_eq!(outrun("settlement.code"), Some(Code::SetCode));
    assert_eq!(outrun("settlement.balanced"), Some(Code::SetUnbalanced));
    assert_eq!(outrun("books.journal"), Some(Code::SetUnbalanced));
    assert_eq!(outrun("audit.insert"), None);
}

#[test]
fn neither_account_nor_code_is_in_what_is_written_or_printed() {
    let withdraw = asked("50");
    let code = withdraw.code.expose_secret().to_owned();
    let change = decided(&withdraw, &good()).unwrap();
    let shown = format!("{withdraw:?} {change:?} {:?}", prepared());
    assert!(!shown.contains(&code) && !shown.contains("13800000000"));
}
