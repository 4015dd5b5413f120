//! One seed: nodes, keys and mishaps are drawn, steps are made, all is let finish, and then judged.

use std::sync::Arc;
use std::time::Duration;

use testkit::Seeded;

use crate::client::Clients;
use crate::domain::{Kind, Rule, key_of};
use crate::foreign::Foreign;
use crate::market::{self, Market};
use crate::node::Node;
use crate::stage::Stage;
use crate::steps;
use crate::tally::Tally;
use crate::trace::Trace;
use crate::visa::{self, Visa};
use crate::world::World;
use crate::{finish, judge};

/// Fewest and most steps of a run.
const STEPS_MIN: u64 = 50;
const STEPS_MAX: u64 = 80;

/// What a seed gave.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What must not happen, and did.
    pub findings: Vec<String>,
    /// How much was done.
    pub tally: Tally,
    /// What happened, where it was asked for.
    pub trace: Trace,
}

/// Runs a seed. With `trace`, all that happens is written down.
#[must_use]
pub fn run(stage: &Arc<Stage>, seed: u64, trace: bool) -> Report {
    let begun = stage.memory().mark();
    let built = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let mut report = match (begun, built) {
        (Ok(()), Ok(runtime)) => runtime.block_on(async {
            if seed.is_multiple_of(visa::EVERY) {
                let scene = Visa::new(stage, seed, trace);
                let steps = steps_of(&scene.world);
                let mut scene = scene.play(steps).await;
                scene.tally.certified = 1;
                return report(seed, &scene.world, &scene.clients, scene.tally);
            }
            if market::is(seed) {
                let scene = Market::new(stage, seed, trace);
                let steps = steps_of(&scene.world);
                let scene = scene.play(steps).await;
                return report(seed, &scene.world, &scene.clients, scene.tally);
            }
            let scene = Scene::new(stage, seed, trace).play().await;
            report(seed, &scene.world, &scene.clients, scene.tally)
        }),
        (begun, built) => Report {
            seed,
            findings: vec![format!("the run could not begin: {begun:?} {:?}", built.err())],
            tally: Tally::default(),
            trace: Trace::default(),
        },
    };
    if let Err(error) = stage.memory().back() {
        report.findings.push(format!("the database could not go back: {error}"));
    }
    report
}

/// Everything of a run.
pub(crate) struct Scene {
    pub(crate) world: Arc<World>,
    pub(crate) foreign: Arc<Foreign>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) clients: Clients,
    pub(crate) kinds: Arc<Vec<Kind>>,
    pub(crate) tally: Tally,
}

impl Scene {
    fn new(stage: &Arc<Stage>, seed: u64, trace: bool) -> Self {
        let world = World::new(Arc::clone(stage), Seeded::new(seed), trace);
        let foreign = Foreign::new(&world);
        let count = 3 + world.below(2);
        let kinds: Vec<Kind> = (0..count).map(|_| kind(&world)).collect();
        for number in 0..count {
            let key = format!("k{number}");
            world.name(key_of(&key, 0).digest().word(), &key);
        }
        let nodes = (0..2 + usize::try_from(world.below(2)).unwrap_or(0))
            .map(|node| Node::start(&world, &foreign, node, 1))
            .collect();
        rates(&world, &foreign);
        world.tell(|| format!("keys {kinds:?}"));
        let (clients, tally) = (Clients::default(), Tally::default());
        Self { world, foreign, nodes, clients, kinds: Arc::new(kinds), tally }
    }

    async fn play(mut self) -> Self {
        let steps = steps_of(&self.world);
        for _ in 0..steps {
            steps::step(&mut self);
            self.tally.steps += 1;
            let pause = if self.world.chance(15) { 1_500 } else { 25 };
            tokio::time::sleep(self.world.millis(pause)).await;
        }
        finish::finish(&mut self).await;
        judge::judge(&self);
        self
    }
}

fn report(seed: u64, world: &World, clients: &Clients, mut tally: Tally) -> Report {
    tally.submissions = clients.all().len() as u64;
    tally.mishaps = world.mishaps.lock().counts;
    let trace = std::mem::take(&mut *world.trace.lock());
    Report { seed, findings: world.findings(), tally, trace }
}

fn steps_of(world: &World) -> u64 {
    STEPS_MIN + world.below(STEPS_MAX - STEPS_MIN)
}

/// How long messages take, and how much goes wrong.
pub(crate) fn rates(world: &World, foreign: &Foreign) {
    let wire = world.pick(&[1, 3, 10, 40]).copied().unwrap_or(1);
    world.set_wire(wire);
    let of_thousand = world.pick(&[0, 10, 40, 120]).copied().unwrap_or(0);
    world.mishaps.lock().of_thousand = of_thousand;
    foreign.fails(world.pick(&[0, 10, 35]).copied().unwrap_or(0));
    world.tell(|| format!("wire {wire} ms, mishaps {of_thousand} of 1000"));
}

fn kind(world: &World) -> Kind {
    let rule = match world.below(6) {
        0 | 1 => Rule::Name(world.below(3)),
        2 | 3 => Rule::Account(if world.chance(50) { 1 } else { 2 }),
        _ => Rule::None,
    };
    Kind { leased: world.chance(45), prepares: world.chance(50), expires: world.chance(50), rule }
}

/// Waits in virtual time.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
