//! Who acts, and under which request: what every command, audit row and changed row is stamped with. Not here:
//! whether they may (the crate `auth`, at the edge).

use door::AuditRow;
use serde_json::{Map, Value as Json};

/// The platform's own tenant and its system principal (section 16.1).
pub const PLATFORM: i64 = 1;

/// In which capacity somebody acts: `operator_type` (section 16.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// An operator of a tenant.
    User,
    /// Staff of the platform.
    Admin,
    /// The platform itself: the scheduler, the payout worker.
    System,
}

impl Capacity {
    /// The word of `operator_type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Admin => "admin",
            Self::System => "system",
        }
    }
}

/// Who acts. `tenant_id`, the supplier's `user_id` and `operator_id` are three different numbers
/// (section 3.1).
#[derive(Clone, Debug)]
pub struct Caller {
    /// Whose objects: the token's tenant; for staff, the tenant of the object that they act on.
    pub tenant_id: i64,
    /// Who acts: `iam_users.id`.
    pub operator_id: i64,
    /// In which capacity.
    pub capacity: Capacity,
    /// Role of the token: `owner`, `viewer`, `admin`; `system`.
    pub role: &'static str,
    /// Of this attempt (UUID), or a system key that names the fact.
    pub request_id: String,
    /// W3C trace id, or the request's id.
    pub trace_id: String,
    /// What deduplicates, if it came with a key.
    pub idempotency_key: Option<String>,
    /// Address of the client, as far as trusted.
    pub client_ip: Option<String>,
    /// What the client calls itself, masked, at most 256 characters.
    pub user_agent: Option<String>,
}

impl Caller {
    /// The platform itself, for a fact with this name: `release:17`.
    #[must_use]
    pub fn system(tenant_id: i64, fact: &str) -> Self {
        Self {
            tenant_id,
            operator_id: PLATFORM,
            capacity: Capacity::System,
            role: "system",
            request_id: fact.to_owned(),
            trace_id: fact.to_owned(),
            idempotency_key: Some(fact.to_owned()),
            client_ip: None,
            user_agent: None,
        }
    }

    /// Whether it is staff or the system, to whom objects of every tenant are open.
    #[must_use]
    pub const fn is_platform(&self) -> bool {
        matches!(self.capacity, Capacity::Admin | Capacity::System)
    }

    /// An audit row of this caller with empty states.
    #[must_use]
    pub fn audit(&self, event_name: &'static str, object: &Object) -> AuditRow {
        AuditRow {
            event_name,
            action: event_name,
            tenant_id: self.tenant_id,
            operator_id: self.operator_id,
            operator_type: self.capacity.as_str(),
            operator_role: self.role,
            object_type: object.kind,
            object_id: object.id.clone(),
            request_id: self.request_id.clone(),
            idempotency_key: self.idempotency_key.clone(),
            trace_id: self.trace_id.clone(),
            result_code: "OK".into(),
            rule_code: None,
            before_state: Json::Object(Map::new()),
            after_state: Json::Object(Map::new()),
            metadata: Json::Object(Map::new()),
            client_ip: self.client_ip.clone(),
            user_agent: self.user_agent.clone(),
        }
    }
}

/// What is acted on: `object_type` and `object_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// `supply_account`, `supply_package`, `supply_order`, `supply_earning`, `supply_settlement`, `supplier`.
    pub kind: &'static str,
    /// Its id as text; `supply_account:new` for what a refused creation would have made (section 16.1).
    pub id: String,
}

impl Object {
    /// The row `id` of this kind.
    #[must_use]
    pub fn row(kind: &'static str, id: i64) -> Self {
        Self { kind, id: id.to_string() }
    }

    /// What a refused creation would have made.
    #[must_use]
    pub fn new_of(kind: &'static str) -> Self {
        Self { kind, id: format!("{kind}:new") }
    }
}
