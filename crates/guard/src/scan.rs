//! The scanner: the patterns compiled once, with a cheap search in front of them. Not here: the patterns
//! (`patterns`), the decodings (`views`), live secrets (`fragments`).
//!
//! Bytes that aren't UTF-8 are looked at as they are: all patterns are ASCII.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, meta};

use crate::patterns::{PATTERNS, Pattern, Start};
use crate::views::{self, View};

/// Rounds of redaction after which a text that still has a hit is replaced as a whole. One is enough unless
/// what is left grows together into a new hit.
const ROUNDS: usize = 3;

/// More hits than this make one of the whole text: each hit behind an encoding costs another decoding, and a
/// text with that many is of no use to a reader.
const HITS_MAX: usize = 500;

/// A found credential: the rule and the bytes in the text that was given. Behind an encoding it is the range of
/// the encoded form; behind base64 the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Name of the rule.
    pub rule: &'static str,
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
}

/// A pattern that can't be used. The server must not start with one: it would look for less than it says.
#[derive(Debug, thiserror::Error)]
pub enum BadPattern {
    /// The expression has a fault.
    #[error("the pattern {rule} does not compile ({cause}); write it in RE2's syntax")]
    Syntax {
        /// The rule.
        rule: &'static str,
        /// What the compiler says.
        cause: String,
    },
    /// The table names no start, an empty one, or a rule twice.
    #[error("the pattern {rule} {fault}; correct the table of patterns")]
    Table {
        /// The rule.
        rule: &'static str,
        /// What is wrong.
        fault: &'static str,
    },
    /// The table is empty, or the search for its literals can't be built.
    #[error("the patterns can't be searched for ({0}); correct the table of patterns")]
    Search(String),
}

struct Rule {
    name: &'static str,
    regex: meta::Regex,
    /// The group with the secret; 0 is the whole match.
    group: usize,
}

#[derive(Clone, Copy)]
enum Found {
    Head,
    Inside,
}

/// Compiled patterns. Build it once, share it; searching takes no lock that others wait for.
pub struct Scanner {
    rules: Vec<Rule>,
    literals: AhoCorasick,
    /// For each literal, how its rule goes on.
    goes_on: Vec<(Found, usize)>,
    /// Marks with the number of letters in front of them and the rule.
    marks: Vec<(u8, usize, usize)>,
    /// Rules without any literal.
    anywhere: Vec<usize>,
}

/// What a search does with a match in a view.
type OnMatch<'a, B> = dyn FnMut(&'static str, Range<usize>) -> ControlFlow<B> + 'a;

