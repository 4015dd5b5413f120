//! What one server counts of the requests that it answers, and keeps as rows of the audit: one of a kind each minute,
//! so that nobody can force writes by sending (section 16.2); sooner, and never more often than each 5 s, only where a
//! credential was seen in a URL, whose refusal is a row of its own each time. The kept rows survive restarts and add up
//! over servers; what a server that was killed had not yet kept is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use door::{AuditRow, Door, Failure};
use kernel::Time;
use parking_lot::Mutex;
use serde_json::{Map, Value as Json, json};
use store::{Row, Write};

use super::button::BUTTONS;
use crate::caller::{Caller, Capacity, Object};

/// How a request ended, as it counts (section 18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was done.
    Done,
    /// A repeat that got the answer of before.
    Replayed,
    /// A rule, the protocol or the authentication refused it: right answers, too.
    Refused,
    /// 202: the first one is still running.
    Running,
    /// 202, and the first one has been running for more than 30 s.
    Stuck,
    /// 409 because another writer was faster.
    LostRace,
    /// 5xx.
    Failed,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Done, Self::Replayed, Self::Refused, Self::Running, Self::Stuck, Self::LostRace, Self::Failed];

    /// The word in metrics and kept rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Replayed => "replayed",
            Self::Refused => "refused",
            Self::Running => "running",
            Self::Stuck => "stuck",
            Self::LostRace => "lost_race",
            Self::Failed => "failed",
        }
    }

    /// Whether it counts against the service.
    #[must_use]
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Stuck | Self::LostRace | Self::Failed)
    }
}

/// A twin that runs for longer than this counts against the service.
pub const STUCK_AFTER: Duration = Duration::from_secs(30);

/// Upper ends of the classes of times, in milliseconds; the limits of section 18 are among them. What took longer is
/// a class of its own.
pub const BOUNDS_MS: [u64; 12] = [5, 10, 25, 50, 100, 200, 300, 500, 800, 1200, 2000, 5000];
const CLASSES: usize = BOUNDS_MS.len() + 1;

/// Name of the kept row of everything that section 18 and 19 count.
pub const KEPT: &str = "supply.slo.tally";
/// Names of the kept rows of authentication.
pub const AUTHENTICATED: &str = "token.authn.success";
/// Those that were turned away.
pub const UNAUTHENTICATED: &str = "token.authn.fail";
/// Name of the kept rows of critical writes that came too often: one of an operator (section 7.3).
pub const LIMITED: &str = "supply.write.refused";
/// Ids of requests that are kept as samples.
pub const SAMPLES: usize = 10;

/// Of one button.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    ends: [u64; End::ALL.len()],
    within: [u64; CLASSES],
}

impl Answered {
    /// How many ended so.
    #[must_use]
    pub fn of(&self, end: End) -> u64 {
        self.ends.get(end as usize).copied().unwrap_or(0)
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.ends.iter().sum()
    }

    /// Those that count against the service.
    #[must_use]
    pub fn errors(&self) -> u64 {
        End::ALL.into_iter().filter(|end| end.is_error()).map(|end| self.of(end)).sum()
    }

    /// Milliseconds that 95 of 100 did not exceed, as the upper end of their class; `None` without times, `u64::MAX`
    /// beyond the last bound.
    #[must_use]
    pub fn p95_ms(&self) -> Option<u64> {
        let timed: u64 = self.within.iter().sum();
        if timed == 0 {
            return None;
        }
        let mut seen = 0;
        let classes = self.within.iter().zip(BOUNDS_MS.into_iter().chain([u64::MAX]));
        classes.into_iter().find_map(|(count, bound)| {
            seen += count;
            (seen * 100 >= timed * 95).then_some(bound)
        })
    }

    fn add(&mut self, other: &Self) {
        self.ends.iter_mut().zip(other.ends).for_each(|(sum, more)| *sum += more);
        self.within.iter_mut().zip(other.within).for_each(|(sum, more)| *sum += more);
    }

