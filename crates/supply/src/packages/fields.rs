//! The fields of a draft (sections 5.3, 8.2), judged before anything is looked up. Numbers come as the texts that
//! stood in the JSON, so that none of them ever was a double. Not here: whether account and model fit.

use kernel::Time;
use kernel::money::{Malformed, Price, Prices, Quota, QuotaUnit};

use crate::action::Refusal;
use crate::code::Code;
use crate::exact::Details;
use crate::rows::{Account, Package, PackageStatus};

/// Longest name of a model, in characters.
const MODEL_MOST: usize = 100;

/// What was sent: the token of a JSON number or the content of a JSON string; `None` where nothing was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Texts<'a> {
    /// The mounted account.
    pub supply_account_id: Option<&'a str>,
    /// 1 to 100 characters.
    pub model: Option<&'a str>,
    /// Above 0.
    pub total_quota: Option<&'a str>,
    /// `token` where nothing stands.
    pub quota_unit: Option<&'a str>,
    /// 0 to 1,000,000, at most 6 decimals.
    pub price_per_1m_input: Option<&'a str>,
    /// As the other.
    pub price_per_1m_output: Option<&'a str>,
    /// 1 to 365.
    pub valid_days: Option<&'a str>,
    /// 1 to 1,000; 10 where nothing stands.
    pub max_concurrent: Option<&'a str>,
    /// 1 to 100,000; 60 where nothing stands.
    pub rate_limit_rpm: Option<&'a str>,
    /// Above 0, at most the total; 1 where nothing stands.
    pub min_purchase: Option<&'a str>,
}

/// Fields that keep their rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    pub(super) account_id: i64,
    pub(super) model: String,
    pub(super) unit: QuotaUnit,
    pub(super) total: Quota,
    pub(super) min_purchase: Quota,
    pub(super) prices: Prices,
    pub(super) valid_days: i64,
    pub(super) max_concurrent: i64,
    pub(super) rate_limit_rpm: i64,
}

impl Fields {
    /// Reads them.
    ///
    /// # Errors
    /// `SUP_COM_4001` with every broken field and its rule; where only prices are malformed, `SUP_PKG_4004`
    /// with the first of them.
    pub fn parse(texts: &Texts<'_>) -> Result<Self, Refusal> {
        let mut broken = Broken::default();
        let account_id = broken.whole("supply_account_id", texts.supply_account_id, None, i64::MAX);
        let model = broken.given("model", texts.model).and_then(|text| broken.model(text));
        let unit = match texts.quota_unit.map_or(Ok(QuotaUnit::Token), QuotaUnit::parse) {
            Ok(unit) => Some(unit),
            Err(_) => broken.rule("quota_unit", "unit"),
        };
        let quota_unit = unit.unwrap_or(QuotaUnit::Credit);
        let total = broken.given("total_quota", texts.total_quota);
        let total = total.and_then(|text| broken.quota("total_quota", text, quota_unit));
        let min_purchase = broken.quota("min_purchase", texts.min_purchase.unwrap_or("1"), quota_unit);
        if let (Some(least), Some(total)) = (min_purchase, total)
            && least.count() > total.count()
        {
            broken.rule::<()>("min_purchase", "above_total_quota");
        }
        let valid_days = broken.whole("valid_days", texts.valid_days, None, 365);
        let max_concurrent = broken.whole("max_concurrent", texts.max_concurrent, Some(10), 1000);
        let rate_limit_rpm = broken.whole("rate_limit_rpm", texts.rate_limit_rpm, Some(60), 100_000);
        let input = broken.given("price_per_1m_input", texts.price_per_1m_input);
        let output = broken.given("price_per_1m_output", texts.price_per_1m_output);
        let read = (account_id, model, unit, total, min_purchase, valid_days, max_concurrent, rate_limit_rpm);
        let (
            Some(account_id),
            Some(model),
            Some(unit),
            Some(total),
            Some(min_purchase),
            Some(valid_days),
            Some(max_concurrent),
            Some(rate_limit_rpm),
        ) = read
        else {
            return Err(broken.refusal());
        };
        let (Some(input), Some(output), true) = (input, output, broken.0.is_empty()) else {
            return Err(broken.refusal());
        };
        let prices = Prices {
            input: price("price_per_1m_input", input)?,
            output: price("price_per_1m_output", output)?,
        };
        Ok(Self {
            account_id,
            model,
            unit,
            total,
            min_purchase,
            prices,
            valid_days,
            max_concurrent,
            rate_limit_rpm,
        })
    }

