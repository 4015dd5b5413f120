//! The guard: shapes and fragments together, at an exit. Section 15.1, layer 2. Not here: the exits, and what
//! is done about a hit.
//!
//! It fails closed: what can't be looked at (JSON that doesn't parse where a field must be told apart, nesting
//! without end) is exposed under the rule [`UNREADABLE`].

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;

use crate::exit::{Exception, Exposure, Verdict};
use crate::fragments::{Fragments, TooShort, shares};
use crate::mac::MacKey;
use crate::scan::{Hit, Scanner, joined, redacted};
use crate::views::{self, View};
use crate::walk::{self, Leaf};

/// Rule of a match with a part of a live secret.
pub const FRAGMENT: &str = "fragment";
/// Secrets that only passed through, and are known for the time being.
pub const GLIMPSES: usize = 256;
/// Rule of something that could not be looked at, and is therefore withheld.
pub const UNREADABLE: &str = "unreadable";

/// Patterns, live secrets and exceptions. One per node, shared.
pub struct Guard {
    scanner: Scanner,
    fragments: RwLock<Fragments>,
    exceptions: Vec<Exception>,
    mac: MacKey,
    /// Names of the glimpsed, the oldest first.
    glimpsed: Mutex<VecDeque<String>>,
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
            glimpsed: Mutex::default(),
        }
    }

    /// Knows a live secret from now on: see [`Fragments::remember`]. To be called with what nobody chose who wants
    /// to see answers withheld: a text that others use must not become a secret's part.
    ///
    /// # Errors
    /// The secret is too short for its parts to be recognised.
    pub fn remember(&self, name: &str, secret: &str) -> Result<(), TooShort> {
        self.fragments.write().remember(name, secret)
    }

    /// Knows a secret that passes through for as long as it is one of the last [`GLIMPSES`]: of most of them nobody
    /// hears again. The same holds of who may choose it.
    ///
    /// # Errors
    /// The secret is too short for its parts to be recognised.
    pub fn glimpse(&self, secret: &str) -> Result<(), TooShort> {
        let name = self.glimpse_of(secret);
        let mut glimpsed = self.glimpsed.lock();
        glimpsed.retain(|known| *known != name);
        let mut fragments = self.fragments.write();
        fragments.remember(&name, secret)?;
        glimpsed.push_back(name);
        let oldest = if glimpsed.len() > GLIMPSES { glimpsed.pop_front() } else { None };
        oldest.into_iter().for_each(|name| fragments.forget(&name));
        Ok(())
    }

    /// Knows a secret that was glimpsed as a live one called `name`, in place of what had that name; one that was
    /// not glimpsed only takes the place.
    pub fn keep(&self, name: &str, secret: &str) {
        let glimpse = self.glimpse_of(secret);
        let mut glimpsed = self.glimpsed.lock();
        let mut fragments = self.fragments.write();
        fragments.forget(name);
        if let Some(at) = glimpsed.iter().position(|known| *known == glimpse) {
            glimpsed.remove(at);
            fragments.forget(&glimpse);
            // It was long enough a moment ago.
            let _ = fragments.remember(name, secret);
        }
    }

    fn glimpse_of(&self, secret: &str) -> String {
        format!("glimpse:{}", hex::encode(self.mac.tag(secret.as_bytes())))
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

    /// Whether a text from outside may be kept and shown as it came.
    #[must_use]
    pub fn passes(&self, text: &str) -> bool {
        self.first(text.as_bytes(), &[]).is_none()
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
                            lifted = ControlFlow::Break((found, leaf.path.shown(|name| self.passes(name))));
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
                    path = leaf.path.shown(|name| self.passes(name));
                }
            }
        });
        path
    }
}

/// Whether a part of `secret`, which nobody need know, stands in a text, plain or behind an encoding: for what comes
/// together with a credential. Of a secret that is too short for parts, the whole.
#[must_use]
pub fn holds_part(text: &str, secret: &str) -> bool {
    let flow = views::each(text.as_bytes(), &mut |view: &View<'_>| {
        if shares(view.text, secret) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    flow.is_break()
}

fn exposed(found: &Found, location: String) -> Verdict {
    Verdict::Exposed(Exposure { rule: found.rule, location, mac: found.mac })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(n: usize) -> String {
        format!("zx81-{}", hex::encode(MacKey::new(&[1; 32], "test").tag(&n.to_be_bytes())))
    }

    fn knows(guard: &Guard, n: usize) -> bool {
        guard.text("log", &format!("see {}", secret(n).get(20..32).unwrap())) != Verdict::Clean
    }

    #[test]
    fn of_secrets_that_pass_through_the_last_ones_are_known_and_the_live_ones_stay() {
        let guard = Guard::new(Scanner::standard().unwrap(), Vec::new(), &[7; 32]);
        for n in 0..=GLIMPSES {
            guard.glimpse(&secret(n)).unwrap();
        }
        assert_eq!((guard.secrets(), knows(&guard, 0), knows(&guard, 1)), (GLIMPSES, false, true));
        guard.keep("account:1", &secret(1));
        assert_eq!((guard.secrets(), knows(&guard, 1)), (GLIMPSES, true));
        for n in 0..GLIMPSES {
            guard.glimpse(&secret(1000 + n)).unwrap();
        }
        assert_eq!((guard.secrets(), knows(&guard, 1), knows(&guard, 2)), (GLIMPSES + 1, true, false));
        guard.keep("account:1", &secret(5000));
        assert_eq!(
            (knows(&guard, 1), knows(&guard, 5000)),
            (false, false),
            "replaced by what was not glimpsed"
        );
        assert_eq!(guard.glimpse("short"), Err(TooShort));
        assert_eq!(guard.secrets(), GLIMPSES);
    }

    #[test]
    fn a_text_holds_a_part_of_a_secret_that_nobody_knows() {
        // In two pieces: this crate is swept for what looks like a credential.
        let mounted = &["sk-", "proj-Quick4Brown7Foxes9Jump"].concat();
        for text in
            ["Quick4Brown7", "key-uick4Brown7F-1", "Quick4%42rown7", "UXVpY2s0QnJvd243Rm94ZXM5SnVtcA=="]
        {
            assert!(holds_part(text, mounted), "{text}");
        }
        assert!(holds_part("a-short%31-one", "short1-o"));
        for (text, secret) in
            [("Quick4Brown", &**mounted), ("sk-proj-1234", mounted), ("", "x"), ("x", ""), ("a", "ab")]
        {
            assert!(!holds_part(text, secret), "{text}");
        }
    }
}
