//! Every arrival, every state, every file of an event, answered in one call: the nine fields of section
//! 12.1 and the seven questions of section 12.2.

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::{Digest, Time};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use store::{Error, Query, Row, Value, values};

use crate::identity::{Identity, Plain};
use crate::intake::AuditVisa;
use crate::rows::word;
use crate::shelf::Form;

/// Most events on one page of a list.
pub const PAGE_MAX: u32 = 200;
/// Arrivals shown with an event; the count is always whole.
const ARRIVALS_SHOWN: u32 = 1000;

/// What to list. All conditions given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Checkout session.
    pub session: Option<String>,
    /// Payment.
    pub payment: Option<String>,
    /// Mail address; compared by its keyed digest, never stored.
    pub mail: Option<String>,
    /// `received`, `processing`, `processed`, `failed`, `orphaned`.
    pub status: Option<String>,
    /// Source name.
    pub source: Option<String>,
    /// First arrival not before this, RFC 3339.
    pub since: Option<String>,
    /// First arrival before this, RFC 3339.
    pub until: Option<String>,
    /// Only events before this one (`next` of the last page).
    pub before: Option<i64>,
    /// Events on the page, 1 to [`PAGE_MAX`].
    pub limit: Option<u32>,
}

/// A filter that can't be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FilterError {
    /// A value.
    #[error("{name}: {cause}")]
    Value {
        /// Which parameter.
        name: &'static str,
        /// What is wrong with it.
        cause: String,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
}

const COLUMNS: &str = "e.id, e.ref, e.source, e.scope, e.event_id, e.event_type, e.mode, e.occurred_at, e.sid, e.payload_hash, e.reason, e.cause, e.mark, e.status, e.attempt_no, e.response_body, e.created_at, e.updated_at, c.slug, c.run_hash, c.key_id, c.event, e.certificate_event";
const FROM: &str =
    "from certify_events e left join certify_certificates c on c.event = coalesce(e.certificate_event, e.id)";

impl AuditVisa {
    /// Everything about an event, by its reference or the sender's id; several when the id is known to
    /// several accounts. `source` narrows the search.
    ///
    /// # Errors
    /// The store's.
    pub async fn show(&self, event: &str, source: Option<&str>) -> Result<Vec<Json>, Error> {
        let mut found = Vec::new();
        for row in self.find(event).await? {
            if source.is_none_or(|name| row.text(2).is_ok_and(|kept| kept == name)) {
                found.push(self.detail(&row).await?);
            }
        }
        Ok(found)
    }

    /// Rows of events with this reference or sender's id. The reference is a function of account and id,
    /// so the unique index on it answers for every account that is configured; an event of an account
    /// that no longer is must be asked for by its reference.
    pub(crate) async fn find(&self, event: &str) -> Result<Vec<Row>, Error> {
        let named = |endpoint: &Arc<crate::Endpoint>| {
            Identity::new(endpoint.source.account(), event, Plain::No).reference
        };
        let mut references: BTreeSet<String> = self.endpoints().values().map(named).collect();
        references.extend([event.to_owned(), format!("av_{event}")]);
        let sql = format!("select {COLUMNS} {FROM} where e.ref = $1");
        let queries =
            references.into_iter().map(|name| Query::new("events.by_ref", sql.clone(), values![name]));
        Ok(self.door.store().queries(queries.collect()).await?.concat())
    }

    async fn detail(&self, row: &Row) -> Result<Json, Error> {
        let id = row.int(0)?;
        let announced = row.text(1)?.to_owned();
        let queries = vec![
            Query::new(
                "arrivals.count",
                "select count(*), min(received_at), max(received_at), count(*) filter (where verdict = 'duplicate_reused'), count(*) filter (where differs = 'payload'), count(*) filter (where differs = 'rendering') from certify_arrivals where event = $1",
                values![id],
            ),
            Query::new(
                "arrivals.list",
                "select n, received_at, source, verdict, differs, payload_hash, request_id, trace_id, client_ip from certify_arrivals where event = $1 order by n limit $2",
                values![id, i64::from(ARRIVALS_SHOWN)],
            ),
            Query::new(
                "transitions.list",
                "select n, status, at, note from certify_transitions where event = $1 order by n",
                values![id],
            ),
            Query::new(
                "announcements.list",
                "select d.id, d.destination, d.status, d.attempt, d.outcome, d.error, o.event_name, d.updated_at from outbox o join outbox_deliveries d on d.outbox_id = o.id where d.object_key = $1 order by d.id limit 200",
                values![format!("certify_event:{announced}")],
            ),
            Query::new(
                "events.related",
                format!(
                    "select {COLUMNS} {FROM} where e.id <> $1 and e.id in (select s.event from certify_search s where s.word in (select word from certify_search where event = $2)) order by e.id limit 50"
                ),
                values![id, id],
            ),
        ];
        let answers = self.door.store().queries(queries).await?;
        let [count, arrivals, transitions, announcements, related] = <[Vec<Row>; 5]>::try_from(answers)
            .map_err(|_| Error::Statement { name: "events.detail", cause: "five answers".into() })?;
        let mut event = self.event(row)?;
        let count = count.first();
        let number = |column| count.and_then(|row| row.int_or_null(column).ok().flatten()).unwrap_or(0);
        event.insert("arrivals".into(), number(0).into());
        event.insert("duplicates".into(), number(3).into());
        event.insert("questions".into(), questions(row, count, &announcements)?);
        event.insert("arrival_list".into(), list(&arrivals, arrival)?);
        event.insert("transitions".into(), list(&transitions, transition)?);
        event.insert("announcements".into(), list(&announcements, announcement)?);
        let related =
            related.iter().map(|row| self.event(row).map(Json::Object)).collect::<Result<Vec<_>, _>>()?;
        event.insert("related".into(), related.into());
        Ok(Json::Object(event))
    }

