//! The worker that keeps `processed.jsonl` up to date. The database decides what was processed; the file is
//! for people and for other programs, may be moved away at any time, and grows anew.

use std::sync::Arc;
use std::time::Duration;

use certify::AuditVisa;
use certify::ledgerfile::ProcessedFile;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Between two looks; the file is at most this much behind.
const EVERY: Duration = Duration::from_secs(1);

/// The running worker.
#[derive(Debug)]
pub struct Export {
    stopping: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Export {
    /// Mends what a crash left of the file's end, then follows what is processed.
    #[must_use]
    pub fn start(visa: Arc<AuditVisa>, file: ProcessedFile) -> Self {
        let (stopping, stop) = watch::channel(());
        Self { stopping, task: tokio::spawn(follow(visa, file, stop)) }
    }

    /// Writes what is left, then ends.
    pub async fn stop(self) {
        drop(self.stopping);
        if self.task.await.is_err() {
            tracing::error!("export_stopped_early");
        }
    }
}

async fn follow(visa: Arc<AuditVisa>, file: ProcessedFile, mut stop: watch::Receiver<()>) {
    if let Err(cause) = visa.mend_export(&file).await {
        tracing::warn!(%cause, "export_not_mended");
    }
    loop {
        // The last round comes after the stop, so that nothing processed before it is missing.
        let stopping = tokio::time::timeout(EVERY, stop.changed()).await.is_ok();
        loop {
            match visa.append_export(&file).await {
                Ok(0) => break,
                Ok(lines) => tracing::debug!(lines, "export_written"),
                Err(cause) => {
                    tracing::warn!(%cause, "export_not_written");
                    break;
                }
            }
        }
        if stopping {
            return;
        }
    }
}
