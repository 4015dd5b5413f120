//! What the scheduler has to see to: lists of objects whose time has come, the longest waiting first. Found by
//! state, never by a mark of how far it came; the commands judge the time again.

use kernel::Time;
use store::{Error, Query, Row, values};

use crate::caller::Caller;
use crate::house::House;
use crate::rows::Reader;

const RELEASE: &str = "select e.tenant_id, e.id from supply_earnings e
where e.status = 'pending' and e.amount > 0 and e.available_at <= $1 order by e.available_at, e.id limit $2";
const TIME_OUT: &str = "select o.tenant_id, o.id from supply_orders o
where o.status = 'pending' and o.created_at <= $1 order by o.created_at, o.id limit $2";
const CLOSE: &str = "select o.tenant_id, o.id from supply_orders o
where o.status in ('paid', 'using') and o.expired_at <= $1 order by o.expired_at, o.id limit $2";

/// An object whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Whose: the supplier's tenant.
    pub tenant_id: i64,
    /// Row id.
    pub id: i64,
}

impl Due {
    /// Reads a row of one of these lists.
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        Ok(Self { tenant_id: reader.int()?, id: reader.int()? })
    }

    /// The system as the caller of what is due, under a key that names the fact: `release:17`. The state alone
    /// sees to it that a fact happens once; where a record is kept too, its life is to be short, since a refusal
    /// that was early (clocks differ) is replayed until it ends.
    #[must_use]
    pub fn caller(self, fact: &str) -> Caller {
        Caller::system(self.tenant_id, &format!("{fact}:{}", self.id))
    }
}

/// Earnings whose hold is over: for [`crate::earnings::Release`], fact `release`.
#[must_use]
pub fn earnings_to_release(now: Time, limit: i64) -> Query {
    Query::new("due.release", RELEASE, values![now, limit])
}

/// Orders that were not paid in time: for [`crate::orders::Cancel`], fact `timeout`.
#[must_use]
pub fn orders_to_time_out(now: Time, limit: i64, house: &House) -> Query {
    Query::new("due.time_out", TIME_OUT, values![now.minus(house.policy.order_pay), limit])
}

/// Paid orders whose validity is over: for [`crate::orders::Close`], fact `close`.
#[must_use]
pub fn orders_to_close(now: Time, limit: i64) -> Query {
    Query::new("due.close", CLOSE, values![now, limit])
}
