//! Creates a buyer: a tenant, its user, a prepaid balance, and the API key that its calls are made with. Only an
//! HMAC of the key and its prefix come in; the key itself is shown by who made it.

use door::{Failure, Steps};
use kernel::{Digest, Time};
use ledger::Account;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, Write, values};

use super::fields::{self, is_text};
use super::people::{self, Tenant};
use super::supplier::taken;
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::books;
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Stamp;

const NEXT: &str = "select {next_id auth_api_keys} as next";
const INSERT_KEY: &str = "insert into auth_api_keys (id, tenant_id, user_id, name, prefix, key_hmac, expires_at, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// Kind in audit and outbox; its id there is that of the user.
pub(super) const KIND: &str = "buyer";

/// `POST /api/v1/platform/buyers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateBuyer {
    /// Short name of the tenant, unique: `1..=64` characters.
    pub code: String,
    /// Its name, `1..=100` characters.
    pub name: String,
    /// The first key.
    pub key: ApiKey,
}

/// A key of a buyer, as far as it is kept (section 3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// What it is called, `1..=100` characters.
    pub name: String,
    /// Its first 12 characters, for display.
    pub prefix: String,
    /// Keyed hash of the whole.
    pub hmac: Digest,
    /// When it ends.
    pub expires_at: Time,
}

/// What it decides from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    tenant: Tenant,
    key: i64,
}

#[derive(Debug, Serialize)]
struct Created<'a> {
    buyer_id: i64,
    tenant_id: i64,
    api_key_id: i64,
    api_key_prefix: &'a str,
    api_key_expires_at: Stamp,
    currency_code: &'static str,
    created_at: Stamp,
}

impl CreateBuyer {
    fn fields(&self, at: Time) -> Result<(), Refusal> {
        let prefix = &self.key.prefix;
        fields::checked(&[
            ("code", "text", is_text(&self.code, 64)),
            ("name", "text", is_text(&self.name, 100)),
            ("key_name", "text", is_text(&self.key.name, 100)),
            ("key_prefix", "form", prefix.len() == 12 && prefix.starts_with("lgw_")),
            ("key_expires_at", "future", self.key.expires_at > at),
        ])
    }
}

impl Action for CreateBuyer {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "platform.buyer.create"
    }

    fn object(&self) -> Object {
        Object::new_of(KIND)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, _: &Context, (): &()) -> Vec<Query> {
        let mut queries = people::load(&self.code);
        queries.push(Query::new("buyer.next", NEXT, vec![]));
        queries
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let (tenant, rest) = Tenant::read(rows)?;
        let next = rest.first().and_then(|rows| rows.first());
        let damaged = || Error::Corrupt { table: "auth_api_keys", column: "answers".into() };
        Ok(State { tenant, key: next.ok_or_else(damaged)?.int(0)? })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        self.fields(at)?;
        let Tenant::Free(ids) = state.tenant else { return Err(taken().into()) };
        let currency = context.house.policy.currency;
        let mut writes = people::tenant(ids, &self.code, &self.name, "consumer", at);
        let prepaid = Account::prepaid(ledger::ids::Buyer(ids.principal));
        writes.push(books::open(ids.tenant, prepaid, currency, at));
        let ApiKey { name, prefix, hmac, expires_at } = &self.key;
        let row = values![state.key, ids.tenant, ids.principal, name, prefix, *hmac, *expires_at, at, at];
        writes.push(Write::one("buyer.key", INSERT_KEY, row));
        let data = Created {
            buyer_id: ids.principal,
            tenant_id: ids.tenant,
            api_key_id: state.key,
            api_key_prefix: prefix,
            api_key_expires_at: Stamp(*expires_at),
            currency_code: currency.code(),
            created_at: Stamp(at),
        };
        let after = json!({ "status": "active", "version": 0, "tenant_id": ids.tenant });
        let object = Object::row(KIND, ids.principal);
        Ok(Change { after, writes, status: 201, ..Change::of(object, &data)? })
    }

    fn outrun(&self, write: &'static str, _: &State) -> Option<Refusal> {
        match write {
            "people.tenant" => Some(taken()),
            // A key that is known already: one like it is never made again, so it was sent twice.
            "buyer.key" => Some(Refusal::of(Code::ComState).with("rule", "key_taken")),
            _ => None,
        }
    }
}
