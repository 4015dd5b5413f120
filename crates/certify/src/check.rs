//! The whole store against itself and the files (`onceseal check`): every certificate is made again
//! from its record and compared, every event's rows are counted against its state.

use kernel::Digest;
use serde_json::{Value as Json, json};
use store::{Query, values};

use crate::acts::Refused;
use crate::delivery::{hash_of, recorded};
use crate::intake::AuditVisa;
use crate::shelf::Form;
use crate::sql;

/// Certificates compared at a time.
const BATCH: i64 = 256;
/// Problems listed; more are counted.
const PROBLEMS_SHOWN: usize = 200;

/// Contradictions that single statements can see: what is wrong, and the events it is wrong with.
const RULES: [(&str, &str); 8] = [
    (
        "processed, but has no certificate",
        "select ref from certify_events e where status = 'processed' and mark is null and certificate_event is null and not exists (select 1 from certify_certificates c where c.event = e.id) limit 200",
    ),
    (
        "points at an event without a certificate",
        "select ref from certify_events e where certificate_event is not null and not exists (select 1 from certify_certificates c where c.event = e.certificate_event) limit 200",
    ),
    (
        "processed, but has no outcome",
        "select ref from certify_events where status = 'processed' and response_code is null limit 200",
    ),
    (
        "has no arrival",
        "select ref from certify_events e where mark is null and not exists (select 1 from certify_arrivals a where a.event = e.id) limit 200",
    ),
    (
        "its last state is another than its row says",
        "select ref from certify_events e where status <> (select t.status from certify_transitions t where t.event = e.id order by t.n desc limit 1) limit 200",
    ),
    (
        "has gaps in its arrivals",
        "select e.ref from certify_events e join (select event, count(*) as c, max(n) as m from certify_arrivals group by event) a on a.event = e.id where a.c <> a.m limit 200",
    ),
    (
        "has a certificate and no announcement on record",
        "select e.ref from certify_events e join certify_certificates c on c.event = e.id where e.ref not in (select o.object_id from outbox o where o.event_name = 'certify.certificate.issue.succeeded') limit 200",
    ),
    (
        "has no audit row",
        "select ref from certify_events where status in ('processed', 'received') and ref not in (select object_id from audit_events) limit 200",
    ),
];

/// All problems counted, the first ones kept.
#[derive(Default)]
struct Problems {
    count: u64,
    list: Vec<Json>,
}

impl Problems {
    fn push(&mut self, problem: Json) {
        self.count += 1;
        if self.list.len() < PROBLEMS_SHOWN {
            self.list.push(problem);
        }
    }
}

impl AuditVisa {
    /// Checks everything and changes nothing.
    ///
    /// # Errors
    /// [`Refused::Failure`] when the store can't be read to its end.
    pub async fn check(&self) -> Result<Json, Refused> {
        let mut problems = Problems::default();
        for text in self.door.store().integrity().await? {
            problems.push(json!({ "what": "the database file itself", "detail": text }));
        }
        for (what, sql) in RULES {
            for row in self.door.store().query(Query::new("check.rule", sql, vec![])).await? {
                problems.push(json!({ "what": what, "ref": row.text(0)? }));
            }
        }
        let certificates = self.check_certificates(&mut problems).await?;
        let count = Query::new(
            "check.count",
            "select count(*), (select count(*) from certify_arrivals) from certify_events",
            vec![],
        );
        let counted = self.door.store().query(count).await?;
        let number = |column| counted.first().and_then(|row| row.int(column).ok()).unwrap_or(0);
        Ok(json!({
            "events": number(0),
            "arrivals": number(1),
            "certificates": certificates,
            "problems": problems.count,
            "list": problems.list,
        }))
    }

    async fn check_certificates(&self, problems: &mut Problems) -> Result<u64, Refused> {
        let (mut after, mut count) = (0, 0);
        loop {
            let query = Query::new("certificates.after", sql::CERTIFICATES_AFTER, values![after, BATCH]);
            let rows = self.door.store().query(query).await?;
            let Some(last) = rows.last() else { return Ok(count) };
            after = last.int(0)?;
            for row in &rows {
                count += 1;
                let Some(kept) = recorded(row)?.1 else { continue };
                if let Err(cause) = self.rebuild(&kept).await {
                    problems.push(json!({ "what": "the record can't give its files again", "slug": kept.slug, "detail": cause.to_string() }));
                }
                for form in Form::ALL {
                    let what = match self.shared.shelf.get(&kept.slug, form).await {
                        Ok(Some(bytes)) if Digest::of(&bytes) == hash_of(&kept, form) => continue,
                        Ok(Some(_)) => "a file has another hash than its record",
                        Ok(None) => "a file is missing (it is rebuilt when asked for)",
                        Err(_) => "a file can't be read",
                    };
                    problems.push(json!({ "what": what, "slug": kept.slug, "form": form.extension() }));
                }
            }
        }
    }
}
