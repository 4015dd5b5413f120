//! Tenants and users as rows: what creating a supplier and creating a buyer have in common.

use kernel::Time;
use store::{Error, Query, Row, Write, values};

use crate::rows::Reader;

const TAKEN: &str = "select id from core_tenants where code = $1";
/// Two ids of users. One writer that counts from the highest row gives the same number twice; see [`Tenant::read`].
const IDS: &str =
    "select {next_id core_tenants} as tenant, {next_id iam_users} as first, {next_id iam_users} as second";
const TENANT: &str =
    "insert into core_tenants (id, code, name, type, created_at, updated_at) values ($1, $2, $3, $4, $5, $6)";
const USER: &str =
    "insert into iam_users (id, tenant_id, name, created_at, updated_at) values ($1, $2, $3, $4, $5)";

/// Name of the user that a tenant's objects belong to.
pub(super) const PRINCIPAL: &str = "principal";

/// Ids of rows that are still to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) tenant: i64,
    pub(super) principal: i64,
    pub(super) operator: i64,
}

/// What there is before: whether the tenant's code is taken, and the next ids.
pub(super) fn load(code: &str) -> Vec<Query> {
    vec![Query::new("people.taken", TAKEN, values![code]), Query::new("people.ids", IDS, vec![])]
}

/// Whether the code is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tenant {
    Free(Ids),
    Taken,
}

impl Tenant {
    /// Reads what [`load`] found, and gives the rest of the answers.
    pub(super) fn read(rows: &[Vec<Row>]) -> Result<(Self, &[Vec<Row>]), Error> {
        let damaged = || Error::Corrupt { table: "core_tenants", column: "answers".into() };
        let [taken, ids, rest @ ..] = rows else { return Err(damaged()) };
        if !taken.is_empty() {
            return Ok((Self::Taken, rest));
        }
        let mut reader = Reader::new(ids.first().ok_or_else(damaged)?);
        let (tenant, first, second) = (reader.int()?, reader.int()?, reader.int()?);
        let operator = second.max(first.saturating_add(1));
        Ok((Self::Free(Ids { tenant, principal: first, operator }), rest))
    }
}

/// A tenant with its principal.
pub(super) fn tenant(ids: Ids, code: &str, name: &str, kind: &'static str, at: Time) -> Vec<Write> {
    vec![
        Write::one("people.tenant", TENANT, values![ids.tenant, code, name, kind, at, at]),
        user(ids.principal, ids.tenant, PRINCIPAL, at),
    ]
}

/// One more user of the tenant.
pub(super) fn user(id: i64, tenant: i64, name: &str, at: Time) -> Write {
    Write::one("people.user", USER, values![id, tenant, name, at, at])
}
