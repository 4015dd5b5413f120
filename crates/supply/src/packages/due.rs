//! Packages that the scheduler has something to do for, of all tenants: found by state, never by a mark of how far
//! it came; the commands judge state and time again. Only what can go through is listed, so that no list is
//! filled by what has to wait.

use kernel::Time;
use store::{Error, Query, Row, Store, values};

use super::found;
use crate::caller::Caller;
use crate::rows::Reader;

const EXPIRE: &str = "select p.tenant_id, p.id, p.version, p.end_at from supply_packages p
where p.status in ('active', 'paused', 'sold_out') and p.end_at <= $1 order by p.end_at, p.id limit $2";
const SELL_OUT: &str = "select p.tenant_id, p.id, p.version, p.end_at from supply_packages p
where p.status = 'active' and p.available_quota = 0 and p.reserved_quota = 0 and p.end_at > $1
order by p.id limit $2";
const RESTOCK: &str = "select p.tenant_id, p.id, p.version, p.end_at
from supply_packages p join supply_accounts a on a.id = p.supply_account_id
where p.status = 'sold_out' and p.available_quota > 0 and p.end_at > $1 and not p.platform_frozen
  and a.status = 'active' and not a.is_frozen order by p.id limit $2";

/// Frozen ones can't be sold and are not paused either: what is locked stays as it is.
const PAUSE: &str = "select p.tenant_id, p.id
from supply_packages p join supply_accounts a on a.id = p.supply_account_id
where p.status = 'active' and not p.platform_frozen and a.status <> 'active' order by p.id limit $1";

/// Active packages whose account is not active any more (section 6.1): for [`super::Pause`], fact `pause`. Read by
/// [`crate::platform::Due`]. Paused and made active again, a package may get there a second time, so the fact's
/// name deduplicates nothing.
#[must_use]
pub fn to_pause(limit: i64) -> Query {
    Query::new("due.packages_pause", PAUSE, values![limit])
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// [`super::Expire`].
    Expire,
    /// [`super::SellOut`].
    SellOut,
    /// [`super::Restock`].
    Restock,
}

/// A package whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// For what.
    pub turn: Turn,
    /// The supplier's tenant.
    pub tenant_id: i64,
    /// Which package.
    pub package_id: i64,
    /// As it was listed.
    pub version: i64,
    /// End of its validity.
    pub end_at: Time,
}

impl Due {
    /// At most `limit` packages whose turn it is at `now`.
    ///
    /// # Errors
    /// The store's.
    pub async fn list(store: &Store, turn: Turn, now: Time, limit: i64) -> Result<Vec<Self>, Error> {
        let rows = store.query(Self::query(turn, now, limit)).await?;
        rows.iter().map(|row| Self::read(turn, row)).collect()
    }

    /// The read behind [`Due::list`].
    #[must_use]
    pub fn query(turn: Turn, now: Time, limit: i64) -> Query {
        let (name, sql) = match turn {
            Turn::Expire => ("due.packages_expire", EXPIRE),
            Turn::SellOut => ("due.packages_sell_out", SELL_OUT),
            Turn::Restock => ("due.packages_restock", RESTOCK),
        };
        Query::new(name, sql, values![now, limit])
    }

    /// Reads a row of [`Due::query`].
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(turn: Turn, row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let (tenant_id, package_id, version) = (reader.int()?, reader.int()?, reader.int()?);
        let end_at = reader.time_or_null()?.ok_or_else(found::damaged)?;
        Ok(Self { turn, tenant_id, package_id, version, end_at })
    }

    /// The system as the caller, under a key that names the fact: `expire:17:2026-04-26T02:03:04.000Z`
    /// (section 16.1). What may happen again, each time after another change, is named by the version that it
    /// follows on: `restock:17:5`. The state alone sees to it that a fact happens once; where a record is kept
    /// too, its life is to be short, since a refusal that was early (clocks differ) is replayed until it ends.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let Self { package_id, version, .. } = *self;
        let fact = match self.turn {
            Turn::Expire => format!("expire:{package_id}:{}", self.end_at.to_rfc3339_millis()),
            Turn::SellOut => format!("sold_out:{package_id}:{version}"),
            Turn::Restock => format!("restock:{package_id}:{version}"),
        };
        Caller::system(self.tenant_id, &fact)
    }
}
