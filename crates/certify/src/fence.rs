//! The end of all writing, for the last step of a move to another database: new deliveries are turned away,
//! announcements that are being sent get their mark, then the store is fenced. Reads go on: certificates are
//! still given out.

use std::time::Duration;

use door::AuditRow;
use serde_json::{Value as Json, json};
use store::Query;

use crate::acts::Refused;
use crate::intake::AuditVisa;

/// Longest wait for announcements that are being sent; one that takes longer is `uncertain` on the other
/// side, as after a crash.
const SENDING_WITHIN: Duration = Duration::from_secs(15);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl AuditVisa {
    /// Ends all writing, durably, until [`AuditVisa::lift_fence`].
    ///
    /// # Errors
    /// [`Refused`] where the store can't be fenced; it is written to as before then.
    pub async fn fence(&self, operator: &str) -> Result<Json, Refused> {
        let store = self.door.store();
        if store::copy::is_fenced(store).await? {
            return Ok(json!({ "fenced": true, "announcements_cut": 0 }));
        }
        store.close();
        let ended = self.end_writing(operator).await;
        if ended.is_err() {
            store.reopen();
        }
        tracing::warn!(operator, fenced = ended.is_ok(), "store_fenced");
        Ok(json!({ "fenced": true, "announcements_cut": ended? }))
    }

    /// Gives the number of announcements that were still being sent.
    async fn end_writing(&self, operator: &str) -> Result<i64, Refused> {
        let mut sending = self.sending().await?;
        let end = tokio::time::Instant::now() + SENDING_WITHIN;
        while sending > 0 && tokio::time::Instant::now() < end {
            tokio::time::sleep(LOOK_EVERY).await;
            sending = self.sending().await?;
        }
        self.note("certify.store.fence", operator).await?;
        self.door.store().fence().await?;
        Ok(sending)
    }

    /// Lets writing begin again. Without a fence only the act is noted.
    ///
    /// # Errors
    /// [`Refused`] where the store can't be written; the fence stands then.
    pub async fn lift_fence(&self, operator: &str) -> Result<Json, Refused> {
        self.door.store().lift_fence().await?;
        self.note("certify.store.lift_fence", operator).await?;
        tracing::warn!(operator, "fence_lifted");
        Ok(json!({ "fenced": false }))
    }

    async fn sending(&self) -> Result<i64, Refused> {
        // The first condition is the partial index's own, word for word.
        let sql = "select count(*) from outbox_deliveries where status in ('pending', 'sending') and status = 'sending'";
        let rows = self.door.store().query(Query::new("deliveries.sending", sql, Vec::new())).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.int(0))?)
    }

    async fn note(&self, act: &'static str, operator: &str) -> Result<(), Refused> {
        let random = self.door.random();
        let mut audit = AuditRow::system(act, "store", "certify".into(), format!("fence:{operator}"));
        audit.metadata = json!({ "by": operator });
        self.door
            .maintain("fence.note", Vec::new(), move |_, now| {
                Ok((vec![audit.clone().write(now, &*random)], ()))
            })
            .await?;
        Ok(())
    }
}
