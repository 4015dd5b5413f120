//! One run under trace: start, deliver, die; and what was told to whom before.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value as Json, json};

use super::ground::{Ground, KILLED, Server};
use crate::crash::telegram::Telegram;
use crate::crash::traced::told;
use crate::lab::{self, House, event, server, wire};
use crate::trace::{self, Arm, Origin, Phase, Plan, Recording, Running};

/// How long a run may take from the delivery to the last mark.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a traced server may take to be ready again once its database is back: longer than its own
/// time-outs (10 s).
const RECOVERED_WITHIN: Duration = Duration::from_secs(20);
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(30);

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// The server is killed before this point.
    BeforePoint(u64),
    /// The server is killed when this piece from the database was read.
    AtReceipt(u64),
    /// The database is killed when the server has sent this COMMIT.
    DatabaseAtCommit(u64),
    /// The database is killed when the server has read this COMMIT's answer.
    DatabaseAtAnswer(u64),
}

impl Death {
    /// Names folder and database of its trial.
    pub(super) fn name(self) -> String {
        match self {
            Self::BeforePoint(at) => format!("point_{at:04}"),
            Self::AtReceipt(at) => format!("receipt_{at:04}"),
            Self::DatabaseAtCommit(at) => format!("commit_{at:04}"),
            Self::DatabaseAtAnswer(at) => format!("answer_{at:04}"),
        }
    }

    /// In words.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::BeforePoint(_) => "server killed before a write, rename, sync or send",
            Self::AtReceipt(_) => "server killed at a receipt from the database",
            Self::DatabaseAtCommit(_) => "database killed when a COMMIT was sent",
            Self::DatabaseAtAnswer(_) => "database killed when a COMMIT was answered",
        }
    }
}

impl Default for Death {
    fn default() -> Self {
        Self::BeforePoint(0)
    }
}

/// A run that ended.
pub(super) struct Traced {
    /// The folder as it was left.
    pub(super) house: House,
    pub(super) recording: Recording,
    /// Bodies of the 2xx answers that the kernel took.
    pub(super) told: Vec<Json>,
    /// Announcements that Telegram heard.
    pub(super) announced: Vec<String>,
    /// Pieces that came from the database while it was counted.
    pub(super) receipts: u64,
    /// Whether it died as it should.
    pub(super) died: bool,
}

/// What the judge on the tracing thread counts and does.
struct Watch {
    database: SocketAddr,
    death: Option<Death>,
    server: Server,
    house: House,
    commits: u64,
    /// The connection that waits for the answer to the COMMIT in question.
    awaited: Option<SocketAddr>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    receipts: AtomicU64,
    died: AtomicBool,
}

/// How often a piece of the conversation says COMMIT by itself: a simple query of that one word.
pub(super) fn commits(bytes: &[u8]) -> u64 {
    const COMMIT: &[u8] = b"Q\0\0\0\x0bcommit\0";
    u64::try_from(bytes.windows(COMMIT.len()).filter(|window| *window == COMMIT).count()).unwrap_or(u64::MAX)
}

/// Runs the server in a copy of its base, with a copy of the database, delivers the event, and lets it die.
///
/// # Errors
/// The program does not start, or hangs.
pub(super) fn run(ground: &Ground, name: &str, death: Option<Death>) -> Result<Traced> {
    ground.database(name)?;
    let house = ground.house(name, KILLED)?;
    let telegram = Telegram::start()?;
    let (reader, writer) = io::pipe()?;
    let mut command = ground.planted(&house, &telegram);
    command.stdin(Stdio::null()).stdout(writer).stderr(File::create(house.next_log()?)?);
    let shared = Arc::new(Shared::default());
    let mut watch = Watch {
        database: ground.server.address(),
        death,
        server: ground.server.clone(),
        house: house.clone(),
        commits: 0,
        awaited: None,
        shared: Arc::clone(&shared),
    };
    let plan = Plan::new(command, house.data()).arm(Arm::FirstByte).stop_when(move |seen| watch.saw(seen));
    let plan = match death {
        Some(Death::BeforePoint(at)) => plan.kill_at(at),
        _ => plan,
    };
    let running = trace::start(plan)?;
    let address = server::listening(reader).context("the traced program does not say where it listens")?;
    // The answer is read from the recording: a kill cuts this side's.
    let _ = wire::exchange(address, &event::delivery(&ground.event, lab::now())?);
    ended(ground, name, (&running, &shared, &house))?;
    if let Some(Death::DatabaseAtCommit(_) | Death::DatabaseAtAnswer(_)) = death {
        recovered(ground, address)?;
    }
    let recording = running.stop()?;
    let announced = telegram.settle()?;
    let mut told = told(&recording)?;
    // What `recovered` asked for was not told to the sender.
    told.retain(|body| *body != json!({ "status": "ready" }));
    let died = recording.killed_at.is_some() || shared.died.load(Ordering::SeqCst);
    let receipts = shared.receipts.load(Ordering::SeqCst);
    Ok(Traced { house, recording, told, announced, receipts, died })
}

