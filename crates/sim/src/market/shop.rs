//! A node with the supply side: its door and relay, and the house that its commands share. What is the same for
//! all runs of a database (patterns of the guard, keys) is made once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use custody::provider::{Settings, policy::Policy as Verdicts};
use custody::sms::SmsCodes;
use custody::{Custody, Fingerprints, LocalKeyring, Material, Verifier};
use guard::{Guard, Scanner};
use kernel::money::{Quota, QuotaUnit};
use supply::{House, Keys, Policy, Route};
use testkit::{CountingRandom, MovableClock, Seeded};

use crate::client::Clients;
use crate::domain::{LEASE, LIVES, REMOVED, SHOWN};
use crate::foreign::Foreign;
use crate::node::Node;
use crate::process::{ProcessClock, SeededRandom};
use crate::world::World;

/// Items of a batch's slice.
const SLICE: usize = 2;
/// What is announced; of the items of a batch, and of what begins a run, nobody is told.
const TOLD: [&str; 4] =
    ["supply.account.", "supply.package.publish.", "supply.package.batch_price.", "supply.settlement."];

/// What all houses have in common.
pub(crate) struct Trade {
    guard: Arc<Guard>,
    fingerprints: Arc<Fingerprints>,
    sms: Arc<SmsCodes>,
    /// Never asked: what a provider says comes from the simulation.
    verifier: Arc<Verifier>,
    pub(super) policy: Policy,
}

impl std::fmt::Debug for Trade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trade").finish_non_exhaustive()
    }
}

fn material(name: &str, seed: u64) -> anyhow::Result<Material> {
    let mut seeded = Seeded::new(seed);
    let bytes: Vec<u8> = (0..4).flat_map(|_| seeded.bits().to_be_bytes()).collect();
    Material::from_bytes(name, &bytes).map_err(anyhow::Error::msg).context("key material")
}

impl Trade {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let wrong = |cause: String| anyhow::anyhow!(cause);
        let scanner = Scanner::standard().map_err(|error| wrong(error.to_string()))?;
        let verdicts = Verdicts::standard(Quota::whole(10_000_000, QuotaUnit::Token)?);
        let (clock, random) = (Arc::new(MovableClock::at(0)), Arc::new(CountingRandom::default()));
        let verifier = Verifier::new(Settings::default(), verdicts, clock, random);
        let sms = SmsCodes::new((1, &material("sms", 3)?), None);
        let fingerprints = Fingerprints::new(&material("pepper", 2)?, None);
        Ok(Self {
            guard: Arc::new(Guard::new(scanner, Vec::new(), &[5; 32])),
            fingerprints: Arc::new(fingerprints.map_err(|error| wrong(error.to_string()))?),
            sms: Arc::new(sms.map_err(|error| wrong(error.to_string()))?),
            verifier: Arc::new(verifier.map_err(|error| wrong(error.to_string()))?),
            policy: policy(),
        })
    }

    /// The house of one life of a process.
    fn house(&self, world: &Arc<World>, node: &Node) -> anyhow::Result<House> {
        let random = Arc::new(SeededRandom::new(world.below(u64::MAX)));
        let keys = vec![(1, material("kek", 1)?)];
        let ring = LocalKeyring::new("local", 1, keys, Arc::clone(&random) as _);
        let ring = ring.map_err(|error| anyhow::anyhow!(error.to_string()))?;
        let route = |prefix: &str, destination: &str| Route {
            prefix: prefix.into(),
            destination: destination.into(),
        };
        Ok(House {
            policy: self.policy.clone(),
            random: Arc::clone(&random) as _,
            clock: Arc::new(ProcessClock { world: Arc::clone(world), process: Arc::clone(&node.process) }),
            keys: Keys {
                custody: Custody::new(Arc::new(ring), random),
                fingerprints: Arc::clone(&self.fingerprints),
                sms: Some(Arc::clone(&self.sms)),
                verifier: Arc::clone(&self.verifier),
            },
            routes: TOLD.iter().flat_map(|name| [route(name, SHOWN), route(name, REMOVED)]).collect(),
            guard: Some(Arc::clone(&self.guard)),
        })
    }
}

/// No pauses between withdrawals, and small slices: so that much happens in a run.
fn policy() -> Policy {
    Policy {
        withdraw_enabled: true,
        withdraw_cooldown: Duration::ZERO,
        withdraw_review: Duration::ZERO,
        earnings_hold: Duration::ZERO,
        sms_pause: Duration::ZERO,
        sms_per_day: 1_000_000,
        key_life: LIVES,
        key_life_money: LIVES,
        lease: LEASE,
        batch_slice: SLICE,
        ..Policy::default()
    }
}

/// A node.
pub(super) struct Shop {
    pub(super) node: Node,
    pub(super) house: Arc<House>,
    life: u32,
}

impl Shop {
    /// `None`, with a finding, where a house can't be made.
    pub(super) fn start(
        (world, foreign, trade): (&Arc<World>, &Arc<Foreign>, &Trade),
        number: usize,
        life: u32,
    ) -> Option<Self> {
        let node = Node::start(world, foreign, number, life);
        match trade.house(world, &node) {
            Ok(house) => Some(Self { node, house: Arc::new(house), life }),
            Err(cause) => {
                world.find(format!("a house can't be made: {cause:#}"));
                None
            }
        }
    }

    /// Dies and starts anew.
    pub(super) fn restart(
        &mut self,
        (world, foreign, trade): (&Arc<World>, &Arc<Foreign>, &Trade),
        clients: &Clients,
    ) {
        self.node.kill(world, clients);
        let again = Self::start((world, foreign, trade), self.node.process.node, self.life + 1);
        if let Some(again) = again {
            *self = again;
        }
    }
}
