//! The proof that the scan finds: canaries are planted in a copy of a house's files, one place of each kind,
//! and each must be found there and nowhere else.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use rusqlite::Connection;

use super::hoard::Hoard;
use super::scan::{self, Place};
use super::shown;
use crate::lab::House;

/// Kinds of places that are files with text or bytes.
const FILES: [Place; 5] = [Place::Log, Place::Error, Place::Metric, Place::Export, Place::Page];
/// Kinds that not every house has.
const MORE: [Place; 1] = [Place::Backup];

/// Plants and finds. Gives how many were planted.
///
/// # Errors
/// A planted canary was not found, or the house has no file of a kind.
pub(crate) fn all_found(house: &House, hoard: &Hoard) -> anyhow::Result<usize> {
    let copy = tempfile::tempdir()?;
    let mut planted = 0;
    let has = |place: &Place| copied(house, *place, copy.path()).is_ok();
    for (number, place) in FILES.into_iter().chain(MORE.into_iter().filter(has)).enumerate() {
        let file = copied(house, place, copy.path())?;
        let mut bytes = std::fs::read(&file)?;
        let middle = bytes.len() / 2;
        bytes.splice(middle..middle, hoard.text(number).iter().copied());
        std::fs::write(&file, bytes)?;
        planted += found(copy.path(), hoard, place, &[number])?;
    }
    // Every single canary, in a log: none may be missing from the automaton.
    let file = copied(house, Place::Log, copy.path())?;
    let all: Vec<usize> = (0..hoard.count()).collect();
    let lines: Vec<&[u8]> = all.iter().map(|number| hoard.text(*number)).collect();
    std::fs::write(&file, lines.join(&b"\n"[..]))?;
    planted += found(copy.path(), hoard, Place::Log, &all)?;
    planted += in_database(house, hoard, copy.path())?;
    Ok(planted)
}

/// A value in a row: first still in the write-ahead log, then in the main file.
fn in_database(house: &House, hoard: &Hoard, copy: &Path) -> anyhow::Result<usize> {
    let file = copied(house, Place::Database, copy)?;
    let store = Connection::open(&file)?;
    store.execute_batch("pragma journal_mode = wal; pragma wal_autocheckpoint = 0")?;
    let text = (0..hoard.count()).find(|number| std::str::from_utf8(hoard.text(*number)).is_ok());
    let number = text.context("a canary that is text")?;
    let canary = String::from_utf8_lossy(hoard.text(number)).into_owned();
    let rows = [
        "update certify_events set cause = ?1 where id = (select max(id) from certify_events)",
        "update core_tenants set name = ?1 where id = (select max(id) from core_tenants)",
    ];
    let mut changed = 0;
    for sql in rows {
        changed += store.execute(sql, [&canary])?;
    }
    ensure!(changed > 0, "the house has no event and no tenant to plant a canary in");
    let first = found(copy, hoard, Place::Database, &[number])?;
    store.execute_batch("pragma wal_checkpoint(truncate)")?;
    Ok(first + found(copy, hoard, Place::Database, &[number])?)
}

/// Copies one file of a kind, alone, to where its kind is known by its path.
fn copied(house: &House, place: Place, to: &Path) -> anyhow::Result<PathBuf> {
    for entry in std::fs::read_dir(to)? {
        std::fs::remove_dir_all(entry?.path())?;
    }
    let files = scan::files(house.folder())?;
    let of_kind = |path: &&PathBuf| scan::place(&shown(house.folder(), path)) == place;
    let file = files.iter().find(of_kind).with_context(|| format!("the house has no {place:?} to scan"))?;
    let target = to.join(shown(house.folder(), file));
    std::fs::create_dir_all(target.parent().context("a folder")?)?;
    std::fs::copy(file, &target)?;
    if place == Place::Database {
        let wal = PathBuf::from(format!("{}-wal", file.display()));
        if wal.exists() {
            std::fs::copy(wal, format!("{}-wal", target.display()))?;
        }
    }
    Ok(target)
}

/// Each of these is found, in a place of that kind.
fn found(folder: &Path, hoard: &Hoard, place: Place, numbers: &[usize]) -> anyhow::Result<usize> {
    let scanned = scan::folder(folder, hoard)?;
    for number in numbers {
        let name = hoard.name(*number);
        ensure!(
            scanned.findings.iter().any(|finding| finding.place == place && finding.name == name),
            "{name} was planted in a {place:?} and not found"
        );
    }
    Ok(numbers.len())
}
