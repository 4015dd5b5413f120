//! Texts that callers choose and that are kept: none of them holds a credential (sections 1.1 and 15). What names
//! something is refused by its field, since a name that was cut means something else; prose is masked, since whoever
//! sends it often only passes on what a provider said. Parts of live secrets are the exits' to see: a refusal would
//! tell whoever guesses.

use std::ops::RangeInclusive;

use guard::query::{self, Judgement};
use guard::{Guard, Scanner};
use onceseal_http::Fields;

/// The rule of a text that looks like a credential.
const RULE: &str = "no_credential";

/// What is kept of a name: a code, an id, a model.
pub(super) fn kept<'a>(
    scanner: &Scanner,
    fields: &mut Fields<'_>,
    name: &'static str,
    text: &'a str,
) -> Option<&'a str> {
    if scanner.find(text).is_some() { fields.fault(name, RULE) } else { Some(text) }
}

/// A name on one line.
pub(super) fn named<'a>(
    guard: &Guard,
    fields: &mut Fields<'a>,
    name: &'static str,
    length: RangeInclusive<usize>,
) -> Option<&'a str> {
    let text = fields.line(name, length)?;
    kept(guard.scanner(), fields, name, text)
}

/// What was called: without its query, in which some providers want their keys.
pub(super) fn endpoint<'a>(
    guard: &Guard,
    fields: &mut Fields<'a>,
    name: &'static str,
    length: RangeInclusive<usize>,
) -> Option<&'a str> {
    let text = fields.line(name, length)?;
    let path = text.split(['?', '#']).next().unwrap_or_default().trim_end();
    match query::judge(path.as_bytes(), guard.scanner()) {
        _ if path.is_empty() => fields.fault(name, "path"),
        Judgement::KeyIn { .. } => fields.fault(name, RULE),
        Judgement::Clean | Judgement::Malformed => kept(guard.scanner(), fields, name, path),
    }
}

/// Prose of at most so many characters, masked.
pub(super) fn prose(guard: &Guard, text: &str, most: usize) -> String {
    let masked: String = guard.redact(text).chars().take(most).collect();
    masked.trim_end().to_owned()
}
