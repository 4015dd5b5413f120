//! The figures of section 4 of the supply specification, the ends of the ranges, and what holds for any
//! amount.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Currency, Error, Malformed, Money, Price, Prices, Quota, QuotaUnit, Rate, Step, Tokens};

const CNY: Currency = Currency::CNY;

fn cny(minor: &str) -> Money {
    Money::parse_minor(minor, CNY).unwrap()
}

fn currency(code: &str) -> Currency {
    Currency::from_code(code).unwrap()
}

fn rate(text: &str) -> Rate {
    Rate::parse(text).unwrap()
}

fn prices(input: &str, output: &str) -> Prices {
    Prices { input: Price::parse(input).unwrap(), output: Price::parse(output).unwrap() }
}

#[test]
fn the_charge_of_section_4_is_split_to_the_last_digit() {
    let prices = prices("8", "32");
    let first = prices.charge(Tokens { input: 2_000_000, output: 1_500_000 }, CNY).unwrap();
    let second = prices.charge(Tokens { input: 1_234, output: 567 }, CNY).unwrap();
    assert_eq!((first.minor().as_str(), second.minor().as_str()), ("6400", "2.8016"));
    let charge = first.plus(second).unwrap();
    let fee = charge.share(rate("0.15"), Step::Micro).unwrap();
    assert_eq!(charge.count(), 6_402_801_600);
    assert_eq!(fee.count(), 960_420_240);
    assert_eq!(charge.minus(fee).unwrap().count(), 5_442_381_360);
    assert_eq!((charge.major().as_str(), charge.to_string().as_str()), ("64.028016", "64.028016 CNY"));
}

#[test]
fn the_withdrawal_fee_is_whole_minor_units_half_up() {
    for (total, fee, net) in
        [("3333", "33", "3300"), ("50", "1", "49"), ("49", "0", "49"), ("5000", "50", "4950")]
    {
        let taken = cny(total).share(rate("0.01"), Step::Minor).unwrap();
        assert_eq!(taken.minor(), fee, "of {total}");
        assert_eq!(cny(total).minus(taken).unwrap().minor(), net, "of {total}");
    }
}

#[test]
fn a_charge_is_rounded_once_half_up() {
    // 1 token at 0.005 per million is 5 * 10^-9 major, half of 10^-6 minor.
    let one = Tokens { input: 1, output: 0 };
    assert_eq!(prices("0.005", "0").charge(one, CNY).unwrap().count(), 1);
    assert_eq!(prices("0.004999", "0").charge(one, CNY).unwrap().count(), 0);
    // Two halves of two directions are one whole, not two.
    assert_eq!(prices("0.005", "0.005").charge(Tokens { input: 1, output: 1 }, CNY).unwrap().count(), 1);
    assert_eq!(prices("8", "32").charge(Tokens { input: 0, output: 0 }, CNY).unwrap(), Money::zero(CNY));
}

#[test]
fn the_escrow_is_the_worst_case_in_whole_minor_units() {
    let quota = |text| Quota::parse(text, QuotaUnit::Token).unwrap();
    let escrow = |text| prices("8", "32").escrow(quota(text), CNY).unwrap().minor();
    assert_eq!(escrow("5000000"), "16000");
    assert_eq!(escrow("1"), "1");
    assert_eq!(escrow("312"), "1");
    assert_eq!(escrow("313"), "2");
    assert_eq!(prices("32", "8").unit().text(), "32");
    let most = prices("0", "1000000").escrow(quota("1000000000000"), CNY);
    assert_eq!(most.map(Money::major), Err(Error::Range { what: "amount" }));
}

#[test]
fn the_protected_price_is_rounded_up_and_zero_is_below_it() {
    let price = |text| Price::parse(text).unwrap();
    let ratio = rate("0.80");
    for (official, floor) in [("10", "8"), ("0.000001", "0.000001"), ("0.000006", "0.000005"), ("0", "0")] {
        assert_eq!(price(official).protected(ratio).text(), floor, "{official}");
    }
    let floor = price("8");
    assert!(
        !floor.is_below(floor) && price("7.999999").is_below(floor) && !price("8.000001").is_below(floor)
    );
    assert!(price("0").is_below(price("0")));
}

