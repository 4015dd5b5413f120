//! What a command may ask for: rows, audit, announcements, and the outcome that every repeat gets.

use kernel::{Outcome, Random, Time};
use serde_json::Value as Json;
use store::{Value, Write, values};
use uuid::Uuid;

/// Everything that one commit holds besides the claim itself.
#[derive(Clone, Debug)]
pub struct Decision {
    /// State of the record from now on: `processed`, `received`, `succeeded`, `failed`.
    pub status: &'static str,
    /// Values of the record table's fact columns.
    pub facts: Vec<Value>,
    /// What whoever asked gets, and whether every repeat gets the same.
    pub ruling: Ruling,
    /// Rows of the domain, in order; they run after the record's own row.
    pub writes: Vec<Write>,
    /// What happened, for the audit.
    pub audit: Vec<AuditRow>,
    /// Who is to be told, and what.
    pub outbox: Vec<OutboxRow>,
}

/// What comes of a decision for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The formal result: every repeat gets it.
    Formal(Outcome),
    /// An answer for this time; the key stays open, and the next arrival runs again ("come later").
    Passing(Outcome),
    /// None yet: the rows are kept, the key stays open.
    Open,
}

impl Ruling {
    /// What is answered, if anything is.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Formal(outcome) | Self::Passing(outcome) => Some(outcome),
            Self::Open => None,
        }
    }

    /// The formal result, if it is one.
    pub(crate) const fn formal(&self) -> Option<&Outcome> {
        match self {
            Self::Formal(outcome) => Some(outcome),
            Self::Passing(_) | Self::Open => None,
        }
    }
}

/// One row of `audit_events` (supply specification section 8; domain rules on minimum fields).
#[derive(Clone, Debug)]
pub struct AuditRow {
    /// Dotted name: `certify.event.processed`.
    pub event_name: &'static str,
    /// What was attempted.
    pub action: &'static str,
    /// Whose object.
    pub tenant_id: i64,
    /// Who acted; the system's principal is 1.
    pub operator_id: i64,
    /// `user`, `admin` or `system`.
    pub operator_type: &'static str,
    /// Role it acted in.
    pub operator_role: &'static str,
    /// Kind of object.
    pub object_type: &'static str,
    /// Which object.
    pub object_id: String,
    /// Id of the request that caused it.
    pub request_id: String,
    /// Key it came under, if any.
    pub idempotency_key: Option<String>,
    /// W3C trace id, or the request's id where none came.
    pub trace_id: String,
    /// `OK` or a code.
    pub result_code: String,
    /// The invariant, where one was violated.
    pub rule_code: Option<&'static str>,
    /// State before; `{}` for a creation.
    pub before_state: Json,
    /// State after.
    pub after_state: Json,
    /// More, without personal data or secrets.
    pub metadata: Json,
    /// Address of the client, as far as trusted.
    pub client_ip: Option<String>,
    /// What the client calls itself, masked, at most 256 characters.
    pub user_agent: Option<String>,
}

const INSERT_AUDIT: &str = "insert into audit_events (event_id, event_name, action, tenant_id, operator_id, operator_type, operator_role, object_type, object_id, request_id, idempotency_key, trace_id, result_code, rule_code, before_state, after_state, metadata, client_ip, user_agent, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";

impl AuditRow {
    /// The row of an act of the system on behalf of the platform's own tenant.
    #[must_use]
    pub fn system(
        event_name: &'static str,
        object_type: &'static str,
        object_id: String,
        request_id: String,
    ) -> Self {
        Self {
            event_name,
            action: event_name.rsplit('.').next().unwrap_or(event_name),
            tenant_id: 1,
            operator_id: 1,
            operator_type: "system",
            operator_role: "system",
            object_type,
            object_id,
            trace_id: request_id.clone(),
            request_id,
            idempotency_key: None,
            result_code: "OK".into(),
            rule_code: None,
            before_state: Json::Object(serde_json::Map::new()),
            after_state: Json::Object(serde_json::Map::new()),
            metadata: Json::Object(serde_json::Map::new()),
            client_ip: None,
            user_agent: None,
        }
    }

    /// The insert for it.
    #[must_use]
    pub fn write(self, at: Time, random: &dyn Random) -> Write {
        let values = values![
            ordered_id(at, random),
            self.event_name,
            self.action,
            self.tenant_id,
            self.operator_id,
            self.operator_type,
            self.operator_role,
            self.object_type,
            self.object_id,
            self.request_id,
            self.idempotency_key,
            self.trace_id,
            self.result_code,
            self.rule_code,
            self.before_state.to_string(),
            self.after_state.to_string(),
            self.metadata.to_string(),
            self.client_ip,
            self.user_agent,
            at,
        ];
        Write::one("audit.insert", INSERT_AUDIT, values)
    }
}

/// One row of `outbox` with its destinations (supply specification section 5.3).
#[derive(Clone, Debug)]
pub struct OutboxRow {
    /// `{chain}.{domain}.{action}.{result}`.
    pub event_name: &'static str,
    /// Kind of object.
    pub object_type: &'static str,
    /// Which object; deliveries of one object keep their order.
    pub object_id: String,
    /// Version of the object after the change.
    pub aggregate_version: i64,
    /// Whose object; the platform's own tenant is 1.
    pub tenant_id: i64,
    /// Who acted; the system's principal is 1.
    pub operator_id: i64,
    /// Id of the request that caused it.
    pub request_id: String,
    /// What is told, with `before_state` and `after_state`; no secret, no full mail address.
    pub payload: Json,
    /// When it happened.
    pub occurred_at: Time,
    /// Channels that are to get it; none is allowed.
    pub destinations: Vec<String>,
}

const INSERT_OUTBOX: &str = "insert into outbox (event_id, event_name, object_type, object_id, aggregate_version, tenant_id, operator_id, request_id, payload, occurred_at, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const INSERT_DELIVERY: &str = "insert into outbox_deliveries (outbox_id, destination, object_key, next_attempt_at, created_at, updated_at)
values ((select id from outbox where event_id = $1), $2, $3, $4, $5, $6)";

impl OutboxRow {
    /// The inserts for it: the fact, then one row a destination.
    #[must_use]
    pub fn writes(self, at: Time, random: &dyn Random) -> Vec<Write> {
        let event_id = ordered_id(at, random);
        let object_key = format!("{}:{}", self.object_type, self.object_id);
        let row = values![
            event_id,
            self.event_name,
            self.object_type,
            self.object_id,
            self.aggregate_version,
            self.tenant_id,
            self.operator_id,
            self.request_id,
            self.payload.to_string(),
            self.occurred_at,
            at,
        ];
        let mut writes = vec![Write::one("outbox.insert", INSERT_OUTBOX, row)];
        for destination in self.destinations {
            let row = values![event_id, destination, &object_key, at, at, at];
            writes.push(Write::one("outbox.delivery", INSERT_DELIVERY, row));
        }
        writes
    }
}

/// A UUIDv7: random, and growing with time, so that its index grows at the end.
fn ordered_id(at: Time, random: &dyn Random) -> [u8; 16] {
    let mut bytes = [0; 10];
    random.fill(&mut bytes);
    let millis = u64::try_from(at.micros() / 1000).unwrap_or(0);
    Uuid::from_bytes(*uuid::Builder::from_unix_timestamp_millis(millis, &bytes).as_uuid().as_bytes())
        .into_bytes()
}
