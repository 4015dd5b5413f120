//! Senders: some dozens, each sending one delivery after the other to the nodes in turn, and again to the
//! next one while it is not told 2xx. Of each change the event is sent twice at once to two nodes, an older
//! one is repeated, and now and then another payload or another event id comes. Not here: what must hold.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::ledger::{Delivery, Saying, Try};
use super::site::Places;
use crate::lab::wire;

/// Senders at work at once.
const SENDERS: usize = 44;
/// Submissions that must be under way when a fault fires.
pub(super) const IN_FLIGHT_MIN: usize = 20;
/// How long a sender waits for an answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// A sender's pause before it comes again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// Answers 2xx after which a load counts as normal.
const WARM: u64 = 60;
/// How long a load may take to be normal, and a fault to fire.
const WITHIN: Duration = Duration::from_secs(30);
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(5);
/// How far back a repeated change lies.
const BACK: u64 = 24;
/// Senders that deliver again what was not acknowledged.
const REDELIVERING: usize = 12;

/// A running load.
pub(super) struct Load {
    shared: Arc<Shared>,
    senders: Vec<JoinHandle<Result<()>>>,
}

struct Shared {
    places: Arc<Places>,
    /// Number of the load's first change.
    base: u64,
    next: AtomicU64,
    in_flight: AtomicUsize,
    acknowledged: AtomicU64,
    stopping: AtomicBool,
    began: Instant,
    tries: Mutex<Vec<Try>>,
    /// What was not acknowledged when the load stopped.
    left: Mutex<VecDeque<Delivery>>,
}

/// What a fault did while the load ran.
#[derive(Debug)]
pub(super) struct Fired {
    /// The proof.
    pub(super) proof: String,
    /// Submissions under way when it was seen.
    pub(super) in_flight: usize,
    /// Sessions whose node is gone without the database being able to know.
    pub(super) ghosts: usize,
}

impl Load {
    /// Starts the senders, with changes from number `base` on, and waits until all is normal.
    ///
    /// # Errors
    /// It doesn't become normal.
    pub(super) fn start(places: &Arc<Places>, base: u64) -> Result<Self> {
        let shared = Arc::new(Shared {
            places: Arc::clone(places),
            base,
            next: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            acknowledged: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            began: Instant::now(),
            tries: Mutex::default(),
            left: Mutex::default(),
        });
        let sender = |_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.send_on())
        };
        let load = Self { senders: (0..SENDERS).map(sender).collect(), shared };
        load.warm(WARM)?;
        Ok(load)
    }

    /// Waits until so many more were acknowledged and enough are under way.
    ///
    /// # Errors
    /// It takes too long.
    pub(super) fn warm(&self, more: u64) -> Result<()> {
        let wanted = self.acknowledged() + more;
        let since = Instant::now();
        while self.acknowledged() < wanted || self.in_flight() < IN_FLIGHT_MIN {
            ensure!(
                since.elapsed() < WITHIN,
                "no normal load within {WITHIN:?}: {} acknowledged, {} under way",
                self.acknowledged(),
                self.in_flight()
            );
            std::thread::park_timeout(LOOK);
        }
        Ok(())
    }

    /// Submissions under way.
    pub(super) fn in_flight(&self) -> usize {
        self.shared.in_flight.load(Ordering::SeqCst)
    }

    fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::SeqCst)
    }

    /// Number of the change that is sent next.
    pub(super) fn next_change(&self) -> u64 {
        self.shared.base + self.shared.next.load(Ordering::SeqCst) / PER_CHANGE
    }

    /// How often senders were told this machine's word.
    pub(super) fn told(&self, code: &str) -> usize {
        lock(&self.shared.tries).iter().filter(|one| one.code.as_deref() == Some(code)).count()
    }

    /// Waits until `seen` has a proof.
    ///
    /// # Errors
    /// It has none after a while, or fails.
    pub(super) fn fired(&self, mut seen: impl FnMut() -> Result<Option<String>>) -> Result<Fired> {
        let since = Instant::now();
        loop {
            let before = self.in_flight();
            if let Some(proof) = seen()? {
                // Looking takes a moment: what was under way before it or is now.
                return Ok(Fired { proof, in_flight: before.max(self.in_flight()), ghosts: 0 });
            }
            ensure!(since.elapsed() < WITHIN, "the fault did not fire within {WITHIN:?}");
            std::thread::park_timeout(LOOK);
        }
    }

    /// The event of a change that nobody has sent yet.
    ///
    /// # Errors
    /// The sample event can't be used.
    pub(super) fn fresh(&self) -> Result<Delivery> {
        let change = self.shared.next.fetch_add(PER_CHANGE, Ordering::SeqCst) / PER_CHANGE;
        Delivery::of(self.shared.base + change, Saying::Same)
    }

    /// Notes a try whose sender gave up when `given_up` returned: it may have happened, or not.
    ///
    /// # Errors
    /// What `given_up` says.
    pub(super) fn abandon(&self, delivery: &Delivery, given_up: impl FnOnce() -> Result<()>) -> Result<()> {
        let started = self.shared.clock();
        given_up()?;
        let one = delivery.ended((started, self.shared.clock()), Err(anyhow::anyhow!("given up")));
        lock(&self.shared.tries).push(one);
        Ok(())
    }

    /// Sends something new to one node, once.
    ///
    /// # Errors
    /// The sample event can't be used.
    pub(super) fn probe(&self, to: SocketAddr, patience: Duration) -> Result<bool> {
        let delivery = self.fresh()?;
        let acknowledged = self.shared.once(&delivery, to, patience)?;
        if !acknowledged {
            lock(&self.shared.left).push_back(delivery);
        }
        Ok(acknowledged)
    }

    /// Stops the senders, then delivers again what was not acknowledged, until it is, at most for `patience`.
    /// Gives all tries and what is still not acknowledged.
    ///
    /// # Errors
    /// A sender failed.
    pub(super) fn stop(mut self, patience: Duration) -> Result<(Vec<Try>, Vec<Delivery>)> {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for sender in self.senders.drain(..) {
            sender.join().ok().context("a sender panicked")??;
        }
        let until = Instant::now() + patience;
        std::thread::scope(|scope| {
            let again: Vec<_> =
                (0..REDELIVERING).map(|_| scope.spawn(|| self.shared.redeliver(until))).collect();
            again.into_iter().try_for_each(|one| one.join().ok().context("a sender panicked")?)
        })?;
        let tries = std::mem::take(&mut *lock(&self.shared.tries));
        let left = std::mem::take(&mut *lock(&self.shared.left));
        Ok((tries, left.into()))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
    }
}

