//! Exact fields out of a body. Every fault is found in one go, each with the rule that it breaks, for
//! `details.fields[] {field, rule}` of a refusal (section 9.5); a name that nobody asked for is one, so that it
//! can't hide a difference (section 7.2). Values are never shown.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use secrecy::SecretString;

use crate::canonical::Node;
use crate::number::Number;

/// Most faults that are told: a body of nothing but unknown names must not be echoed as a whole.
pub const FAULTS_MAX: usize = 32;
/// Longest part of an unknown name that is told, in characters.
const NAME_MAX: usize = 64;
/// Rule of a name that nobody asked for.
const UNKNOWN: &str = "unknown";

/// One field and the rule that it breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands: `items[3].package_id`; empty for the body itself.
    pub field: String,
    /// `required`, `unknown`, a kind (`string`), `characters`, `length 1..100`, `range 1..365`, `one_of a, b`, `decimals 2`.
    pub rule: String,
}

/// What is wrong with a body: at least one fault, in the order of reading, at most [`FAULTS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} fields are not valid", .0.len())]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// One by one.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.0.iter()
    }

    /// Whether the body has a name that nobody asked for.
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        self.iter().any(|fault| fault.rule == UNKNOWN)
    }
}

/// Reads the members of an object. Each reader asks for one name and gives `None` after a fault; reading goes
/// on, so that all faults are told together.
///
/// ```
/// use onceseal_http::canonical::{self, Bounds};
/// use onceseal_http::Fields;
///
/// let body = canonical::read(br#"{"amount":12.50,"to":7}"#, &Bounds::default())?;
/// let (amount, to) = Fields::read(&body, |fields| {
///     let (amount, to) = (fields.decimal("amount", 2), fields.whole("to", 1..=i64::MAX));
///     Some((amount?, to?))
/// })?;
/// assert_eq!((amount.as_str(), to), ("12.50", 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Fields<'a> {
    members: Option<&'a BTreeMap<String, Node>>,
    place: String,
    asked: BTreeSet<&'static str>,
    faults: Vec<Fault>,
}

impl<'a> Fields<'a> {
    /// Reads `node` with `build`.
    ///
    /// # Errors
    /// [`Faults`], of which one may be that `node` is no object.
    pub fn read<T>(node: &'a Node, build: impl FnOnce(&mut Self) -> Option<T>) -> Result<T, Faults> {
        let mut fields = Self::at(node, String::new());
        let built = build(&mut fields);
        fields.close();
        match built {
            Some(value) if fields.faults.is_empty() => Ok(value),
            _ => {
                if fields.faults.is_empty() {
                    // The caller gave up without saying why.
                    fields.note("", "object".into());
                }
                fields.faults.truncate(FAULTS_MAX);
                Err(Faults(fields.faults))
            }
        }
    }

    fn at(node: &'a Node, place: String) -> Self {
        let members = if let Node::Object(members) = node { Some(members) } else { None };
        let mut fields = Self { members, place, asked: BTreeSet::new(), faults: Vec::new() };
        if members.is_none() {
            fields.note("", "object".into());
        }
        fields
    }

    /// Names that nobody asked for.
    fn close(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        let names = self.members.into_iter().flatten().map(|(name, _)| name);
        for name in names.filter(|name| !asked.contains(name.as_str())).take(FAULTS_MAX) {
            let shown: String = name.chars().take(NAME_MAX).collect();
            self.note(&shown, UNKNOWN.into());
        }
    }

    /// Adds a fault of the caller's own rules; gives `None`, for the end of a chain.
    pub fn fault<T>(&mut self, name: &str, rule: impl Into<String>) -> Option<T> {
        self.note(name, rule.into());
        None
    }

    fn note(&mut self, name: &str, rule: String) {
        let dot = if name.is_empty() || self.place.is_empty() { "" } else { "." };
        self.faults.push(Fault { field: format!("{}{dot}{name}", self.place), rule });
    }

    /// The member called `name` as it is.
    pub fn node(&mut self, name: &'static str) -> Option<&'a Node> {
        self.asked.insert(name);
        let members = self.members?;
        match members.get(name) {
            Some(node) => Some(node),
            None => self.fault(name, "required"),
        }
    }

    /// A member that may be absent: `Some(None)` then. `null` is not absent.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self, &'static str) -> Option<T>,
    ) -> Option<Option<T>> {
        self.asked.insert(name);
        if self.members?.contains_key(name) { read(self, name).map(Some) } else { Some(None) }
    }

