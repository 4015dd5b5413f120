//! One row whose data key is wrapped anew: which tables there are, and the command.

use custody::{EnvelopeError, KmsError, Sealed};
use door::{Failure, Steps};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::{Caller, Object};
use crate::code::Code;
use crate::rows::{Account, Reader, Settlement, Supplier};

/// The step that fails where the key service gives no answer, whichever row it is asked about.
pub(super) const OUT_OF_REACH: &str = "key service";

/// A table with sealed columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    name: &'static str,
    kind: &'static str,
    envelope: &'static str,
    algo: &'static str,
    alias: &'static str,
    version: &'static str,
    /// Further columns that are set, each to the time.
    timed: &'static str,
    /// Columns of the stamp that the table has.
    stamp: &'static [(&'static str, usize)],
}

/// The whole stamp of a changed row, by its place in [`Context::stamp`].
const STAMP: &[(&str, usize)] =
    &[("request_id", 0), ("idempotency_key", 1), ("audit_trace_id", 2), ("updated_ip", 3), ("updated_at", 4)];

pub(super) static TABLES: [Table; 3] = [
    Table {
        name: "supply_accounts",
        kind: Account::KIND,
        envelope: "encrypted_credentials",
        algo: "credential_cipher_algo",
        alias: "credential_kms_key_alias",
        version: "credential_key_version",
        timed: "last_rotation_at",
        stamp: STAMP,
    },
    Table {
        name: "supply_settlements",
        kind: Settlement::KIND,
        envelope: "payment_account",
        algo: "payment_account_cipher_algo",
        alias: "payment_account_kms_key_alias",
        version: "payment_account_key_version",
        timed: "",
        stamp: STAMP,
    },
    Table {
        name: "supply_suppliers",
        kind: Supplier::KIND,
        envelope: "phone_cipher",
        algo: "phone_cipher_algo",
        alias: "phone_kms_key_alias",
        version: "phone_key_version",
        timed: "",
        stamp: &[("request_id", 0), ("audit_trace_id", 2), ("updated_at", 4)],
    },
];

impl Table {
    /// How many rows there are under each version of the key.
    pub(super) fn uses(&self, alias: &str) -> Query {
        let Self { name, envelope, alias: column, version, .. } = self;
        let sql = format!(
            "select {version}, count(*) from {name} where {column} = $1 and {envelope} <> '' group by {version}"
        );
        Query::new("kek.uses", sql, values![alias])
    }

    /// Rows under another key or version, of a higher id than `after`.
    pub(super) fn due(&self, alias: &str, current: i64, (after, limit): (i64, i64)) -> Query {
        let Self { name, envelope, alias: column, version, .. } = self;
        let sql = format!(
            "select id, tenant_id, version, {column}, {envelope} from {name}
             where ({column} <> $1 or {version} < $2) and {envelope} <> '' and id > $3 order by id limit $4"
        );
        Query::new("kek.due", sql, values![alias, current, after, limit])
    }

    fn update(&self) -> String {
        let mut columns = vec![self.envelope, self.algo, self.alias, self.version];
        columns.extend((!self.timed.is_empty()).then_some(self.timed));
        columns.extend(self.stamp.iter().map(|(column, _)| *column));
        let sets: Vec<String> =
            columns.iter().enumerate().map(|(n, column)| format!("{column} = ${}", n + 1)).collect();
        let next = columns.len();
        format!(
            "update {} set {}, version = version + 1 where id = ${} and tenant_id = ${} and version = ${}",
            self.name,
            sets.join(", "),
            next + 1,
            next + 2,
            next + 3
        )
    }
}

/// Wraps the data key of one row under the current version of the key.
#[derive(Clone)]
pub struct Rewrap {
    table: &'static Table,
    id: i64,
    tenant_id: i64,
    version: i64,
    alias: String,
    envelope: String,
}

