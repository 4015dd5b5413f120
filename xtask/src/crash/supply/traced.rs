//! One run under trace: start, ask, die; and what was told to whom before.

use std::fs::File;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value as Json;

use super::stage::{Critical, Stage};
use crate::crash::traced::told;
use crate::lab::{House, server, wire};
use crate::trace::{self, Arm, Origin, Phase, Plan, Recording, Seen};

/// How long a run may take from the request to its end.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(5);

/// How a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Death {
    /// The server is killed before this point.
    BeforePoint(u64),
    /// The server is killed when this piece from the database or a provider was read.
    AtReceipt(u64),
    /// The server is killed while a provider holds its answer back.
    InCall,
    /// The server is killed when its answer was sent.
    #[default]
    Answered,
}

impl Death {
    /// Names folder and database of its trial.
    pub(super) fn name(self) -> String {
        match self {
            Self::BeforePoint(at) => format!("point_{at:04}"),
            Self::AtReceipt(at) => format!("receipt_{at:04}"),
            Self::InCall => "in_call".into(),
            Self::Answered => "answered".into(),
        }
    }
}

/// A run that ended.
pub(super) struct Traced {
    /// The folder as it was left.
    pub(super) house: House,
    pub(super) recording: Recording,
    /// Bodies of the 2xx answers that the kernel took.
    pub(super) told: Vec<Json>,
    /// Pieces that came from the database and from providers while it was counted.
    pub(super) receipts: u64,
    /// Whether it died as it should.
    pub(super) died: bool,
}

/// Runs the server in a copy of the market, sends the request, and lets it die.
///
/// # Errors
/// The program does not start, or hangs.
pub(super) fn run(stage: &Stage, write: Critical, (name, death): (&str, Death)) -> Result<Traced> {
    let house = stage.house(name)?;
    let (reader, writer) = io::pipe()?;
    let mut command = stage.planted(&house);
    command.stdin(Stdio::null()).stdout(writer).stderr(File::create(house.next_log()?)?);
    let (receipts, died) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut watch =
        Watch { death, house: house.clone(), receipts: Arc::clone(&receipts), died: Arc::clone(&died) };
    let plan = Plan::new(command, house.data()).arm(Arm::FirstByte).stop_when(move |seen| watch.saw(seen));
    let plan = match death {
        Death::BeforePoint(at) => plan.kill_at(at),
        _ => plan,
    };
    let held = (death == Death::InCall).then(|| stage.runtime.block_on(stage.outside.provider.hold()));
    let running = trace::start(plan)?;
    let address = server::listening(reader).context("the traced program does not say where it listens")?;
    let (request, asked) = (stage.request(write, 1), stage.outside.provider.asked());
    // The answer is read from the recording: a kill cuts this side's.
    let client = std::thread::spawn(move || drop(wire::exchange(address, &request)));
    let since = Instant::now();
    while running.phase() < Phase::Ended {
        if held.is_some() && stage.outside.provider.asked() > asked {
            died.store(true, Ordering::SeqCst);
            break;
        }
        ensure!(since.elapsed() < PATIENCE, "within {PATIENCE:?} the request was not answered");
        std::thread::park_timeout(LOOK);
    }
    let recording = running.stop()?;
    drop(held);
    client.join().ok().context("the client panicked")?;
    let told = told(&recording)?;
    let died = death == Death::Answered || recording.killed_at.is_some() || died.load(Ordering::SeqCst);
    Ok(Traced { house, recording, told, receipts: receipts.load(Ordering::SeqCst), died })
}

/// What the judge on the tracing thread counts and does.
struct Watch {
    death: Death,
    house: House,
    receipts: Arc<AtomicU64>,
    died: Arc<AtomicBool>,
}

impl Watch {
    /// The stretch that counts ends with the answer, or a death.
    fn saw(&mut self, seen: &Seen<'_>) -> bool {
        match seen {
            Seen::Point(point) => point.sent().is_some_and(|(socket, _)| socket.origin == Origin::Accepted),
            Seen::Received { socket, .. } if socket.origin == Origin::Connected => {
                let number = self.receipts.fetch_add(1, Ordering::SeqCst) + 1;
                if self.death != Death::AtReceipt(number) {
                    return false;
                }
                // A death that fails is seen as a run that was too short.
                self.died.store(self.killed().is_ok(), Ordering::SeqCst);
                true
            }
            Seen::Received { .. } => false,
        }
    }

    fn killed(&self) -> Result<()> {
        let text = std::fs::read(self.house.data().join("run/server.json"))?;
        let json: Json = serde_json::from_slice(&text)?;
        let pid = json.get("pid").and_then(Json::as_i64).context("run/server.json has no pid")?;
        Ok(kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGKILL)?)
    }
}
