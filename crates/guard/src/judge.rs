//! The guard: shapes and fragments together, at an exit. Section 15.1, layer 2. Not here: the exits, and what
//! is done about a hit.
//!
//! It fails closed: what can't be looked at (JSON that doesn't parse where a field must be told apart, nesting
//! without end) is exposed under the rule [`UNREADABLE`].

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use parking_lot::RwLock;
use serde_json::Value;

use crate::exit::{Exception, Exposure, Verdict};
use crate::fragments::{Fragments, TooShort};
use crate::mac::MacKey;
use crate::scan::{Hit, Scanner, joined, redacted};
use crate::views::{self, View};
use crate::walk::{self, Leaf};

/// Rule of a match with a part of a live secret.
pub const FRAGMENT: &str = "fragment";
/// Rule of something that could not be looked at, and is therefore withheld.
pub const UNREADABLE: &str = "unreadable";

/// Patterns, live secrets and exceptions. One per node, shared.
pub struct Guard {
    scanner: Scanner,
    fragments: RwLock<Fragments>,
    exceptions: Vec<Exception>,
    mac: MacKey,
}

/// A match: the rule and the HMAC of what stands there, decoded.
pub(crate) struct Found {
    pub(crate) rule: &'static str,
    pub(crate) mac: [u8; 32],
}

impl Guard {
    /// A guard that knows no secret yet. The key is 32 random bytes; nodes that shall give the same secret the
    /// same [`Exposure::mac`] have the same one.
    #[must_use]
    pub fn new(scanner: Scanner, exceptions: Vec<Exception>, key: &[u8; 32]) -> Self {
        Self {
            scanner,
            fragments: RwLock::new(Fragments::new(key)),
            exceptions,
            mac: MacKey::new(key, "guard exposure"),
        }
    }

    /// Knows a decrypted secret from now on: see [`Fragments::remember`]. To be called wherever one is
    /// decrypted, before it is used.
    ///
    /// # Errors
    /// The secret is too short for its parts to be recognised.
    pub fn remember(&self, name: &str, secret: &str) -> Result<(), TooShort> {
        self.fragments.write().remember(name, secret)
    }

    /// Forgets a secret that is gone.
    pub fn forget(&self, name: &str) {
        self.fragments.write().forget(name);
    }

    /// Number of secrets known: 0 after a start.
    #[must_use]
    pub fn secrets(&self) -> usize {
        self.fragments.read().len()
    }

    /// The scanner inside, for [`crate::query::judge`].
    #[must_use]
    pub const fn scanner(&self) -> &Scanner {
        &self.scanner
    }

    /// Judges a text: a header, a log line, a file. `location` names the exit and is a constant of the caller.
    pub fn text(&self, location: &str, text: &(impl AsRef<[u8]> + ?Sized)) -> Verdict {
        match self.first(text.as_ref(), &[]) {
            None => Verdict::Clean,
            Some(found) => exposed(&found, location.to_owned()),
        }
    }

    /// Judges a body as it goes out. It is parsed only if there is a hit in it: to name the field, and to see
    /// whether the field is an exception of the route.
    pub fn body(&self, route: &str, location: &str, body: &[u8]) -> Verdict {
        let Some(found) = self.first(body, &[]) else { return Verdict::Clean };
        let Ok(value) = serde_json::from_slice(body) else { return exposed(&found, location.to_owned()) };
        let verdict = self.json(route, location, &value);
        if verdict != Verdict::Clean {
            return verdict;
        }
        // No field alone explains the hit: either it lies in an exception, or across fields.
        match self.first(&self.without_exceptions(route, value), &[]) {
            None if self.exceptions_of(route).next().is_some() => Verdict::Clean,
            None => exposed(&found, location.to_owned()),
            Some(found) => exposed(&found, location.to_owned()),
        }
    }

    fn without_exceptions(&self, route: &str, mut value: Value) -> Vec<u8> {
        for exception in self.exceptions_of(route) {
            if let Some(text) = value.pointer_mut(exception.field).filter(|value| value.is_string()) {
                *text = Value::Null;
            }
        }
        value.to_string().into_bytes()
    }

