//! New secrets without a restart: at SIGHUP, and when a file that holds one has changed. Anchor keys are looked
//! at, too, though that happens every few seconds by itself. A configuration that can't be used changes nothing. All other settings wait for a restart, and the log says so.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use certify::AuditVisa;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use web::tls::Tls;

use crate::config::secret::SecretRef;
use crate::config::{Loaded, Places, endpoint};

/// Between two looks at the files.
const EVERY: Duration = Duration::from_secs(2);

/// What can be loaded anew.
pub struct Reload {
    /// Where settings come from.
    pub places: Places,
    /// What is in effect.
    pub loaded: Loaded,
    /// Gets the new endpoints.
    pub visa: Arc<AuditVisa>,
    /// Reads its files anew.
    pub tls: Option<Arc<Tls>>,
}

impl Reload {
    /// Watches until the task is aborted.
    ///
    /// # Errors
    /// The system gives no signal handler.
    pub fn start(mut self) -> std::io::Result<JoinHandle<()>> {
        let mut hangup = signal(SignalKind::hangup())?;
        Ok(tokio::spawn(async move {
            let mut seen = self.stamps();
            let mut looks = tokio::time::interval(EVERY);
            loop {
                tokio::select! {
                    _ = hangup.recv() => {}
                    _ = looks.tick() => {
                        if self.stamps() == seen {
                            continue;
                        }
                    }
                }
                self.again();
                if let Err(cause) = self.visa.tend_keys().await {
                    tracing::error!(%cause, "keys_not_reloaded");
                }
                seen = self.stamps();
            }
        }))
    }

    fn again(&mut self) {
        if let Some(tls) = &self.tls
            && let Err(cause) = tls.reload()
        {
            tracing::error!(%cause, "tls_not_reloaded");
        }
        let fresh = self.places.load().map_err(|fault| fault.to_string());
        let endpoints = fresh.and_then(|loaded| endpoint::all(&loaded).map(|endpoints| (loaded, endpoints)));
        match endpoints {
            Ok((loaded, endpoints)) => {
                if endpoint::plain_account(&loaded) != endpoint::plain_account(&self.loaded) {
                    let cause = "plain references would move to another account, and known events would be certified again";
                    tracing::error!(cause, "sources_not_reloaded");
                    return;
                }
                if differ(&self.loaded, &loaded) {
                    tracing::warn!("settings other than sources have changed; restart the server for them");
                }
                tracing::info!(sources = endpoints.len(), "sources_reloaded");
                self.visa.set_endpoints(endpoints);
                self.loaded = loaded;
            }
            Err(cause) => tracing::error!(%cause, "sources_not_reloaded"),
        }
    }

    /// Time and size of each file that matters; a file that is gone has none.
    fn stamps(&self) -> BTreeMap<PathBuf, Option<(SystemTime, u64)>> {
        let sources = self.loaded.config.sources.values();
        let secrets = sources.flat_map(|source| {
            let files = source.secrets.iter().chain(&source.api_v3_key).filter_map(|secret| match secret {
                SecretRef::File(path) => Some(path),
                SecretRef::Env(_) => None,
            });
            files.chain(source.public_keys.iter().filter_map(|key| key.file.as_ref()))
        });
        let tls = self.loaded.config.server.tls.iter().flat_map(|tls| [&tls.certificate, &tls.key]);
        let all = secrets.chain(tls).chain(&self.loaded.file);
        all.map(|path| {
            let meta = std::fs::metadata(path).ok();
            (path.clone(), meta.and_then(|meta| Some((meta.modified().ok()?, meta.len()))))
        })
        .collect()
    }
}

/// Whether anything but the sources differs.
fn differ(before: &Loaded, after: &Loaded) -> bool {
    let rest = |loaded: &Loaded| {
        let mut config = loaded.config.clone();
        config.sources.clear();
        toml::to_string(&config).ok()
    };
    rest(before) != rest(after)
}
