//! Buttons and metrics over a period, out of the database alone: what every server kept of its requests (times and
//! failures included, which leave no other row), and the audit. What a server that was killed had not yet kept is
//! missing: at most its last minute.

use serde::Serialize;
use serde_json::Value as Json;
use store::{Error, Store};

use super::audited::{Period, Which, kept};
use super::button::{BUTTONS, Button, WHOLE};
use super::gate::{METRICS, Reading, Span, Status};
use super::tally::{Answered, End};
use crate::code::Code;
use crate::exact::Exact;

/// What all promises came to.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Over which time.
    pub period: Span,
    /// Section 18.
    pub buttons: Vec<Standing>,
    /// Section 19.
    pub metrics: Vec<Reading>,
}

/// What one button's promise came to.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// `BTN-SET-002`.
    pub button: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// The same in Chinese.
    pub name_zh: &'static str,
    /// Requests that were answered.
    pub requests: u64,
    /// Those that count against the service.
    pub errors: u64,
    /// Right refusals.
    pub refused: u64,
    /// Repeats that got the answer of before.
    pub replayed: u64,
    /// Percent that did not fail; nothing where nothing was asked.
    pub success_pct: Option<Exact>,
    /// Percent that must not fail.
    pub objective_pct: Exact,
    /// Percent of the error budget that is left.
    pub budget_left_pct: Option<Exact>,
    /// Milliseconds that 95 of 100 did not exceed, as the upper end of their class; nothing where nothing was timed,
    /// or they took longer than the last class.
    pub p95_ms: Option<u64>,
    /// What they must not exceed.
    pub p95_limit_ms: Option<u64>,
    /// Percent that was lost to a faster writer.
    pub conflict_pct: Option<Exact>,
    /// What that must not exceed.
    pub conflict_limit_pct: Option<Exact>,
    /// Of the batch price: percent of the failed items that are explained.
    pub explained_pct: Option<Exact>,
    /// Percent of them that must be.
    pub explained_objective_pct: Option<Exact>,
    /// Percent of that budget that is left: of a budget of 0 all, or nothing after the first.
    pub explained_budget_left_pct: Option<Exact>,
    /// Whether all of it is kept.
    pub status: Status,
}

impl Report {
    /// Over a period.
    ///
    /// # Errors
    /// The store's.
    pub async fn of(store: &Store, period: Period) -> Result<Self, Error> {
        let (counts, explained) = (kept(store, period).await?, Explained::of(store, period).await?);
        let standing = |(button, answered): (&Button, &Answered)| {
            let explained = button.explained.map(|_| explained);
            standing(button, answered, explained)
        };
        let buttons = BUTTONS.iter().zip(&counts.buttons).map(standing).collect();
        let mut metrics = Vec::new();
        for metric in &METRICS {
            metrics.push(metric.beside(store, period, &counts).await?);
        }
        Ok(Self { period: period.into(), buttons, metrics })
    }

    /// Whether a promise is broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        let buttons = self.buttons.iter().map(|button| button.status);
        buttons.chain(self.metrics.iter().map(|metric| metric.status)).any(|status| status == Status::Fail)
    }
}

fn standing(button: &Button, answered: &Answered, explained: Option<Explained>) -> Standing {
    let (requests, errors, lost) = (answered.all(), answered.errors(), answered.of(End::LostRace));
    let p95 = answered.p95_ms();
    let limit = button.p95.map(|p95| u64::try_from(p95.as_millis()).unwrap_or(u64::MAX));
    let some = |part: u64, whole: u64| (whole > 0).then(|| Exact::percent_cut(part, whole));
    let allowed = requests.saturating_mul(button.budget().into());
    let spent = errors.saturating_mul(WHOLE.into());
    let at_most = |part: u64, most: u32| {
        u128::from(part) * u128::from(WHOLE) <= u128::from(requests) * u128::from(most)
    };
    let kept = at_most(errors, button.budget())
        && button.conflicts.is_none_or(|most| at_most(lost, most))
        && limit.is_none_or(|limit| p95.is_none_or(|p95| p95 <= limit))
        && explained.is_none_or(|it| it.unexplained() == 0);
    Standing {
        button: button.id,
        name: button.name,
        name_zh: button.name_zh,
        requests,
        errors,
        refused: answered.of(End::Refused),
        replayed: answered.of(End::Replayed),
        success_pct: some(requests - errors, requests),
        objective_pct: Exact::percent_cut(button.success.into(), WHOLE.into()),
        budget_left_pct: some(allowed.saturating_sub(spent), allowed),
        p95_ms: p95.filter(|p95| *p95 < u64::MAX),
        p95_limit_ms: limit,
        conflict_pct: some(lost, requests),
        conflict_limit_pct: button.conflicts.map(|most| Exact::percent_cut(most.into(), WHOLE.into())),
        explained_pct: explained.and_then(|it| some(it.explained, it.failed)),
        explained_objective_pct: button.explained.map(|least| Exact::percent_cut(least.into(), WHOLE.into())),
        explained_budget_left_pct: explained
            .filter(|it| it.failed > 0)
            .map(|it| Exact::percent_cut(u64::from(it.unexplained() == 0), 1)),
        status: match (requests, kept) {
            (0, true) => Status::NoSample,
            (_, true) => Status::Pass,
            (_, false) => Status::Fail,
        },
    }
}