    /// Judges a JSON value: an outcome before its transaction commits, an audit row, an outbox row.
    pub fn json(&self, route: &str, location: &str, value: &Value) -> Verdict {
        let unreadable = || Found { rule: UNREADABLE, mac: self.mac.tag(b"") };
        let mut text = Vec::new();
        let mut lifted = ControlFlow::Continue(());
        let walked = walk::each(value, &mut |leaf: &Leaf<'_>| {
            let exception = self.exceptions_of(route).find(|exception| leaf.path.is(exception.field));
            match (exception, leaf.value) {
                (Some(exception), Value::String(secret)) => {
                    match self.first(secret.as_bytes(), exception.rules) {
                        Some(found) if lifted.is_continue() => {
                            lifted = ControlFlow::Break((found, leaf.path.shown(|name| self.is_name(name))));
                        }
                        _ => {}
                    }
                }
                _ => leaf.write(&mut text),
            }
        });
        if let ControlFlow::Break((found, path)) = lifted {
            return exposed(&found, format!("{location}{path}"));
        }
        if walked.is_err() {
            return exposed(&unreadable(), location.to_owned());
        }
        match self.first(&text, &[]) {
            None => Verdict::Clean,
            Some(found) => exposed(&found, format!("{location}{}", self.locate(value, route))),
        }
    }

    /// The text with every hit replaced by `[REDACTED:<rule>]`: for log fields and for texts that come in from
    /// outside, so that a stranger can't make a page unreadable.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        redacted(text, |text| {
            let mut hits = self.scanner.find_all(text);
            let fragments = self.fragments.read();
            let _: ControlFlow<()> = views::each(text.as_bytes(), &mut |view: &View<'_>| {
                let windows = fragments.find_all(view.text);
                for Range { start, end } in views::places(text.as_bytes(), view, windows) {
                    hits.push(Hit { rule: FRAGMENT, start, end });
                }
                ControlFlow::Continue(())
            });
            joined(hits)
        })
    }

    /// The first match in a text or behind its encodings.
    pub(crate) fn first(&self, text: &[u8], lifted: &[&str]) -> Option<Found> {
        self.first_from(text, 0, lifted)
    }

    /// As [`Guard::first`], leaving out shapes that start before a byte. For a text that begins in the middle
    /// of another: there, `sk-...` may be the end of `task-...`.
    pub(crate) fn first_from(&self, text: &[u8], from: usize, lifted: &[&str]) -> Option<Found> {
        let fragments = self.fragments.read();
        let flow = views::each(text, &mut |view: &View<'_>| {
            let mut on = |rule: &'static str, range: Range<usize>| {
                let start = views::place(text, view, range.clone()).start;
                if start < from && view.run.is_none() && rule != FRAGMENT {
                    return ControlFlow::Continue(());
                }
                let mac = self.mac.tag(view.text.get(range).unwrap_or_default());
                ControlFlow::Break(Found { rule, mac })
            };
            self.scanner.search(view.text, lifted, &mut on)?;
            match fragments.find(view.text, 0) {
                Some(window) => on(FRAGMENT, window),
                None => ControlFlow::Continue(()),
            }
        });
        flow.break_value()
    }

    fn exceptions_of<'g>(&'g self, route: &'g str) -> impl Iterator<Item = &'g Exception> {
        self.exceptions.iter().filter(move |exception| exception.route == route)
    }

    /// The path of the first field that alone has a hit; empty if it takes several.
    fn locate(&self, value: &Value, route: &str) -> String {
        let mut path = String::new();
        let mut text = Vec::new();
        let _ = walk::each(value, &mut |leaf: &Leaf<'_>| {
            let excepted = self.exceptions_of(route).any(|exception| leaf.path.is(exception.field));
            if path.is_empty() && !excepted {
                text.clear();
                leaf.write(&mut text);
                if self.first(&text, &[]).is_some() {
                    path = leaf.path.shown(|name| self.is_name(name));
                }
            }
        });
        path
    }

    fn is_name(&self, name: &str) -> bool {
        self.first(name.as_bytes(), &[]).is_none()
    }
}

fn exposed(found: &Found, location: String) -> Verdict {
    Verdict::Exposed(Exposure { rule: found.rule, location, mac: found.mac })
}