#[test]
fn prices_and_quotas_take_their_limit_and_not_a_step_more() {
    let quota = |count| Quota::from_count(count, QuotaUnit::Credit).map(Quota::text);
    assert_eq!(quota(1_000_000_000_000_000_000), Ok("1000000000000".to_owned()));
    assert_eq!(quota(1_000_000_000_000_000_001), Err(Error::Range { what: "quota" }));
    let price = |count| Price::from_count(count).map(Price::text);
    assert_eq!(price(1_000_000_000_000), Ok("1000000".to_owned()));
    assert_eq!(price(1_000_000_000_001), Err(Error::Range { what: "price" }));
    assert_eq!(price(-1), Err(Error::Range { what: "price" }));
    for (text, rule) in [("1000000.000001", "too_large"), ("0.0000001", "decimals"), ("-1", "sign")] {
        assert_eq!(Price::parse(text).map_err(|refused| refused.rule()), Err(rule), "{text}");
    }
}

#[test]
fn amounts_are_read_as_text_and_never_as_doubles() {
    for (text, count) in [
        ("0.29", 29_000_000),
        ("19.99", 1_999_000_000),
        ("0", 0),
        ("50.00", 5_000_000_000),
        ("10000000000", 1_000_000_000_000_000_000),
        ("10000000000.00", 1_000_000_000_000_000_000),
    ] {
        assert_eq!(Money::parse_major(text, CNY, 2).map(Money::count), Ok(count), "{text}");
    }
    for (text, rule) in [
        ("1.005", "decimals"),
        ("1.000", "decimals"),
        ("1e2", "exponent"),
        ("-1", "sign"),
        ("1,00", "character"),
        ("10000000000.01", "too_large"),
        ("9223372036854775808", "too_large"),
    ] {
        assert_eq!(Money::parse_major(text, CNY, 2).map_err(|refused| refused.rule()), Err(rule), "{text}");
    }
    assert_eq!(Money::parse_major("0.00000001", CNY, 8).map(Money::count), Ok(1));
    assert_eq!(Money::parse_major("0.000000001", CNY, 99), Err(Malformed::Decimals { allowed: 8 }));
}

#[test]
fn currencies_with_other_exponents_keep_theirs() {
    for (code, major, minor) in [
        ("JPY", "500", "500"),
        ("KWD", "1.5", "1500"),
        ("USD", "0.05", "5"),
        ("CLF", "0.01", "100"),
        ("CNY", "12.34", "1234"),
    ] {
        let read = Money::parse_major(major, currency(code), currency(code).exponent()).unwrap();
        assert_eq!((read.minor().as_str(), read.major().as_str()), (minor, major), "{code}");
    }
    assert!(Money::parse_major("0.5", currency("JPY"), currency("JPY").exponent()).is_err());
    // 10^10 dinar are 10^19 steps: more than an i64 holds, so the limit is lower there.
    let limit = "9223372036.854775807";
    let read = |text| Money::parse_major(text, currency("KWD"), 9);
    assert_eq!(read(limit).map(Money::count), Ok(i64::MAX));
    assert_eq!(read("9223372036.854775808"), Err(Malformed::TooLarge { limit: limit.to_owned() }));
}

#[test]
fn currencies_do_not_mix_and_are_not_ordered_by_chance() {
    let (yuan, dollar) = (cny("1"), Money::parse_minor("1", currency("USD")).unwrap());
    let refused = Error::Currencies { left: CNY, right: currency("USD") };
    assert_eq!(yuan.plus(dollar), Err(refused.clone()));
    assert_eq!(yuan.minus(dollar), Err(refused.clone()));
    assert_eq!(yuan.exceeds(dollar), Err(refused.clone()));
    assert_eq!(Money::sum(CNY, [yuan, dollar]), Err(refused));
    assert_ne!(yuan, dollar);
}

#[test]
fn the_ends_of_the_range_refuse_instead_of_wrapping() {
    let (low, high) = (Money::from_count(i64::MIN, CNY), Money::from_count(i64::MAX, CNY));
    let step = Money::from_count(1, CNY);
    let out = Err(Error::Range { what: "amount" });
    assert_eq!(high.plus(step), out);
    assert_eq!(low.minus(step), out);
    assert_eq!(Money::zero(CNY).minus(low), out);
    assert_eq!(high.round_half_up(Step::Minor), out);
    assert_eq!(high.round_half_up(Step::Micro), Ok(high));
    assert_eq!(low.floor_to_minor(), low);
    // Only the result of a sum must fit, not what it passes through.
    assert_eq!(Money::sum(CNY, [high, high, low, low, step]).map(Money::count), Ok(-1));
    assert_eq!(Money::sum(CNY, [high, step]), out);
    assert_eq!(
        (low.major().as_str(), high.minor().as_str()),
        ("-92233720368.54775808", "9223372036854.775807")
    );
    let huge = prices("1000000", "1000000").charge(Tokens { input: u64::MAX, output: u64::MAX }, CNY);
    assert_eq!(huge, out);
}

