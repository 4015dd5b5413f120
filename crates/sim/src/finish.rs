//! The end of a run: nothing goes wrong any more, all nodes are up, and everything is let finish within a
//! bounded time.

use std::sync::Arc;
use std::time::Duration;

use store::Query;

use crate::client::Clients;
use crate::domain::{LEASE, Put};
use crate::foreign::Foreign;
use crate::node::{Node, kind_of};
use crate::run::{Scene, pass};
use crate::world::World;

/// Longer than any session, any late commit and any wait of a submission but a crowd's.
const SETTLED: Duration = Duration::from_secs(60);
/// Waits of that length until nobody may wait any more.
const WAITS_MAX: u32 = 8;
/// Recoveries until nothing may be open any more.
const SWEEPS_MAX: u32 = 8;
/// Turns of the relay without one delivery fewer, until that counts as stuck; between them, longer than any pause. How
/// many there are to deliver is the run's, and a turn takes one of each lane.
const TURNS_MAX: u32 = 12;
const BETWEEN_TURNS: Duration = Duration::from_secs(7 * 3600);

/// Lets everything finish; says what does not.
pub(crate) async fn finish(scene: &mut Scene) {
    let world = scene.world.clone();
    all_well(&world, &scene.foreign, scene.nodes.iter());
    settle(&world, &scene.clients).await;
    let mut sweeps = 0;
    while count(&world, OPEN) > 0 && sweeps < SWEEPS_MAX {
        world.advance(LEASE);
        for node in &scene.nodes {
            node.recover(&world, &scene.foreign, &scene.kinds);
        }
        pass(Duration::from_secs(5)).await;
        sweeps += 1;
    }
    probe(scene).await;
    deliver(&world, scene.nodes.iter()).await;
    nothing_left(&world, OPEN, "records are open");
    closed(&world);
}

/// Nothing goes wrong from here on.
pub(crate) fn all_well<'n>(world: &World, foreign: &Foreign, nodes: impl Iterator<Item = &'n Node>) {
    world.tell(|| "all is well from here on".into());
    world.mishaps.lock().stop();
    world.set_wire(1);
    foreign.fails(0);
    for node in nodes {
        node.process.set_machine(0);
        node.process.resume();
    }
}

/// Until no client waits.
pub(crate) async fn settle(world: &World, clients: &Clients) {
    for _ in 0..WAITS_MAX {
        pass(SETTLED).await;
        if clients.waiting() == 0 {
            return;
        }
    }
    world.find(format!("{} submissions have no answer", clients.waiting()));
}

/// Turns of the relay until nothing is pending.
pub(crate) async fn deliver<'n>(world: &Arc<World>, nodes: impl Iterator<Item = &'n Node> + Clone) {
    let mut turns = 0;
    let mut least = i64::MAX;
    loop {
        let pending = count(world, PENDING);
        turns = if pending < least { 0 } else { turns + 1 };
        least = least.min(pending);
        if pending == 0 || turns == TURNS_MAX {
            break;
        }
        for node in nodes.clone() {
            node.turn(world);
            pass(Duration::from_secs(1)).await;
        }
        // Late messages, and the next attempt's time.
        pass(Duration::from_secs(90)).await;
        world.advance(BETWEEN_TURNS);
    }
    nothing_left(world, PENDING, "deliveries are pending");
}

/// No session is open that nobody serves.
pub(crate) fn closed(world: &World) {
    let held = world.locks.count();
    if held > 0 {
        world.find(format!("{held} locks are held by nobody"));
    }
}

/// Says how many rows a count finds that should be none.
pub(crate) fn nothing_left(world: &World, sql: &'static str, what: &str) {
    let count = count(world, sql);
    if count > 0 {
        world.find(format!("{count} {what} when all is well"));
    }
}

const OPEN: &str = "select count(*) from sim_records where response_code is null or status = 'orphaned'";
const PENDING: &str = "select count(*) from outbox_deliveries where status in ('pending', 'sending')";

/// Each key once more, with the payload on record: the formal result must be there.
async fn probe(scene: &Scene) {
    let query = Query::new("finish.records", "select key, payload from sim_records order by id", Vec::new());
    let rows = match scene.world.read(&query) {
        Ok(rows) => rows,
        Err(error) => return scene.world.find(format!("the records can't be read: {error}")),
    };
    let before = scene.clients.all().len();
    for row in rows {
        let (Ok(key), Ok(payload)) = (row.text(0), row.int(1)) else { continue };
        let (Some(kind), Some(node)) = (kind_of(&scene.kinds, key), scene.world.pick(&scene.nodes)) else {
            continue;
        };
        let put = Put {
            world: scene.world.clone(),
            process: node.process.clone(),
            foreign: scene.foreign.clone(),
            kind,
            key: key.to_owned(),
            payload,
        };
        scene.clients.submit(&scene.world, &node.door, put, Duration::from_secs(1));
    }
    pass(Duration::from_secs(5)).await;
    for sent in scene.clients.all().iter().skip(before).filter(|sent| !sent.is_finished()) {
        scene.world.find(format!("{}: the last submission has no formal result: {sent:?}", sent.key));
    }
}

/// What a count finds.
pub(crate) fn count(world: &World, sql: &'static str) -> i64 {
    let rows = world.read(&Query::new("finish.count", sql, Vec::new()));
    rows.ok().and_then(|rows| rows.first()?.int(0).ok()).unwrap_or(i64::MAX)
}