    /// A string of so many characters.
    pub fn text(&mut self, name: &'static str, length: RangeInclusive<usize>) -> Option<&'a str> {
        let Node::Text(text) = self.node(name)? else { return self.fault(name, "string") };
        if length.contains(&text.chars().count()) {
            return Some(text);
        }
        self.fault(name, format!("length {}..{}", length.start(), length.end()))
    }

    /// A string of so many characters on one line: without control characters, without a blank at either end.
    pub fn line(&mut self, name: &'static str, length: RangeInclusive<usize>) -> Option<&'a str> {
        let text = self.text(name, length)?;
        if text.trim() == text && !text.chars().any(char::is_control) {
            return Some(text);
        }
        self.fault(name, "characters")
    }

    /// A string that nobody may see.
    pub fn secret(&mut self, name: &'static str, length: RangeInclusive<usize>) -> Option<SecretString> {
        self.text(name, length).map(SecretString::from)
    }

    /// One of these words.
    pub fn word<const N: usize>(
        &mut self,
        name: &'static str,
        words: [&'static str; N],
    ) -> Option<&'static str> {
        let Node::Text(text) = self.node(name)? else { return self.fault(name, "string") };
        let found = words.into_iter().find(|word| word == text);
        found.or_else(|| self.fault(name, format!("one_of {}", words.join(", "))))
    }

    /// `true` or `false`.
    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        let Node::Flag(flag) = self.node(name)? else { return self.fault(name, "boolean") };
        Some(*flag)
    }

    /// A whole number, as a JSON number; `10.0` and `1e1` are 10.
    pub fn whole(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let Node::Number(number) = self.node(name)? else { return self.fault(name, "integer") };
        if number.plain().contains('.') {
            return self.fault(name, "integer");
        }
        let found = number.plain().parse().ok().filter(|value| range.contains(value));
        found.or_else(|| self.fault(name, format!("range {}..{}", range.start(), range.end())))
    }

    /// An exact decimal number that is not negative, as a JSON number or as a string, without sign, exponent
    /// or leading zeros (section 4, rule 2), as it was sent: what the money types read. Its size is theirs to
    /// judge.
    pub fn decimal(&mut self, name: &'static str, decimals: usize) -> Option<String> {
        let text = match self.node(name)? {
            Node::Number(number) => number.text(),
            Node::Text(text) => text,
            _ => return self.fault(name, "number"),
        };
        match fraction(text) {
            Some(digits) if digits <= decimals => Some(text.to_owned()),
            Some(_) => self.fault(name, format!("decimals {decimals}")),
            None => self.fault(name, "number"),
        }
    }

    /// A number with all its digits, of any size and sign.
    pub fn number(&mut self, name: &'static str) -> Option<&'a Number> {
        let Node::Number(number) = self.node(name)? else { return self.fault(name, "number") };
        Some(number)
    }

    /// So many objects, each read with `build`.
    pub fn each<T>(
        &mut self,
        name: &'static str,
        count: RangeInclusive<usize>,
        mut build: impl FnMut(&mut Fields<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Node::List(list) = self.node(name)? else { return self.fault(name, "array") };
        if !count.contains(&list.len()) {
            return self.fault(name, format!("length {}..{}", count.start(), count.end()));
        }
        let dot = if self.place.is_empty() { "" } else { "." };
        let place = format!("{}{dot}{name}", self.place);
        let mut built = Vec::with_capacity(list.len());
        for (index, node) in list.iter().enumerate() {
            let mut fields = Fields::at(node, format!("{place}[{index}]"));
            built.extend(build(&mut fields));
            fields.close();
            self.faults.append(&mut fields.faults);
            if self.faults.len() >= FAULTS_MAX {
                return None;
            }
        }
        (built.len() == list.len()).then_some(built)
    }
}

/// Digits behind the point of `^(0|[1-9][0-9]*)(\.[0-9]+)?$`; `None` for any other text.
fn fraction(text: &str) -> Option<usize> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(left, right)| (left, Some(right)));
    let fit = digits(whole) && (whole == "0" || !whole.starts_with('0')) && fraction.is_none_or(digits);
    fit.then(|| fraction.map_or(0, str::len))
}
