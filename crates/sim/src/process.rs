//! One life of a server process: it runs, stands still, or is dead. Everything that leaves it or comes
//! into it passes [`Process::gate`]: to the outside a process that never passes again is a dead one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use kernel::{Clock, Random, Time};
use parking_lot::Mutex;
use testkit::Seeded;
use tokio::sync::Notify;

use crate::world::World;

/// Where a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Running,
    Paused,
    Dead,
}

/// The process is dead: nothing of it goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dead;

/// One life of a server process.
#[derive(Debug)]
pub(crate) struct Process {
    /// Name of the node and number of its life: "a2".
    pub(crate) name: String,
    /// Number of the node.
    pub(crate) node: usize,
    standing: Mutex<Standing>,
    changed: Notify,
    /// By how much the machine's clock is ahead of the store's, in microseconds.
    machine: AtomicI64,
    /// What the driver last measured of the opposite.
    ahead: AtomicI64,
}

impl Process {
    pub(crate) fn new(node: usize, life: u32, machine: i64) -> Arc<Self> {
        let letter = ['a', 'b', 'c', 'd'].get(node).copied().unwrap_or('z');
        Arc::new(Self {
            name: format!("{letter}{life}"),
            node,
            standing: Mutex::new(Standing::Running),
            changed: Notify::new(),
            machine: AtomicI64::new(machine),
            ahead: AtomicI64::new(0),
        })
    }

    /// Waits while the process stands still.
    pub(crate) async fn gate(&self) -> Result<(), Dead> {
        loop {
            match self.standing() {
                Standing::Running => return Ok(()),
                Standing::Dead => return Err(Dead),
                Standing::Paused => self.changed.notified().await,
            }
        }
    }

    /// As [`Process::gate`]; never comes back in a dead process.
    pub(crate) async fn pass(&self) {
        if self.gate().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.standing() == Standing::Dead
    }

    pub(crate) fn is_running(&self) -> bool {
        self.standing() == Standing::Running
    }

    pub(crate) fn pause(&self) {
        self.set(Standing::Paused);
    }

    pub(crate) fn resume(&self) {
        self.set(Standing::Running);
    }

    pub(crate) fn kill(&self) {
        self.set(Standing::Dead);
    }

    fn standing(&self) -> Standing {
        *self.standing.lock()
    }

    fn set(&self, standing: Standing) {
        *self.standing.lock() = standing;
        self.changed.notify_waiters();
    }

    pub(crate) fn set_machine(&self, ahead: i64) {
        self.machine.store(ahead, Ordering::Relaxed);
    }

    /// Reads the store's clock as a driver does with each transaction.
    pub(crate) fn measure(&self) {
        self.ahead.store(-self.machine.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// What [`Process::measure`] found.
    pub(crate) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }
}

/// The clock of a process: its machine's, moved by what it last saw of the store's, as the server's is.
pub(crate) struct ProcessClock {
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
}

impl Clock for ProcessClock {
    fn now(&self) -> Time {
        let apart = self.process.machine.load(Ordering::Relaxed) + self.process.ahead();
        Time::from_micros(self.world.now().micros() + apart)
    }
}

/// Random bytes of a process, from the seed.
#[derive(Debug)]
pub(crate) struct SeededRandom(Mutex<Seeded>);

impl SeededRandom {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Mutex::new(Seeded::new(seed)))
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut seeded = self.0.lock();
        for chunk in bytes.chunks_mut(8) {
            for (byte, drawn) in chunk.iter_mut().zip(seeded.bits().to_le_bytes()) {
                *byte = drawn;
            }
        }
    }
}
