//! The end of a run: nothing goes wrong any more, all nodes are up, and everything is let finish within a
//! bounded time.

use std::time::Duration;

use store::Query;

use crate::domain::{LEASE, Put};
use crate::node::kind_of;
use crate::run::{Scene, pass};

/// Longer than any session, any late commit and any wait of a submission but a crowd's.
const SETTLED: Duration = Duration::from_secs(60);
/// Waits of that length until nobody may wait any more.
const WAITS_MAX: u32 = 8;
/// Recoveries until nothing may be open any more.
const SWEEPS_MAX: u32 = 8;
/// Turns of the relay until nothing may be pending any more; between them, longer than any pause.
const TURNS_MAX: u32 = 12;
const BETWEEN_TURNS: Duration = Duration::from_secs(7 * 3600);

/// Lets everything finish; says what does not.
pub(crate) async fn finish(scene: &mut Scene) {
    let world = scene.world.clone();
    world.tell(|| "all is well from here on".into());
    world.mishaps.lock().stop();
    world.set_wire(1);
    scene.foreign.fails(0);
    for node in &scene.nodes {
        node.process.set_machine(0);
        node.process.resume();
    }
    settle(scene).await;
    let mut sweeps = 0;
    while count(scene, OPEN) > 0 && sweeps < SWEEPS_MAX {
        world.advance(LEASE);
        for node in &scene.nodes {
            node.recover(&world, &scene.foreign, &scene.kinds);
        }
        pass(Duration::from_secs(5)).await;
        sweeps += 1;
    }
    probe(scene).await;
    let mut turns = 0;
    while count(scene, PENDING) > 0 && turns < TURNS_MAX {
        for node in &scene.nodes {
            node.turn(&world);
            pass(Duration::from_secs(1)).await;
        }
        // Late messages, and the next attempt's time.
        pass(Duration::from_secs(90)).await;
        world.advance(BETWEEN_TURNS);
        turns += 1;
    }
    let left = [(OPEN, "records are open"), (PENDING, "deliveries are pending")];
    for (sql, what) in left {
        let count = count(scene, sql);
        if count > 0 {
            world.find(format!("{count} {what} after {sweeps} recoveries and {turns} turns"));
        }
    }
    let held = world.locks.count();
    if held > 0 {
        world.find(format!("{held} locks are held by nobody"));
    }
}

const OPEN: &str = "select count(*) from sim_records where response_code is null or status = 'orphaned'";
const PENDING: &str = "select count(*) from outbox_deliveries where status in ('pending', 'sending')";

async fn settle(scene: &Scene) {
    for _ in 0..WAITS_MAX {
        pass(SETTLED).await;
        if scene.clients.waiting() == 0 {
            return;
        }
    }
    scene.world.find(format!("{} submissions have no answer", scene.clients.waiting()));
}

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

fn count(scene: &Scene, sql: &'static str) -> i64 {
    let rows = scene.world.read(&Query::new("finish.count", sql, Vec::new()));
    rows.ok().and_then(|rows| rows.first()?.int(0).ok()).unwrap_or(i64::MAX)
}
