//! The unreliable store as one process sees it: a driver that behaves like the one for PostgreSQL over
//! rows in memory. Each submission is a transaction in two trips, and the other nodes' transactions run
//! between them. Not here: what a transaction does on its trips (`session`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use store::{Driver, Error, Query, Row, Work, Written};

use crate::mishap::Mishap;
use crate::process::{Dead, Process};
use crate::session::Session;
use crate::world::World;

/// Tries of one transaction, as the driver for PostgreSQL has them.
const TRIES_MAX: u32 = 4;
/// Pause before the second try; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(10);

/// What the owner of a transaction can do about an error.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Tell it.
    Final(Error),
    /// The same again may do. Nothing was kept.
    Again(Error),
    /// The connection is gone before the commit was sent.
    Lost(Error),
    /// The commit may or may not have happened.
    Unknown(Error),
}

impl Fault {
    fn into_error(self) -> Error {
        match self {
            Self::Final(error) | Self::Again(error) | Self::Lost(error) | Self::Unknown(error) => error,
        }
    }

    const fn is_final(&self) -> bool {
        matches!(self, Self::Final(_) | Self::Unknown(_))
    }
}

pub(crate) fn unavailable(cause: &str) -> Error {
    Error::Unavailable { cause: cause.into() }
}

/// The store, as one process reaches it.
#[derive(Debug)]
pub(crate) struct Unreliable {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
}

#[async_trait]
impl Driver for Unreliable {
    fn enqueue(&self, work: Box<dyn Work>) {
        let (world, process) = (Arc::clone(&self.world), Arc::clone(&self.process));
        tokio::spawn(async move { serve(&world, &process, work).await });
    }

    async fn queries(&self, queries: Vec<Query>) -> Result<Vec<Vec<Row>>, Error> {
        self.process.pass().await;
        let mishap = self.world.mishap(self.process.node);
        self.world.way().await;
        let rows: Result<Vec<_>, _> = queries.iter().map(|query| self.world.read(query)).collect();
        self.world.way().await;
        self.process.pass().await;
        match mishap {
            // The driver tries a lost read again by itself.
            None | Some(Mishap::LostAfter | Mishap::Deadlock) => rows,
            Some(mishap) => {
                self.world.tell(|| format!("{} read fails: {}", self.process.name, mishap.as_str()));
                Err(unavailable(mishap.as_str()))
            }
        }
    }

    fn waiting(&self) -> usize {
        0
    }

    fn ahead(&self) -> i64 {
        self.process.ahead()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

async fn serve(world: &Arc<World>, process: &Arc<Process>, mut work: Box<dyn Work>) {
    let ended = run(world, process, &mut *work).await;
    let delivered = match ended {
        Ok(end) => process.gate().await.map(|()| end),
        Err(Dead) => Err(Dead),
    };
    match delivered {
        Ok(end) => work.settled(end),
        Err(Dead) => {
            // Whoever waits for it is dead, too; told that it is gone, they would go on.
            std::future::pending::<()>().await;
            drop(work);
        }
    }
}

/// A transaction, again where the driver would.
async fn run(
    world: &Arc<World>,
    process: &Arc<Process>,
    work: &mut dyn Work,
) -> Result<Result<Written, Error>, Dead> {
    let mut planned = false;
    for tries in 1.. {
        process.gate().await?;
        let fault = match (Session { world, process }).run(work, &mut planned).await? {
            Ok(written) => return Ok(Ok(written)),
            Err(fault) => fault,
        };
        world.tell(|| format!("{} transaction fails: {fault:?}", process.name));
        let again = !planned || work.again();
        if tries >= TRIES_MAX || !again || fault.is_final() {
            return Ok(Err(fault.into_error()));
        }
        tokio::time::sleep(PAUSE * 2_u32.pow(tries)).await;
    }
    Ok(Err(unavailable("no try was left")))
}
