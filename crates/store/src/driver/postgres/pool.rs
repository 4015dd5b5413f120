//! The connections of this node. None is kept that has lost its server, lies inside a transaction, or was
//! made before the last sign of a failover.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deadpool::Runtime;
use deadpool::managed::{self, Metrics, Object, PoolError, RecycleError, RecycleResult, TimeoutType};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connection::Connection;
use super::fault::{Fault, unavailable};
use super::settings::{Mode, Postgres, Timeouts};
use super::tls;
use crate::error::Error;

/// Connections of one database.
#[derive(Clone)]
pub(super) struct Pool {
    connections: managed::Pool<Maker>,
    lost: Arc<AtomicU64>,
    timeouts: Timeouts,
}

pub(super) struct Maker {
    config: Config,
    tls: MakeRustlsConnect,
    mode: Mode,
    timeouts: Timeouts,
    /// How often a server was found lost; connections made before the last time are dropped.
    lost: Arc<AtomicU64>,
}

impl managed::Manager for Maker {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        let generation = self.lost.load(Ordering::SeqCst);
        Connection::open(&self.config, &self.tls, (self.mode, &self.timeouts), generation).await
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<Error> {
        if connection.is_usable() && connection.generation == self.lost.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err(RecycleError::message("of no use any more"))
        }
    }
}

impl Pool {
    pub(super) fn new(settings: &Postgres) -> Result<Self, Error> {
        let lost = Arc::new(AtomicU64::new(0));
        let maker = Maker {
            config: settings.config()?,
            tls: tls::connector(settings.authorities.as_deref())?,
            mode: settings.mode,
            timeouts: settings.timeouts,
            lost: Arc::clone(&lost),
        };
        let connections = managed::Pool::builder(maker)
            .max_size(settings.connections.max(1))
            .wait_timeout(Some(settings.timeouts.free))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|cause| Error::Setup(format!("the connections can't be set up: {cause}")))?;
        Ok(Self { connections, lost, timeouts: settings.timeouts })
    }

    /// A connection at rest.
    pub(super) async fn get(&self) -> Result<Object<Maker>, Error> {
        self.connections.get().await.map_err(|cause| match cause {
            PoolError::Timeout(TimeoutType::Wait) => {
                unavailable(&format!("no connection to the database became free in {:?}", self.timeouts.free))
            }
            PoolError::Backend(error) => error,
            other => unavailable(&other.to_string()),
        })
    }

    /// Draws what follows from a fault: which connections are of no use any more.
    pub(super) fn mind(&self, connection: &mut Connection, fault: &Fault) {
        match fault {
            Fault::Lost(_) | Fault::Unknown(_) | Fault::WrongServer(_) => {
                connection.at_rest = false;
                self.lost.fetch_add(1, Ordering::SeqCst);
            }
            Fault::Again(_) => connection.forget_statements(),
            Fault::Final(_) | Fault::Follows => {}
        }
    }
}