    /// An event as a list shows it: section 8.1's fields and 12.1's.
    fn event(&self, row: &Row) -> Result<Map<String, Json>, Error> {
        let time = |column| Ok::<_, Error>(row.time_or_null(column)?.map(Time::to_rfc3339_seconds));
        let slug = row.text_or_null(18)?;
        let link =
            |form: Form| slug.map(|slug| format!("{}/d/{slug}.{}", self.shared.issuer.url, form.extension()));
        let path = |form: Form| slug.map(|slug| self.shared.shelf.path(slug, form).display().to_string());
        let json = json!({
            "event_id": row.text(4)?,
            "ref": row.text(1)?,
            "sid": row.text_or_null(8)?,
            "status": row.text(13)?,
            "source": row.text(2)?,
            "account": row.text(3)?,
            "type": row.text(5)?,
            "mode": row.text(6)?,
            "occurred_at": time(7)?,
            "created_at": time(16)?,
            "updated_at": time(17)?,
            "payload_hash": known(row.bytes(9)?),
            "run_hash": row.bytes_or_null(19)?.map(hex::encode),
            "signature_status": signature_status(row)?,
            "key_id": row.text_or_null(20)?,
            "reason": row.text_or_null(10)?,
            "cause": row.text_or_null(11)?,
            "mark": row.text_or_null(12)?,
            "attempts": row.int(14)?,
            "html_url": link(Form::Html),
            "zip_url": link(Form::Zip),
            "json_url": link(Form::Json),
            "paths": Form::ALL.map(path),
            "number": row.int(0)?,
        });
        match json {
            Json::Object(map) => Ok(map),
            _ => Ok(Map::new()),
        }
    }

    /// Events, newest first, with the number to give as `before` for the next page.
    ///
    /// # Errors
    /// [`FilterError`] names the parameter that can't be used.
    pub async fn list(&self, filter: &Filter) -> Result<Json, FilterError> {
        let limit = filter.limit.unwrap_or(50);
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(FilterError::Value { name: "limit", cause: format!("1 to {PAGE_MAX}, not {limit}") });
        }
        let (conditions, values) = self.conditions(filter)?;
        let sql = format!(
            "select {COLUMNS} {FROM}{} order by e.id desc limit ${}",
            if conditions.is_empty() {
                String::new()
            } else {
                format!(" where {}", conditions.join(" and "))
            },
            values.len() + 1
        );
        let values = [values, values![i64::from(limit)]].concat();
        let rows = self.door.store().query(Query::new("events.list", sql, values)).await?;
        let next =
            if rows.len() == limit as usize { rows.last().map(|row| row.int(0)).transpose()? } else { None };
        let events =
            rows.iter().map(|row| self.event(row).map(Json::Object)).collect::<Result<Vec<_>, _>>()?;
        Ok(json!({ "events": events, "next": next }))
    }

    fn conditions(&self, filter: &Filter) -> Result<(Vec<String>, Vec<Value>), FilterError> {
        let (mut conditions, mut values) = (Vec::new(), Vec::new());
        let mut add = |text: &str, value: Value| {
            values.push(value);
            conditions.push(text.replace('$', &format!("${}", values.len())));
        };
        let mut words = Vec::new();
        words.extend(filter.session.as_deref().map(|text| word("sid", text)));
        words.extend(filter.payment.as_deref().map(|text| word("payment", text)));
        words.extend(filter.mail.as_deref().map(|mail| Digest::of(&self.keys().mail_digest(mail)).word()));
        for word in words {
            add("e.id in (select event from certify_search where word = $)", word.into());
        }
        if let Some(status) = &filter.status {
            if !["received", "processing", "processed", "failed", "orphaned"].contains(&status.as_str()) {
                return Err(FilterError::Value {
                    name: "status",
                    cause: format!("{status:?} is not a state"),
                });
            }
            add("e.status = $", status.into());
        }
        if let Some(source) = &filter.source {
            add("e.source = $", source.into());
        }
        for (name, text, condition) in
            [("since", &filter.since, "e.created_at >= $"), ("until", &filter.until, "e.created_at < $")]
        {
            if let Some(text) = text {
                let time = Time::parse_rfc3339(text)
                    .map_err(|cause| FilterError::Value { name, cause: cause.to_string() })?;
                add(condition, time.into());
            }
        }
        if let Some(before) = filter.before {
            add("e.id < $", before.into());
        }
        Ok((conditions, values))
    }

    /// Counts by state and the age of the oldest open work, for status and metrics.
    ///
    /// # Errors
    /// The store's.
    pub async fn standing(&self) -> Result<Json, Error> {
        let open = "select status, count(*), min(updated_at) from certify_events where status in ('processing', 'failed', 'orphaned') and response_code is null group by status";
        let held = "select status, count(*), min(updated_at) from outbox_deliveries where status in ('pending', 'sending') group by status
            union all select status, count(*), min(updated_at) from outbox_deliveries where status in ('refused', 'uncertain', 'dead') group by status";
        let queries =
            vec![Query::new("events.open", open, vec![]), Query::new("deliveries.open", held, vec![])];
        let answers = self.door.store().queries(queries).await?;
        let now = self.clock.now();
        let mut groups = Vec::new();
        for rows in &answers {
            let mut group = Map::new();
            for row in rows {
                let age = now.since(row.time(2)?).as_secs();
                group.insert(row.text(0)?.into(), json!({ "count": row.int(1)?, "oldest_age_s": age }));
            }
            groups.push(Json::Object(group));
        }
        let deliveries = groups.pop().unwrap_or_default();
        let events = groups.pop().unwrap_or_default();
        Ok(
            json!({ "events": events, "announcements": deliveries, "waiting_writes": self.door.store().waiting() }),
        )
    }
}

