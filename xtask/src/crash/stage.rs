//! What all runs begin with: a house in which one earlier event was certified and announced, stopped in
//! order; copies of it, as they are or as a crash leaves them. Not here: running a copy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::lab::event::{Event, Report, checkout, delivery};
use crate::lab::{self, House, Server, Setup, clock, wire};
use crate::trace::{self, Durability, Point};

use super::Bug;
use super::telegram::Telegram;

/// How long the earlier event's announcement may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Seconds by which the clock moves between crash and restart.
pub(super) const MOVED: i64 = 3600;

/// The common ground of all runs.
pub(super) struct Stage {
    root: PathBuf,
    base: House,
    setup: Setup,
    program: PathBuf,
    bug: Option<Bug>,
    faketime: PathBuf,
    /// Certified and announced before everything else.
    pub(super) earlier: Event,
    /// The one whose delivery is crashed.
    pub(super) event: Event,
}

/// Which clock a command sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// The machine's.
    True,
    /// [`MOVED`] later.
    Moved,
}

impl Stage {
    /// Prepares the base in the empty folder `root`, with a program that has this bug planted.
    ///
    /// # Errors
    /// Faketime is missing, or the program does not certify and announce the event.
    pub(super) fn make(root: &Path, program: PathBuf, bug: Option<Bug>) -> anyhow::Result<Self> {
        let faketime = clock::faketime()?;
        let telegram = Telegram::start()?;
        // The port is another one at each start; flags say which.
        let setup = Setup { telegram: Some(telegram.address), ..Setup::default() };
        let base = House::make(root.join("base"), &setup)?;
        let (earlier, event) = (checkout(1, Report::First)?, checkout(2, Report::First)?);
        let stage = Self { root: root.to_owned(), base, setup, program, bug, faketime, earlier, event };
        let server = stage.start(&stage.base, &telegram, Clock::True)?;
        let answer = wire::exchange(server.address, &delivery(&stage.earlier, lab::now())?)?;
        ensure!(answer.status == 200, "the earlier event got {} {}", answer.status, answer.text());
        ensure!(telegram.wait(1, PATIENCE) == 1, "the earlier event was not announced");
        server.stop()?;
        telegram.settle()?;
        Ok(stage)
    }

    /// The house that every run starts from.
    pub(super) fn base(&self) -> &House {
        &self.base
    }

    /// A house of that name whose data folder is the base's after a power cut that followed `points`, on a
    /// disk that keeps what `model` says.
    ///
    /// # Errors
    /// A point has no model, or a file can't be written.
    pub(super) fn house(&self, name: &str, points: &[Point], model: Durability) -> anyhow::Result<House> {
        let house = House::make(self.folder(name)?, &self.setup)?;
        trace::replay_with(&self.base.data(), points, &house.data(), model)?;
        Ok(house)
    }

    /// A path for `name` that does not exist.
    ///
    /// # Errors
    /// What stands there can't be removed.
    pub(super) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.root.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).with_context(|| format!("clearing {name}"))?;
        }
        Ok(folder)
    }

    /// Removes the house of that name.
    ///
    /// # Errors
    /// It can't be removed.
    pub(super) fn clear(&self, name: &str) -> anyhow::Result<()> {
        self.folder(name).map(|_| ())
    }

    /// `onceseal ARGUMENTS` in a house, whose announcements go to `telegram`.
    pub(super) fn command(
        &self,
        house: &House,
        telegram: &Telegram,
        (clock, arguments): (Clock, &[&str]),
    ) -> Command {
        let mut command = house.command(&self.program, arguments);
        command.arg("--set").arg(format!("announce.telegram.base_url=http://{}", telegram.address));
        if let Some(bug) = self.bug.filter(|bug| bug.life() == clock) {
            command.env("ONCESEAL_PLANTED_BUG", bug.name());
        }
        if clock == Clock::Moved {
            clock::shift(&mut command, &self.faketime, MOVED);
        }
        command
    }

    /// Starts the server in a house.
    ///
    /// # Errors
    /// It ends early; the message has its last words.
    pub(super) fn start(&self, house: &House, telegram: &Telegram, clock: Clock) -> anyhow::Result<Server> {
        house.start_with(self.command(house, telegram, (clock, &["serve"])))
    }
}