    /// The draft that they make, of this account.
    pub(super) fn draft(
        &self,
        id: i64,
        account: &Account,
        at: Time,
    ) -> Result<Package, kernel::money::Error> {
        let none = Quota::from_count(0, self.unit)?;
        Ok(Package {
            id,
            tenant_id: account.tenant_id,
            supply_account_id: account.id,
            user_id: account.user_id,
            platform: account.platform.clone(),
            model: self.model.clone(),
            status: PackageStatus::Draft,
            version: 0,
            unit: self.unit,
            currency: account.currency,
            total: self.total,
            available: self.total,
            reserved: none,
            sold: none,
            min_purchase: self.min_purchase,
            price_input: self.prices.input,
            price_output: self.prices.output,
            valid_days: self.valid_days,
            start_at: None,
            end_at: None,
            close_reason: None,
            platform_frozen: false,
            max_concurrent: self.max_concurrent,
            rate_limit_rpm: self.rate_limit_rpm,
            created_at: at,
            updated_at: at,
        })
    }
}

/// A price, or `SUP_PKG_4004`.
fn price(field: &'static str, text: &str) -> Result<Price, Refusal> {
    let refused =
        |broken: Malformed| Refusal::of(Code::PkgPrice).with("field", field).with("rule", broken.rule());
    Price::parse(text).map_err(refused)
}

/// `SUP_COM_4001` with one broken field.
pub(crate) fn field(name: impl Into<String>, rule: &'static str) -> Refusal {
    Broken(vec![(name.into(), rule)]).refusal()
}