/// Failed items of batches in a period that nothing explains: there must be none (section 18, BTN-PKG-005).
///
/// # Errors
/// The store's.
pub async fn unexplained(store: &Store, period: Period) -> Result<u64, Error> {
    Ok(Explained::of(store, period).await?.unexplained())
}

/// The batch price's action.
const BATCH: &str = "supply.package.price.batch_update";

/// Failed items of batches, and those with a package, a code that there is, and so a message; of a batch whose sums do
/// not agree none counts as explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Explained {
    failed: u64,
    explained: u64,
}

impl Explained {
    const fn unexplained(self) -> u64 {
        self.failed.saturating_sub(self.explained)
    }

    async fn of(store: &Store, period: Period) -> Result<Self, Error> {
        let which = Which::new(format!("event_name = '{BATCH}' and result_code = 'OK'"), Vec::new());
        which.sum(store, period, Self::add).await
    }

    fn add(&mut self, batch: &Json) {
        let number = |name: &str| batch.get(name).and_then(Json::as_u64).unwrap_or(0);
        let items = batch.get("failed_items").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_explained = |item: &&Json| {
            let code = item.get("error_code").and_then(Json::as_str);
            let known = code.is_some_and(|code| Code::ALL.iter().any(|known| known.as_str() == code));
            known && item.get("package_id").is_some_and(|id| !id.is_null())
        };
        let explained = u64::try_from(items.iter().filter(is_explained).count()).unwrap_or(0);
        let failed = number("failed").max(u64::try_from(items.len()).unwrap_or(u64::MAX));
        let agrees = number("total") == number("success") + number("failed");
        self.failed += failed;
        self.explained += if agrees { explained } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kernel::Time;
    use serde_json::json;

    use super::*;
    use crate::slo::tally::{Counts, Tally};

    fn told(id: &str, ends: &[(End, u64, u64)]) -> Standing {
        let number = BUTTONS.iter().position(|button| button.id == id).unwrap();
        let tally = Tally::default();
        for (end, count, millis) in ends {
            for _ in 0..*count {
                tally.answered(Time::from_seconds(1), number, *end, Some(Duration::from_millis(*millis)));
            }
        }
        let counts: Counts = tally.counts();
        standing(&BUTTONS[number], &counts.buttons[number], None)
    }

    #[test]
    fn a_budget_is_spent_by_errors_and_not_by_refusals() {
        let fine = told("BTN-ACC-002", &[(End::Done, 900, 40), (End::Refused, 99, 5), (End::Failed, 1, 40)]);
        assert_eq!((fine.errors, fine.status), (1, Status::Pass));
        assert_eq!(fine.budget_left_pct.unwrap().text(), "80", "five were allowed");
        let spent = told("BTN-ACC-002", &[(End::Done, 99, 40), (End::Failed, 1, 40)]);
        assert_eq!((spent.status, spent.budget_left_pct.unwrap().text()), (Status::Fail, "0"));
        assert_eq!(told("BTN-ACC-002", &[]).status, Status::NoSample);
        // Its server was killed before it kept the request; the audit has the batch.
        let batch = &BUTTONS[BUTTONS.iter().position(|button| button.id == "BTN-PKG-005").unwrap()];
        let unexplained = Explained { failed: 2, explained: 1 };
        let told = standing(batch, &Answered::default(), Some(unexplained));
        let left = told.explained_budget_left_pct.unwrap();
        assert_eq!((told.status, told.explained_pct.unwrap().text(), left.text()), (Status::Fail, "50", "0"));
    }

    #[test]
    fn times_and_lost_races_have_limits_of_their_own() {
        let slow = told("BTN-ACC-001", &[(End::Done, 90, 40), (End::Done, 10, 900)]);
        assert_eq!((slow.p95_ms, slow.status), (Some(1200), Status::Fail));
        let endless = told("BTN-SET-002", &[(End::Done, 10, 60_000)]);
        assert_eq!((endless.p95_ms, endless.status), (None, Status::Fail));
        let raced = told("BTN-PKG-002", &[(End::Done, 996, 40), (End::LostRace, 4, 40)]);
        assert_eq!((raced.conflict_pct.unwrap().text(), raced.status), ("0.4", Status::Fail));
    }

    #[test]
    fn an_item_is_explained_by_its_package_and_a_code_that_there_is() {
        let item = |code: &str| json!({ "package_id": 9, "error_code": code });
        let batch = |items: Json, total: u64| json!({ "total": total, "success": 1, "failed": 2, "failed_items": items });
        let explained = |batch: &Json| {
            let mut sum = Explained::default();
            sum.add(batch);
            sum
        };
        let both = json!([item("SUP_PKG_4041"), item("SUP_PKG_4001")]);
        assert_eq!(explained(&batch(both.clone(), 3)), Explained { failed: 2, explained: 2 });
        assert_eq!(explained(&batch(both, 4)), Explained { failed: 2, explained: 0 }, "sums that differ");
        let one = json!([item("SUP_PKG_4041"), item("?")]);
        assert_eq!(explained(&batch(one, 3)), Explained { failed: 2, explained: 1 });
        assert_eq!(explained(&batch(json!([]), 3)), Explained { failed: 2, explained: 0 });
    }
}
