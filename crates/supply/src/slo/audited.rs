//! Reading the audit over a period: full counts, never a part of the events. Where the database can't count, rows are
//! added up page by page, so that a period may have any number of them. Events' ids begin with the milliseconds of
//! their time and are indexed, so that a period is a range of them.

use std::time::Duration;

use kernel::Time;
use serde_json::Value as Json;
use store::{Error, Query, Store, Value, values};

use super::tally::{Counts, KEPT, SAMPLES};

/// From one instant to another that is not part of it; fractions of a millisecond are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// First instant.
    pub from: Time,
    /// First instant after it.
    pub to: Time,
}

impl Period {
    /// What is answered for at most: a budget's year.
    pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

    /// Its ends as ids that lie before those of all events of these milliseconds: an event's own has its version, too.
    fn ids(self) -> [Value; 2] {
        [self.from, self.to].map(|end| {
            let millis = u64::try_from(end.micros() / 1000).unwrap_or(0);
            let mut id = [0; 16];
            if let Some(head) = id.first_chunk_mut::<6>()
                && let [_, _, low @ ..] = millis.to_be_bytes()
            {
                *head = low;
            }
            id.into()
        })
    }
}

/// Rows that are in memory at a time.
const PAGE: usize = 500;

/// Which events of a period: a condition whose parameters begin at `$3`.
#[derive(Clone, Debug)]
pub(super) struct Which {
    condition: String,
    values: Vec<Value>,
    page: usize,
}

impl Which {
    pub(super) fn new(condition: impl Into<String>, values: Vec<Value>) -> Self {
        Self { condition: condition.into(), values, page: PAGE }
    }

    /// Those of one name.
    pub(super) fn named(name: &str) -> Self {
        Self::new("event_name = $3", values![name])
    }

    fn query(&self, name: &'static str, ids: &[Value; 2], (what, rest): (&str, &str)) -> Query {
        let sql = format!(
            "select {what} from audit_events where event_id > $1 and event_id < $2 and {}{rest}",
            self.condition
        );
        Query::new(name, sql, [ids.to_vec(), self.values.clone()].concat())
    }

    /// How many there are.
    pub(super) async fn count(&self, store: &Store, period: Period) -> Result<u64, Error> {
        self.number(store, period, "count(*)").await
    }

    /// An aggregate over them.
    pub(super) async fn number(&self, store: &Store, period: Period, what: &str) -> Result<u64, Error> {
        let rows = store.query(self.query("slo.count", &period.ids(), (what, ""))).await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The requests of the latest ones.
    pub(super) async fn samples(&self, store: &Store, period: Period) -> Result<Vec<String>, Error> {
        let rest = format!(" order by id desc limit {SAMPLES}");
        let rows = store.query(self.query("slo.samples", &period.ids(), ("request_id", &rest))).await?;
        rows.iter().map(|row| row.text(0).map(ToOwned::to_owned)).collect()
    }

    /// What they say besides, added up in the order of their time.
    pub(super) async fn sum<T: Default>(
        &self,
        store: &Store,
        period: Period,
        add: impl Fn(&mut T, &Json),
    ) -> Result<T, Error> {
        let damaged = |_| Error::Corrupt { table: "audit_events", column: "metadata".into() };
        let rest = format!(" order by event_id limit {}", self.page);
        let (mut ids, mut sum) = (period.ids(), T::default());
        loop {
            let what = ("event_id, cast(metadata as text)", rest.as_str());
            let rows = store.query(self.query("slo.metadata", &ids, what)).await?;
            for row in &rows {
                add(&mut sum, &serde_json::from_str(row.text(1)?).map_err(damaged)?);
            }
            match rows.last() {
                Some(last) if rows.len() >= self.page => ids[0] = last.bytes(0)?.into(),
                _ => return Ok(sum),
            }
        }
    }
}

/// A condition on a member of `metadata`, with its value as JSON; both engines' ways of writing it. Inside a text the
/// quotes would be escaped.
pub(super) fn says(member: &str, value: &str) -> String {
    let text = "cast(metadata as text)";
    format!(r#"({text} like '%"{member}":{value}%' or {text} like '%"{member}": {value}%')"#)
}

/// What servers counted and kept in a period.
///
/// # Errors
/// The store's.
pub async fn kept(store: &Store, period: Period) -> Result<Counts, Error> {
    Which::named(KEPT).sum(store, period, Counts::add_kept).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use door::{AuditRow, Door};
    use serde_json::json;
    use store::Write;
    use store::migration::{CORE, SUPPLY};
    use testkit::canary::Folder;
    use testkit::{CountingRandom, MovableClock};

    use super::*;

    const NOW: Time = Time::from_seconds(1_774_576_984);

    /// A row that a server kept at a time.
    fn tally(n: u64, at: Time, random: &CountingRandom) -> Write {
        let mut row = AuditRow::system(KEPT, "server", "tally".into(), format!("tally:{n}"));
        row.metadata = json!({ "from": at.to_rfc3339_millis(), "reached": 1, "detected": n, "samples": [n.to_string()] });
        row.write(at, random)
    }

    #[tokio::test]
    async fn pages_of_any_size_add_up_to_the_same() {
        let (folder, random) = (Folder::new().unwrap(), Arc::new(CountingRandom::default()));
        let settings = testkit::postgres::settings(folder.path());
        let store =
            Store::open(&settings, &[CORE, SUPPLY], Arc::new(MovableClock::at(NOW.micros() / 1_000_000)));
        let store = store.await.unwrap();
        let door = Door::new(store.clone(), Arc::clone(&random) as _);
        let period = Period { from: NOW, to: NOW.plus(Duration::from_secs(60)) };
        // Two of each millisecond, so that pages end between them; the first is before, the last behind the period.
        let rows = (0..9).map(|n| {
            tally(n, NOW.plus(Duration::from_micros(500 * n)).minus(Duration::from_micros(500)), &random)
        });
        let rows: Vec<Write> = rows.chain([tally(100, period.to, &random)]).collect();
        let write = move |_: Vec<_>, _| Ok((rows.clone(), ()));
        door.maintain("tally", Vec::new(), write).await.unwrap();
        let sum = async |page, to| {
            Which { page, ..Which::named(KEPT) }
                .sum(&store, Period { to, ..period }, Counts::add_kept)
                .await
                .unwrap()
        };
        for page in [1, 2, 3, 4, 7, 8, 9, PAGE] {
            let counts: Counts = sum(page, period.to).await;
            assert_eq!((counts.reached, counts.detected, counts.from), (8, 36, Some(NOW)), "{page}");
            let (mut samples, before) = (counts.samples, sum(page, NOW).await);
            samples.sort();
            assert_eq!(samples, ["1", "2", "3", "4", "5", "6", "7", "8"], "{page}");
            assert_eq!(before, Counts::default(), "{page}: no row");
            let one = sum(page, NOW.plus(Duration::from_millis(1))).await;
            assert_eq!((one.reached, one.detected), (2, 3), "{page}");
        }
    }

    #[test]
    fn a_period_is_a_range_of_ids_that_grow_with_time() {
        let period = Period { from: Time::from_seconds(1), to: Time::from_micros(1_774_576_984_123_999) };
        let id = |millis: u64| {
            let mut id = [0; 16];
            id[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
            Value::from(id)
        };
        assert_eq!(period.ids(), [id(1000), id(1_774_576_984_123)]);
    }
}
