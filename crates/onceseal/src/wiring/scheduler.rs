//! What comes due on the supply side by itself: earnings are released, orders and packages end, payouts begin, keys
//! that ended are swept; beside it the ledger is looked through ([`ledger`]). Runs on every node: each fact is a command
//! whose state check lets it happen once, so a node that comes second is refused and nothing is counted twice. Not here:
//! what is due (`supply`'s lists).

mod ledger;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use door::{Answer, Door, Submission};
use kernel::Time;
use store::{Error, Query};
use supply::accounts::{Remind, to_remind};
use supply::earnings::Release;
use supply::exit::Withheld;
use supply::orders::{Cancel, Cause, Close};
use supply::packages::due::to_pause;
use supply::packages::{self, Expire, Pause, Restock, SellOut, Turn};
use supply::platform::{Due, earnings_to_release, orders_to_close, orders_to_time_out};
use supply::rewrap::{self, Walk};
use supply::settlements::{Start, Stuck, due};
use supply::sweep::sweep;
use supply::{Action, Caller, Commanded, Context, House};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Outcomes of a command.
const DONE: &str = "done";
const PASSED: &str = "passed";
/// Objects of one list in one round.
const BATCH: i64 = 100;
/// What was refused is left alone for so long: the list named it by a state that the command sees otherwise.
const PAUSE: Duration = Duration::from_secs(300);
/// Between two looks for credentials that grow old.
const HOURLY: Duration = Duration::from_secs(3600);

/// The running scheduler.
#[derive(Debug)]
pub struct Scheduler {
    stopping: watch::Sender<()>,
    tasks: [JoinHandle<()>; 2],
}

impl Scheduler {
    /// Looks every `every`, a fifth more or less, so that nodes do not meet each time.
    #[must_use]
    pub fn start(door: Door, house: Arc<House>, every: Duration) -> Self {
        let (stopping, stop) = watch::channel(());
        let look = tokio::spawn(ledger::run(door.clone(), Arc::clone(&house), every, stop.clone()));
        let round = Round {
            door,
            house,
            refused: HashMap::new(),
            rewrap_at: None,
            walk: Walk::default(),
            left: false,
            remind_at: None,
            more: false,
            stop,
        };
        Self { stopping, tasks: [tokio::spawn(run(round, every)), look] }
    }

    /// Ends after the command or the round of rewraps that is running.
    pub async fn stop(self) {
        drop(self.stopping);
        for task in self.tasks {
            if task.await.is_err() {
                tracing::error!("scheduler_stopped_early");
            }
        }
    }
}

struct Round {
    door: Door,
    house: Arc<House>,
    /// Facts that were refused, and until when they are left alone.
    refused: HashMap<String, Time>,
    rewrap_at: Option<Time>,
    /// Where the walk over rows to rewrap stands, and whether it has left some.
    walk: Walk,
    left: bool,
    remind_at: Option<Time>,
    /// Whether a list of this round is not at its end.
    more: bool,
    stop: watch::Receiver<()>,
}

async fn run(mut round: Round, every: Duration) {
    let mut more = false;
    loop {
        let mut stop = round.stop.clone();
        let wait = if more { Duration::ZERO } else { jittered(&round.house, every) };
        tokio::select! {
            _ = stop.changed() => return,
            () = tokio::time::sleep(wait) => {}
        }
        if round.door.store().is_closed() {
            return;
        }
        round.more = false;
        let ended = round.all().await;
        // At once again where there is more than a round of it: what waits is not to wait for the pause.
        more = ended.is_ok() && round.more;
        if let Err(cause) = ended {
            // A fenced or unreachable store: the next round finds the same objects.
            tracing::warn!(%cause, "scheduler_round_broke_off");
        }
    }
}

/// Four to six fifths of `every`.
fn jittered(house: &House, every: Duration) -> Duration {
    let mut byte = [0; 1];
    house.random.fill(&mut byte);
    every * 4 / 5 + every * u32::from(byte[0]) / 640
}

