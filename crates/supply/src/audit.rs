//! The audit log as it is shown (sections 3.3, 8.1 row 8, 8.5, 16): of one object, of tokens, or one event. Always
//! filtered by tenant, but for the platform's administrators; of one object's, events of the platform's own tenant are
//! not in it (their indexes leave them out).

use serde::Serialize;
use serde_json::value::RawValue;
use store::{Error, Query, Row, Store, Value, values};

use crate::exact::Stamp;
use crate::rows::Reader;

const COLUMNS: &str = "event_id, event_name, operator_id, tenant_id, object_type, object_id, action, result_code, rule_code, cast(before_state as text), cast(after_state as text), request_id, created_at";

/// One event.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// UUID.
    pub event_id: String,
    /// `supply.account.create`.
    pub event_name: String,
    /// Who acted.
    pub operator_id: i64,
    /// Whose object.
    pub tenant_id: i64,
    /// Kind of object.
    pub object_type: String,
    /// Which object.
    pub object_id: String,
    /// What was attempted.
    pub action: String,
    /// `OK` or a code.
    pub result_code: String,
    /// The invariant, where one was violated.
    pub rule_code: Option<String>,
    /// State before.
    pub before_state: Box<RawValue>,
    /// State after.
    pub after_state: Box<RawValue>,
    /// The request.
    pub request_id: String,
    /// When.
    pub created_at: Stamp,
}

impl Event {
    fn read(row: &Row) -> Result<Self, Error> {
        let id = uuid(row.bytes(0)?)?;
        let mut reader = Reader::after(row, 1);
        let state = |text: &str| {
            let damaged = |_| Error::Corrupt { table: "audit_events", column: "state".into() };
            RawValue::from_string(text.to_owned()).map_err(damaged)
        };
        Ok(Self {
            event_id: id,
            event_name: reader.text()?.to_owned(),
            operator_id: reader.int()?,
            tenant_id: reader.int()?,
            object_type: reader.text()?.to_owned(),
            object_id: reader.text()?.to_owned(),
            action: reader.text()?.to_owned(),
            result_code: reader.text()?.to_owned(),
            rule_code: reader.text_or_null()?.map(ToOwned::to_owned),
            before_state: state(reader.text()?)?,
            after_state: state(reader.text()?)?,
            request_id: reader.text()?.to_owned(),
            created_at: Stamp(reader.time()?),
        })
    }
}

/// 8-4-4-4-12.
fn uuid(bytes: &[u8]) -> Result<String, Error> {
    let damaged = || Error::Corrupt { table: "audit_events", column: "event_id".into() };
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| damaged())?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    Ok([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
}

/// Of which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Of {
    /// Whose.
    pub tenant_id: i64,
    /// Kind of object.
    pub object_type: &'static str,
    /// Which object.
    pub object_id: String,
}

/// A page of an object's events, the newest first, and how many there are.
///
/// # Errors
/// The store's.
pub async fn list(store: &Store, of: &Of, page: (u32, u32)) -> Result<(Vec<Event>, i64), Error> {
    let condition = "tenant_id > 1 and tenant_id = $1 and object_type = $2 and object_id = $3";
    paged(store, condition, values![of.tenant_id, of.object_type, &of.object_id], page).await
}

/// A page of the log of tokens, the newest first: issued, renewed, revoked, callers turned away. Of one tenant, or of
/// all for `None`.
///
/// # Errors
/// The store's.
pub async fn tokens(
    store: &Store,
    tenant_id: Option<i64>,
    page: (u32, u32),
) -> Result<(Vec<Event>, i64), Error> {
    let condition = "event_name in ('token.issue', 'token.refresh', 'token.revoke', 'token.authz.denied', 'token.authn.success', 'token.authn.fail', 'token.query_key.rejected')";
    match tenant_id {
        Some(tenant) => paged(store, &format!("{condition} and tenant_id = $1"), values![tenant], page).await,
        None => paged(store, condition, values![], page).await,
    }
}

async fn paged(
    store: &Store,
    condition: &str,
    by: Vec<Value>,
    (page, size): (u32, u32),
) -> Result<(Vec<Event>, i64), Error> {
    let (limit, offset) = (by.len() + 1, by.len() + 2);
    let count = format!("select count(*) from audit_events where {condition}");
    let events = format!(
        "select {COLUMNS} from audit_events where {condition} order by id desc limit ${limit} offset ${offset}"
    );
    let skipped = i64::from(page.saturating_sub(1)) * i64::from(size);
    let paged = [by.clone(), values![i64::from(size), skipped]].concat();
    let reads = vec![Query::new("audit.count", count, by), Query::new("audit.page", events, paged)];
    let answers = store.queries(reads).await?;
    let damaged = || Error::Corrupt { table: "audit_events", column: "answers".into() };
    let [count, events] = answers.as_slice() else { return Err(damaged()) };
    let total = count.first().map_or(Ok(0), |row| row.int(0))?;
    Ok((events.iter().map(Event::read).collect::<Result<_, _>>()?, total))
}

/// One event of a tenant; any tenant's for `None`, which administrators ask with.
///
/// # Errors
/// The store's.
pub async fn get(store: &Store, tenant_id: Option<i64>, event_id: [u8; 16]) -> Result<Option<Event>, Error> {
    let sql = format!("select {COLUMNS} from audit_events where event_id = $1");
    let rows = store.query(Query::new("audit.event", sql, values![event_id])).await?;
    let event = rows.first().map(Event::read).transpose()?;
    Ok(event.filter(|event| tenant_id.is_none_or(|tenant| tenant == event.tenant_id)))
}
