//! After the crash: the store as it lies, the key rotated, the program started again with its clock moved,
//! the event delivered once more. Not here: what must hold then.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value as Json;

use crate::lab::record::{self, Certificate, Recorded};
use crate::lab::wire::Answer;
use crate::lab::{self, House, Server, clock, event, wire};

use super::stage::{Clock, MOVED, Stage};
use super::telegram::Telegram;

/// Times a sender delivers again when it is told to come again.
const DELIVERIES_MAX: usize = 5;

/// What the store says of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Its record.
    pub(super) event: Recorded,
    /// Its certificate.
    pub(super) certificate: Option<Certificate>,
}

/// The server after the crash.
pub(super) struct Again {
    server: Server,
    /// Hears this server's announcements.
    pub(super) telegram: Telegram,
    _swept: Swept,
}

/// Removes what faketime leaves of a program, at the end of its scope.
struct Swept(u32);

impl Drop for Swept {
    fn drop(&mut self) {
        clock::sweep(self.0);
    }
}

/// The event's record in the store as it lies, read from a copy: the first look after a crash is the
/// program's own.
///
/// # Errors
/// The store can't be read.
pub(super) fn kept(stage: &Stage, house: &House) -> anyhow::Result<Option<Kept>> {
    let copy = House::at(house.folder().join("look"));
    fs::create_dir_all(copy.data())?;
    for name in ["state.db", "state.db-wal"] {
        if house.data().join(name).exists() {
            fs::copy(house.data().join(name), copy.data().join(name))?;
        }
    }
    let kept = look(stage, &copy);
    fs::remove_dir_all(copy.folder())?;
    kept
}

/// The event's record in the store.
///
/// # Errors
/// The store can't be read.
pub(super) fn look(stage: &Stage, house: &House) -> anyhow::Result<Option<Kept>> {
    let store = house.store()?;
    let Some(event) = record::events(&store)?.remove(&stage.event.id) else { return Ok(None) };
    let mut certificates = record::certificates(&store)?;
    certificates.retain(|certificate| certificate.event == event.id);
    Ok(Some(Kept { event, certificate: certificates.pop() }))
}

impl Again {
    /// Rotates the key, then starts the server; both an hour later.
    ///
    /// # Errors
    /// Either fails.
    pub(super) fn start(stage: &Stage, house: &House) -> anyhow::Result<Self> {
        let telegram = Telegram::start()?;
        rotate(stage, house, &telegram)?;
        let server = stage.start(house, &telegram, Clock::Moved)?;
        let swept = Swept(server.pid());
        Ok(Self { server, telegram, _swept: swept })
    }

    /// The server.
    pub(super) const fn server(&self) -> &Server {
        &self.server
    }

    /// Delivers the event as its sender does: again while it is told to come again.
    ///
    /// # Errors
    /// No answer.
    pub(super) fn deliver(&self, stage: &Stage) -> anyhow::Result<Answer> {
        let address = self.server.address;
        let mut last = None;
        for _ in 0..DELIVERIES_MAX {
            let answer = wire::exchange(address, &event::delivery(&stage.event, lab::now() + MOVED)?)?;
            if answer.status != 503 {
                return Ok(answer);
            }
            last = Some(answer);
            std::thread::park_timeout(Duration::from_millis(500));
        }
        last.context("no delivery was made")
    }

    /// Stops it in order; gives all that Telegram heard.
    ///
    /// # Errors
    /// It does not end in order.
    pub(super) fn stop(self) -> anyhow::Result<Vec<String>> {
        self.server.stop()?;
        self.telegram.settle()
    }
}

fn rotate(stage: &Stage, house: &House, telegram: &Telegram) -> anyhow::Result<()> {
    let mut command = stage.command(house, telegram, (Clock::Moved, &["--json", "keys", "rotate"]));
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn()?;
    let _swept = Swept(child.id());
    let done = child.wait_with_output()?;
    let (out, words) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    ensure!(done.status.success(), "onceseal keys rotate ended with {}: {words}", done.status);
    let _: Json = serde_json::from_str(&out).with_context(|| format!("keys rotate says {out:?}"))?;
    Ok(())
}
