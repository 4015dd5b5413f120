//! The database's disk: slow, full for its tables, full for its log of writes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::Kind;
use crate::faults::mounts::Mounted;
use crate::faults::scene::{Played, struck};
use crate::faults::serverlog::shown;
use crate::faults::site::Site;
use crate::services::postgres::Stop;

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "slow-disk", about: "each sync of the database takes 80 ms longer", play: slow },
    Kind { name: "disk-full", about: "no space left for a table of the database", play: full },
    Kind {
        name: "log-disk-full",
        about: "no space left for the database's write-ahead log: it goes down",
        play: log_full,
    },
];

const SLOWER: Duration = Duration::from_millis(80);
const LASTING: Duration = Duration::from_secs(3);
/// Size of the small disks in MiB: for the arrivals of a whole run, and for a log of at least five segments.
const TABLE_DISK: u32 = 192;
const LOG_DISK: u32 = 192;

fn slow(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        site.disk.slow(SLOWER)?;
        let fired = load.fired(|| {
            let since = Instant::now();
            site.ask("select pg_logical_emit_message(true, 'lab', 'slow')")?;
            let took = since.elapsed();
            Ok((took > SLOWER).then(|| format!("a commit took {} ms", took.as_millis())))
        })?;
        std::thread::park_timeout(LASTING);
        site.disk.slow(Duration::ZERO)?;
        Ok(fired)
    })
}

/// An empty folder for the database's own user.
fn place(site: &Site, name: &str) -> Result<PathBuf> {
    let place = site.primary.socket().join(name);
    std::fs::create_dir(&place).with_context(|| format!("making {name}"))?;
    owned(site, &place)?;
    Ok(place)
}

fn owned(site: &Site, place: &Path) -> Result<()> {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let theirs = std::fs::metadata(site.primary.socket())?;
    Ok(chown(place, Some(theirs.uid()), Some(theirs.gid()))?)
}

fn full(site: &mut Site) -> Result<Played> {
    let place = place(site, "small-disk")?;
    let disk = Mounted::small(&place, TABLE_DISK)?;
    site.ask(&format!(
        "create tablespace lab_small location '{}'; alter table certify_arrivals set tablespace lab_small",
        place.display()
    ))?;
    let played = struck(site, |site, load| {
        let mark = site.mark()?;
        let filler = disk.fill()?;
        let mut fired = load.fired(|| {
            let raised = mark.raised(&["53100"])?;
            Ok((raised.values().sum::<u64>() >= 5).then(String::new))
        })?;
        std::thread::park_timeout(LASTING);
        fired.proof = format!("no space left: {}", shown(&mark.raised(&["53100"])?));
        std::fs::remove_file(filler)?;
        Ok(fired)
    });
    site.ask("alter table certify_arrivals set tablespace pg_default")?;
    site.ask("drop tablespace lab_small")?;
    drop(disk);
    std::fs::remove_dir(place)?;
    played
}

fn log_full(site: &mut Site) -> Result<Played> {
    // Small enough for a small disk: a segment has 16 MiB.
    site.primary.set("min_wal_size", "32MB")?;
    site.primary.set("max_wal_size", "48MB")?;
    site.ask("checkpoint")?;
    let log = PathBuf::from(site.ask("show data_directory")?).join("pg_wal");
    let place = place(site, "small-log")?;
    let disk = Mounted::small(&place, LOG_DISK)?;
    site.primary.stop(Stop::Fast)?;
    moved(&log, &place.join("pg_wal"))?;
    std::os::unix::fs::symlink(place.join("pg_wal"), &log)?;
    site.primary.start()?;
    let played = struck(site, |site, load| {
        let mark = site.mark()?;
        let in_flight = load.in_flight();
        let filler = disk.fill()?;
        let mut fired = load.fired(|| {
            // Goes on to the next segment sooner; it fails when the database is gone.
            let _ = site.ask("select pg_switch_wal()");
            let words = mark.since()?;
            Ok(words.contains("PANIC: ").then(|| "PANIC: no space left for the log".into()))
        })?;
        std::thread::park_timeout(LASTING);
        std::fs::remove_file(filler)?;
        // It may have given up for good.
        site.primary.kill9()?;
        site.primary.start()?;
        fired.in_flight = in_flight;
        Ok(fired)
    });
    site.primary.stop(Stop::Fast)?;
    std::fs::remove_file(&log)?;
    moved(&place.join("pg_wal"), &log)?;
    site.primary.start()?;
    drop(disk);
    std::fs::remove_dir(place)?;
    played
}

/// Between two file systems, with owners and modes.
fn moved(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    ensure!(status.success(), "{} can't be copied", from.display());
    Ok(std::fs::remove_dir_all(from)?)
}
