//! `onceseal serve`.

use std::net::SocketAddr;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::Globals;
use super::out::{Ended, Exit, Out, Stop};
use crate::config::endpoint;
use crate::wiring::market;
use crate::wiring::server::Server;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal serve
  onceseal serve --listen 0.0.0.0:8443 --data /srv/auditvisa
  onceseal serve --set log.level=debug --set server.wait=1s

The first line on standard output, \"listening on http://...\", comes once requests are answered; logs go to
standard error. SIGTERM and SIGINT stop it gracefully, SIGHUP reads the sources' secrets again, as does a
change of their files.")]
pub struct Serve {
    /// Address and port: short for --set server.listen=ADDRESS
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
}

impl Serve {
    /// Serves until a signal.
    ///
    /// # Errors
    /// The server can't start.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let more = self.listen.iter().map(|at| ("--listen", format!("server.listen={at}"))).collect();
        let places = globals.places(more);
        let loaded = places.load()?;
        let logging = crate::logging::start(&loaded.config).map_err(|cause| Stop::new(Exit::Usage, cause))?;
        // Without a usable secret nothing is touched: no folder, no key, no socket.
        endpoint::all(&loaded).map_err(|cause| Stop::new(Exit::Usage, cause))?;
        market::check(&loaded.config).map_err(|cause| Stop::new(Exit::Usage, cause))?;
        if store::is_locked(&loaded.config.storage.folder).unwrap_or(false) {
            let folder = loaded.config.storage.folder.display();
            let text = format!(
                "another server or command uses the data folder {folder} (storage.folder); stop it first, or give another folder"
            );
            return Err(Stop::new(Exit::Server, text));
        }
        let server = Server::start(places, loaded).await.map_err(Stop::failed)?;
        let stop = stop_signal()?;
        if out.json {
            out.value(&serde_json::json!({ "listening": server.base, "pid": std::process::id() }));
        } else {
            out.line(format_args!("listening on {}", server.base));
        }
        let served = server.run(stop).await;
        logging.end().await;
        served?;
        Ok(Exit::Fine)
    }
}

/// Ends at the first SIGTERM or SIGINT.
///
/// # Errors
/// The system gives no signal handler.
pub fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
