//! The clients and what they share: the newest settlement and the newest code. Each asks for one thing after the
//! other, mostly in vain, and comes again under the same key until it is told an end; one in five is sent twice, at
//! once, a moment later or after the answer, to two servers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use play::{Answer, Client};
use serde_json::Value as Json;
use testkit::Seeded;
use tokio::sync::Notify;

use super::deed::{Deed, Step};
use super::ground::{Ground, base, told};

/// Of a hundred wishes, so many are sent twice.
const REPEATED: u64 = 20;
/// Milliseconds between two sends at most, where the second does not wait for the answer: about as long as the first
/// takes, so that it comes at any moment of it, the commit included.
const GAP_MAX: u64 = 40;
/// Milliseconds of a client's pause at most: fewer, and the queue for the supplier's balances is all they see.
const PAUSE_MAX: u64 = 300;
/// Between two calls of buyers that the supplier earns from.
const EARN_EVERY: Duration = Duration::from_millis(250);
/// A client's pause before it comes again, and how often it does.
const AGAIN_AFTER: Duration = Duration::from_millis(50);
const TRIES_MAX: usize = 200;

/// An end that a client was told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    /// Of HTTP.
    pub(super) code: u16,
    /// Whether it is said to be an earlier answer.
    pub(super) is_replay: bool,
    /// `data`, or `error`.
    pub(super) result: Json,
}

impl Said {
    /// `None` where the answer asks to come again.
    fn of(answer: &Answer) -> Option<Self> {
        let code = answer.code();
        if code == 202 || code == 429 || code >= 500 {
            return None;
        }
        let mut body = answer.json();
        let name = if code < 300 { "data" } else { "error" };
        let result = body.get_mut(name).map(Json::take).unwrap_or_default();
        Some(Self { code, is_replay: answer.is_replay(), result })
    }

    pub(super) const fn is_done(&self) -> bool {
        self.code < 300
    }
}

/// One wish and what its client was told.
#[derive(Debug)]
pub(super) struct Intention {
    pub(super) key: String,
    pub(super) deed: Deed,
    /// One for each send that came to an end.
    pub(super) said: Vec<Said>,
    /// Answers that asked to come again, and sends without an answer.
    pub(super) vain: u64,
}

impl Intention {
    /// Its first end.
    pub(super) fn end(&self) -> Option<&Said> {
        self.said.first()
    }

    pub(super) fn is_done(&self) -> bool {
        self.end().is_some_and(Said::is_done)
    }
}

/// How a wish is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    Once,
    /// To two servers, so many milliseconds apart.
    Twins(u64),
    /// To another server when the first has answered.
    Again,
}

