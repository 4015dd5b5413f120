//! What handlers read out of a request besides the fields of its body: ids in paths, queries, and instants. A parameter that is not known, stands
//! twice or is out of range is refused; nothing is clamped silently (section 8).

use axum::extract::RawQuery;
use kernel::Time;
use onceseal_http::Fields;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value as Json, json};

use super::envelope::{self, Fixed, Pagination, QUERY_MALFORMED};
use axum::response::Response;

/// `page_size` where none is asked for, and at most.
const PAGE_SIZE: u32 = 20;
const PAGE_SIZE_MOST: u32 = 200;
/// Longest instant: room for more digits of a fraction than any clock has.
const INSTANT_MAX: usize = 40;

/// A query's parameters, each at most once.
#[derive(Debug, Default)]
pub(super) struct Params {
    pairs: Vec<(String, String)>,
    asked: Vec<&'static str>,
    faults: Vec<(String, &'static str)>,
}

impl Params {
    /// Reads them.
    pub(super) fn of(RawQuery(query): RawQuery) -> Self {
        let mut params = Self::default();
        for pair in query.as_deref().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| {
                percent_decode_str(&text.replace('+', " ")).decode_utf8().map(std::borrow::Cow::into_owned)
            };
            match (decoded(name), decoded(value)) {
                (Ok(name), Ok(_)) if params.pairs.iter().any(|(known, _)| *known == name) => {
                    params.faults.push((name, "once"));
                }
                (Ok(name), Ok(value)) => params.pairs.push((name, value)),
                _ => params.faults.push((name.chars().take(64).collect(), "utf8")),
            }
        }
        params
    }

    /// The value of a parameter.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// A value that `read` takes.
    pub(super) fn read<T>(&mut self, name: &'static str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = self.text(name)?;
        let read = read(&value);
        if read.is_none() {
            self.faults.push((name.into(), "value"));
        }
        read
    }

    fn number(&mut self, name: &'static str, (default, most): (u32, u32)) -> u32 {
        let Some(text) = self.text(name) else { return default };
        match text.parse::<u32>() {
            // One spelling, as in paths: no plus, no zeros in front.
            Ok(number) if (1..=most).contains(&number) && number.to_string() == text => number,
            _ => {
                self.faults.push((name.into(), "range"));
                default
            }
        }
    }

    /// `page` and `page_size`.
    pub(super) fn page(&mut self) -> (u32, u32) {
        (self.number("page", (1, u32::MAX)), self.number("page_size", (PAGE_SIZE, PAGE_SIZE_MOST)))
    }

    /// The refusal, if anything is wrong or was not asked for.
    pub(super) fn close(mut self, request_id: &str) -> Result<(), Box<Response>> {
        let strange = self.pairs.iter().filter(|(name, _)| !self.asked.contains(&name.as_str()));
        self.faults.extend(strange.map(|(name, _)| (name.chars().take(64).collect(), "unknown")));
        if self.faults.is_empty() {
            return Ok(());
        }
        let fields: Vec<Json> =
            self.faults.iter().map(|(field, rule)| json!({ "field": field, "rule": rule })).collect();
        let mut details = Map::new();
        details.insert("fields".into(), fields.into());
        Err(Box::new(envelope::error(request_id, QUERY_MALFORMED, &details)))
    }
}

/// A page's place.
pub(super) const fn pagination((page, page_size): (u32, u32), total: i64) -> Pagination {
    Pagination { page, page_size, total }
}

/// A positive id in its one spelling; `None` is an object that does not exist.
pub(super) fn id(text: &str) -> Option<i64> {
    let id: i64 = text.parse().ok().filter(|id| *id > 0)?;
    (id.to_string() == text).then_some(id)
}

/// An instant of a body.
pub(super) fn instant(fields: &mut Fields<'_>, name: &'static str) -> Option<Time> {
    let text = fields.text(name, 1..=INSTANT_MAX)?;
    rfc3339(text).or_else(|| fields.fault(name, "rfc3339"))
}

/// An instant as RFC 3339, section 5.6, writes it, at most [`INSTANT_MAX`] characters, with an offset of less than a day
/// and no leap second, which no clock of ours has. Readers of times take more than that.
pub(crate) fn rfc3339(text: &str) -> Option<Time> {
    let form = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, like)| match like {
                b'0' => byte.is_ascii_digit(),
                _ => byte.eq_ignore_ascii_case(&like),
            })
    };
    let (first, rest) = (text.get(..19)?, text.get(19..)?);
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    let up_to =
        |text: &str, at: std::ops::Range<usize>, most: &str| text.get(at).is_none_or(|part| part <= most);
    let fits = text.len() <= INSTANT_MAX
        && form(first, "0000-00-00T00:00:00")
        && up_to(first, 17..19, "59")
        && ["Z", "+00:00", "-00:00"].into_iter().any(|like| form(zone, like))
        && up_to(zone, 1..3, "23")
        && up_to(zone, 4..6, "59");
    if fits { Time::parse_rfc3339(text).ok() } else { None }
}

/// The answer about an object that is not there for this caller.
pub(super) fn missing(request_id: &str, code: supply::Code) -> Response {
    envelope::plain(request_id, Fixed::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        Params::of(RawQuery(Some(query.into())))
    }

    #[test]
    fn a_page_has_its_bounds_and_its_defaults() {
        for (query, page) in [("", (1, 20)), ("page=3&page_size=200", (3, 200))] {
            let mut params = params(query);
            assert_eq!(params.page(), page);
            assert!(params.close("r").is_ok());
        }
        for query in [
            "page=0",
            "page_size=201",
            "page=-1",
            "page=x",
            "page=1&page=2",
            "colour=red",
            "page=%FF",
            "page=%2B1",
            "page=01",
        ] {
            let mut params = params(query);
            let _ = params.page();
            assert!(params.close("r").is_err(), "{query}");
        }
    }

    #[test]
    fn an_instant_is_written_as_rfc_3339_has_it() {
        for text in [
            "2026-03-27T02:03:04Z",
            "2026-03-27t02:03:04.123z",
            "2026-03-27T02:03:04.1+08:00",
            "2026-03-27T23:59:59-23:59",
            "2024-02-29T00:00:00-00:00",
        ] {
            assert!(rfc3339(text).is_some(), "{text}");
        }
        for impossible in [
            "2026-03-27T02:03:04+24:00",
            "2026-03-27T02:03:04-25:00",
            "2026-03-27T02:03:04+99:59",
            "2026-03-27T02:03:04+08:60",
            "2026-03-27T02:03:60Z",
            "2026-12-31T23:59:60Z",
            "2026-03-27T02:60:04Z",
            "2026-03-27T24:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-10T00:00:00Z",
            "2026-04-31T00:00:00Z",
        ] {
            assert_eq!(rfc3339(impossible), None, "{impossible}");
        }
        let wrong =
            ["2026-03-27 02:03:04Z", "2026-03-27T02:03Z", "20260327T020304Z", "2026-03-27T02:03:04.Z"];
        for text in wrong.into_iter().chain(["2026-03-27T02:03:04", "2026-03-27T02:03:04+0800", "é", ""]) {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn an_id_has_one_spelling() {
        assert_eq!(id("17"), Some(17));
        for wrong in ["0", "-1", "017", "+17", "1e1", "9223372036854775808", "", "x"] {
            assert_eq!(id(wrong), None, "{wrong}");
        }
    }
}