    fn json(&self) -> Json {
        let ends: Map<String, Json> = End::ALL
            .into_iter()
            .filter(|end| self.of(*end) > 0)
            .map(|end| (end.as_str().to_owned(), self.of(end).into()))
            .collect();
        json!({ "ends": ends, "within": self.within })
    }

    fn read(json: &Json) -> Self {
        let number = |place: Option<&Json>| place.and_then(Json::as_u64).unwrap_or(0);
        let ends = End::ALL.map(|end| number(json.pointer(&format!("/ends/{}", end.as_str()))));
        let mut within = [0; CLASSES];
        let classes = json.get("within").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        // Other bounds are another version's: its times can't be put into these classes.
        if classes.len() == CLASSES {
            within.iter_mut().zip(classes).for_each(|(class, count)| *class = number(Some(count)));
        }
        Self { ends, within }
    }
}

/// Counts of a server since it kept the last, or of all that were kept in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Since when; `None` where nothing was counted.
    pub from: Option<Time>,
    /// For each of [`BUTTONS`].
    pub buttons: [Answered; BUTTONS.len()],
    /// Requests that reached a handler of the API (M-014).
    pub reached: u64,
    /// Those of them whose caller was told by a platform credential.
    pub platform: u64,
    /// Requests with a credential in their URL, as the access layer saw them (M-016).
    pub detected: u64,
    /// Ids of the latest requests that reached a handler.
    pub samples: Vec<String>,
    authenticated: u64,
    unauthenticated: BTreeMap<&'static str, u64>,
    /// By operator.
    limited: BTreeMap<i64, Limited>,
}

/// Critical writes of one operator that came too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limited {
    tenant_id: i64,
    capacity: Capacity,
    role: &'static str,
    count: u64,
}

impl Counts {
    /// Adds what a kept row says; what it does not say is nothing.
    pub(super) fn add_kept(&mut self, row: &Json) {
        let number = |name: &str| row.get(name).and_then(Json::as_u64).unwrap_or(0);
        self.reached += number("reached");
        self.platform += number("platform");
        self.detected += number("detected");
        let from = row.get("from").and_then(Json::as_str).and_then(|text| Time::parse_rfc3339(text).ok());
        self.from = self.from.into_iter().chain(from).min();
        for (button, sum) in BUTTONS.iter().zip(&mut self.buttons) {
            if let Some(kept) = row.get("buttons").and_then(|kept| kept.get(button.id)) {
                sum.add(&Answered::read(kept));
            }
        }
        let samples = row.get("samples").and_then(Json::as_array).into_iter().flatten();
        for sample in samples.filter_map(Json::as_str) {
            self.sampled(sample.to_owned());
        }
    }

    fn sampled(&mut self, id: String) {
        if self.samples.len() >= SAMPLES {
            self.samples.remove(0);
        }
        self.samples.push(id);
    }

    /// Puts back what could not be kept.
    fn add(&mut self, other: Self) {
        self.from = self.from.into_iter().chain(other.from).min();
        self.buttons.iter_mut().zip(&other.buttons).for_each(|(sum, more)| sum.add(more));
        self.reached += other.reached;
        self.platform += other.platform;
        self.detected += other.detected;
        self.authenticated += other.authenticated;
        for (code, count) in other.unauthenticated {
            *self.unauthenticated.entry(code).or_default() += count;
        }
        for (operator, more) in other.limited {
            let sum = self.limited.entry(operator).or_insert(Limited { count: 0, ..more });
            sum.count += more.count;
        }
        other.samples.into_iter().for_each(|id| self.sampled(id));
    }

