//! Amounts for people. Machines read minor units; this is the only place where an exponent appears.

/// Currencies whose smallest unit is the unit itself (ISO 4217; Stripe's zero-decimal list agrees).
const NO_DECIMALS: [&str; 16] = [
    "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof",
    "xpf",
];
/// Currencies with three decimals.
const THREE_DECIMALS: [&str; 7] = ["bhd", "iqd", "jod", "kwd", "lyd", "omr", "tnd"];
/// Units of account with four decimals.
const FOUR_DECIMALS: [&str; 2] = ["clf", "uyw"];
/// Codes in use with two decimals.
const TWO_DECIMALS: &str = " aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf cny cop crc cup cve czk dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl htg huf idr ils inr irr isk jmd kes kgs khr kpw kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mru mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sdg sek sgd shp sle sos srd ssp stn svc syp szl thb tjs tmt top try ttd twd tzs uah usd uyu uzs ves wst xcd yer zar zmw zwg ";

/// `20.00 EUR`, `500 JPY`, `1.500 KWD`; a code that is not known prints its minor units as such:
/// `1500 minor units XXX`. `currency` may be in either case.
#[must_use]
pub fn display(minor: i64, currency: &str) -> String {
    let code = currency.to_ascii_lowercase();
    let shown = code.to_ascii_uppercase();
    let Some(decimals) = decimals(&code) else {
        return format!("{minor} minor units {shown}");
    };
    let sign = if minor < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", minor.unsigned_abs(), width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let point = if decimals == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{fraction} {shown}")
}

fn decimals(code: &str) -> Option<usize> {
    if NO_DECIMALS.contains(&code) {
        Some(0)
    } else if THREE_DECIMALS.contains(&code) {
        Some(3)
    } else if FOUR_DECIMALS.contains(&code) {
        Some(4)
    } else if code.len() == 3 && TWO_DECIMALS.contains(&format!(" {code} ")) {
        Some(2)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exponent_is_shown_as_its_currency_has_it() {
        let table = [
            (500, "jpy", "500 JPY"),
            (1500, "kwd", "1.500 KWD"),
            (5, "usd", "0.05 USD"),
            (100, "clf", "0.0100 CLF"),
            (2000, "EUR", "20.00 EUR"),
            (-2000, "usd", "-20.00 USD"),
            (0, "usd", "0.00 USD"),
            (1500, "xxx", "1500 minor units XXX"),
            (1500, " eu", "1500 minor units  EU"),
            (i64::MIN, "usd", "-92233720368547758.08 USD"),
            (i64::MAX, "jpy", "9223372036854775807 JPY"),
        ];
        for (minor, currency, shown) in table {
            assert_eq!(display(minor, currency), shown);
        }
    }
}
