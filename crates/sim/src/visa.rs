//! A run with AuditVisa: real deliveries through `AuditVisa::receive`, certificates built and signed, files
//! on a shelf that fails, recovery by `reconcile`. One seed in [`EVERY`] is such a run: building and signing
//! take their time.
//!
//! Modules in reading order: [`event`] (what senders report), [`house`] (a node), `steps`, `judge`.

mod event;
mod house;
mod judge;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use certify::keyring::Folder;
use certify::shelf::memory::Files;
use door::Door;
use store::Store;
use testkit::Seeded;

use crate::client::Clients;
use crate::driver::Unreliable;
use crate::finish;
use crate::foreign::Foreign;
use crate::process::{Process, SeededRandom};
use crate::run::pass;
use crate::stage::Stage;
use crate::tally::Tally;
use crate::world::World;
use event::Senders;
use house::House;

/// One seed in so many is a run with AuditVisa.
pub(crate) const EVERY: u64 = 10;
/// Recoveries until nothing may be open any more; the pause between an event's tries doubles.
const SWEEPS_MAX: u32 = 14;
const BETWEEN_SWEEPS: Duration = Duration::from_secs(9 * 3600);

const OPEN: &str = "select count(*) from certify_events where status in ('processing', 'orphaned')
    or (status = 'failed' and response_code is null)";

/// Everything of such a run.
pub(crate) struct Visa {
    pub(crate) world: Arc<World>,
    pub(crate) foreign: Arc<Foreign>,
    files: Arc<Files>,
    houses: Vec<House>,
    pub(crate) clients: Clients,
    senders: Arc<Senders>,
    pub(crate) tally: Tally,
}

impl Visa {
    pub(crate) fn new(stage: &Arc<Stage>, seed: u64, trace: bool) -> Self {
        let world = World::new(Arc::clone(stage), Seeded::new(seed), trace);
        let (foreign, files) = (Foreign::new(&world), Arc::default());
        let senders = Arc::new(Senders::new(&world));
        let houses = (0..2 + usize::try_from(world.below(2)).unwrap_or(0))
            .map(|node| House::start((&world, &foreign, &files), node, 1))
            .collect();
        crate::run::rates(&world, &foreign);
        Self { world, foreign, files, houses, clients: Clients::default(), senders, tally: Tally::default() }
    }

    pub(crate) async fn play(mut self, steps: u64) -> Self {
        for _ in 0..steps {
            steps::step(&mut self);
            self.tally.steps += 1;
            let pause = if self.world.chance(15) { 1_500 } else { 25 };
            pass(self.world.millis(pause)).await;
        }
        self.finish().await;
        judge::judge(&self).await;
        self
    }

    async fn finish(&self) {
        let nodes = self.houses.iter().map(|house| &house.node);
        finish::all_well(&self.world, &self.foreign, nodes.clone());
        finish::settle(&self.world, &self.clients).await;
        self.recovered().await;
        // Each event once more: its formal result must be there.
        let before = self.clients.all().len();
        for event in self.known() {
            if let Some(house) = self.world.pick(&self.houses) {
                house.deliver(self, event, 0);
            }
        }
        pass(Duration::from_secs(5)).await;
        for sent in self.clients.all().iter().skip(before).filter(|sent| !sent.is_finished()) {
            self.world.find(format!("{}: the last delivery has no formal result: {:?}", sent.key, sent.told));
        }
        self.recovered().await;
        finish::deliver(&self.world, nodes).await;
        finish::nothing_left(&self.world, OPEN, "events are open");
        finish::closed(&self.world);
    }

    async fn recovered(&self) {
        for _ in 0..SWEEPS_MAX {
            for house in &self.houses {
                house.reconcile(&self.world);
                pass(Duration::from_secs(2)).await;
            }
            if finish::count(&self.world, OPEN) == 0 {
                return;
            }
            self.world.advance(BETWEEN_SWEEPS);
        }
    }

    /// Events that somebody delivered.
    fn known(&self) -> Vec<usize> {
        let sent = self.clients.all();
        (0..self.senders.count())
            .filter(|event| sent.iter().any(|one| one.key == event::key(*event)))
            .collect()
    }
}

/// Makes the keys that all nodes of all runs of this database sign with.
pub(crate) fn first_keys(stage: &Arc<Stage>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let world = World::new(Arc::clone(stage), Seeded::new(0), false);
        let process = Process::new(0, 0, 0);
        let driver = Unreliable { world, process };
        let door = Door::new(Store::over(Arc::new(driver)), Arc::new(SeededRandom::new(0)));
        let loaded = Folder::new(stage.keys().to_owned(), None).load(&door).await;
        loaded.map(drop).context("the first keys")
    })
}
