//! The worker that keeps `processed.jsonl` up to date, and makes it anew when asked: the only hand on the
//! file while a server runs. The database decides what was processed; the file is for people and for other
//! programs, may be moved away at any time, and grows anew.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use certify::AuditVisa;
use certify::acts::Refused;
use certify::ledgerfile::ProcessedFile;
use door::Failure;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Between two looks; the file is at most this much behind.
const EVERY: Duration = Duration::from_secs(1);
/// Orders that may wait; who comes later waits for a place.
const ORDERS: usize = 4;

/// An order to make the file anew: where its lines are told.
type Order = oneshot::Sender<Result<u64, Refused>>;

/// The running worker.
#[derive(Debug)]
pub struct Export {
    stopping: watch::Sender<()>,
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
}

impl Export {
    /// Mends what a crash left of the end of the data folder's file, then follows what is processed.
    #[must_use]
    pub fn start(visa: Arc<AuditVisa>, folder: &Path) -> Self {
        let file = ProcessedFile::at(super::processed_file(folder));
        let (stopping, stop) = watch::channel(());
        let (orders, ordered) = mpsc::channel(ORDERS);
        Self { stopping, orders, task: tokio::spawn(follow(visa, file, stop, ordered)) }
    }

    /// For the edge: asks this worker, and waits until it is done.
    #[must_use]
    pub fn rebuild(&self) -> web::Rebuild {
        let orders = self.orders.clone();
        web::Rebuild::new(move || {
            let orders = orders.clone();
            Box::pin(async move {
                let (answer, answered) = oneshot::channel();
                let stopping = || Refused::from(Failure::Stopping);
                orders.send(answer).await.map_err(|_| stopping())?;
                answered.await.map_err(|_| stopping())?
            })
        })
    }

    /// Writes what is left, then ends.
    pub async fn stop(self) {
        drop(self.stopping);
        if self.task.await.is_err() {
            tracing::error!("export_stopped_early");
        }
    }
}

async fn follow(
    visa: Arc<AuditVisa>,
    file: ProcessedFile,
    mut stop: watch::Receiver<()>,
    mut ordered: mpsc::Receiver<Order>,
) {
    if let Err(cause) = visa.mend_export(&file).await {
        tracing::warn!(%cause, "export_not_mended");
    }
    loop {
        let order = tokio::select! {
            // The last round comes after the stop, so that nothing processed before it is missing.
            _ = stop.changed() => return append(&visa, &file).await,
            Some(order) = ordered.recv() => Some(order),
            () = tokio::time::sleep(EVERY) => None,
        };
        if let Some(answer) = order {
            let rebuilt = visa.rebuild_export(&file).await;
            if let Err(cause) = &rebuilt {
                tracing::warn!(%cause, "export_not_rebuilt");
            }
            // Whoever asked may have gone; it is done all the same.
            let _ = answer.send(rebuilt);
        }
        append(&visa, &file).await;
    }
}

/// Until nothing is left, or the file can't be written just now.
async fn append(visa: &AuditVisa, file: &ProcessedFile) {
    // Without its mark, each look would write the same lines again.
    while !visa.door().store().is_closed() {
        match visa.append_export(file).await {
            Ok(0) => return,
            Ok(lines) => tracing::debug!(lines, "export_written"),
            Err(cause) => return tracing::warn!(%cause, "export_not_written"),
        }
    }
}