/// The clients' ground, and what they know of each other.
pub(super) struct Field<'a> {
    ground: &'a Ground,
    clients: Vec<Client>,
    newest: AtomicI64,
    code: Mutex<Option<String>>,
    /// The code has been used, or is no good.
    spent: Notify,
    intentions: Mutex<Vec<Intention>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Field<'a> {
    pub(super) fn new(ground: &'a Ground) -> Result<Self> {
        let first = Client::new(base(&ground.nodes, 0)).map_err(told)?;
        let clients = (0..ground.nodes.count()).map(|number| first.at(base(&ground.nodes, number))).collect();
        Ok(Self {
            ground,
            clients,
            newest: AtomicI64::new(0),
            code: Mutex::default(),
            spent: Notify::new(),
            intentions: Mutex::default(),
        })
    }

    /// Hammers until then; gives all wishes.
    ///
    /// # Errors
    /// A code did not come, or an earning was not taken.
    pub(super) async fn hammered(
        self,
        (clients, seed): (u64, u64),
        until: Instant,
    ) -> Result<Vec<Intention>> {
        let all = (0..clients).map(|number| self.client(Seeded::new(seed + number * 1_000_003), until));
        let all = futures::future::join_all(all);
        let (_, codes, earned) = tokio::join!(all, self.codes(until), self.earned(until));
        codes.and(earned)?;
        Ok(self.intentions.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    async fn client(&self, mut choice: Seeded, until: Instant) {
        while Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(choice.below(PAUSE_MAX))).await;
            if let Some(deed) = self.wish(&mut choice) {
                self.sent(deed, &mut choice).await;
            }
        }
    }

    /// What a client wants next; nothing where there is nothing to hit at. A settlement is not closed before the
    /// next code is known: so withdrawals that could be made meet one that is open.
    fn wish(&self, choice: &mut Seeded) -> Option<Deed> {
        let id = self.newest.load(Ordering::SeqCst);
        let code = lock(&self.code).clone();
        let step = |step| (id > 0).then_some(Deed::Step(step, id));
        match choice.below(100) {
            0..40 => Some(Deed::Withdraw { cents: 1_000 + choice.below(5_000), code: code? }),
            40..67 => step(Step::Start),
            67..75 => code.and(step(Step::Cancel)),
            75..96 => code.and(step(Step::Complete)),
            _ => code.and(step(Step::Fail)),
        }
    }

    /// Sends a wish until it is told an end, and tells the others.
    async fn sent(&self, deed: Deed, choice: &mut Seeded) {
        let key = self.ground.market.client.key();
        let call = deed.call(&self.ground.supplier, &self.ground.market.admin, &key);
        let node = usize::try_from(choice.below(64)).unwrap_or_default();
        let sends = match choice.below(100) {
            0..REPEATED if choice.chance(75) => Sends::Twins(choice.below(GAP_MAX)),
            0..REPEATED => Sends::Again,
            _ => Sends::Once,
        };
        let vain = AtomicU64::new(0);
        let one = async |node| {
            let said = self.stubborn(&call, node, &vain).await;
            if let Some(said) = &said {
                self.heard(&deed, said);
            }
            said
        };
        let said = match sends {
            Sends::Once => vec![one(node).await],
            Sends::Twins(gap) => {
                let second = async {
                    tokio::time::sleep(Duration::from_millis(gap)).await;
                    one(node + 1).await
                };
                <[_; 2]>::from(tokio::join!(one(node), second)).to_vec()
            }
            Sends::Again => vec![one(node).await, one(node + 1).await],
        };
        let said = said.into_iter().flatten().collect();
        lock(&self.intentions).push(Intention { key, deed, said, vain: vain.into_inner() });
    }

    async fn stubborn(&self, call: &play::Call, node: usize, vain: &AtomicU64) -> Option<Said> {
        for again in 0..TRIES_MAX {
            let client = self.clients.iter().cycle().nth((node + again) % self.clients.len().max(1))?;
            // No answer is as good as one that asks to come again.
            if let Some(said) = client.send(call).await.ok().as_ref().and_then(Said::of) {
                return Some(said);
            }
            vain.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        None
    }

    /// What everybody has to know of an answer.
    fn heard(&self, deed: &Deed, said: &Said) {
        let Deed::Withdraw { code, .. } = deed else { return };
        if let Some(id) = said.result.get("settlement_id").and_then(Json::as_i64) {
            self.newest.fetch_max(id, Ordering::SeqCst);
        }
        let is_no_good = said.result.get("code").and_then(Json::as_str) == Some("SUP_SET_4003");
        if said.is_done() || is_no_good {
            let mut known = lock(&self.code);
            if known.as_ref() == Some(code) {
                *known = None;
                self.spent.notify_one();
            }
        }
    }

    /// The person at the phone: a new code whenever the last one is spent.
    async fn codes(&self, until: Instant) -> Result<()> {
        let (phone, number) = (&self.ground.outside.phone, &self.ground.supplier.phone);
        let mut choice = Seeded::new(0);
        while Instant::now() < until {
            let before = phone.count(number);
            self.sent(Deed::Code, &mut choice).await;
            let code = phone.code(number, before).await.map_err(told)?;
            *lock(&self.code) = Some(code);
            // The end of the run ends the wait, too.
            let _ = tokio::time::timeout_at(until.into(), self.spent.notified()).await;
        }
        Ok(())
    }

    /// Buyers go on calling.
    async fn earned(&self, until: Instant) -> Result<()> {
        let mut earned = 0_u64;
        while Instant::now() < until {
            tokio::time::sleep(EARN_EVERY).await;
            self.ground.earn().await?;
            earned += 1;
        }
        ensure!(earned > 0, "nothing was earned meanwhile");
        Ok(())
    }
}

/// Lines for people.
pub(super) fn summary(intentions: &[Intention], took: Duration) -> String {
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for intention in intentions {
        let end = intention.end().map_or_else(
            || "none".to_owned(),
            |said| match said.result.get("code").and_then(Json::as_str) {
                Some(code) => code.to_owned(),
                None => said.code.to_string(),
            },
        );
        *ends.entry(end).or_default() += 1;
    }
    let sends: usize = intentions.iter().map(|one| one.said.len()).sum();
    let vain: u64 = intentions.iter().map(|one| one.vain).sum();
    let ends: Vec<_> = ends.into_iter().map(|(end, count)| format!("{count} {end}")).collect();
    format!(
        "{} wishes in {} ms, {sends} sends told an end, {vain} to come again: {}",
        intentions.len(),
        took.as_millis(),
        ends.join(", ")
    )
}
