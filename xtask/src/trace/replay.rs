//! The power cut: applies a recording to a model of a file system that keeps what was synced,
//! and writes out what is left. The rules stand in [`super`]; the tree itself is in
//! [`super::disk`].

use std::io;
use std::path::Path;

use super::disk::{Change, Disk, Node};
use super::point::{Depth, Effect, FileId, Naming, Point, Target, Through};

/// How much a file's `fsync` carries with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The file alone; its name waits for the directory's sync.
    Strict,
    /// As ext4 does: a file without a durable name gets its name made durable too.
    LenientExt4,
    /// All names survive, content only as far as it was synced: a disk that wrote its directories
    /// first. A file renamed into place without a sync is an empty file there.
    Names,
    /// Everything survives: the folder as a mere kill leaves it. Compared with the real one it
    /// shows that no write went past the recording.
    Everything,
}

/// Builds in `into` what a power cut after `points` leaves of the folder that was `base` when
/// the program started, under the strict model.
///
/// `into` is made; it must not hold anything yet. `points` is a recording's list from its very
/// start, or the front part of one ([`super::Recording::before`]).
///
/// # Errors
/// When a file can't be read or written, when `base` does not fit the recording, or when a point
/// has no model; the text names the point.
pub(crate) fn replay(base: &Path, points: &[Point], into: &Path) -> io::Result<()> {
    replay_with(base, points, into, Durability::Strict)
}

/// As [`replay()`], under a model of choice.
///
/// # Errors
/// As [`replay()`].
pub(crate) fn replay_with(base: &Path, points: &[Point], into: &Path, model: Durability) -> io::Result<()> {
    let mut disk = Disk::load(base)?;
    for point in points {
        apply(&mut disk, point, model)
            .map_err(|error| io::Error::other(format!("the replay can't follow point {point}: {error}")))?;
    }
    match model {
        Durability::Everything => disk.sync_all()?,
        Durability::Names => disk.sync_names()?,
        Durability::Strict | Durability::LenientExt4 => {}
    }
    disk.write_out(into)
}

fn apply(disk: &mut Disk, point: &Point, model: Durability) -> io::Result<()> {
    match &point.target {
        Target::Socket(_) => Ok(()),
        Target::Everything => {
            if point.effect == Effect::SyncedAll {
                disk.sync_all()?;
            }
            Ok(())
        }
        Target::File(path) => on_file(disk, path, &point.effect, model),
        Target::Names(from, to) => on_names(disk, (from, to), &point.effect),
    }
}

fn on_file(disk: &mut Disk, path: &Path, effect: &Effect, model: Durability) -> io::Result<()> {
    match effect {
        Effect::Nothing | Effect::Sent(_) => {}
        Effect::Wrote { file, offset, bytes, through } => {
            let node = disk.find(*file, path)?;
            disk.change(node, Change::Wrote(*offset, bytes.clone()));
            if *through == Through::Disk {
                disk.sync_file(node, Depth::Content)?;
            }
        }
        Effect::Resized { file, len } => {
            let node = disk.find(*file, path)?;
            disk.change(node, Change::Resized(*len));
        }
        Effect::Moded { file, mode } => {
            let node = disk.find(*file, path)?;
            disk.change(node, Change::Moded(*mode));
        }
        Effect::Created { file, mode, naming } => {
            let node = disk.add(*file, Node::file(*mode));
            if *naming == Naming::Named {
                disk.name(path, node)?;
            }
        }
        Effect::DirectoryMade { file, mode } => {
            let node = disk.add(*file, Node::directory(*mode));
            disk.name(path, node)?;
        }
        Effect::Synced { file, depth } => sync(disk, (*file, path), *depth, model)?,
        Effect::SyncedAll => disk.sync_all()?,
        Effect::Unlinked { file } => {
            disk.find(*file, path)?;
            disk.unname(path)?;
        }
        Effect::Unmodelled(what) => return Err(io::Error::other(*what)),
        Effect::Renamed { .. } | Effect::Linked { .. } => {
            return Err(io::Error::other("one name where two belong"));
        }
    }
    Ok(())
}

fn sync(disk: &mut Disk, (file, path): (FileId, &Path), depth: Depth, model: Durability) -> io::Result<()> {
    let node = disk.find(file, path)?;
    if disk.is_directory(node) {
        disk.sync_directory(node)?;
    }
    disk.sync_file(node, depth)?;
    if model == Durability::LenientExt4 {
        disk.name_durably(node)?;
    }
    Ok(())
}

fn on_names(disk: &mut Disk, (from, to): (&Path, &Path), effect: &Effect) -> io::Result<()> {
    match effect {
        Effect::Nothing => Ok(()),
        Effect::Renamed { file, over, exchange } => {
            disk.find(*file, from)?;
            if let Some(over) = over {
                // Known from now on: an open descriptor may still write to it.
                disk.find(*over, to)?;
            }
            if *exchange { disk.exchange(from, to) } else { disk.rename(from, to) }
        }
        Effect::Linked { file } => {
            let node = disk.find(*file, from)?;
            disk.name(to, node)
        }
        Effect::Unmodelled(what) => Err(io::Error::other(*what)),
        _ => Err(io::Error::other("two names where one belongs")),
    }
}
