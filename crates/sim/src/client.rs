//! Clients: they submit, wait or give up, and write down what they were told.

use std::sync::Arc;
use std::time::Duration;

use door::{Answer, Done, Door, Failure, Submission};
use kernel::Time;
use parking_lot::Mutex;
use store::{Query, values};
use tokio::task::AbortHandle;

use crate::domain::{Put, fingerprint};
use crate::process::Process;
use crate::world::World;
use testkit::history;

/// One submission as its client sees it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) key: String,
    pub(crate) payload: i64,
    /// Position in the run's order of events.
    pub(crate) started: u64,
    /// The store's time then.
    pub(crate) started_at: Time,
    /// `None` while it waits.
    pub(crate) told: Option<(u64, history::Answer)>,
    process: Arc<Process>,
    task: AbortHandle,
}

/// All submissions of a run.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Clients {
    /// Submits a command without waiting for its answer.
    pub(crate) fn submit(&self, world: &Arc<World>, door: &Door, put: Put, wait: Duration) {
        let (process, key, payload) = (Arc::clone(&put.process), put.key.clone(), put.payload);
        let (door, shared, life) = (door.clone(), Arc::clone(world), Arc::clone(&process));
        self.send(world, &process, (key, payload), async move {
            let (key, record) = (put.key.clone(), put.under());
            let answer = door.submit(Submission { key: Some(record), command: put, wait }).await;
            life.pass().await;
            shared.tell(|| format!("{} {key} is told {}", life.name, shown(&answer)));
            heard(&shared, &key, answer)
        });
    }

    /// Sends something to a process and writes down what it is told.
    pub(crate) fn send(
        &self,
        world: &Arc<World>,
        process: &Arc<Process>,
        (key, payload): (String, i64),
        answer: impl Future<Output = history::Answer> + Send + 'static,
    ) {
        let (sent, shared, process) = (Arc::clone(&self.sent), Arc::clone(world), Arc::clone(process));
        let mut entries = self.sent.lock();
        let index = entries.len();
        world.tell(|| format!("{} submission {index} of {key} ({payload})", process.name));
        let started = world.tick();
        let task = tokio::spawn(async move {
            let answer = answer.await;
            if let Some(entry) = sent.lock().get_mut(index) {
                shared.tell(|| format!("submission {index} has its answer"));
                entry.told = Some((shared.tick(), answer));
            }
        });
        let (started_at, task) = (world.now(), task.abort_handle());
        entries.push(Sent { key, payload, started, started_at, told: None, process, task });
    }

    /// The client of a waiting submission hangs up.
    pub(crate) fn give_up(&self, world: &World) {
        let mut entries = self.sent.lock();
        let mut waiting: Vec<_> = entries.iter_mut().filter(|sent| sent.told.is_none()).collect();
        let index = usize::try_from(world.below(waiting.len() as u64)).unwrap_or(0);
        if let Some(sent) = waiting.get_mut(index) {
            world.tell(|| format!("{} a client of {} gives up", sent.process.name, sent.key));
            sent.hang_up(world);
        }
    }

    /// All connections to a dead process end.
    pub(crate) fn cut(&self, world: &World, process: &Arc<Process>) {
        let mut entries = self.sent.lock();
        let of = |sent: &&mut Sent| sent.told.is_none() && Arc::ptr_eq(&sent.process, process);
        entries.iter_mut().filter(of).for_each(|sent| sent.hang_up(world));
    }

    /// Submissions without an answer.
    pub(crate) fn waiting(&self) -> usize {
        self.sent.lock().iter().filter(|sent| sent.told.is_none()).count()
    }

    pub(crate) fn all(&self) -> Vec<Sent> {
        self.sent.lock().clone()
    }
}

impl Sent {
    fn hang_up(&mut self, world: &World) {
        self.task.abort();
        self.told = Some((world.tick(), history::Answer::Unknown));
    }

    /// Whether it was told a formal result.
    pub(crate) const fn is_finished(&self) -> bool {
        matches!(self.told, Some((_, history::Answer::Finished(_))))
    }

    /// As the checker of histories wants it.
    pub(crate) fn history(&self) -> history::Submission {
        let (ended, answer) = self.told.clone().unwrap_or((u64::MAX, history::Answer::Unknown));
        let fingerprint = fingerprint(&self.key, self.payload);
        history::Submission { key: self.key.clone(), fingerprint, started: self.started, ended, answer }
    }
}

fn heard(world: &World, key: &str, answer: Result<Answer, Failure>) -> history::Answer {
    match answer {
        Ok(Answer::Done(Done { outcome, replayed, same, .. })) => {
            let sql = "select count(*) from sim_effects where key = $1 and body = $2";
            let query = Query::new("told", sql, values![key, &outcome.body]);
            stands(world, key, "a result that is not kept", &query);
            let outcome = outcome.body.into_bytes();
            history::Answer::Finished(history::Finished { outcome, replayed, same, generation: None })
        }
        Ok(Answer::InProgress { durable, .. }) => {
            if durable {
                let sql = "select count(*) from sim_records where key = $1";
                let query = Query::new("told", sql, values![key]);
                stands(world, key, "of a claim that is not kept", &query);
            }
            history::Answer::InProgress
        }
        Ok(Answer::Open { .. } | Answer::Orphaned) => history::Answer::Unknown,
        Err(failure) => {
            if let Failure::Store(store::Error::Raised(raise)) = &failure {
                // Under the key's locks nobody gets ahead between the look and the write.
                world.find(format!("{key}: a check of the record raised: {raise}"));
            }
            history::Answer::Unknown
        }
    }
}

/// What a client is told stands on record at that moment.
pub(crate) fn stands(world: &World, key: &str, what: &str, query: &Query) {
    let rows = world.read(query);
    if !rows.is_ok_and(|rows| rows.first().is_some_and(|row| row.int(0) == Ok(1))) {
        world.find(format!("{key}: a client was told {what}"));
    }
}

pub(crate) fn shown(answer: &Result<Answer, Failure>) -> String {
    match answer {
        Ok(Answer::Done(done)) => format!(
            "{} {} (replayed {}, same {})",
            done.outcome.code, done.outcome.body, done.replayed, done.same
        ),
        Ok(Answer::InProgress { same, durable, .. }) => {
            format!("in progress (same {same}, durable {durable})")
        }
        Ok(Answer::Open { .. }) => "open".into(),
        Ok(Answer::Orphaned) => "orphaned".into(),
        Err(failure) => format!("failure: {failure}"),
    }
}
