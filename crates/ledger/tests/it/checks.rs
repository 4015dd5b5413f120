//! Each check of section 11.5 passes what is right and names what is not.

use kernel::money::{Currency, Money};
use ledger::check::{self, Rule, SettlementState, SettlementSums, Violation};
use ledger::ids::{Buyer, Settlement, Supplier, Topup};
use ledger::{Account, Balances, Direction, Entry, JournalKind, posting};

const SUPPLIER: Supplier = Supplier(7);

fn cny(minor: &str) -> Money {
    Money::parse_minor(minor, Currency::CNY).unwrap()
}

fn usd(minor: &str) -> Money {
    Money::parse_minor(minor, Currency::from_code("USD").unwrap()).unwrap()
}

fn rule(checked: Result<(), Violation>) -> Option<Rule> {
    checked.err().map(|violation| violation.rule)
}

fn leg(direction: Direction, amount: Money) -> Entry {
    Entry { account: Account::available(SUPPLIER), direction, amount }
}

#[test]
fn a_settlement_is_judged_from_four_sides() {
    let right = SettlementSums {
        settlement: Settlement(1),
        total: cny("5000"),
        fee: cny("50"),
        net: cny("4950"),
        items: cny("5000").into(),
        withdrawn: cny("5000").into(),
    };
    assert_eq!(check::settlement(&right), Ok(()));
    let split = SettlementSums { net: cny("4949"), ..right };
    assert_eq!(rule(check::settlement(&split)), Some(Rule::SettlementSplit));
    let items = SettlementSums { items: cny("4999.5").into(), ..right };
    assert_eq!(rule(check::settlement(&items)), Some(Rule::SettlementItems));
    let journal = SettlementSums { withdrawn: cny("4999.999999").into(), ..right };
    assert_eq!(rule(check::settlement(&journal)), Some(Rule::SettlementWithdraw));
    let foreign = SettlementSums { withdrawn: usd("5000").into(), ..right };
    assert_eq!(rule(check::settlement(&foreign)), Some(Rule::SettlementWithdraw));
}

#[test]
fn a_settlement_is_closed_once_and_as_its_state_says() {
    use JournalKind::{Cancel, PayoutFail, PayoutOk, PayoutReturn, Withdraw};
    use SettlementState::{Cancelled, Completed, Open, PayoutFailed};
    for (state, kinds, right) in [
        (Open, vec![Withdraw], true),
        (Open, vec![Withdraw, Cancel], false),
        (Cancelled, vec![Withdraw, Cancel], true),
        (Cancelled, vec![Withdraw, PayoutFail], false),
        (Cancelled, vec![Withdraw], false),
        (PayoutFailed, vec![Withdraw, PayoutFail], true),
        (Completed, vec![Withdraw, PayoutOk, PayoutReturn], true),
        (Completed, vec![Withdraw, PayoutOk, PayoutOk], false),
        (Completed, vec![Withdraw, PayoutOk, Cancel], false),
    ] {
        let checked = check::closing(Settlement(1), state, &kinds);
        assert_eq!(checked.is_ok(), right, "{state:?} {kinds:?}");
    }
}

#[test]
fn the_whole_ledger_names_every_violation() {
    let mut balances = Balances::default();
    balances.extend(posting::topup(Topup(1), Buyer(1), cny("5")).unwrap().legs());
    assert_eq!(check::whole(&balances), []);
    assert_eq!(check::cached(Account::prepaid(Buyer(1)), cny("5"), &balances), Ok(()));
    assert_eq!(rule(check::cached(Account::prepaid(Buyer(1)), cny("6"), &balances)), Some(Rule::Cache));
    assert_eq!(rule(check::cached(Account::prepaid(Buyer(2)), cny("6"), &balances)), Some(Rule::Cache));
    balances.apply(&leg(Direction::Debit, cny("3")));
    let rules: Vec<_> = check::whole(&balances).iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, [Rule::NotNegative, Rule::Whole]);
    balances.apply(&Entry { account: Account::CASH_CLEARING, ..leg(Direction::Credit, cny("9")) });
    let told = check::whole(&balances);
    assert_eq!(told.len(), 2, "the bank's balance may be negative: {told:?}");
    assert!(
        told[0].to_string().starts_with("supplier_available of supplier 7: not true that"),
        "{}",
        told[0]
    );
}
