//! What may happen next, by the seed.

use std::time::Duration;

use relay::held::Settlement;

use crate::domain::{LEASE, LIVES, Put};
use crate::node::{Act, held_ones, kind_of};
use crate::run::Scene;

/// Submissions of a crowd: more than a submission looks again.
const CROWD: u64 = 12;
/// How long one of a crowd waits: longer than all others before it take.
const CROWD_WAIT: Duration = Duration::from_secs(120);

/// Does something.
pub(crate) fn step(scene: &mut Scene) {
    let node = usize::try_from(scene.world.below(scene.nodes.len() as u64)).unwrap_or(0);
    match scene.world.below(1000) {
        0..430 => submit(scene, node),
        430..490 => burst(scene),
        490..520 => scene.clients.give_up(&scene.world),
        520..560 => kill(scene, node),
        560..640 => pause_or_resume(scene, node),
        640..700 => advance(scene),
        700..820 => turn(scene, node),
        820..890 => recover(scene, node),
        890..950 => mishap(scene, node),
        950..965 => orphan(scene, node),
        965..985 => act(scene, node),
        985..996 => clock(scene, node),
        _ => crowd(scene, node),
    }
}

fn any_key(scene: &Scene) -> String {
    format!("k{}", scene.world.below(scene.kinds.len() as u64))
}

fn send(scene: &Scene, node: usize, key: &str, payload: i64, wait: Duration) {
    let (Some(node), Some(kind)) = (scene.nodes.get(node), kind_of(&scene.kinds, key)) else { return };
    let put = Put {
        world: scene.world.clone(),
        process: node.process.clone(),
        foreign: scene.foreign.clone(),
        kind,
        key: key.to_owned(),
        payload,
    };
    scene.clients.submit(&scene.world, &node.door, put, wait);
}

fn payload(scene: &Scene) -> i64 {
    if scene.world.chance(80) { 1 } else { 2 }
}

fn submit(scene: &Scene, node: usize) {
    let key = any_key(scene);
    let wait = scene.world.pick(&[0, 0, 200, 2_000]).copied().unwrap_or(0);
    send(scene, node, &key, payload(scene), Duration::from_millis(wait));
}

/// Several at once under one key, on any nodes.
fn burst(scene: &Scene) {
    let key = any_key(scene);
    for _ in 0..2 + scene.world.below(3) {
        let node = usize::try_from(scene.world.below(scene.nodes.len() as u64)).unwrap_or(0);
        let wait = scene.world.pick(&[0, 50, 1_000]).copied().unwrap_or(0);
        send(scene, node, &key, payload(scene), Duration::from_millis(wait));
    }
}

/// So many on one node under one key that others keep getting ahead, while the foreign side fails.
fn crowd(scene: &Scene, node: usize) {
    let key = any_key(scene);
    scene.foreign.fails(95);
    for _ in 0..CROWD {
        send(scene, node, &key, payload(scene), CROWD_WAIT);
    }
}

/// Kills a node, which comes up again at once; its machine's clock may be another by then.
fn kill(scene: &mut Scene, node: usize) {
    let Some(kept) = scene.nodes.get_mut(node) else { return };
    kept.kill(&scene.world, &scene.clients);
    *kept = kept.again(&scene.world, &scene.foreign);
}

fn pause_or_resume(scene: &Scene, node: usize) {
    if let Some(node) = scene.nodes.get(node) {
        node.pause_or_resume(&scene.world);
    }
}

fn advance(scene: &Scene) {
    let by = match scene.world.below(6) {
        0 | 1 => scene.world.millis(5_000),
        2..4 => LEASE + scene.world.millis(3_000),
        4 => Duration::from_secs(61) + scene.world.millis(3_000),
        _ => LIVES + scene.world.millis(3_000),
    };
    scene.world.tell(|| format!("the store's clock moves by {by:?}"));
    scene.world.advance(by);
}

fn turn(scene: &Scene, node: usize) {
    if let Some(node) = scene.nodes.get(node) {
        node.turn(&scene.world);
    }
}

fn recover(scene: &Scene, node: usize) {
    if let Some(node) = scene.nodes.get(node) {
        node.recover(&scene.world, &scene.foreign, &scene.kinds);
    }
}

fn mishap(scene: &Scene, node: usize) {
    let mishap = scene.world.plan(node);
    scene.world.tell(|| format!("node {node}: next is {}", mishap.as_str()));
}

fn orphan(scene: &Scene, node: usize) {
    if let Some(node) = scene.nodes.get(node) {
        node.orphan(&scene.world, any_key(scene));
    }
}

fn act(scene: &Scene, node: usize) {
    let held = held_ones(&scene.world);
    let (Some(id), Some(node)) = (scene.world.pick(&held), scene.nodes.get(node)) else { return };
    let act = match scene.world.below(4) {
        0 => Act::Settle(Settlement::Delivered),
        1 => Act::Settle(Settlement::Dead),
        _ => Act::Redrive,
    };
    node.act(&scene.world, *id, act);
}

fn clock(scene: &Scene, node: usize) {
    if let Some(node) = scene.nodes.get(node) {
        node.misset(&scene.world);
    }
}