/// Waits until the server is dead, or has done all that follows a delivery; a database that was killed is
/// started at once.
fn ended(ground: &Ground, name: &str, (running, shared, house): (&Running, &Shared, &House)) -> Result<()> {
    let since = Instant::now();
    while running.phase() != Phase::Gone {
        if shared.died.load(Ordering::SeqCst) {
            // Only a database's death leaves the server alive.
            return database_back(ground);
        }
        // A database that has just died gives no answer; the next round sees it.
        if done(ground, name, house).unwrap_or(false) {
            return Ok(());
        }
        ensure!(
            since.elapsed() < PATIENCE,
            "within {PATIENCE:?} the run did not announce, sync, export and mark"
        );
        std::thread::park_timeout(LOOK);
    }
    Ok(())
}

fn done(ground: &Ground, name: &str, house: &House) -> Result<bool> {
    let (marked, exported) = (ground.psql(name)?.ask(DONE)?, house.data().join("processed.jsonl"));
    Ok(std::fs::metadata(exported)?.len().to_string() == marked)
}

/// How many bytes of its export a server has marked, once the second event is processed, announced on all
/// channels, and its files are synced. Only one server runs.
const DONE: &str = "select max(m.value) from certify_marks m where m.name like 'export.bytes%' \
     and (select count(*) from certify_events where status = 'processed') = 2 \
     and not exists (select from outbox_deliveries where status in ('pending', 'sending')) \
     and exists (select from certify_marks s where s.name like 'files.synced%' \
       and s.value >= (select max(event) from certify_certificates)) \
     and m.value > (select min(value) from certify_marks where name like 'export.bytes%')";

/// The database is started where it was, if it died.
fn database_back(ground: &Ground) -> Result<()> {
    ground.server.with(|server| if server.id().is_none() { server.start() } else { Ok(()) })
}

/// A server whose database died and came back takes its work up by itself. The last COMMIT of a run may come
/// when all that was waited for is done, and with it the death.
fn recovered(ground: &Ground, address: SocketAddr) -> Result<()> {
    let since = Instant::now();
    let request = wire::request("GET", "/readyz", &[], b"");
    while !wire::exchange_within(address, &request, RECOVERED_WITHIN).is_ok_and(|answer| answer.status == 200)
    {
        database_back(ground)?;
        ensure!(
            since.elapsed() < RECOVERED_WITHIN,
            "the server is not ready {RECOVERED_WITHIN:?} after its database"
        );
        std::thread::park_timeout(LOOK);
    }
    Ok(())
}

impl Watch {
    /// Sees everything while points are counted; true ends the counting.
    fn saw(&mut self, seen: &trace::Seen<'_>) -> bool {
        match seen {
            trace::Seen::Received { socket, .. } => {
                if socket.origin != Origin::Connected || socket.peer != self.database {
                    return false;
                }
                let number = self.shared.receipts.fetch_add(1, Ordering::SeqCst) + 1;
                match self.death {
                    Some(Death::AtReceipt(at)) if at == number => self.die(Self::server_killed),
                    Some(Death::DatabaseAtAnswer(_)) if self.awaited == Some(socket.local) => {
                        self.die(Self::database_killed)
                    }
                    _ => false,
                }
            }
            trace::Seen::Point(point) => {
                let Some((socket, bytes)) = point.sent() else { return false };
                let before = self.commits;
                self.commits += commits(bytes);
                let meant = |at: u64| before < at && at <= self.commits;
                match self.death {
                    Some(Death::DatabaseAtCommit(at)) if meant(at) => self.die(Self::database_killed),
                    Some(Death::DatabaseAtAnswer(at)) if meant(at) => {
                        self.awaited = Some(socket.local);
                        false
                    }
                    _ => false,
                }
            }
        }
    }

    /// The tracee stands still meanwhile, or at least the thread that would go on from here.
    fn die(&mut self, how: fn(&Self) -> Result<()>) -> bool {
        self.awaited = None;
        // A death that fails is seen as a run that was too short.
        self.shared.died.store(how(self).is_ok(), Ordering::SeqCst);
        true
    }

    fn server_killed(&self) -> Result<()> {
        let text = std::fs::read(self.house.data().join("run/server.json"))?;
        let json: Json = serde_json::from_slice(&text)?;
        let pid = json.get("pid").and_then(Json::as_i64).context("run/server.json has no pid")?;
        Ok(kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGKILL)?)
    }

    fn database_killed(&self) -> Result<()> {
        self.server.with(crate::services::postgres::Postgres::kill9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_counted_wherever_it_stands_in_the_pipeline() {
        let mut bytes = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04".to_vec();
        assert_eq!(commits(&bytes), 0);
        bytes.extend(b"Q\0\0\0\x0bcommit\0");
        assert_eq!(commits(&bytes), 1);
        bytes.extend(b"Q\0\0\0\x0dcommitted");
        assert_eq!(commits(&bytes), 1);
    }
}
