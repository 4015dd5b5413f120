//! Random interleavings from a seed: submissions that fail, panic, hang up and lose their lease, over two
//! doors. Whatever happens, a key has one effect and one result.

use std::collections::HashMap;
use std::time::Duration;

use door::{Answer, Steps};
use testkit::Seeded;

use crate::domain::{Add, Twist, add, broken};
use crate::scene::{PATIENT, Scene, done, scene};

const ROUNDS: u64 = 300;
const KEYS: u64 = 3;

#[derive(Clone, Copy)]
struct Mishap {
    yields: u64,
    fails: bool,
    panics: bool,
}

fn command(key: &str, seeded: &mut Seeded) -> Add {
    let mishap = Mishap { yields: seeded.below(6), fails: seeded.chance(25), panics: seeded.chance(8) };
    let twist = match seeded.below(12) {
        0 => Twist::Panic,
        1 => Twist::WrongStatement,
        2 => Twist::DoubledDestination,
        _ => Twist::None,
    };
    let command = add(key, 5).twisted(twist).preparing(move |steps| prepare(steps, mishap));
    match key.as_bytes().last() {
        Some(b'0') => command.leased(30),
        Some(b'1') if seeded.chance(50) => command.without_preparation(),
        _ => command,
    }
}

async fn prepare(steps: Steps, mishap: Mishap) -> Result<(), door::Failure> {
    for name in ["one", "two"] {
        steps.once(name, async { Ok(vec![1]) }).await?;
        for _ in 0..mishap.yields {
            tokio::task::yield_now().await;
        }
        assert!(!mishap.panics, "on purpose");
        if mishap.fails {
            return Err(broken());
        }
    }
    Ok(())
}

/// One storm over a few keys; gives the results that were answered, by key.
async fn storm(scene: &Scene, seeded: &mut Seeded, round: u64) -> Vec<(String, String)> {
    let mut running = Vec::new();
    for _ in 0..4 + seeded.below(8) {
        let key = format!("{round}-{}", seeded.below(KEYS));
        let door = if seeded.chance(50) { &scene.door } else { &scene.other };
        let task = scene.start(door, command(&key, seeded));
        match seeded.below(10) {
            0 => task.abort(),
            1 => scene.clock.advance(Duration::from_secs(31)),
            2 => tokio::task::yield_now().await,
            _ => {}
        }
        running.push((key, task));
    }
    let mut results = Vec::new();
    for (key, task) in running {
        if let Ok(Ok(Answer::Done(done))) = task.await {
            results.push((key, done.outcome.body));
        }
    }
    results
}

async fn interleave(seed: u64) {
    let scene = scene().await;
    let mut seeded = Seeded::new(seed);
    for round in 0..ROUNDS {
        let answered = storm(&scene, &mut seeded, round).await;
        // A submission whose client hung up may still be at work, or have left a lease behind.
        scene.clock.advance(Duration::from_secs(31));
        let mut formal = HashMap::new();
        for n in 0..KEYS {
            let key = format!("{round}-{n}");
            let command = if n == 0 { add(&key, 5).leased(30) } else { add(&key, 5) };
            let result = done(scene.door.submit(command.waiting(PATIENT)).await);
            formal.insert(key, result.outcome.body);
        }
        for (key, body) in answered {
            assert_eq!(formal.get(&key), Some(&body), "seed {seed}, key {key}: two results");
        }
        for key in formal.keys() {
            assert_eq!(scene.effects(key).await, 1, "seed {seed}, key {key}");
        }
    }
    let one_each = i64::try_from(ROUNDS * KEYS).unwrap();
    for table in ["test_effects", "audit_events", "outbox"] {
        assert_eq!(
            scene.count(format!("select count(*) from {table}")).await,
            one_each,
            "seed {seed}, {table}"
        );
    }
    assert_eq!(scene.door.store().integrity().await, Ok(vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_order_a_key_has_one_effect_and_one_result() {
    interleave(20_260_301).await;
}

#[tokio::test]
async fn whatever_the_order_on_one_thread_a_key_has_one_effect_and_one_result() {
    interleave(7).await;
}