/// One of the two ways to search a view.
type Search = fn(&Scanner, &[u8], &[&str], &mut OnMatch<'_, Hit>) -> ControlFlow<Hit>;

impl Scanner {
    /// A scanner over [`PATTERNS`].
    ///
    /// # Errors
    /// As [`Scanner::new`]; a test compiles them all.
    pub fn standard() -> Result<Self, BadPattern> {
        Self::new(PATTERNS)
    }

    /// Compiles a table.
    ///
    /// # Errors
    /// The table is empty, a pattern does not compile, has no usable start, or a rule's name is used twice.
    pub fn new(patterns: &[Pattern]) -> Result<Self, BadPattern> {
        let (mut rules, mut words, mut goes_on) = (Vec::new(), Vec::new(), Vec::new());
        let (mut marks, mut anywhere) = (Vec::new(), Vec::new());
        for (index, pattern) in patterns.iter().enumerate() {
            check(pattern, &rules)?;
            rules.push(compile(pattern)?);
            match pattern.start {
                Start::Head(heads) => {
                    words.extend(heads);
                    goes_on.extend(heads.iter().map(|_| (Found::Head, index)));
                }
                Start::Inside(word) => {
                    words.push(word);
                    goes_on.push((Found::Inside, index));
                }
                Start::Before(letters, mark) => marks.push((mark, letters, index)),
                Start::Anywhere => anywhere.push(index),
            }
        }
        if rules.is_empty() {
            return Err(BadPattern::Search("the table is empty".into()));
        }
        let literals = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words)
            .map_err(|cause| BadPattern::Search(cause.to_string()))?;
        Ok(Self { rules, literals, goes_on, marks, anywhere })
    }

    /// Looks for a credential in the text and behind its encodings: the first that is found, which need not be
    /// the first in the text.
    #[must_use]
    pub fn find(&self, text: &(impl AsRef<[u8]> + ?Sized)) -> Option<Hit> {
        self.seek(text.as_ref(), &[], Self::search)
    }

    /// As [`Scanner::find`], but each expression reads each text. It is there to measure what the cheap search
    /// saves and to prove that both find the same.
    #[must_use]
    pub fn find_by_expressions_only(&self, text: &(impl AsRef<[u8]> + ?Sized)) -> Option<Hit> {
        self.seek(text.as_ref(), &[], Self::search_all)
    }

    fn seek(&self, text: &[u8], skipped: &[&str], search: Search) -> Option<Hit> {
        let flow = views::each(text, &mut |view: &View<'_>| {
            search(self, view.text, skipped, &mut |rule, range| {
                let Range { start, end } = views::place(text, view, range);
                ControlFlow::Break(Hit { rule, start, end })
            })
        });
        flow.break_value()
    }

    /// All credentials in the text and behind its encodings, by their start; hits that overlap or touch are
    /// joined under the rule of the first. A text with very many is one hit.
    #[must_use]
    pub fn find_all(&self, text: &(impl AsRef<[u8]> + ?Sized)) -> Vec<Hit> {
        let text = text.as_ref();
        let mut hits: Vec<Hit> = Vec::new();
        let _: ControlFlow<()> = views::each(text, &mut |view: &View<'_>| {
            let (mut rules, mut ranges) = (Vec::new(), Vec::new());
            self.search(view.text, &[], &mut |rule, range| {
                rules.push(rule);
                ranges.push(range);
                ControlFlow::<()>::Continue(())
            })?;
            let places = views::places(text, view, ranges);
            hits.extend(rules.iter().zip(places).map(|(rule, Range { start, end })| Hit {
                rule,
                start,
                end,
            }));
            match hits.first() {
                Some(first) if hits.len() > HITS_MAX => {
                    hits = vec![Hit { rule: first.rule, start: 0, end: text.len() }];
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        });
        joined(hits)
    }

    /// The text with `[REDACTED:<rule>]` in place of each credential. Nothing is found in what comes out.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        redacted(text, |text| self.find_all(text))
    }

    /// Calls `on` with each match in one text, without decodings. Candidates inside an earlier match of the
    /// same pass are left out.
    pub(crate) fn search<B>(&self, text: &[u8], skipped: &[&str], on: &mut OnMatch<'_, B>) -> ControlFlow<B> {
        // The end of the last match, and for patterns that are tried once a run the end of their last run.
        let mut covered = 0;
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for literal in self.literals.find_overlapping_iter(text) {
            let Some(&(found, index)) = self.goes_on.get(literal.pattern().as_usize()) else { continue };
            let Some(rule) = self.rule(index, skipped) else { continue };
            let range = match found {
                Found::Head if literal.start() >= covered => {
                    rule.at(text, literal.start()..text.len(), Anchored::Yes)
                }
                Found::Head => None,
                Found::Inside => {
                    if runs.iter().any(|(rule, end)| *rule == index && literal.start() < *end) {
                        continue;
                    }
                    let run = run_around(text, literal.start());
                    runs.retain(|(rule, _)| *rule != index);
                    runs.push((index, run.end));
                    rule.all(text, run, on)?;
                    None
                }
            };
            if let Some(range) = range {
                covered = range.end;
                on(rule.name, range)?;
            }
        }
        self.search_marks(text, skipped, on)?;
        for index in &self.anywhere {
            let Some(rule) = self.rule(*index, skipped) else { continue };
            rule.all(text, 0..text.len(), on)?;
        }
        ControlFlow::Continue(())
    }

    fn search_marks<B>(&self, text: &[u8], skipped: &[&str], on: &mut OnMatch<'_, B>) -> ControlFlow<B> {
        for (mark, letters, index) in &self.marks {
            let Some(rule) = self.rule(*index, skipped) else { continue };
            for place in memchr::memchr_iter(*mark, text) {
                let Some(start) = place.checked_sub(*letters) else { continue };
                let front = text.get(start..place).unwrap_or_default();
                if front.iter().rev().all(u8::is_ascii_alphanumeric)
                    && let Some(range) = rule.at(text, start..text.len(), Anchored::Yes)
                {
                    on(rule.name, range)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// As [`Scanner::search`], without the cheap search.
    fn search_all<B>(&self, text: &[u8], skipped: &[&str], on: &mut OnMatch<'_, B>) -> ControlFlow<B> {
        for index in 0..self.rules.len() {
            let Some(rule) = self.rule(index, skipped) else { continue };
            rule.all(text, 0..text.len(), on)?;
        }
        ControlFlow::Continue(())
    }

    fn rule(&self, index: usize, skipped: &[&str]) -> Option<&Rule> {
        self.rules.get(index).filter(|rule| !skipped.contains(&rule.name))
    }
}

impl Rule {
    /// The match in a span of the text; words before the span count for `\b`.
    fn at(&self, text: &[u8], span: Range<usize>, anchored: Anchored) -> Option<Range<usize>> {
        let input = Input::new(text).range(span).anchored(anchored);
        let whole = self.regex.search(&input)?;
        if self.group == 0 {
            return Some(whole.range());
        }
        let mut groups = self.regex.create_captures();
        self.regex.search_captures(&input, &mut groups);
        Some(groups.get_group(self.group).map_or(whole.range(), |group| group.range()))
    }

    /// Every match in a span.
    fn all<B>(&self, text: &[u8], span: Range<usize>, on: &mut OnMatch<'_, B>) -> ControlFlow<B> {
        let mut from = span.start;
        while from < span.end
            && let Some(range) = self.at(text, from..span.end, Anchored::No)
        {
            from = range.end.max(from + 1);
            on(self.name, range)?;
        }
        ControlFlow::Continue(())
    }
}

fn check(pattern: &Pattern, before: &[Rule]) -> Result<(), BadPattern> {
    let fault = match pattern.start {
        Start::Head([]) => "names no start",
        Start::Head(heads) if heads.iter().any(|head| head.is_empty()) => "has an empty start",
        Start::Inside("") => "has an empty start",
        _ if before.iter().any(|rule| rule.name == pattern.rule) => "has the name of another",
        _ => return Ok(()),
    };
    Err(BadPattern::Table { rule: pattern.rule, fault })
}

fn compile(pattern: &Pattern) -> Result<Rule, BadPattern> {
    let regex = meta::Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(meta::Config::new().utf8_empty(false))
        .build(pattern.text)
        .map_err(|cause| BadPattern::Syntax { rule: pattern.rule, cause: cause.to_string() })?;
    let group = usize::from(regex.captures_len() > 1);
    Ok(Rule { name: pattern.rule, regex, group })
}

/// The unbroken run of letters, digits, `_`, `-` and `.` around a place.
fn run_around(text: &[u8], place: usize) -> Range<usize> {
    let in_run = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let before = text.get(..place).unwrap_or_default();
    let after = text.get(place..).unwrap_or_default();
    let start = before.iter().rposition(|byte| !in_run(byte)).map_or(0, |other| other + 1);
    let end = after.iter().position(|byte| !in_run(byte)).map_or(text.len(), |other| place + other);
    start..end
}

/// Sorted by start, overlapping and touching hits joined.
pub(crate) fn joined(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| (hit.start, std::cmp::Reverse(hit.end)));
    let mut joined: Vec<Hit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match joined.last_mut() {
            Some(last) if hit.start <= last.end => last.end = last.end.max(hit.end),
            _ => joined.push(hit),
        }
    }
    joined
}

/// Replaces hits until none is left; what doesn't come clean is replaced as a whole.
pub(crate) fn redacted<'t>(text: &'t str, find_all: impl Fn(&str) -> Vec<Hit>) -> Cow<'t, str> {
    let mut clean = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        let hits = find_all(&clean);
        if hits.is_empty() {
            return clean;
        }
        clean = Cow::Owned(replaced(&clean, &hits));
    }
    match find_all(&clean).first() {
        None => clean,
        Some(hit) => Cow::Owned(format!("[REDACTED:{}]", hit.rule)),
    }
}

fn replaced(text: &str, hits: &[Hit]) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    for hit in hits {
        // A hit behind an encoding may start inside of a character.
        let (start, end) = (text.floor_char_boundary(hit.start), text.ceil_char_boundary(hit.end));
        clean.push_str(text.get(at..start).unwrap_or_default());
        clean.push_str("[REDACTED:");
        clean.push_str(hit.rule);
        clean.push(']');
        at = end.max(at);
    }
    clean.push_str(text.get(at..).unwrap_or_default());
    clean
}
