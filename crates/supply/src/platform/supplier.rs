//! Creates a supplier (section 5.1): a tenant, its principal, a first operator, the four balance rows that its
//! money will stand in. The phone comes sealed: who calls has encrypted it.

use door::{Failure, Steps};
use kernel::Time;
use ledger::Account;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use super::fields::{self, is_text};
use super::people::{self, Ids, PRINCIPAL, Tenant};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books;
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;
use crate::rows::Supplier;

const NEXT: &str = "select {next_id supply_suppliers} as next";
const INSERT: &str = "insert into supply_suppliers (id, tenant_id, user_id, available_account_id, supplier_type, phone_cipher, phone_cipher_algo, phone_kms_key_alias, phone_key_version, phone_fingerprint, phone_masked, currency_code, request_id, audit_trace_id, created_at, updated_at)
values ($1, $2, $3, (select id from billing_accounts where owner_type = 'supplier' and owner_id = $4 and account_code = 'supplier_available' and currency_code = $5),
  $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

/// `POST /api/v1/platform/suppliers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateSupplier {
    /// Short name of the tenant, unique: `1..=64` characters.
    pub code: String,
    /// Its name, `1..=100` characters.
    pub name: String,
    /// `individual` or `company`.
    pub supplier_type: String,
    /// Name of the first operator, `1..=100` characters.
    pub operator: String,
    /// Where SMS codes go.
    pub phone: SealedPhone,
}

/// An encrypted phone number (E.164) and what may be shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPhone {
    /// The envelope.
    pub cipher: String,
    /// `AES-256-GCM`.
    pub cipher_algo: String,
    /// Alias of the key that wraps.
    pub key_alias: String,
    /// Its version.
    pub key_version: i64,
    /// Keyed hash of the number, 64 hexadecimal digits.
    pub fingerprint: String,
    /// `138****0000`.
    pub masked: String,
}

/// What it decides from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    tenant: Tenant,
    supplier: i64,
}

#[derive(Debug, Serialize)]
struct Created<'a> {
    supplier_id: i64,
    tenant_id: i64,
    user_id: i64,
    operator_id: i64,
    supplier_type: &'a str,
    status: &'static str,
    currency_code: &'static str,
    phone_masked: &'a str,
    created_at: Stamp,
}

impl CreateSupplier {
    fn fields(&self) -> Result<(), Refusal> {
        fields::checked(&[
            ("code", "text", is_text(&self.code, 64)),
            ("name", "text", is_text(&self.name, 100)),
            ("supplier_type", "one_of", matches!(self.supplier_type.as_str(), "individual" | "company")),
            ("operator", "text", is_text(&self.operator, 100)),
            ("operator", "reserved", self.operator != PRINCIPAL),
        ])
    }

    fn row(&self, context: &Context, ids: Ids, supplier: i64, at: Time) -> Write {
        let phone = &self.phone;
        let (caller, currency) = (&context.caller, context.house.policy.currency.code());
        let row = values![
            supplier,
            ids.tenant,
            ids.principal,
            ids.principal,
            currency,
            &self.supplier_type,
            &phone.cipher,
            &phone.cipher_algo,
            &phone.key_alias,
            phone.key_version,
            &phone.fingerprint,
            &phone.masked,
            currency,
            &caller.request_id,
            &caller.trace_id,
            at,
            at
        ];
        Write::one("supplier.insert", INSERT, row)
    }
}

impl Action for CreateSupplier {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "platform.supplier.create"
    }

    fn object(&self) -> Object {
        Object::new_of(Supplier::KIND)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, _: &Context, (): &()) -> Vec<Query> {
        let mut queries = people::load(&self.code);
        queries.push(Query::new("supplier.next", NEXT, vec![]));
        queries
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let (tenant, rest) = Tenant::read(rows)?;
        let next = rest.first().and_then(|rows| rows.first());
        let damaged = || Error::Corrupt { table: "supply_suppliers", column: "answers".into() };
        Ok(State { tenant, supplier: next.ok_or_else(damaged)?.int(0)? })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        self.fields()?;
        let Tenant::Free(ids) = state.tenant else { return Err(taken().into()) };
        let currency = context.house.policy.currency;
        let mut writes = people::tenant(ids, &self.code, &self.name, "supplier", at);
        writes.push(people::user(ids.operator, ids.tenant, &self.operator, at));
        let supplier = ledger::ids::Supplier(ids.principal);
        let accounts = [
            Account::pending(supplier),
            Account::available(supplier),
            Account::frozen(supplier),
            Account::receivable(supplier),
        ];
        writes.extend(accounts.map(|account| books::open(ids.tenant, account, currency, at)));
        writes.push(self.row(context, ids, state.supplier, at));
        let data = Created {
            supplier_id: state.supplier,
            tenant_id: ids.tenant,
            user_id: ids.principal,
            operator_id: ids.operator,
            supplier_type: &self.supplier_type,
            status: "active",
            currency_code: currency.code(),
            phone_masked: &self.phone.masked,
            created_at: Stamp(at),
        };
        let after = json!({ "status": "active", "version": 0, "tenant_id": ids.tenant });
        let object = Object::row(Supplier::KIND, ids.principal);
        Ok(Change { after, writes, status: 201, ..Change::of(object, &data)? })
    }

    fn outrun(&self, write: &'static str, _: &State) -> Option<Refusal> {
        (write == "people.tenant").then(taken)
    }
}

/// Somebody has the code.
pub(super) fn taken() -> Refusal {
    Refusal::of(Code::ComState).with("field", "code").with("rule", "taken")
}
