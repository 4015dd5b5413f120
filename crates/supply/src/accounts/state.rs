//! What the commands that move an account have in common: the account under its tenant, the compare-and-set on
//! status and version, the answer.

use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use crate::action::{Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;
use crate::rows::{Account, AccountStatus};

/// `data` of activating, suspending and disabling.
#[derive(Debug, Serialize)]
struct Moved {
    account_id: i64,
    status: &'static str,
    version: i64,
    updated_at: Stamp,
}

/// An account that is moved from one of some states to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// The `update`'s name, by which a lost race is told.
    pub(super) write: &'static str,
    /// Statuses it is moved from, as SQL has them in its `in (...)`.
    pub(super) from: &'static str,
    pub(super) to: AccountStatus,
    /// Further assignments, without parameters.
    pub(super) sets: &'static str,
    pub(super) event: &'static str,
}

/// The account of the caller's tenant, unless deleted.
pub(super) fn load(context: &Context, account_id: i64) -> Query {
    Query::new("account", by_id(""), values![account_id, context.caller.tenant_id])
}

/// As [`load`], and locked.
pub(super) fn lock(context: &Context, account_id: i64) -> Query {
    Query::new("account.locked", by_id(" {for_update}"), values![account_id, context.caller.tenant_id])
}

fn by_id(lock: &str) -> String {
    let columns = Account::COLUMNS;
    format!(
        "select {columns} from supply_accounts a where a.id = $1 and a.tenant_id = $2 and a.deleted_at is null{lock}"
    )
}

/// The first row of an answer, as an account.
pub(super) fn read(rows: Option<&Vec<Row>>) -> Result<Option<Account>, Error> {
    rows.and_then(|rows| rows.first()).map(Account::read).transpose()
}

/// The object of a command on this account.
pub(super) fn object(account_id: i64) -> Object {
    Object::row(Account::KIND, account_id)
}

pub(super) fn found(account: Option<&Account>) -> Result<&Account, Refusal> {
    account.ok_or_else(|| Refusal::of(Code::AccMissing))
}

/// The state does not allow it, or changed meanwhile.
pub(super) fn conflict(account: &Account) -> Refusal {
    Refusal::of(Code::AccState)
        .with("status", account.status.as_str())
        .about(object(account.id), account.state())
}

impl Move {
    /// The change of an account that may be moved.
    pub(super) fn of(self, context: &Context, account: &Account, at: Time) -> Result<Change, Stop> {
        let Self { write, from, to, sets, event } = self;
        let sql = format!(
            "update supply_accounts set status = $1{sets}, version = version + 1,
               request_id = $2, idempotency_key = $3, audit_trace_id = $4, updated_ip = $5, updated_at = $6, updated_by = $7
             where id = $8 and tenant_id = $9 and deleted_at is null and status in ({from}) and version = $10"
        );
        let mut row = values![to.as_str()];
        row.extend(context.stamp(at));
        row.extend(values![context.caller.operator_id, account.id, account.tenant_id, account.version]);
        let (version, object) = (account.version + 1, object(account.id));
        let (before, after) = (account.state(), json!({ "status": to.as_str(), "version": version }));
        let (told, was, is) = (object.clone(), before.clone(), after.clone());
        let event = Event { name: event, object: told, version, before: was, after: is };
        let data = Moved { account_id: account.id, status: to.as_str(), version, updated_at: Stamp(at) };
        let writes = vec![Write::one(write, sql, row)];
        Ok(Change { before, after, writes, events: vec![event], ..Change::of(object, &data)? })
    }
}