impl Round {
    async fn all(&mut self) -> Result<(), Error> {
        let now = self.house.clock.now();
        self.refused.retain(|_, until| *until > now);
        let due = self.due(now).await;
        // One damaged row of a list must not keep the others from their turn.
        self.sweep(now).await;
        self.rewrap(now).await;
        due
    }

    async fn due(&mut self, now: Time) -> Result<(), Error> {
        let house = Arc::clone(&self.house);
        let limit = self.limit();
        self.each(orders_to_time_out(now, limit, &house), "timeout", now, |due| Cancel {
            order_id: due.id,
            cause: Cause::Timeout,
        })
        .await?;
        self.each(orders_to_close(now, limit), "close", now, |due| Close { order_id: due.id }).await?;
        self.each(earnings_to_release(now, limit), "release", now, |due| Release { earning_id: due.id })
            .await?;
        self.each(to_pause(limit), "pause", now, |due| Pause { package_id: due.id }).await?;
        for turn in [Turn::Expire, Turn::SellOut, Turn::Restock] {
            self.packages(turn, now).await?;
        }
        self.each(due::to_start(now, limit, &house), "payout_start", now, |due| Start {
            settlement_id: due.id,
        })
        .await?;
        self.each(due::stuck(now, limit), "payout_stuck", now, |due| Stuck { settlement_id: due.id }).await?;
        self.remind(now).await
    }

    /// Owners of credentials that grow old; a list that was full is read on in the next round.
    async fn remind(&mut self, now: Time) -> Result<(), Error> {
        if self.remind_at.is_some_and(|at| at > now) {
            return Ok(());
        }
        let more = std::mem::take(&mut self.more);
        self.each(to_remind(now, self.limit()), "remind", now, |due| Remind { account_id: due.id }).await?;
        self.remind_at = (!self.more).then(|| now.plus(HOURLY));
        self.more |= more;
        Ok(())
    }

    /// Rows whose data key an earlier version wraps: some of each table, and after a walk that left some, none for a
    /// while.
    async fn rewrap(&mut self, now: Time) {
        if self.rewrap_at.is_some_and(|at| at > now) || self.stopping() {
            return;
        }
        self.rewrap_at = None;
        match rewrap::round(&self.door, &self.house, self.walk.clone(), BATCH).await {
            Ok(round) => {
                let count = u64::try_from(round.rewrapped).unwrap_or(u64::MAX);
                metrics::counter!("onceseal_rewrapped_total").increment(count);
                self.left |= round.left > 0;
                self.walk = round.next.unwrap_or_default();
                if self.walk == Walk::default() {
                    self.rewrap_at = std::mem::take(&mut self.left).then(|| now.plus(PAUSE));
                }
            }
            Err(cause) => {
                tracing::warn!(%cause, "rewrap_broke_off");
                self.rewrap_at = Some(now.plus(PAUSE));
            }
        }
    }

    /// Keys that nobody comes back for; at once again where there are more than a round of them.
    async fn sweep(&mut self, now: Time) {
        match sweep(&self.door, now, BATCH).await {
            Ok(swept) => {
                let full = |count: usize| i64::try_from(count).is_ok_and(|count| count >= BATCH);
                self.more |= full(swept.lapsed) || full(swept.ended);
                for (what, count) in [("lapsed", swept.lapsed), ("ended", swept.ended)] {
                    let count = u64::try_from(count).unwrap_or(u64::MAX);
                    metrics::counter!("onceseal_idempotency_swept_total", "what" => what).increment(count);
                }
            }
            Err(cause) => tracing::warn!(%cause, "sweep_broke_off"),
        }
    }

    /// Objects of one list: what was refused is still in it, and must not hold back those behind.
    fn limit(&self) -> i64 {
        BATCH.saturating_add(i64::try_from(self.refused.len()).unwrap_or(i64::MAX))
    }

