//! Opens the payout account of a settlement that is on its way: for whoever pays, and for nobody else (section
//! 1.1). It calls the key service, so never inside a transaction; what it gives is not printed and not kept.

use custody::Place;
use custody::payout::Method;
use door::Failure;
use secrecy::SecretString;
use store::{Error, Query, Store, values};

use crate::keys::Keys;
use crate::rows::Reader;

const SEALED: &str =
    "select t.settlement_no, t.payment_method, t.payment_account, t.payment_account_kms_key_alias
from supply_settlements t where t.id = $1 and t.tenant_id = $2 and t.status = 'processing'";

/// Where a settlement's net amount goes. `Debug` does not show the account.
#[derive(Clone, Debug)]
pub struct Payee {
    /// By which it is paid.
    pub method: Method,
    /// The account in its one spelling.
    pub account: SecretString,
    /// Reference of every attempt: the settlement's number.
    pub payout_ref: String,
}

impl Payee {
    /// Of a settlement that is processing; `None` of any other.
    ///
    /// # Errors
    /// The store's; the key service's; an envelope that belongs elsewhere.
    pub async fn open(
        store: &Store,
        keys: &Keys,
        tenant_id: i64,
        settlement_id: i64,
    ) -> Result<Option<Self>, Failure> {
        let query = Query::new("settlement.sealed", SEALED, values![settlement_id, tenant_id]);
        let rows = store.query(query).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut reader = Reader::new(row);
        let (number, method) = (reader.text()?, reader.text()?);
        let (envelope, alias) = (reader.text()?, reader.text()?);
        let damaged = || Error::Corrupt { table: "supply_settlements", column: "payment_method".into() };
        let place = Place { tenant_id, table: "supply_settlements", row: number, platform: method };
        let method = Method::parse(method).ok_or_else(damaged)?;
        let opened = keys.custody.open(&place, alias, envelope).await;
        let account = opened.map_err(|error| Failure::Step { step: "open", cause: error.to_string() })?;
        Ok(Some(Self { method, account, payout_ref: number.to_owned() }))
    }
}