/// A hash in hex; null where it is not known, as of imported events.
fn known(hash: &[u8]) -> Option<String> {
    (hash != Digest::UNKNOWN.as_bytes()).then(|| hex::encode(hash))
}

fn signature_status(row: &Row) -> Result<&'static str, Error> {
    Ok(match (row.text_or_null(20)?, row.text_or_null(12)?) {
        (Some(_), _) => "signed",
        (None, Some("imported")) => "foreign",
        (None, _) => "none",
    })
}

/// Section 12.2, question by question.
fn questions(row: &Row, count: Option<&Row>, announcements: &[Row]) -> Result<Json, Error> {
    let number = |column| count.and_then(|row| row.int_or_null(column).ok().flatten()).unwrap_or(0);
    let first = count.and_then(|row| row.time_or_null(1).ok().flatten());
    let result: Option<Json> = row.text_or_null(15)?.and_then(|body| serde_json::from_str(body).ok());
    let mut side_effects = Vec::new();
    if number(4) > 0 {
        side_effects
            .push(format!("{} arrivals carried another payload under this id; the first stands", number(4)));
    }
    if row.text(13)? == "orphaned" {
        side_effects.push("record and files disagree".to_owned());
    }
    for announcement in announcements {
        if matches!(announcement.text(2)?, "uncertain" | "refused" | "dead") {
            side_effects.push(format!(
                "announcement to {} is {}",
                announcement.text(1)?,
                announcement.text(2)?
            ));
        }
    }
    Ok(json!({
        "1_arrived": number(0) > 0,
        "2_how_often": number(0),
        "3_first_processing": first.map(Time::to_rfc3339_seconds),
        "4_repeated": number(0) > 1,
        "5_reused": number(3) > 0,
        "6_formal_result": result,
        "7_inconsistent_side_effects": side_effects,
    }))
}

fn list(rows: &[Row], one: fn(&Row) -> Result<Json, Error>) -> Result<Json, Error> {
    rows.iter().map(one).collect::<Result<Vec<_>, _>>().map(Json::Array)
}

fn arrival(row: &Row) -> Result<Json, Error> {
    Ok(json!({
        "n": row.int(0)?,
        "received_at": row.time(1)?.to_string(),
        "source": row.text(2)?,
        "verdict": row.text(3)?,
        "differs": row.text(4)?,
        "payload_hash": known(row.bytes(5)?),
        "request_id": row.text(6)?,
        "trace_id": row.text(7)?,
        "client_ip": row.text_or_null(8)?,
    }))
}

fn transition(row: &Row) -> Result<Json, Error> {
    Ok(json!({ "status": row.text(1)?, "at": row.time(2)?.to_string(), "note": row.text_or_null(3)? }))
}

fn announcement(row: &Row) -> Result<Json, Error> {
    Ok(json!({
        "id": row.int(0)?,
        "destination": row.text(1)?,
        "status": row.text(2)?,
        "attempts": row.int(3)?,
        "outcome": row.text_or_null(4)?,
        "error": row.text_or_null(5)?,
        "event_name": row.text(6)?,
        "updated_at": row.time(7)?.to_string(),
    }))
}