/// Which fields break which rule.
#[derive(Default)]
struct Broken(Vec<(String, &'static str)>);

impl Broken {
    fn rule<T>(&mut self, field: &'static str, rule: &'static str) -> Option<T> {
        self.0.push((field.to_owned(), rule));
        None
    }

    fn given<'a>(&mut self, field: &'static str, text: Option<&'a str>) -> Option<&'a str> {
        if text.is_none() { self.rule(field, "required") } else { text }
    }

    /// A whole number from 1 to `most`.
    fn whole(
        &mut self,
        field: &'static str,
        text: Option<&str>,
        default: Option<i64>,
        most: i64,
    ) -> Option<i64> {
        let text = match (text, default) {
            (None, Some(default)) => return Some(default),
            (text, _) => self.given(field, text)?,
        };
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !plain || (text.len() > 1 && text.starts_with('0')) {
            return self.rule(field, "integer");
        }
        match text.parse() {
            Ok(number) if (1..=most).contains(&number) => Some(number),
            _ => self.rule(field, "range"),
        }
    }

    fn quota(&mut self, field: &'static str, text: &str, unit: QuotaUnit) -> Option<Quota> {
        match Quota::parse(text, unit) {
            Ok(quota) if quota.is_zero() => self.rule(field, "positive"),
            Ok(quota) => Some(quota),
            Err(malformed) => self.rule(field, malformed.rule()),
        }
    }

    fn model(&mut self, text: &str) -> Option<String> {
        if text.is_empty() || text.chars().count() > MODEL_MOST {
            return self.rule("model", "length");
        }
        if text.chars().any(char::is_control) || text.trim() != text {
            return self.rule("model", "characters");
        }
        Some(text.to_owned())
    }

    fn refusal(self) -> Refusal {
        let fields = self.0.into_iter();
        let fields = fields.map(|(field, rule)| Details::none().with("field", field).with("rule", rule));
        Refusal::of(Code::ComField).with("fields", fields.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Texts<'static> = Texts {
        supply_account_id: Some("5"),
        model: Some("gpt-x"),
        total_quota: Some("5000000"),
        quota_unit: None,
        price_per_1m_input: Some("8.5"),
        price_per_1m_output: Some("32"),
        valid_days: Some("30"),
        max_concurrent: None,
        rate_limit_rpm: None,
        min_purchase: None,
    };

    /// Code, field and rule of the first broken field.
    fn broken(texts: Texts<'_>) -> (&'static str, String) {
        let refusal = Fields::parse(&texts).unwrap_err();
        let plain = refusal.details.plain();
        let field = plain["fields"].get(0).unwrap_or(&plain);
        let said = format!("{} {}", field["field"].as_str().unwrap(), field["rule"].as_str().unwrap());
        (refusal.code.as_str(), said)
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let fields = Fields::parse(&GOOD).unwrap();
        assert_eq!((fields.unit, fields.min_purchase.text().as_str()), (QuotaUnit::Token, "1"));
        assert_eq!((fields.max_concurrent, fields.rate_limit_rpm), (10, 60));
        assert_eq!(fields.prices.input.text(), "8.5");
    }

    #[test]
    fn each_rule_of_a_field_is_named() {
        let long = "m".repeat(101);
        let table: &[(Texts<'_>, &str)] = &[
            (Texts { supply_account_id: None, ..GOOD }, "supply_account_id required"),
            (Texts { supply_account_id: Some("0"), ..GOOD }, "supply_account_id range"),
            (Texts { supply_account_id: Some("5.0"), ..GOOD }, "supply_account_id integer"),
            (Texts { supply_account_id: Some("05"), ..GOOD }, "supply_account_id integer"),
            (Texts { supply_account_id: Some("9223372036854775808"), ..GOOD }, "supply_account_id range"),
            (Texts { model: None, ..GOOD }, "model required"),
            (Texts { model: Some(""), ..GOOD }, "model length"),
            (Texts { model: Some(&long), ..GOOD }, "model length"),
            (Texts { model: Some("gpt\u{0}x"), ..GOOD }, "model characters"),
            (Texts { model: Some(" gpt-x"), ..GOOD }, "model characters"),
            (Texts { quota_unit: Some("Token"), ..GOOD }, "quota_unit unit"),
            (Texts { total_quota: None, ..GOOD }, "total_quota required"),
            (Texts { total_quota: Some("0"), ..GOOD }, "total_quota positive"),
            (Texts { total_quota: Some("-1"), ..GOOD }, "total_quota sign"),
            (Texts { total_quota: Some("1e6"), ..GOOD }, "total_quota exponent"),
            (Texts { total_quota: Some("1.5"), ..GOOD }, "total_quota decimals"),
            (Texts { total_quota: Some("1000000000001"), ..GOOD }, "total_quota too_large"),
            (Texts { min_purchase: Some("0"), ..GOOD }, "min_purchase positive"),
            (Texts { min_purchase: Some("5000001"), ..GOOD }, "min_purchase above_total_quota"),
            (
                Texts { total_quota: Some("0.5"), quota_unit: Some("credit"), ..GOOD },
                "min_purchase above_total_quota",
            ),
            (Texts { valid_days: Some("366"), ..GOOD }, "valid_days range"),
            (Texts { valid_days: Some("0"), ..GOOD }, "valid_days range"),
            (Texts { max_concurrent: Some("1001"), ..GOOD }, "max_concurrent range"),
            (Texts { rate_limit_rpm: Some("100001"), ..GOOD }, "rate_limit_rpm range"),
            (Texts { price_per_1m_input: None, ..GOOD }, "price_per_1m_input required"),
        ];
        for (texts, wanted) in table {
            assert_eq!(broken(*texts), ("SUP_COM_4001", (*wanted).to_owned()));
        }
    }

    #[test]
    fn a_malformed_price_has_a_code_of_its_own_and_comes_after_the_other_fields() {
        for (text, rule) in [
            ("-1", "sign"),
            ("8.0000001", "decimals"),
            ("1000000.000001", "too_large"),
            ("1e2", "exponent"),
            ("１", "character"),
        ] {
            let texts = Texts { price_per_1m_output: Some(text), ..GOOD };
            assert_eq!(broken(texts), ("SUP_PKG_4004", format!("price_per_1m_output {rule}")), "{text}");
            assert_eq!(broken(Texts { valid_days: None, ..texts }).0, "SUP_COM_4001");
        }
    }

    #[test]
    fn every_broken_field_is_told_at_once() {
        let refusal = Fields::parse(&Texts::default()).unwrap_err();
        let plain = refusal.details.plain();
        assert_eq!(plain["fields"].as_array().unwrap().len(), 6);
    }
}
