//! The inbound protocol of the five writes (section 2.2): both headers, their forms, and that they reach the service as
//! they were sent.

use super::super::check::{Book, Check};
use super::super::desk::{Desk, Write, code, is};
use super::super::list::WRITES;
use super::super::raw::Raw;
use super::super::stage::Stage;

const ID: &str = "x-request-id";
const KEY: &str = "idempotency-key";
const GOOD_ID: &str = "6f1c0000-0000-4000-8000-0000000000aa";
const GOOD_KEY: &str = "key-of-the-gate-0001";

pub(super) async fn run(stage: &Stage, book: &Book) {
    for write in WRITES {
        book.check(&format!("HDR.{write}"), async |check| forms(stage, check, write).await).await;
    }
}

/// What it is, the headers, and the code that they are refused with.
type Form<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

/// The write with these headers, and no others of the protocol.
fn raw(desk: &Desk<'_>, write: &Write, headers: &[(&str, &str)]) -> Raw {
    let body = if write.body.is_null() { String::new() } else { write.body.to_string() };
    let mut raw = Raw { method: "POST".into(), body, ..Raw::get(write.path.clone()) }
        .with("authorization", format!("Bearer {}", desk.owner.token));
    if !raw.body.is_empty() {
        raw = raw.with("content-type", "application/json");
    }
    headers.iter().fold(raw, |raw, (name, value)| raw.with(name, *value))
}

async fn forms(stage: &Stage, check: &mut Check, name: &str) -> Result<(), String> {
    let desk = if matches!(name, "withdraw" | "cancel") { stage.funded()? } else { stage.desk().await? };
    let write = desk.ready(name).await?;
    let records = "select count(*) from supply_idempotency_record";
    let (before, kept) = (stage.business().await?, stage.database.count(records).await?);
    let long = "k".repeat(129);
    let refused: [Form<'_>; 13] = [
        ("no request id", &[(KEY, GOOD_KEY)], "REQUEST_ID_MISSING"),
        ("no key", &[(ID, GOOD_ID)], "IDEMPOTENCY_KEY_MISSING"),
        ("an id that is no UUID", &[(ID, "req_1"), (KEY, GOOD_KEY)], "REQUEST_ID_INVALID"),
        (
            "the nil UUID",
            &[(ID, "00000000-0000-0000-0000-000000000000"), (KEY, GOOD_KEY)],
            "REQUEST_ID_INVALID",
        ),
        ("braces", &[(ID, "{6f1c0000-0000-4000-8000-0000000000aa}"), (KEY, GOOD_KEY)], "REQUEST_ID_INVALID"),
        (
            "urn:uuid:",
            &[(ID, "urn:uuid:6f1c0000-0000-4000-8000-0000000000aa"), (KEY, GOOD_KEY)],
            "REQUEST_ID_INVALID",
        ),
        ("no hyphens", &[(ID, "6f1c00000000400080000000000000aa"), (KEY, GOOD_KEY)], "REQUEST_ID_INVALID"),
        ("two ids", &[(ID, GOOD_ID), (ID, GOOD_ID), (KEY, GOOD_KEY)], "REQUEST_ID_INVALID"),
        ("two keys", &[(ID, GOOD_ID), (KEY, GOOD_KEY), (KEY, GOOD_KEY)], "IDEMPOTENCY_KEY_INVALID"),
        ("15 characters", &[(ID, GOOD_ID), (KEY, "123456789012345")], "IDEMPOTENCY_KEY_INVALID"),
        ("129 characters", &[(ID, GOOD_ID), (KEY, &long)], "IDEMPOTENCY_KEY_INVALID"),
        ("a blank inside", &[(ID, GOOD_ID), (KEY, "key of the gate 1")], "IDEMPOTENCY_KEY_INVALID"),
        ("an empty key", &[(ID, GOOD_ID), (KEY, "")], "IDEMPOTENCY_KEY_INVALID"),
    ];
    for (what, headers, error) in refused {
        let got = stage.raw(check, &raw(&desk, &write, headers)).await?;
        check.equal(what, &is(400, error), &code(&got));
    }
    before.unchanged(check, "tables after the refusals", &stage.business().await?);
    check.equal("records after the refusals", &kept, &stage.database.count(records).await?);
    taken(&desk, check, &write).await
}

/// The longest key, an id in capitals; and the same key in quotes is the same key.
async fn taken(desk: &Desk<'_>, check: &mut Check, write: &Write) -> Result<(), String> {
    let stage = desk.stage;
    let number = stage.next();
    let key = format!("{:k<128}", format!("gate-{number}-"));
    let id = format!("6F1C0000-0000-4000-8000-{number:012}");
    let first = stage.raw(check, &raw(desk, write, &[(ID, &id), (KEY, &key)])).await?;
    check.so(format!("128 characters, {} {}", first.code(), first.error()), first.code() < 202);
    let lower = id.to_ascii_lowercase();
    check.equal("the id in the answer", &lower.as_str(), &first.header(ID));
    let audited = format!(
        "select count(*) from audit_events where request_id = '{lower}' and idempotency_key = '{key}' and result_code = 'OK'"
    );
    check.so("both reach the audit as they were sent", stage.database.count(&audited).await? >= 1);
    let record = format!(
        "select count(*) from supply_idempotency_record where request_id = '{lower}' and idempotency_key = '{key}'"
    );
    check.equal("and the record", &1, &stage.database.count(&record).await?);
    let quoted = format!("\"{key}\"");
    let again = stage.raw(check, &raw(desk, write, &[(ID, GOOD_ID), (KEY, &quoted)])).await?;
    check.equal("the key in quotes", &(first.code(), true), &(again.code(), again.is_replay()));
    let fresh = stage.raw(check, &raw(desk, write, &[(ID, GOOD_ID), (KEY, "1234567890123456")])).await?;
    check.so(
        format!("16 characters are a key, {} {}", fresh.code(), fresh.error()),
        fresh.code() < 500 && !fresh.error().starts_with("IDEMPOTENCY_KEY"),
    );
    Ok(())
}
