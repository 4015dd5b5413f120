//! Time passes, and the product's scheduler says what is due.

use std::time::Duration;

use anyhow::Result;
use kernel::Time;
use supply::packages::{Due, Turn};
use supply::{platform, settlements};

use super::command::What;
use super::plan::{Writer, as_system, locked};
use super::stage::Market;

impl Writer {
    /// Time passes, and the scheduler lists what is due.
    pub(super) async fn time_passes(&mut self) -> Result<()> {
        let seconds = match self.chance.below(100) {
            0..60 => 20 + self.chance.below(120),
            60..85 => 300 + self.chance.below(900),
            85..95 => 3_600 + self.chance.below(4 * 3_600),
            _ => 36_000 + self.chance.below(30 * 3_600),
        };
        self.market.clock.advance(Duration::from_secs(seconds));
        let due = self.market.due(self.market.now()).await?;
        let mut board = locked(&self.board);
        for (tenant, what) in due {
            board.falls_due(as_system(tenant), what);
        }
        Ok(())
    }
}

impl Market {
    /// What the product's scheduler would do at `now`.
    async fn due(&self, now: Time) -> Result<Vec<(i64, What)>> {
        let store = self.door.store();
        let mut all = Vec::new();
        let mut list = async |query, what: fn(i64) -> What| {
            for row in store.query(query).await? {
                let due = platform::Due::read(&row)?;
                all.push((due.tenant_id, what(due.id)));
            }
            anyhow::Ok(())
        };
        list(platform::earnings_to_release(now, 500), |earning| What::Release { earning }).await?;
        list(platform::orders_to_time_out(now, 100, &self.house), |order| What::TimeOut { order }).await?;
        list(platform::orders_to_close(now, 100), |order| What::Close { order }).await?;
        list(settlements::due::to_start(now, 20, &self.house), |settlement| What::Start { settlement })
            .await?;
        for turn in [Turn::Expire, Turn::SellOut, Turn::Restock] {
            for due in Due::list(store, turn, now, 50).await? {
                let package = due.package_id;
                let what = match turn {
                    Turn::Expire => What::Expire { package },
                    Turn::SellOut => What::SellOut { package },
                    Turn::Restock => What::Restock { package },
                };
                all.push((due.tenant_id, what));
            }
        }
        Ok(all)
    }
}