impl std::fmt::Debug for Rewrap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rewrap({} {}, version {})", self.table.name, self.id, self.version)
    }
}

impl Rewrap {
    /// A row that [`Table::due`] found.
    pub(super) fn read(table: &'static Table, row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        Ok(Self {
            table,
            id: reader.int()?,
            tenant_id: reader.int()?,
            version: reader.int()?,
            alias: reader.text()?.to_owned(),
            envelope: reader.text()?.to_owned(),
        })
    }

    /// Which row.
    pub(super) const fn id(&self) -> i64 {
        self.id
    }

    /// The system, for the fact of this row in this version.
    pub(super) fn caller(&self) -> Caller {
        let Self { table, id, tenant_id, version, .. } = self;
        Caller::system(*tenant_id, &format!("rewrap:{}:{id}:{version}", table.name))
    }
}

/// Where the row stands: state, version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    status: String,
    version: i64,
}

impl Action for Rewrap {
    type Prepared = Option<Sealed>;
    type State = Option<State>;

    fn event(&self) -> &'static str {
        "supply.credential.rewrap"
    }

    fn object(&self) -> Object {
        Object::row(self.table.kind, self.id)
    }

    fn prepares(&self) -> bool {
        true
    }

    fn comes_due(&self) -> bool {
        true
    }

    async fn prepare(&self, context: &Context, _: &Steps) -> Result<Option<Sealed>, Failure> {
        let rewrapped = context.house.keys.custody.rewrap(&self.alias, &self.envelope).await;
        rewrapped.map_err(|cause| {
            let far = matches!(cause, EnvelopeError::Kms(KmsError::Unreachable { .. }));
            Failure::Step { step: if far { OUT_OF_REACH } else { "rewrap" }, cause: cause.to_string() }
        })
    }

    fn load(&self, _: &Context, _: &Option<Sealed>) -> Vec<Query> {
        let sql = format!("select status, version from {} where id = $1 and tenant_id = $2", self.table.name);
        vec![Query::new("kek.row", sql, values![self.id, self.tenant_id])]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<Option<State>, Error> {
        let read = |row: &Row| {
            let mut reader = Reader::new(row);
            Ok(State { status: reader.text()?.to_owned(), version: reader.int()? })
        };
        rows.first().and_then(|rows| rows.first()).map(read).transpose()
    }

    fn decide(
        &self,
        context: &Context,
        prepared: &Option<Sealed>,
        state: &Option<State>,
        at: Time,
    ) -> Result<Change, Stop> {
        let state = state.as_ref().ok_or_else(|| Refusal::of(Code::ComMissing))?;
        let before = json!({ "status": state.status, "version": state.version });
        let moved = || Refusal::of(Code::ComState).about(self.object(), before.clone());
        // Changed since, or there already: the next look finds what is left of it.
        let sealed = prepared.as_ref().filter(|_| state.version == self.version).ok_or_else(moved)?;
        let stamp = context.stamp(at);
        let mut row = values![
            &sealed.envelope,
            sealed.cipher_algo,
            &sealed.kms_key_alias,
            i64::from(sealed.key_version)
        ];
        row.extend((!self.table.timed.is_empty()).then(|| Value::from(at)));
        row.extend(self.table.stamp.iter().filter_map(|(_, place)| stamp.get(*place).cloned()));
        row.extend(values![self.id, self.tenant_id, self.version]);
        let (object, version) = (self.object(), self.version + 1);
        let after = json!({ "status": state.status, "version": version, "key_version": sealed.key_version });
        let writes = vec![Write::one("kek.rewrap", self.table.update(), row)];
        // What others know of the row is as it was: nothing is told (section 17).
        Ok(Change { before, after, writes, ..Change::of(object, &())? })
    }

    fn outrun(&self, write: &'static str, _: &Option<State>) -> Option<Refusal> {
        (write == "kek.rewrap").then(|| Refusal::of(Code::ComState))
    }
}