    fn rows(&self, request_id: &str) -> Vec<AuditRow> {
        let row = |name, metadata| {
            let mut row = AuditRow::system(name, "server", "tally".to_owned(), request_id.to_owned());
            row.action = name;
            row.metadata = metadata;
            row
        };
        let from = self.from.map(Time::to_rfc3339_millis);
        let buttons: Map<String, Json> = BUTTONS
            .iter()
            .zip(&self.buttons)
            .filter(|(_, answered)| answered.all() > 0)
            .map(|(button, answered)| (button.id.to_owned(), answered.json()))
            .collect();
        let mut rows = Vec::new();
        if !buttons.is_empty() || self.reached + self.detected > 0 {
            let metadata = json!({ "from": from, "reached": self.reached, "platform": self.platform,
                "detected": self.detected, "samples": self.samples, "buttons": buttons });
            rows.push(row(KEPT, metadata));
        }
        if self.authenticated > 0 {
            rows.push(row(AUTHENTICATED, json!({ "from": from, "count": self.authenticated })));
        }
        if !self.unauthenticated.is_empty() {
            let count: u64 = self.unauthenticated.values().sum();
            let metadata = json!({ "from": from, "count": count, "codes": self.unauthenticated });
            rows.push(row(UNAUTHENTICATED, metadata));
        }
        let limited = self.limited.iter().map(|(operator, limited)| {
            let Limited { tenant_id, capacity, role, count } = *limited;
            let system = Caller::system(tenant_id, request_id);
            let caller = Caller { operator_id: *operator, capacity, role, idempotency_key: None, ..system };
            let mut row = caller.audit(LIMITED, &Object::row("operator", *operator));
            row.result_code = "SUP_COM_4291".into();
            row.metadata = json!({ "from": from, "count": count });
            row
        });
        rows.extend(limited);
        rows
    }
}

/// What this server counted and has not yet kept.
#[derive(Debug, Default)]
pub struct Tally(Mutex<Counts>);

impl Tally {
    fn count(&self, now: Time, add: impl FnOnce(&mut Counts)) {
        let mut counts = self.0.lock();
        counts.from.get_or_insert(now);
        add(&mut counts);
    }

    /// A request of the button with this number; `took` is left out for those that were turned away at the door.
    pub fn answered(&self, now: Time, button: usize, end: End, took: Option<Duration>) {
        self.count(now, |counts| {
            let Some(answered) = counts.buttons.get_mut(button) else { return };
            if let Some(place) = answered.ends.get_mut(end as usize) {
                *place += 1;
            }
            let Some(took) = took else { return };
            let class = BOUNDS_MS.iter().position(|bound| took <= Duration::from_millis(*bound));
            if let Some(place) = answered.within.get_mut(class.unwrap_or(CLASSES - 1)) {
                *place += 1;
            }
        });
    }

    /// A request that reached a handler; `id` is its own where a platform credential told who calls.
    pub fn reached(&self, now: Time, id: Option<String>) {
        self.count(now, |counts| {
            counts.reached += 1;
            if let Some(id) = id {
                counts.platform += 1;
                counts.sampled(id);
            }
        });
    }

    /// A request with a credential in its URL.
    pub fn detected(&self, now: Time) {
        self.count(now, |counts| counts.detected += 1);
    }

    /// A caller was told by a token.
    pub fn authenticated(&self, now: Time) {
        self.count(now, |counts| counts.authenticated += 1);
    }

    /// A caller was not.
    pub fn unauthenticated(&self, now: Time, code: &'static str) {
        self.count(now, |counts| *counts.unauthenticated.entry(code).or_default() += 1);
    }

    /// A critical write of this caller came too often.
    pub fn limited(&self, now: Time, caller: &Caller) {
        let Caller { tenant_id, operator_id, capacity, role, .. } = *caller;
        let first = Limited { tenant_id, capacity, role, count: 0 };
        self.count(now, |counts| counts.limited.entry(operator_id).or_insert(first).count += 1);
    }

