//! What the audit tells of a supplier's settlements, in the order of commits, replayed: from each state only what
//! it allows, and one open at a time.

use std::collections::BTreeMap;

/// One successful command on a settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// `supply.settlement.withdraw.create`
    pub(super) event: String,
    /// The settlement.
    pub(super) id: i64,
    /// Under which key; empty for the scheduler's.
    pub(super) key: String,
}

/// Where a settlement stands, as the database spells it: status and reason of a failure.
pub(super) type State = (&'static str, &'static str);

const PENDING: State = ("pending", "");
const PROCESSING: State = ("processing", "");

/// Replays the lines; gives where each settlement ends, and what was not allowed.
pub(super) fn replay(lines: &[Line]) -> (BTreeMap<i64, State>, Vec<String>) {
    let mut states: BTreeMap<i64, State> = BTreeMap::new();
    let (mut open, mut wrong) = (None, Vec::new());
    for Line { event, id, key } in lines {
        let (wanted, next) = match event.as_str() {
            "supply.settlement.withdraw.create" => (None, PENDING),
            "supply.settlement.withdraw.cancel" => (Some(PENDING), ("failed", "cancelled")),
            "supply.settlement.payout.start" => (Some(PENDING), PROCESSING),
            "supply.settlement.payout.complete" => (Some(PROCESSING), ("completed", "")),
            "supply.settlement.payout.fail" => (Some(PROCESSING), ("failed", "payout_failed")),
            other => {
                wrong.push(format!("settlement {id}: {other} is not known here"));
                continue;
            }
        };
        let before = states.insert(*id, next);
        if before != wanted {
            wrong.push(format!("settlement {id}: {event} ({key}) came upon {before:?}"));
        }
        match open {
            Some(other) if wanted.is_none() => {
                wrong.push(format!("settlement {id} was opened while {other} was open"));
            }
            _ => {}
        }
        open = match next {
            PENDING | PROCESSING => Some(*id),
            _ => open.filter(|open| open != id),
        };
    }
    (states, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(told: &[(&str, i64)]) -> Vec<Line> {
        let line = |(event, id): &(&str, i64)| Line {
            event: format!("supply.settlement.{event}"),
            id: *id,
            key: String::new(),
        };
        told.iter().map(line).collect()
    }

    #[test]
    fn one_after_the_other_is_right_and_ends_where_it_was_told() {
        let told = [
            ("withdraw.create", 1),
            ("withdraw.cancel", 1),
            ("withdraw.create", 4),
            ("payout.start", 4),
            ("payout.complete", 4),
            ("withdraw.create", 5),
        ];
        let (states, wrong) = replay(&lines(&told));
        assert_eq!(wrong, Vec::<String>::new());
        assert_eq!(
            states.into_values().collect::<Vec<_>>(),
            [("failed", "cancelled"), ("completed", ""), PENDING]
        );
    }

    #[test]
    fn two_open_a_step_twice_and_a_step_out_of_turn_are_found() {
        let wrong = |told: &[(&str, i64)]| replay(&lines(told)).1.join("; ");
        let two = wrong(&[("withdraw.create", 1), ("withdraw.create", 2)]);
        assert_eq!(two, "settlement 2 was opened while 1 was open");
        let start = [("withdraw.create", 1), ("payout.start", 1), ("payout.start", 1)];
        assert!(wrong(&start).contains("payout.start () came upon Some((\"processing\", \"\"))"));
        let late = [("withdraw.create", 1), ("payout.start", 1), ("withdraw.cancel", 1)];
        assert!(wrong(&late).contains("withdraw.cancel"));
        assert!(wrong(&[("payout.complete", 7)]).contains("came upon None"));
    }
}