    /// One list, one command for each of its objects.
    async fn each<A: Action>(
        &mut self,
        list: Query,
        fact: &'static str,
        now: Time,
        action: impl Fn(Due) -> A,
    ) -> Result<(), Error> {
        let rows = self.door.store().query(list).await?;
        let due = rows.iter().map(Due::read).collect::<Result<Vec<_>, _>>()?;
        let due = due.into_iter().map(|due| (due.caller(fact), action(due))).collect();
        self.all_of(fact, now, due).await;
        Ok(())
    }

    /// Carries out what a list named, from somewhere in it on: nodes that all began with the oldest would be in each
    /// other's way. Whoever meets another's work looks at the list anew.
    async fn all_of<A: Action>(&mut self, fact: &'static str, now: Time, mut due: Vec<(Caller, A)>) {
        let full = i64::try_from(due.len()).is_ok_and(|length| length >= self.limit());
        let mut byte = [0; 1];
        self.house.random.fill(&mut byte);
        let first = due.len() * usize::from(byte[0]) / 256;
        due.rotate_left(first);
        let mut done = 0;
        for (caller, action) in due {
            match self.submit((fact, caller), now, action).await {
                Some(DONE) => done += 1,
                Some(PASSED) => {
                    self.more = true;
                    return;
                }
                _ => {}
            }
        }
        self.more |= full && done > 0;
    }

    async fn packages(&mut self, turn: Turn, now: Time) -> Result<(), Error> {
        let due = packages::Due::list(self.door.store(), turn, now, self.limit()).await?;
        let due = due.into_iter().map(|due| (due.caller(), due.package_id));
        match turn {
            Turn::Expire => {
                let due = due.map(|(caller, package_id)| (caller, Expire { package_id })).collect();
                self.all_of("expire", now, due).await;
            }
            Turn::SellOut => {
                let due = due.map(|(caller, package_id)| (caller, SellOut { package_id })).collect();
                self.all_of("sold_out", now, due).await;
            }
            Turn::Restock => {
                let due = due.map(|(caller, package_id)| (caller, Restock { package_id })).collect();
                self.all_of("restock", now, due).await;
            }
        }
        Ok(())
    }

    fn stopping(&self) -> bool {
        self.stop.has_changed().is_err()
    }

    /// What came of it; `None` where it is left alone.
    async fn submit<A: Action>(
        &mut self,
        (fact, caller): (&'static str, Caller),
        now: Time,
        action: A,
    ) -> Option<&'static str> {
        let name = caller.request_id.clone();
        if self.stopping() || self.refused.contains_key(&name) {
            return None;
        }
        let context = Context { caller, house: Arc::clone(&self.house) };
        let (asking, object) = (context.clone(), action.object());
        let command = Commanded { context, action };
        // Keyless: the state alone lets a fact happen once.
        let ended = self.door.submit(Submission { key: None, command, wait: Duration::ZERO }).await;
        let outcome = match &ended {
            Ok(Answer::Done(done)) if done.outcome.code < 400 => DONE,
            // Its state is another one by now: another node was faster, or an operator.
            Ok(Answer::Done(done)) if done.outcome.code == 409 => PASSED,
            Ok(_) => "refused",
            Err(cause) => {
                tracing::warn!(fact = name, %cause, "scheduler_command_failed");
                if let Some(withheld) = Withheld::of(cause)
                    && let Err(untold) = withheld.tell(&self.door, &asking, &object).await
                {
                    tracing::error!(fact = name, %untold, "what was withheld could not be audited");
                }
                "failed"
            }
        };
        if outcome != DONE {
            self.refused.insert(name, now.plus(PAUSE));
        }
        metrics::counter!("onceseal_scheduler_commands_total", "fact" => fact, "outcome" => outcome)
            .increment(1);
        Some(outcome)
    }
}