    /// What waits to be kept.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.lock().clone()
    }

    /// Whether something waits that must not wait for its minute: what was detected is compared with what was
    /// refused, which is on record at once.
    #[must_use]
    pub fn is_pressing(&self) -> bool {
        self.0.lock().detected > 0
    }

    /// Keeps what was counted since the last time.
    ///
    /// # Errors
    /// The store does not take it: it stays counted, for the next time.
    pub async fn keep(&self, door: &Door) -> Result<(), Failure> {
        let counts = std::mem::take(&mut *self.0.lock());
        let random = door.random();
        let mut id = [0; 16];
        random.fill(&mut id);
        let request_id = format!("tally:{:032x}", u128::from_be_bytes(id));
        let rows = counts.rows(&request_id);
        if rows.is_empty() {
            return Ok(());
        }
        let plan = move |_: Vec<Vec<Row>>, now: Time| {
            let writes: Vec<Write> = rows.iter().map(|row| row.clone().write(now, &*random)).collect();
            Ok((writes, ()))
        };
        let kept = door.maintain("tally", Vec::new(), plan).await;
        kept.map(drop).inspect_err(|_| self.0.lock().add(counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_seconds(1_774_576_984);

    fn counted() -> Tally {
        let tally = Tally::default();
        for (end, millis) in [(End::Done, 4), (End::Done, 900), (End::Failed, 6000), (End::LostRace, 20)] {
            tally.answered(NOW, 7, end, Some(Duration::from_millis(millis)));
        }
        tally.answered(NOW, 7, End::Refused, None);
        tally.reached(NOW, Some("one".into()));
        tally.reached(NOW, None);
        tally.detected(NOW);
        tally
    }

    #[test]
    fn what_is_kept_is_read_back_and_adds_up() {
        let counts = counted().0.lock().clone();
        let rows = counts.rows("tally:1");
        let mut read = Counts::default();
        read.add_kept(&rows[0].metadata);
        assert_eq!((rows.len(), &read), (1, &counts));
        read.add_kept(&rows[0].metadata);
        let button = read.buttons[7];
        assert_eq!((button.all(), button.errors(), button.of(End::Done)), (10, 4, 4));
        assert_eq!((read.reached, read.platform, read.detected, read.from), (4, 2, 2, Some(NOW)));
    }

    #[test]
    fn the_time_of_ninety_five_in_a_hundred_is_the_end_of_its_class() {
        let tally = Tally::default();
        let p95 = |tally: &Tally| tally.0.lock().buttons[0].p95_ms();
        assert_eq!(p95(&tally), None);
        for n in 0..100 {
            let millis = if n < 95 { 800 } else { 801 };
            tally.answered(NOW, 0, End::Done, Some(Duration::from_millis(millis)));
        }
        assert_eq!(p95(&tally), Some(800));
        tally.answered(NOW, 0, End::Done, Some(Duration::from_secs(60)));
        assert_eq!(p95(&tally), Some(1200));
    }

    #[test]
    fn authentications_are_rows_of_their_own_and_nothing_is_none() {
        assert!(Counts::default().rows("tally:1").is_empty());
        let tally = Tally::default();
        tally.authenticated(NOW);
        tally.unauthenticated(NOW, "AUTH_INVALID_TOKEN");
        let counts = tally.0.lock().clone();
        let names: Vec<_> = counts.rows("tally:1").into_iter().map(|row| row.event_name).collect();
        assert_eq!(names, [AUTHENTICATED, UNAUTHENTICATED]);
    }

    #[test]
    fn writes_that_came_too_often_are_one_row_of_each_operator() {
        let tally = Tally::default();
        let caller = |operator_id| Caller { operator_id, ..Caller::system(7, "r") };
        for operator in [9, 8, 9, 9] {
            tally.limited(NOW, &caller(operator));
        }
        let mut counts = tally.counts();
        counts.add(tally.counts());
        let rows = counts.rows("tally:1");
        let told: Vec<_> = rows.iter().map(|row| (row.operator_id, &row.metadata["count"])).collect();
        assert_eq!(told, [(8, &json!(2)), (9, &json!(6))]);
        assert!(rows.iter().all(|row| (row.event_name, row.tenant_id) == (LIMITED, 7)));
    }

    #[test]
    fn what_counts_against_the_service() {
        let errors: Vec<_> = End::ALL.into_iter().filter(|end| end.is_error()).map(End::as_str).collect();
        assert_eq!(errors, ["stuck", "lost_race", "failed"]);
    }
}
