//! JSON that goes out: numbers whose text is exact, times, and the `details` of an error. No float: an amount's
//! digits go from its type into the answer as they are.

use kernel::Time;
use kernel::money::{Money, Price, Quota, Sum};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use serde_json::value::RawValue;

/// A JSON number with these digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact(String);

impl Exact {
    /// The digits. Only what the money types print comes in here, and that is always a number.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// How many of a hundred `part` of `whole` is, rounded half up to two decimals; 0 of nothing.
    #[must_use]
    pub fn percent(part: u64, whole: u64) -> Self {
        let (part, whole) = (u128::from(part), u128::from(whole));
        let hundredths = (part * 20_000 + whole).checked_div(2 * whole).unwrap_or(0);
        let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        Self(text.trim_end_matches('0').trim_end_matches('.').to_owned())
    }

    /// The same with four decimals and cut, not rounded: what is printed as 100 is all of it.
    #[must_use]
    pub fn percent_cut(part: u64, whole: u64) -> Self {
        let parts = (u128::from(part) * 1_000_000).checked_div(u128::from(whole)).unwrap_or(0);
        let text = format!("{}.{:04}", parts / 10_000, parts % 10_000);
        Self(text.trim_end_matches('0').trim_end_matches('.').to_owned())
    }

    /// A count of 10^-6 of a percentage, cut to two decimals.
    #[must_use]
    pub fn percentage(count: i64) -> Self {
        Self::percent_cut(count.unsigned_abs() / 10_000, 10_000)
    }
}

impl From<u64> for Exact {
    fn from(count: u64) -> Self {
        Self(count.to_string())
    }
}

impl From<Money> for Exact {
    /// Major units (section 4).
    fn from(amount: Money) -> Self {
        Self(amount.major())
    }
}

impl From<Sum> for Exact {
    /// Major units (section 4).
    fn from(sum: Sum) -> Self {
        Self(sum.major())
    }
}

impl From<Price> for Exact {
    fn from(price: Price) -> Self {
        Self(price.text())
    }
}

impl From<Quota> for Exact {
    fn from(quota: Quota) -> Self {
        Self(quota.text())
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.clone()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// RFC 3339, UTC, milliseconds (section 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(pub Time);

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339_millis())
    }
}

/// One value of [`Details`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Detail {
    /// A word, a name of a field, a rule.
    Text(String),
    /// A whole number.
    Int(i64),
    /// An exact number.
    Exact(Exact),
    /// A truth.
    Flag(bool),
    /// Words.
    Words(Vec<&'static str>),
    /// Several of the same form.
    List(Vec<Details>),
}

impl From<&str> for Detail {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
impl From<String> for Detail {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
impl From<i64> for Detail {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}
impl From<bool> for Detail {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}
impl From<Exact> for Detail {
    fn from(value: Exact) -> Self {
        Self::Exact(value)
    }
}
impl From<Money> for Detail {
    fn from(value: Money) -> Self {
        Self::Exact(value.into())
    }
}
impl From<Price> for Detail {
    fn from(value: Price) -> Self {
        Self::Exact(value.into())
    }
}
impl From<Quota> for Detail {
    fn from(value: Quota) -> Self {
        Self::Exact(value.into())
    }
}
impl From<Vec<&'static str>> for Detail {
    fn from(words: Vec<&'static str>) -> Self {
        Self::Words(words)
    }
}
impl From<Vec<Details>> for Detail {
    fn from(list: Vec<Details>) -> Self {
        Self::List(list)
    }
}

/// The `details` of an error, in the order of putting; no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details(Vec<(&'static str, Detail)>);

impl Details {
    /// None.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// With one more.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Detail>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// As a JSON value, exact numbers as texts: for the audit.
    #[must_use]
    pub fn plain(&self) -> Json {
        let plain = |value: &Detail| match value {
            Detail::Text(text) => Json::from(text.as_str()),
            Detail::Int(value) => Json::from(*value),
            Detail::Exact(exact) => Json::from(exact.text()),
            Detail::Flag(value) => Json::from(*value),
            Detail::Words(words) => Json::from(words.clone()),
            Detail::List(list) => list.iter().map(Self::plain).collect(),
        };
        Json::Object(self.0.iter().map(|(name, value)| ((*name).to_owned(), plain(value))).collect())
    }

    /// The value called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Detail> {
        self.0.iter().find(|(each, _)| *each == name).map(|(_, value)| value)
    }
}

impl Serialize for Details {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::money::Currency;

    #[test]
    fn digits_go_out_as_they_are() {
        let amount = Money::parse_major("9999999999.99999999", Currency::CNY, 8).unwrap();
        let details = Details::none()
            .with("available_amount", amount)
            .with("price", Price::parse("0.1").unwrap())
            .with("unmet", vec!["tos", "risk"])
            .with("retryable", false);
        assert_eq!(
            serde_json::to_string(&details).unwrap(),
            r#"{"available_amount":9999999999.99999999,"price":0.1,"unmet":["tos","risk"],"retryable":false}"#
        );
        assert_eq!(details.plain()["available_amount"], "9999999999.99999999");
    }

    #[test]
    fn a_percentage_is_rounded_half_up_and_nothing_of_nothing_is_none() {
        let percent = |part, whole| Exact::percent(part, whole).text().to_owned();
        assert_eq!(
            [percent(0, 0), percent(0, 7), percent(7, 7), percent(1, 2), percent(2, 3), percent(1, 800)],
            ["0", "0", "100", "50", "66.67", "0.13"]
        );
    }

    #[test]
    fn a_cut_percentage_is_a_hundred_only_of_all() {
        let percent = |part, whole| Exact::percent_cut(part, whole).text().to_owned();
        assert_eq!(
            [percent(0, 0), percent(3, 3), percent(9_999_999, 10_000_000), percent(2, 3), percent(1, 800)],
            ["0", "100", "99.9999", "66.6666", "0.125"]
        );
    }

    #[test]
    fn a_stored_percentage_has_two_decimals_and_is_a_hundred_only_whole() {
        let of = |count| Exact::percentage(count).text().to_owned();
        assert_eq!([of(0), of(100_000_000), of(99_999_999), of(66_666_666)], ["0", "100", "99.99", "66.66"]);
    }

    #[test]
    fn a_time_has_milliseconds_and_a_z() {
        let stamp = Stamp(Time::from_micros(1_774_576_984_123_456));
        assert_eq!(serde_json::to_string(&stamp).unwrap(), r#""2026-03-27T02:03:04.123Z""#);
    }
}
