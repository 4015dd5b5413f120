//! Reading the audit over a period: full counts, never a page. Events' ids begin with the milliseconds of their time
//! and are indexed, so that a period is a range of them.

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
    /// Its ends as the smallest ids that an event of these milliseconds can have.
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

/// Which events of a period: a condition whose parameters begin at `$3`.
#[derive(Clone, Debug)]
pub(super) struct Which {
    condition: String,
    values: Vec<Value>,
}

impl Which {
    pub(super) fn new(condition: impl Into<String>, values: Vec<Value>) -> Self {
        Self { condition: condition.into(), values }
    }

    /// Those of one name.
    pub(super) fn named(name: &str) -> Self {
        Self::new("event_name = $3", values![name])
    }

    fn query(&self, name: &'static str, period: Period, (what, rest): (&str, &str)) -> Query {
        let sql = format!(
            "select {what} from audit_events where event_id >= $1 and event_id < $2 and {}{rest}",
            self.condition
        );
        Query::new(name, sql, [period.ids().to_vec(), self.values.clone()].concat())
    }

    /// How many there are.
    pub(super) async fn count(&self, store: &Store, period: Period) -> Result<u64, Error> {
        self.number(store, period, "count(*)").await
    }

    /// An aggregate over them.
    pub(super) async fn number(&self, store: &Store, period: Period, what: &str) -> Result<u64, Error> {
        let rows = store.query(self.query("slo.count", period, (what, ""))).await?;
        let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The requests of the latest ones.
    pub(super) async fn samples(&self, store: &Store, period: Period) -> Result<Vec<String>, Error> {
        let rest = format!(" order by id desc limit {SAMPLES}");
        let rows = store.query(self.query("slo.samples", period, ("request_id", &rest))).await?;
        rows.iter().map(|row| row.text(0).map(ToOwned::to_owned)).collect()
    }

    /// What they say besides.
    pub(super) async fn metadata(&self, store: &Store, period: Period) -> Result<Vec<Json>, Error> {
        let what = ("cast(metadata as text)", " order by id");
        let rows = store.query(self.query("slo.metadata", period, what)).await?;
        let damaged = |_| Error::Corrupt { table: "audit_events", column: "metadata".into() };
        rows.iter().map(|row| serde_json::from_str(row.text(0)?).map_err(damaged)).collect()
    }
}

/// A condition on a member of `metadata` that is true; both engines' ways of writing it. Inside a text the quotes
/// would be escaped.
pub(super) fn is_true(member: &str) -> String {
    let text = "cast(metadata as text)";
    format!(r#"({text} like '%"{member}":true%' or {text} like '%"{member}": true%')"#)
}

/// What servers counted and kept in a period.
///
/// # Errors
/// The store's.
pub async fn kept(store: &Store, period: Period) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    Which::named(KEPT).metadata(store, period).await?.iter().for_each(|row| counts.add_kept(row));
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

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
