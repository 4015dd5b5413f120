//! Section 11.6 of the supply specification, row by row, every column.

use kernel::money::{Currency, Money, Price, Prices, Quota, QuotaUnit, Rate, Tokens};
use ledger::ids::{Buyer, Earning, Order, Refund, Settlement, Supplier, Topup, Usage};
use ledger::{Account, Balances, Journal, Reversal, Split, check, posting};

const CNY: Currency = Currency::CNY;
const A: Supplier = Supplier(11);
const B: Buyer = Buyer(22);
const ORDER: Order = Order(33);
const COLUMNS: [Account; 9] = [
    Account::CASH_CLEARING,
    Account::prepaid(B),
    Account::escrow(ORDER),
    Account::pending(A),
    Account::available(A),
    Account::frozen(A),
    Account::PLATFORM_FEE_REVENUE,
    Account::WITHDRAW_FEE_REVENUE,
    Account::receivable(A),
];

/// A row of the table: which journals, then cash, prepaid, escrow, pending, available, frozen, fee revenue,
/// withdraw fee revenue, receivable, in minor units. What the specification leaves blank did not change.
type Row = (Vec<Journal>, [&'static str; 9]);

fn cny(minor: &str) -> Money {
    Money::parse_minor(minor, CNY).unwrap()
}

fn rate(text: &str) -> Rate {
    Rate::parse(text).unwrap()
}

fn prices() -> Prices {
    Prices { input: Price::parse("8").unwrap(), output: Price::parse("32").unwrap() }
}

/// The two calls of section 4.
fn calls() -> Vec<Journal> {
    let calls = [Tokens { input: 2_000_000, output: 1_500_000 }, Tokens { input: 1_234, output: 567 }];
    let journal = |(id, tokens)| {
        let charge = prices().charge(tokens, CNY).unwrap();
        let split = Split::of_charge(charge, rate("0.15")).unwrap();
        posting::usage(Usage(id), ORDER, A, split).unwrap().unwrap()
    };
    (1..).zip(calls).map(journal).collect()
}

fn bought() -> Vec<Row> {
    let top = posting::topup(Topup(1), B, cny("20000")).unwrap();
    let quota = Quota::parse("5000000", QuotaUnit::Token).unwrap();
    let paid = posting::order_pay(ORDER, B, prices().escrow(quota, CNY).unwrap()).unwrap();
    let releases = calls().into_iter().zip(1..).map(|(call, id)| {
        let part = call.legs().iter().find(|leg| leg.account == Account::pending(A)).unwrap().amount;
        posting::release(Earning(id), A, part).unwrap().unwrap()
    });
    vec![
        (vec![top], ["20000", "20000", "0", "0", "0", "0", "0", "0", "0"]),
        (vec![paid], ["20000", "4000", "16000", "0", "0", "0", "0", "0", "0"]),
        (calls(), ["20000", "4000", "9597.1984", "5442.38136", "0", "0", "960.42024", "0", "0"]),
        (releases.collect(), ["20000", "4000", "9597.1984", "0", "5442.38136", "0", "960.42024", "0", "0"]),
    ]
}

fn withdrawn() -> Vec<Row> {
    let total = cny("5000");
    let withdraw = |id| posting::withdraw(Settlement(id), A, total).unwrap();
    let cancel = posting::cancel(Settlement(1), A, total).unwrap();
    let failed = posting::payout_fail(Settlement(2), A, total).unwrap();
    let split = Split::of_withdrawal(total, rate("0.01")).unwrap();
    assert_eq!(split.rest(), cny("4950"));
    let done = posting::payout_ok(Settlement(3), A, split).unwrap();
    let back = ["20000", "4000", "9597.1984", "0", "5442.38136", "0", "960.42024", "0", "0"];
    vec![
        (vec![withdraw(1)], ["20000", "4000", "9597.1984", "0", "442.38136", "5000", "960.42024", "0", "0"]),
        (vec![cancel], back),
        (vec![withdraw(2), failed], back),
        (
            vec![withdraw(3), done],
            ["15050", "4000", "9597.1984", "0", "442.38136", "0", "960.42024", "50", "0"],
        ),
    ]
}

fn ended() -> Vec<Row> {
    let charge = Split::of_charge(cny("1000"), rate("0.15")).unwrap();
    let reversal = Reversal::of(charge, cny("0"), cny("442.38136")).unwrap();
    let refund = posting::refund(Refund(1), A, B, reversal).unwrap().unwrap();
    let close = posting::order_close(ORDER, B, cny("9597.1984")).unwrap().unwrap();
    vec![
        (vec![refund], ["15050", "5000", "9597.1984", "0", "0", "0", "810.42024", "50", "407.61864"]),
        (vec![close], ["15050", "14597.1984", "0", "0", "0", "0", "810.42024", "50", "407.61864"]),
    ]
}

#[test]
fn all_ten_rows_hold_in_every_column() {
    let rows: Vec<Row> = [bought(), withdrawn(), ended()].concat();
    assert_eq!(rows.len(), 10);
    let mut balances = Balances::default();
    for (number, (journals, expected)) in (1..).zip(rows) {
        for journal in &journals {
            balances.extend(journal.legs());
        }
        let found = COLUMNS.map(|account| balances.balance(account, CNY).unwrap().minor());
        assert_eq!(found, expected, "row {number}");
        assert_eq!(check::whole(&balances), [], "row {number}");
    }
    let sum =
        |accounts: [Account; 2]| accounts.map(|account| balances.count(account, CNY)).iter().sum::<i128>();
    let assets = sum([Account::CASH_CLEARING, Account::receivable(A)]);
    assert_eq!(assets, 15_457_618_640);
    let owed = balances.count(Account::prepaid(B), CNY);
    assert_eq!(assets, owed + sum([Account::PLATFORM_FEE_REVENUE, Account::WITHDRAW_FEE_REVENUE]));
}

#[test]
fn after_the_payout_whole_minor_units_are_left_to_withdraw() {
    let left = cny("442.38136").floor_to_minor();
    assert_eq!(left, cny("442"));
    assert!(Money::parse_major("4.43", CNY, 2).unwrap().exceeds(left).unwrap());
    assert!(!Money::parse_major("4.42", CNY, 2).unwrap().exceeds(left).unwrap());
}
