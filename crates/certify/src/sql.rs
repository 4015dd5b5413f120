//! The statements of this domain, each once.

use std::sync::LazyLock;

use door::RecordTable;

/// The record table of webhook events.
pub(crate) static EVENTS: LazyLock<RecordTable> = LazyLock::new(|| {
    const FACTS: &[&str] = &[
        "source",
        "scope",
        "event_id",
        "event_type",
        "mode",
        "occurred_at",
        "sid",
        "payload_hash",
        "input",
        "reason",
        "cause",
        "mark",
        "certificate_event",
    ];
    RecordTable::new("certify_events", &["ref"], FACTS, "certify_steps")
});

/// $1 received_at, $2 source, $3 verdict, $4 differs in the fingerprint, $5 payload hash, $6 request, $7
/// trace, $8 address, $9 reference. Whether only the rendering differs is read off the record.
pub(crate) const ARRIVE: &str = "insert into certify_arrivals (event, n, received_at, source, verdict, differs, payload_hash, request_id, trace_id, client_ip)
select e.id, coalesce((select max(a.n) from certify_arrivals a where a.event = e.id), 0) + 1, $1, $2, $3,
  case when $4 = 1 then 'payload' when e.payload_hash = $5 or e.mark in ('imported', 'adopted') then 'none' else 'rendering' end, $5, $6, $7, $8
from certify_events e where e.ref = $9
returning n, differs";

/// The same arrival has another end than was noted: $1 verdict, $2 differs in the fingerprint, $3 its number,
/// $4 reference.
pub(crate) const ARRIVE_AGAIN: &str = "update certify_arrivals set verdict = $1,
  differs = case when $2 = 1 then 'payload' else (select case when e.payload_hash = certify_arrivals.payload_hash or e.mark in ('imported', 'adopted') then 'none' else 'rendering' end from certify_events e where e.id = certify_arrivals.event) end
where n = $3 and event = (select id from certify_events where ref = $4)
returning n, differs";

/// $1..$3 state and time and note, and so on three times; $10 reference.
pub(crate) const PASS_THREE: &str = "insert into certify_transitions (event, n, status, at, note)
select e.id, coalesce((select max(t.n) from certify_transitions t where t.event = e.id), 0) + v.column1, v.column2, v.column3, v.column4
from certify_events e, (values (1, $1, cast($2 as {time}), $3), (2, $4, cast($5 as {time}), $6), (3, $7, cast($8 as {time}), $9)) v where e.ref = $10";

/// $1 state, $2 time, $3 note, $4 reference.
pub(crate) const PASS: &str = "insert into certify_transitions (event, n, status, at, note)
select e.id, coalesce((select max(t.n) from certify_transitions t where t.event = e.id), 0) + 1, $1, $2, $3
from certify_events e where e.ref = $4";

/// $1 word, $2 reference.
pub(crate) const FIND_BY: &str = "insert into certify_search (word, event)
select $1, id from certify_events where ref = $2 on conflict do nothing";

/// $1 slug, $2 change key, $3 run, $4 run hash, $5 key id, $6 signature, $7..$9 hashes, $10 issued at,
/// $11 now, $12 reference.
pub(crate) const CERTIFY: &str = "insert into certify_certificates (event, slug, change_key, run, run_hash, key_id, signature, html_hash, zip_hash, json_hash, issued_at, created_at)
select id, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 from certify_events where ref = $12";

/// As [`CERTIFY`], for a certificate that was signed just now: it hits nothing unless its key is the active
/// one. $1 slug, $2 change key, $3 run, $4 run hash, $5 signature, $6..$8 hashes, $9 issued at, $10 now,
/// $11 key id, $12 reference.
pub(crate) const CERTIFY_ACTIVE: &str = "insert into certify_certificates (event, slug, change_key, run, run_hash, key_id, signature, html_hash, zip_hash, json_hash, issued_at, created_at)
select e.id, $1, $2, $3, $4, k.key_id, $5, $6, $7, $8, $9, $10 from certify_events e join certify_keys k on k.key_id = $11 and k.status = 'active' where e.ref = $12";

/// $1 change key.
pub(crate) const CERTIFIED_CHANGE: &str = "select e.id, e.ref, e.response_body from certify_certificates c
join certify_events e on e.id = c.event where c.change_key = $1";

/// $1 body, $2 until, $3 reference.
pub(crate) const KEEP_PAYLOAD: &str = "insert into certify_payloads (event, body, keep_until)
select id, $1, $2 from certify_events where ref = $3 on conflict do nothing";

/// $1 slug.
pub(crate) const BY_SLUG: &str =
    "select event, slug, run, run_hash, key_id, signature, html_hash, zip_hash, json_hash, issued_at
from certify_certificates where slug = $1";

/// $1 event.
pub(crate) const BY_EVENT: &str =
    "select event, slug, run, run_hash, key_id, signature, html_hash, zip_hash, json_hash, issued_at
from certify_certificates where event = $1";

/// $1 after this event, $2 how many.
pub(crate) const CERTIFICATES_AFTER: &str =
    "select event, slug, run, run_hash, key_id, signature, html_hash, zip_hash, json_hash, issued_at
from certify_certificates where event > $1 order by event limit $2";
