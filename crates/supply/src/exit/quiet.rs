//! Which of what senders bring about is told: each of a sender at a place by a rule once a minute, and so many in all,
//! because nobody must force audit rows and alerts (sections 15.2, 16.2). Refused or withheld is all of it, and counted.
//! Not here: what is told (`exit`, and the edge of credentials that come in).

use std::collections::HashSet;
use std::time::Duration;

use kernel::Time;
use parking_lot::Mutex;

/// How long one that was told stays so.
const MINUTE: Duration = Duration::from_secs(60);
/// Most that are told within that time, whoever sends.
const MOST: usize = 30;

/// What one server told within this minute.
#[derive(Debug, Default)]
pub struct Quiet(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    began: Option<Time>,
    of: HashSet<(i64, String, String)>,
    left_out: u64,
}

impl Quiet {
    /// Whether this one, of an operator (0 of a stranger) at a place by a rule, is told; how many were not since the last
    /// one that was.
    pub fn lets(&self, (operator, place, rule): (i64, &str, &str), now: Time) -> Option<u64> {
        let mut told = self.0.lock();
        // A clock that was set back begins a new minute, too.
        if told.began.is_none_or(|began| now < began || now.since(began) >= MINUTE) {
            told.began = Some(now);
            told.of.clear();
        }
        if told.of.len() >= MOST || !told.of.insert((operator, place.to_owned(), rule.to_owned())) {
            told.left_out += 1;
            return None;
        }
        Some(std::mem::take(&mut told.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_kind_is_told_once_a_minute_and_so_many_in_all() {
        let (quiet, start) = (Quiet::default(), Time::from_seconds(1000));
        let (log, later) = ((1, "log", "sk_generic"), start.plus(MINUTE));
        assert_eq!(
            (quiet.lets(log, start), quiet.lets(log, start), quiet.lets(log, start)),
            (Some(0), None, None)
        );
        assert_eq!(quiet.lets((2, "log", "sk_generic"), start), Some(2), "another operator");
        assert_eq!(quiet.lets((1, "log", "jwt"), start), Some(0), "another rule");
        assert_eq!(quiet.lets((1, "body", "jwt"), start), Some(0), "another place");
        let flood = (2..1000).filter(|n| quiet.lets((*n, "body", "jwt"), start).is_some()).count();
        assert_eq!(flood, MOST - 4);
        assert_eq!((quiet.lets(log, start), quiet.lets(log, later)), (None, Some(998 - 26 + 1)));
        assert_eq!(quiet.lets(log, start), Some(0), "a clock that was set back");
    }
}
