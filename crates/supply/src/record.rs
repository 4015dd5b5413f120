//! Idempotency keys of the supply side: the table of section 2.4 of XR-001, and the door's key for a call. Not
//! here: how the payload is hashed (crate `http`).

use std::sync::LazyLock;
use std::time::Duration;

use door::{Hash, Key, Layout, RecordTable};
use kernel::{Binding, Digest, Fingerprint};
use store::values;

use crate::caller::Caller;

/// `supply_idempotency_record`.
pub static RECORDS: LazyLock<RecordTable> = LazyLock::new(|| {
    RecordTable::of(&Layout {
        name: "supply_idempotency_record",
        key: &["tenant_id", "operator_id", "api_path", "idempotency_key"],
        facts: &["request_id"],
        steps: "supply_steps",
        hash: Hash::Hex,
        binding: Binding::Held,
        generation: Some("claim_generation"),
        origin: Some("request_id"),
    })
});

/// What makes two calls the same.
#[derive(Clone, Debug)]
pub struct Payload {
    /// HMAC of method, path and canonical body (section 7.2).
    pub fingerprint: Fingerprint,
    /// The same under secrets of before a rotation.
    pub former: Vec<Fingerprint>,
    /// The same without a secret; for locks only, never stored.
    pub unkeyed: Digest,
}

/// The door's key of a call: scope (tenant, operator, path, key) and payload. `path` is concrete and normalised.
#[must_use]
pub fn key(caller: &Caller, scope_tenant: i64, path: &str, payload: Payload, life: Duration) -> Option<Key> {
    let idempotency_key = caller.idempotency_key.as_ref()?;
    let Payload { fingerprint, former, unkeyed } = payload;
    Some(Key {
        table: &RECORDS,
        values: values![scope_tenant, caller.operator_id, path, idempotency_key],
        fingerprint,
        former,
        payload: unkeyed,
        life: Some(life),
    })
}
