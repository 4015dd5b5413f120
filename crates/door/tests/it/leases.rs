//! Leased work: foreign steps on record, take-over after the lease, a slow holder that does no harm.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use door::{Failure, Steps};

use crate::domain::{Add, add, broken};
use crate::scene::{Gate, Scene, done, in_progress, scene};

/// The foreign side: it notes its calls and answers each with their number.
#[derive(Clone, Default)]
struct Provider(Arc<Mutex<Vec<&'static str>>>);

impl Provider {
    fn call(&self, name: &'static str) -> Vec<u8> {
        let mut calls = self.0.lock().unwrap();
        calls.push(name);
        vec![u8::try_from(calls.len()).unwrap()]
    }

    fn calls(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }

    async fn step(&self, steps: &Steps, name: &'static str) -> Result<Vec<u8>, Failure> {
        steps.once(name, async { Ok(self.call(name)) }).await
    }

    /// Leased work of two steps, with a gate between them.
    fn two_steps(&self, command: Add, between: Option<&Gate>) -> Add {
        let (provider, gate) = (self.clone(), between.cloned());
        command.leased(30).preparing(move |steps| {
            let (provider, gate) = (provider.clone(), gate.clone());
            async move {
                let first = provider.step(&steps, "one").await?;
                if let Some(gate) = gate {
                    gate.pass().await;
                }
                provider.step(&steps, "two").await?;
                assert_eq!(first, [1], "what the first step returned is kept");
                Ok(())
            }
        })
    }

    /// Leased work whose second step fails.
    fn stuck(&self, command: Add) -> Add {
        let provider = self.clone();
        command.leased(30).preparing(move |steps| {
            let provider = provider.clone();
            async move {
                provider.step(&steps, "one").await?;
                steps.once("two", async { Err(broken()) }).await.map(drop)
            }
        })
    }
}

async fn steps_on_record(scene: &Scene) -> i64 {
    scene.count("select count(*) from test_steps").await
}

#[tokio::test]
async fn each_step_is_called_once_and_kept() {
    let scene = scene().await;
    let provider = Provider::default();
    let first = scene.done(provider.two_steps(add("k", 5), None)).await;
    let repeat = scene.done(provider.two_steps(add("k", 5), None)).await;
    assert_eq!(provider.calls(), ["one", "two"]);
    assert_eq!(steps_on_record(&scene).await, 2);
    assert!(repeat.replayed);
    assert_eq!(repeat.outcome, first.outcome);
}

#[tokio::test]
async fn a_lapsed_lease_is_taken_over_and_its_slow_holder_gets_the_winners_result() {
    let scene = scene().await;
    let (provider, gate) = (Provider::default(), Gate::new());
    let slow = scene.start(&scene.door, provider.two_steps(add("k", 5), Some(&gate)));
    gate.reached().await;
    scene.clock.advance(Duration::from_secs(30));
    let winner = done(scene.other.submit(provider.two_steps(add("k", 5), None).now()).await);
    assert!(!winner.replayed);
    gate.open();
    let late = done(slow.await.unwrap());
    assert!(late.replayed && late.same);
    assert_eq!(late.outcome, winner.outcome);
    assert_eq!(provider.calls(), ["one", "two"]);
    assert_eq!(scene.effects("k").await, 1);
    assert_eq!(scene.record("k").await, Some(("processed".into(), 2)));
}

#[tokio::test]
async fn a_slow_holder_can_neither_settle_nor_fail_what_another_is_doing() {
    for fails in [false, true] {
        let scene = scene().await;
        let (slow_gate, gate) = (Gate::new(), Gate::new());
        let waiting = slow_gate.clone();
        let slow_work = add("k", 5).leased(30).preparing(move |_| {
            let gate = waiting.clone();
            async move {
                gate.pass().await;
                if fails { Err(broken()) } else { Ok(()) }
            }
        });
        let slow = scene.start(&scene.door, slow_work);
        slow_gate.reached().await;
        scene.clock.advance(Duration::from_secs(30));
        let second = scene.start(&scene.other, gate.before(add("k", 5).leased(30)));
        gate.reached().await;
        slow_gate.open();
        assert_eq!(in_progress(slow.await.unwrap()), (true, true));
        assert_eq!(scene.record("k").await, Some(("processing".into(), 2)));
        gate.open();
        assert!(!done(second.await.unwrap()).replayed);
        assert_eq!(scene.effects("k").await, 1);
    }
}

#[tokio::test]
async fn a_holder_that_lost_its_lease_starts_no_further_step() {
    let scene = scene().await;
    let (provider, slow_gate, gate) = (Provider::default(), Gate::new(), Gate::new());
    let slow = scene.start(&scene.door, provider.two_steps(add("k", 5), Some(&slow_gate)));
    slow_gate.reached().await;
    scene.clock.advance(Duration::from_secs(30));
    let second = scene.start(&scene.other, provider.two_steps(add("k", 5), Some(&gate)));
    gate.reached().await;
    slow_gate.open();
    assert_eq!(in_progress(slow.await.unwrap()), (true, true));
    assert_eq!(provider.calls(), ["one"]);
    gate.open();
    done(second.await.unwrap());
    assert_eq!(provider.calls(), ["one", "two"]);
}

#[tokio::test]
async fn a_lease_that_lapsed_with_nobody_after_it_still_settles() {
    let scene = scene().await;
    let gate = Gate::new();
    let slow = scene.start(&scene.door, gate.before(add("k", 5).leased(30)));
    gate.reached().await;
    scene.clock.advance(Duration::from_secs(3600));
    gate.open();
    assert!(!done(slow.await.unwrap()).replayed);
}

#[tokio::test]
async fn a_failed_step_is_tried_again_and_the_one_before_it_is_not() {
    let scene = scene().await;
    let provider = Provider::default();
    scene.door.submit(provider.stuck(add("k", 5)).now()).await.expect_err("step two fails");
    assert_eq!(scene.record("k").await, Some(("failed".into(), 1)));
    scene.done(provider.two_steps(add("k", 5), None)).await;
    assert_eq!(provider.calls(), ["one", "two"]);
    assert_eq!(scene.record("k").await, Some(("processed".into(), 2)));
}

#[tokio::test]
async fn another_payload_does_not_inherit_the_steps_of_the_one_that_failed() {
    let scene = scene().await;
    let (before, after) = (Provider::default(), Provider::default());
    scene.door.submit(before.stuck(add("k", 5)).now()).await.expect_err("step two fails");
    scene.done(after.two_steps(add("k", 6), None)).await;
    assert_eq!(after.calls(), ["one", "two"]);
}

#[tokio::test]
async fn an_expired_key_does_not_inherit_the_steps_of_its_former_life() {
    let scene = scene().await;
    let (before, after) = (Provider::default(), Provider::default());
    scene.done(before.two_steps(add("k", 5).living(60), None)).await;
    scene.clock.advance(Duration::from_secs(60));
    assert!(!scene.done(after.two_steps(add("k", 5).living(60), None)).await.replayed);
    assert_eq!(after.calls(), ["one", "two"]);
    assert_eq!(steps_on_record(&scene).await, 2);
}

#[tokio::test]
async fn a_failure_past_its_end_leaves_its_steps_to_nobody() {
    let scene = scene().await;
    let (before, after) = (Provider::default(), Provider::default());
    scene.door.submit(before.stuck(add("k", 5).living(60)).now()).await.expect_err("step two fails");
    scene.clock.advance(Duration::from_secs(60));
    scene.done(after.two_steps(add("k", 5).living(60), None)).await;
    assert_eq!(after.calls(), ["one", "two"]);
}

#[tokio::test]
async fn another_payload_never_takes_over_what_one_payload_began() {
    let scene = scene().await;
    let gate = Gate::new();
    let first = scene.start(&scene.door, gate.before(add("k", 5).leased(30)));
    gate.reached().await;
    scene.clock.advance(Duration::from_secs(30));
    assert_eq!(in_progress(scene.other.submit(add("k", 6).leased(30).now()).await), (false, true));
    gate.open();
    done(first.await.unwrap());
}

#[tokio::test]
async fn a_clock_set_back_during_a_lease_starts_no_second_run() {
    let scene = scene().await;
    let (provider, gate) = (Provider::default(), Gate::new());
    let first = scene.start(&scene.door, provider.two_steps(add("k", 5), Some(&gate)));
    gate.reached().await;
    for seconds in [1_000_000 - 3600, 1_000_000 - 86_400, 1_000_000 + 29] {
        scene.clock.set(seconds);
        let twin = scene.other.submit(provider.two_steps(add("k", 5), None).now()).await;
        assert_eq!(in_progress(twin), (true, true), "{seconds}");
    }
    scene.clock.set(1_000_000 - 3600);
    gate.open();
    let first = done(first.await.unwrap());
    assert_eq!(scene.done(add("k", 5)).await.outcome, first.outcome);
    assert_eq!(provider.calls(), ["one", "two"]);
}

#[tokio::test]
async fn work_that_never_ends_loses_the_key_with_its_lease() {
    let scene = scene().await;
    let endless = add("k", 5).leased_for(Duration::from_millis(30)).preparing(|_| std::future::pending());
    let failure = scene.door.submit(endless.now()).await.expect_err("the lease ends");
    assert!(failure.to_string().contains("longer than its lease"), "{failure}");
    assert!(!scene.done(add("k", 5).leased(30)).await.replayed);
}

#[tokio::test]
async fn a_step_that_panics_leaves_the_key_free() {
    let scene = scene().await;
    let command = add("k", 5)
        .leased(30)
        .preparing(|steps| async move { steps.once("one", async { panic!("on purpose") }).await.map(drop) });
    scene.door.submit(command.now()).await.expect_err("the step panics");
    assert_eq!(scene.record("k").await, Some(("failed".into(), 1)));
    assert!(!scene.done(add("k", 5).leased(30)).await.replayed);
}
