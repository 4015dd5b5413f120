//! Erasure of what is personal: an event's content, its certificate's content, files, raw payload, search
//! words, announcement. Reference, hashes, states and arrivals stay, and links answer 410.

use door::AuditRow;
use kernel::Time;
use serde_json::{Map, Value as Json, json};
use store::{Error, Query, Row, Write, values};

use crate::acts::Refused;
use crate::intake::AuditVisa;
use crate::shelf::Form;

/// The event itself, and those that point at its certificate.
const CONCERNED: &str =
    "select id, ref, response_body from certify_events where id = $1 or certificate_event = $2 {for_update}";

impl AuditVisa {
    /// Erases an event's content, and that of the events which point at the same certificate.
    ///
    /// # Errors
    /// [`Refused`], with nothing erased; or, when only a file could not be removed, with that file's cause.
    pub async fn erase(&self, event: &str, operator: &str) -> Result<Json, Refused> {
        let row = self.only(event).await?;
        let reference = row.text(1)?.to_owned();
        let owner = row.int_or_null(21)?.unwrap_or(row.int(0)?);
        let slug = row.text_or_null(18)?.map(ToOwned::to_owned);
        let request = format!("erase:{operator}");
        let mut audit = AuditRow::system("certify.event.erase", "certify_event", reference.clone(), request);
        audit.metadata = json!({ "by": operator });
        audit.after_state = json!({ "mark": "erased" });
        let random = self.door.random();
        let reads = vec![Query::new("erase.concerned", CONCERNED, values![owner, owner])];
        let plan = move |rows: Vec<Vec<Row>>, now| {
            let mut writes = of_certificate(owner);
            for row in rows.into_iter().flatten() {
                writes.extend(of_event(&row, now)?);
            }
            writes.push(audit.clone().write(now, &*random));
            Ok((writes, ()))
        };
        self.door.maintain("erase", reads, plan).await?;
        if let Some(buffer) = self.buffer.read().as_ref() {
            buffer.forget();
        }
        for slug in slug.iter() {
            for form in Form::ALL {
                let removed = self.shared.shelf.remove(slug, form).await;
                removed.map_err(|cause| {
                    Refused::Input(format!("erased, but {cause}; run `onceseal reconcile`"))
                })?;
            }
        }
        Ok(json!({ "ref": reference, "erased": true }))
    }
}

fn of_certificate(event: i64) -> Vec<Write> {
    let run = "update certify_certificates set run = null where event = $1";
    vec![Write::any("certificates.erase", run, values![event])]
}

fn of_event(row: &Row, now: Time) -> Result<Vec<Write>, Error> {
    let (event, reference) = (row.int(0)?, row.text(1)?);
    let object = format!("certify_event:{reference}");
    let content = "update certify_events set input = null, sid = null, response_body = $1, mark = 'erased' where id = $2";
    let told = "update outbox set payload = '{\"kind\":\"erased\"}' where id in (select outbox_id from outbox_deliveries where object_key = $1)";
    let waiting = "update outbox_deliveries set status = 'dead', error = 'erased', updated_at = $1 where object_key = $2 and status = 'pending'";
    Ok(vec![
        Write::one("events.erase", content, values![row.text_or_null(2)?.map(without_person), event]),
        Write::any("payloads.erase", "delete from certify_payloads where event = $1", values![event]),
        Write::any("search.erase", "delete from certify_search where event = $1", values![event]),
        Write::any("steps.erase", "delete from certify_steps where event = $1", values![event]),
        Write::any("outbox.erase", told, values![&object]),
        Write::any("deliveries.erase", waiting, values![now, object]),
    ])
}

/// An outcome without what tells of the payment itself.
fn without_person(body: &str) -> String {
    let mut outcome: Map<String, Json> = serde_json::from_str(body).unwrap_or_default();
    outcome.insert("sid".into(), Json::Null);
    outcome.remove("summary");
    Json::Object(outcome).to_string()
}
