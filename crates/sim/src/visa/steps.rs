//! What may happen next in a run with AuditVisa.

use std::time::Duration;

use bytes::Bytes;
use relay::held::Settlement;

use super::Visa;
use crate::node::{Act, held_ones};

/// Does something.
pub(super) fn step(scene: &mut Visa) {
    let world = scene.world.clone();
    let node = usize::try_from(world.below(scene.houses.len() as u64)).unwrap_or(0);
    match world.below(1000) {
        0..400 => deliver(scene, node, 1),
        400..500 => deliver(scene, node, 2 + world.below(3)),
        500..520 => scene.clients.give_up(&world),
        520..570 => restart(scene, node),
        570..650 => pause_or_resume(scene, node),
        650..700 => advance(scene),
        700..800 => turn(scene, node),
        800..860 => reconcile(scene, node),
        860..920 => mishap(scene, node),
        920..950 => fetch(scene, node),
        950..970 => damage(scene),
        970..990 => act(scene, node),
        _ => clock(scene, node),
    }
}

/// One event, delivered so many times at once, on any nodes.
fn deliver(scene: &Visa, node: usize, times: u64) {
    let number = |end: usize| usize::try_from(scene.world.below(end as u64)).unwrap_or(0);
    let event = number(scene.senders.count());
    for nth in 0..times {
        let node = if nth == 0 { node } else { number(scene.houses.len()) };
        if let Some(house) = scene.houses.get(node) {
            house.deliver(scene, event, number(4));
        }
    }
}

fn restart(scene: &mut Visa, node: usize) {
    let (world, foreign, files) = (scene.world.clone(), scene.foreign.clone(), scene.files.clone());
    if let Some(house) = scene.houses.get_mut(node) {
        house.restart((&world, &foreign, &files), &scene.clients);
    }
}

fn pause_or_resume(scene: &Visa, node: usize) {
    if let Some(house) = scene.houses.get(node) {
        house.node.pause_or_resume(&scene.world);
    }
}

fn advance(scene: &Visa) {
    let by = match scene.world.below(4) {
        0 | 1 => Duration::from_secs(60),
        2 => Duration::from_secs(20 * 60),
        _ => Duration::from_secs(24 * 3600),
    };
    scene.world.tell(|| format!("the store's clock moves by {by:?}"));
    scene.world.advance(by);
}

fn turn(scene: &Visa, node: usize) {
    if let Some(house) = scene.houses.get(node) {
        house.node.turn(&scene.world);
    }
}

fn reconcile(scene: &Visa, node: usize) {
    if let Some(house) = scene.houses.get(node) {
        house.reconcile(&scene.world);
    }
}

fn mishap(scene: &Visa, node: usize) {
    let mishap = scene.world.plan(node);
    scene.world.tell(|| format!("node {node}: next is {}", mishap.as_str()));
}

fn fetch(scene: &Visa, node: usize) {
    if let Some(house) = scene.houses.get(node) {
        house.fetch(&scene.world);
    }
}

/// A file is lost or torn.
fn damage(scene: &Visa) {
    if let Some(name) = scene.world.pick(&scene.files.names()) {
        let bytes = scene.world.chance(50).then(|| Bytes::from_static(b"torn"));
        scene.world.tell(|| format!("{name} becomes {bytes:?}"));
        scene.files.damage(name, bytes);
    }
}

fn act(scene: &Visa, node: usize) {
    let held = held_ones(&scene.world);
    let (Some(id), Some(house)) = (scene.world.pick(&held), scene.houses.get(node)) else { return };
    let act = match scene.world.below(4) {
        0 => Act::Settle(Settlement::Delivered),
        1 => Act::Settle(Settlement::Dead),
        _ => Act::Redrive,
    };
    house.node.act(&scene.world, *id, act);
}

fn clock(scene: &Visa, node: usize) {
    if let Some(house) = scene.houses.get(node) {
        house.node.misset(&scene.world);
    }
}