/// Tickets a change.
const PER_CHANGE: u64 = 4;

impl Shared {
    fn send_on(&self) -> Result<()> {
        while !self.stopping.load(Ordering::SeqCst) {
            let ticket = self.next.fetch_add(1, Ordering::SeqCst);
            let delivery = self.delivery(ticket)?;
            let mut place = usize::try_from(ticket + ticket / PER_CHANGE)?;
            while !self.once(&delivery, self.places.address(place), PATIENCE)? {
                if self.stopping.load(Ordering::SeqCst) {
                    lock(&self.left).push_back(delivery);
                    return Ok(());
                }
                std::thread::park_timeout(AGAIN_AFTER);
                place += 1;
            }
        }
        Ok(())
    }

    fn delivery(&self, ticket: u64) -> Result<Delivery> {
        let change = ticket / PER_CHANGE;
        let (back, saying) = match (ticket % PER_CHANGE, change % 20) {
            (0 | 1, _) => (0, Saying::Same),
            (2, _) => (BACK.min(change), Saying::Same),
            (_, 5) => (0, Saying::SecondId),
            (_, 10) => (0, Saying::OtherPayload),
            _ => ((BACK / 2).min(change), Saying::Same),
        };
        Delivery::of(self.base + change - back, saying)
    }

    /// One try; whether it was acknowledged.
    fn once(&self, delivery: &Delivery, to: SocketAddr, patience: Duration) -> Result<bool> {
        let request = delivery.request()?;
        let started = self.clock();
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let end = wire::exchange_within(to, &request, patience);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        let one = delivery.ended((started, self.clock()), end);
        let acknowledged = one.is_acknowledged();
        self.acknowledged.fetch_add(u64::from(acknowledged), Ordering::SeqCst);
        lock(&self.tries).push(one);
        Ok(acknowledged)
    }

    fn redeliver(&self, until: Instant) -> Result<()> {
        loop {
            let Some(delivery) = lock(&self.left).pop_front() else { return Ok(()) };
            let mut place = 0;
            while !self.once(&delivery, self.places.address(place), PATIENCE)? {
                if Instant::now() > until {
                    lock(&self.left).push_back(delivery);
                    return Ok(());
                }
                std::thread::park_timeout(AGAIN_AFTER);
                place += 1;
            }
        }
    }

    /// Microseconds since the load began: one clock for all senders.
    fn clock(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fails where a fault had too few submissions under way to mean anything.
pub(super) fn enough(fired: &Fired) -> Result<()> {
    if fired.in_flight < IN_FLIGHT_MIN {
        bail!("it fired with only {} submissions under way: {}", fired.in_flight, fired.proof);
    }
    Ok(())
}
