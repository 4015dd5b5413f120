//! The same event gives the same bytes: release and debug builds, each in a process of its own on a copy of
//! one house, and from the record after the files were deleted.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::lab::event::{self, Report};
use crate::lab::{self, House, Setup, wire};

/// Files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Compares what several processes make of one event.
///
/// # Errors
/// They differ, or one of them can't be run.
pub(crate) fn everywhere(release: &Path, debug: Option<&Path>) -> anyhow::Result<()> {
    let folder = lab::scratch("same")?;
    let first = House::make(folder.join("first"), &Setup::default())?;
    // Keys are made by the first start; all copies have them.
    first.start(release)?.stop()?;
    let mut copies = vec![("release", release), ("release-again", release)];
    copies.extend(debug.map(|program| ("debug", program)));
    let mut made: Vec<(&str, Files)> = Vec::new();
    for (name, program) in copies {
        let house = House::at(folder.join(name));
        copy(first.folder(), house.folder())?;
        made.push((name, delivered(&house, program)?));
        // The second start finds no files, only the record.
        std::fs::remove_dir_all(house.deliveries())?;
        std::fs::create_dir(house.deliveries())?;
        made.push((name, fetched(&house, program, &made)?));
    }
    let (_, reference) = made.first().context("a run")?;
    ensure!(reference.len() == 3, "{} files instead of three", reference.len());
    for (name, files) in &made {
        ensure!(files == reference, "the build {name} makes other bytes of the same event");
    }
    let builds = if debug.is_some() { "release and debug" } else { "one build" };
    println!("one event in {} processes ({builds}, and rebuilt from the record): the same bytes", made.len());
    Ok(())
}

fn delivered(house: &House, program: &Path) -> anyhow::Result<Files> {
    let server = house.start(program)?;
    let event = event::checkout(1, Report::First)?;
    let answer = wire::exchange(server.address, &event::delivery(&event, lab::now())?)?;
    ensure!(answer.status == 200, "the event is answered {} {}", answer.status, answer.text());
    server.stop()?;
    let mut files = Files::new();
    for entry in std::fs::read_dir(house.deliveries())? {
        let entry = entry?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?);
    }
    Ok(files)
}

/// The same names, served by a process that has only the record.
fn fetched(house: &House, program: &Path, made: &[(&str, Files)]) -> anyhow::Result<Files> {
    let server = house.start(program)?;
    let mut files = Files::new();
    for name in made.first().map(|(_, files)| files.keys()).context("a run")? {
        let answer = server.get(&format!("/d/{name}"))?;
        ensure!(answer.status == 200, "{name} is answered {} {}", answer.status, answer.text());
        files.insert(name.clone(), answer.body);
    }
    server.stop()?;
    Ok(files)
}

/// Copies a folder with its modes.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    std::fs::set_permissions(to, std::fs::metadata(from)?.permissions())?;
    Ok(())
}
