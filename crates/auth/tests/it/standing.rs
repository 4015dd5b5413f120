//! The status of tokens: cache, revocation, and a service that does not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use auth::status::{Backend, Unavailable};
use auth::{Callers, Code, Refusal, Standing, Statuses, Verified};
use futures::future::{BoxFuture, FutureExt as _};
use kernel::Time;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use crate::world::{NOW, claims, token, verifier, verify, with};

/// A token service that says what it is told; `None` is a fault.
#[derive(Default)]
struct Service {
    says: Mutex<Option<Standing>>,
    asked: AtomicUsize,
    /// When set, answers wait here after the row was read.
    gate: Mutex<Option<Arc<Notify>>>,
}

impl Backend for Service {
    fn standing<'a>(&'a self, _token: &'a Verified) -> BoxFuture<'a, Result<Standing, Unavailable>> {
        async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let read = self.says.lock().ok_or(Unavailable);
            let gate = self.gate.lock().clone();
            if let Some(gate) = gate {
                gate.notified().await;
            }
            read
        }
        .boxed()
    }
}

struct World {
    service: Arc<Service>,
    statuses: Arc<Statuses>,
    token: Verified,
}

impl World {
    fn new(says: Standing) -> Self {
        let service = Arc::new(Service { says: Mutex::new(Some(says)), ..Service::default() });
        let statuses = Arc::new(Statuses::new(service.clone()));
        Self { service, statuses, token: verify(&token(&claims())).unwrap() }
    }

    async fn at(&self, seconds: i64) -> Result<(), Refusal> {
        self.statuses.check(&self.token, Time::from_seconds(NOW + seconds)).await
    }

    fn says(&self, standing: Option<Standing>) {
        *self.service.says.lock() = standing;
    }

    fn asked(&self) -> usize {
        self.service.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn every_standing_but_active_is_refused() {
    for (standing, expected) in [
        (Standing::Active, Ok(())),
        (Standing::Revoked, Err(Refusal::Revoked)),
        (Standing::Expired, Err(Refusal::Over)),
        (Standing::Unknown, Err(Refusal::Unknown)),
    ] {
        let judged = World::new(standing).at(0).await;
        assert_eq!(judged, expected);
        assert!(judged.is_ok() || expected.map_err(Refusal::code) == Err(Code::TokenInactive));
    }
}

#[tokio::test]
async fn an_answer_is_believed_for_four_seconds() {
    let world = World::new(Standing::Active);
    assert_eq!(world.at(0).await, Ok(()));
    world.says(Some(Standing::Revoked));
    assert_eq!((world.at(3).await, world.asked()), (Ok(()), 1));
    assert_eq!((world.at(4).await, world.asked()), (Err(Refusal::Revoked), 2));
}

#[tokio::test]
async fn no_setting_believes_longer_than_five_seconds() {
    let world = World::new(Standing::Active);
    let statuses = Statuses::believing_for(world.service.clone(), Duration::from_secs(3600));
    let at = |seconds| statuses.check(&world.token, Time::from_seconds(NOW + seconds));
    assert_eq!(at(0).await, Ok(()));
    world.says(Some(Standing::Revoked));
    assert_eq!(at(4).await, Ok(()));
    assert_eq!(at(5).await, Err(Refusal::Revoked));
}

#[tokio::test]
async fn a_revocation_takes_effect_at_once_where_it_is_heard_of() {
    let world = World::new(Standing::Active);
    assert_eq!(world.at(0).await, Ok(()));
    world.statuses.revoke(world.token.fingerprint, Time::from_seconds(NOW));
    assert_eq!(world.at(0).await, Err(Refusal::Revoked));
    // It is final, and needs no service any more.
    world.says(None);
    assert_eq!((world.at(86_400).await, world.asked()), (Err(Refusal::Revoked), 1));
}

#[tokio::test]
async fn an_answer_on_its_way_does_not_undo_a_revocation() {
    let world = World::new(Standing::Active);
    let gate = Arc::new(Notify::new());
    *world.service.gate.lock() = Some(gate.clone());
    let (statuses, token) = (world.statuses.clone(), world.token.clone());
    let check = tokio::spawn(async move { statuses.check(&token, Time::from_seconds(NOW)).await });
    while world.asked() == 0 {
        tokio::task::yield_now().await;
    }
    world.statuses.revoke(world.token.fingerprint, Time::from_seconds(NOW));
    gate.notify_one();
    assert_eq!(check.await.unwrap(), Err(Refusal::Revoked));
    assert_eq!(world.at(1).await, Err(Refusal::Revoked));
}

#[tokio::test]
async fn a_service_that_fails_closes_the_door() {
    let world = World::new(Standing::Active);
    assert_eq!(world.at(0).await, Ok(()));
    world.says(None);
    assert_eq!(world.at(3).await, Ok(()), "a young answer");
    assert_eq!(world.at(4).await, Err(Refusal::StatusUnavailable));
    assert_eq!(Refusal::StatusUnavailable.code(), Code::TokenStatusUnavailable);
    world.says(Some(Standing::Active));
    assert_eq!(world.at(6).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_silent_is_given_up_after_two_seconds() {
    let world = World::new(Standing::Active);
    *world.service.gate.lock() = Some(Arc::new(Notify::new()));
    let begun = tokio::time::Instant::now();
    assert_eq!(world.at(0).await, Err(Refusal::StatusUnavailable));
    let took = begun.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_millis(2010)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_token_that_is_not_known_yet_is_asked_for_again() {
    let world = World::new(Standing::Unknown);
    assert_eq!(world.at(0).await, Err(Refusal::Unknown));
    world.says(Some(Standing::Active));
    assert_eq!(world.at(0).await, Ok(()));
}

#[tokio::test]
async fn a_clock_that_went_back_makes_no_answer_young() {
    let world = World::new(Standing::Active);
    assert_eq!(world.at(100).await, Ok(()));
    world.says(Some(Standing::Revoked));
    assert_eq!(world.at(0).await, Err(Refusal::Revoked));
}

#[tokio::test]
async fn a_caller_is_known_by_the_whole_way_and_asked_for_only_with_a_genuine_token() {
    let world = World::new(Standing::Active);
    let callers = Callers::new(verifier().clone(), Statuses::new(world.service.clone()));
    let now = Time::from_seconds(NOW);
    let identify = async |value: String| callers.identify([value.as_bytes()], now).await;
    let good = format!("Bearer {}", token(&claims()).expose());
    for (value, code) in [
        (String::new(), Code::MissingBearer),
        ("Basic x".to_owned(), Code::InvalidFormat),
        ("Bearer sk-x".to_owned(), Code::UpstreamCredential),
        (format!("{good}x"), Code::InvalidToken),
        (format!("Bearer {}", token(&with("aud", json!("another"))).expose()), Code::InvalidToken),
    ] {
        assert_eq!(identify(value).await.map_err(Refusal::code), Err(code));
    }
    assert_eq!(world.asked(), 0);
    let principal = identify(good.clone()).await.expect("good");
    assert_eq!((principal.tenant_id, principal.operator_id, world.asked()), (11, 31, 1));
    callers.statuses().revoke(principal.fingerprint, now);
    assert_eq!(identify(good).await.map_err(Refusal::code), Err(Code::TokenInactive));
}

#[tokio::test]
async fn tokens_do_not_share_their_standing() {
    let world = World::new(Standing::Active);
    world.statuses.revoke(world.token.fingerprint, Time::from_seconds(NOW));
    let other = verify(&token(&with("jti", json!("t-2")))).unwrap();
    assert_eq!(world.statuses.check(&other, Time::from_seconds(NOW)).await, Ok(()));
}
