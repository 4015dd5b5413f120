//! Whose an object is: for staff, who act on objects of every tenant (section 3.2).

use store::{Error, Query, Store, values};

use crate::rows::Reader;

/// An object by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// `supply_accounts`.
    Account(i64),
    /// `supply_packages`.
    Package(i64),
    /// `supply_orders`, by the supplier's side.
    Order(i64),
    /// `supply_settlements`.
    Settlement(i64),
    /// `iam_users`.
    User(i64),
    /// `supply_suppliers`.
    Supplier(i64),
    /// A consumer's own tenant: `core_tenants`.
    Consumer(i64),
}

/// The tenant of an object; `None` where there is none.
///
/// # Errors
/// The store's.
pub async fn of(store: &Store, owned: Owned) -> Result<Option<i64>, Error> {
    let (sql, id) = match owned {
        Owned::Account(id) => {
            ("select tenant_id from supply_accounts where id = $1 and deleted_at is null", id)
        }
        Owned::Package(id) => ("select tenant_id from supply_packages where id = $1", id),
        Owned::Order(id) => ("select tenant_id from supply_orders where id = $1", id),
        Owned::Settlement(id) => ("select tenant_id from supply_settlements where id = $1", id),
        Owned::User(id) => ("select tenant_id from iam_users where id = $1", id),
        Owned::Supplier(id) => ("select tenant_id from supply_suppliers where id = $1", id),
        Owned::Consumer(id) => ("select id from core_tenants where id = $1 and type = 'consumer'", id),
    };
    let rows = store.query(Query::new("tenant.of", sql, values![id])).await?;
    rows.first().map(|row| Reader::new(row).int()).transpose()
}

/// The principal of a tenant's supplier, by which the audit names it; `None` where the tenant has none.
///
/// # Errors
/// The store's.
pub async fn principal_of(store: &Store, tenant_id: i64) -> Result<Option<i64>, Error> {
    let sql = "select user_id from supply_suppliers where tenant_id = $1";
    let rows = store.query(Query::new("tenant.principal", sql, values![tenant_id])).await?;
    rows.first().map(|row| Reader::new(row).int()).transpose()
}
