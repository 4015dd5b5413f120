//! What is measured, as values: how it is had, which database it needs, how it starts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use super::database::{Database, Template};
use super::pgbench::{Form, Pgbench};
use super::served::Served;
use super::{ours, peer};
use crate::bench::disk::Speed;
use crate::bench::load::Tally;

/// Numbers databases and folders.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// New keys.
    First,
    /// Keys that are known.
    Repeat,
}

impl Kind {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::First => "Keyed transfers, first time",
            Self::Repeat => "Repeats of a thousand known keys",
        }
    }
}

/// One measured load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Successes a second.
    pub(super) rate: u64,
    /// Median latency, in microseconds.
    pub(super) p50: u64,
    /// 99th percentile of the latency, in microseconds.
    pub(super) p99: u64,
    /// Everything else than an expected answer.
    pub(super) failures: u64,
}

impl From<&Tally> for Sample {
    fn from(tally: &Tally) -> Self {
        Self {
            rate: tally.rate(),
            p50: tally.percentile(50).into(),
            p99: tally.percentile(99).into(),
            failures: tally.failures(),
        }
    }
}

/// A started subject.
pub(super) trait Started {
    /// Loads it, after a short load that is not counted.
    ///
    /// # Errors
    /// It can't be loaded at all.
    fn measure(&mut self, kind: Kind, clients: usize, time: Duration) -> Result<Sample>;
}

/// Where a subject starts: a database and a folder of its own.
pub(super) struct Place<'d> {
    pub(super) database: &'d Database,
    pub(super) speed: Speed,
    /// Name of its database, not made yet.
    pub(super) name: String,
    /// Empty folder for its files and logs.
    pub(super) folder: PathBuf,
}

impl<'d> Place<'d> {
    /// # Errors
    /// The folder can't be made.
    pub(super) fn new(database: &'d Database, speed: Speed, subject: &str) -> Result<Self> {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("bench_{}_{number}", subject.replace(|it: char| !it.is_ascii_alphanumeric(), "_"));
        let folder = crate::bench::scratch_folder()?.join(format!("{name}.{}", std::process::id()));
        std::fs::create_dir(&folder).context("a folder for a subject can't be made")?;
        Ok(Self { database, speed, name, folder })
    }
}

impl Place<'_> {
    /// Frees what its subject took, once that has ended: a run has hundreds of databases.
    ///
    /// # Errors
    /// As `psql` says, such as when somebody uses the database still.
    pub(super) fn clear(self) -> Result<()> {
        self.database.remove(&self.name)?;
        std::fs::remove_dir_all(&self.folder).context("a subject's folder can't be removed")
    }
}

/// How a subject runs.
pub(super) enum Way {
    /// pgbench with one form of the door's statements.
    Pgbench(Form),
    /// The door without HTTP.
    Direct,
    /// A server that takes `POST` with a key.
    Served(fn(&Place<'_>, &str) -> Result<Served>),
}

/// Something that is measured.
pub(super) struct Subject {
    /// Name in tables and on the command line.
    pub(super) name: &'static str,
    /// Gets what isn't there yet; done again at no cost.
    pub(super) install: fn() -> Result<()>,
    /// What its database begins with.
    pub(super) template: Template,
    pub(super) way: Way,
}

/// Name of the subject that the first ratio stands against.
pub(super) const STEP: &str = "pgbench-step";
/// Name of the subject that the second ratio stands against.
pub(super) const PIPELINED: &str = "pgbench-pipelined";

/// All of them, in the order of the tables.
pub(super) fn all() -> Vec<Subject> {
    let bench = |name, form| Subject {
        name,
        install: super::pgbench::there,
        template: Template::Door,
        way: Way::Pgbench(form),
    };
    let mut subjects = vec![
        bench(STEP, Form::Step),
        bench(PIPELINED, Form::Pipelined),
        bench("pgbench-function", Form::Function),
        Subject { name: "door", install: || Ok(()), template: Template::Door, way: Way::Direct },
        Subject {
            name: "door-http",
            install: || Ok(()),
            template: Template::Door,
            way: Way::Served(ours::serve),
        },
    ];
    subjects.extend(peer::all());
    // Another job, so last: the whole server, with events that are recorded and not certified.
    subjects.push(Subject {
        name: "onceseal",
        install: ours::build_server,
        template: Template::Empty,
        way: Way::Served(ours::serve_server),
    });
    subjects
}

impl Subject {
    /// Whether it takes transfers over HTTP.
    pub(super) fn takes_transfers(&self) -> bool {
        matches!(self.way, Way::Served(_)) && self.template != Template::Empty
    }

    /// Starts it with a fresh database.
    ///
    /// # Errors
    /// The database can't be made, or it doesn't start.
    pub(super) fn start(&self, place: &Place<'_>) -> Result<Box<dyn Started>> {
        let url = place.database.fresh(&place.name, self.template)?;
        self.start_on(place, url, 0)
    }

    /// Starts it on a database that is there; `first` is the number of its first new transfer.
    ///
    /// # Errors
    /// It doesn't start.
    pub(super) fn start_on(&self, place: &Place<'_>, url: String, first: u64) -> Result<Box<dyn Started>> {
        Ok(match &self.way {
            Way::Pgbench(form) => Box::new(Pgbench { form: *form, url, folder: place.folder.clone() }),
            Way::Direct => Box::new(ours::Direct { url, next: first }),
            Way::Served(serve) => {
                let mut served = serve(place, &url)?;
                served.next = first;
                Box::new(served)
            }
        })
    }

    /// Starts it where it takes requests over HTTP.
    ///
    /// # Errors
    /// It takes none, or as [`Subject::start`].
    pub(super) fn serve(&self, place: &Place<'_>) -> Result<Served> {
        let Way::Served(serve) = &self.way else { anyhow::bail!("{} takes no requests", self.name) };
        let url = place.database.fresh(&place.name, self.template)?;
        serve(place, &url)
    }
}