#[test]
fn what_may_be_withdrawn_is_whole() {
    assert_eq!(cny("442.38136").floor_to_minor().minor(), "442");
    assert_eq!(Money::from_count(-1, CNY).floor_to_minor().minor(), "-1");
    assert!(cny("442").is_whole_minor() && !cny("442.38136").is_whole_minor());
    assert_eq!(cny("5").least(cny("4")), Ok(cny("4")));
    assert_eq!(cny("0").sign(), Ordering::Equal);
}

#[test]
fn a_thousand_tiny_charges_add_up_to_what_is_shown() {
    let call = prices("0.335", "0").charge(Tokens { input: 1_000, output: 0 }, CNY).unwrap();
    let sum = Money::sum(CNY, std::iter::repeat_n(call, 1_000)).unwrap();
    assert_eq!((call.minor().as_str(), sum.minor().as_str()), ("0.0335", "33.5"));
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(count in 0..=1_000_000_000_000_000_000_i64, code in "CNY|JPY|KWD|CLF") {
        let money = Money::from_count(count, currency(&code));
        prop_assert_eq!(Money::parse_minor(&money.minor(), money.currency()), Ok(money));
        match Money::parse_major(&money.major(), money.currency(), 10) {
            Ok(read) => prop_assert_eq!(read, money),
            // Yen: 10^10 major units are only 10^16 steps.
            Err(refused) => prop_assert_eq!((refused.rule(), code.as_str()), ("too_large", "JPY")),
        }
    }

    #[test]
    fn a_negative_amount_prints_as_its_opposite_with_a_sign(count in i64::MIN + 1..0) {
        let (below, above) = (Money::from_count(count, CNY), Money::from_count(-count, CNY));
        prop_assert_eq!(below.major(), format!("-{}", above.major()));
    }

    #[test]
    fn a_share_and_its_rest_are_the_whole(count in 0..=i64::MAX, parts in 0..=1_000_000_000_i64) {
        let rate = rate(&format!("{}.{:09}", parts / 1_000_000_000, parts % 1_000_000_000));
        let whole = Money::from_count(count, CNY);
        let share = whole.share(rate, Step::Micro).unwrap();
        let rest = whole.minus(share).unwrap();
        prop_assert!(share.count() >= 0 && rest.count() >= 0);
        prop_assert_eq!(share.plus(rest), Ok(whole));
        // Within half a step of the exact value.
        let off = i128::from(share.count()) * 1_000_000_000 - i128::from(count) * i128::from(parts);
        prop_assert!((-500_000_000 + 1..=500_000_000).contains(&off));
    }

    #[test]
    fn an_escrow_covers_any_single_call_of_its_quota(
        tokens in 0..1_000_000_000_u64, input in 0..1_000_000_000_i64, output in 0..1_000_000_000_i64,
        part in 0..=100_u64,
    ) {
        let price = |count| Price::from_count(count).unwrap();
        let prices = Prices { input: price(input), output: price(output) };
        let quota = Quota::whole(tokens, QuotaUnit::Token).unwrap();
        let escrow = prices.escrow(quota, CNY).unwrap();
        let used = Tokens { input: tokens * part / 100, output: tokens - tokens * part / 100 };
        prop_assert!(escrow.is_whole_minor());
        prop_assert!(!prices.charge(used, CNY).unwrap().exceeds(escrow).unwrap());
    }

    #[test]
    fn a_protected_price_is_never_under_its_ratio(count in 0..=1_000_000_000_000_i64) {
        let official = Price::from_count(count).unwrap();
        let floor = i128::from(official.protected(rate("0.80")).count());
        prop_assert!(floor * 5 >= i128::from(count) * 4 && (floor - 1) * 5 < i128::from(count) * 4);
    }

    #[test]
    fn no_text_is_read_as_something_else(text in "[0-9.eE+ ,-]{0,24}") {
        if let Ok(money) = Money::parse_major(&text, CNY, 8) {
            let bare = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            prop_assert_eq!(money.major(), bare);
        }
    }
}
