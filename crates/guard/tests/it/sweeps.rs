//! The scan of what is stored is a gate: it finds what was planted, and it fails when it proved nothing.

use guard::{Form, Sweep, SweepFault};

use crate::made_up::{BASE62, credentials, letters, new_guard};

#[test]
fn a_planted_credential_is_found_in_each_form_with_its_place() {
    let guard = new_guard();
    let secret = credentials()[0].1.clone();
    let mut sweep = Sweep::new(&guard);
    sweep.read("export.csv", Form::Text, format!("a,b\n1,{secret}\n").as_bytes());
    sweep.read("audit.json", Form::Json, format!("{{\"x\":\"{secret}\"}}").as_bytes());
    sweep.read("app.log", Form::JsonLines, format!("{{}}\n\n{{\"m\":\"{secret}\"}}\n").as_bytes());
    sweep.read("clean.log", Form::JsonLines, b"{\"m\":\"fine\"}\n");
    let report = sweep.finish().unwrap();
    let places: Vec<_> = report.exposures.iter().map(|found| found.location.as_str()).collect();
    assert_eq!((report.texts, places), (4, vec!["export.csv", "audit.json", "app.log:3"]));
}

#[test]
fn a_scan_of_nothing_or_of_what_it_cannot_read_fails() {
    let guard = new_guard();
    assert_eq!(Sweep::new(&guard).finish(), Err(SweepFault::NoInput { texts: 0 }));
    let mut empty = Sweep::new(&guard);
    empty.read("app.log", Form::JsonLines, b"");
    assert_eq!(empty.finish(), Err(SweepFault::NoInput { texts: 1 }));
    let mut broken = Sweep::new(&guard);
    broken.read("app.log", Form::JsonLines, b"{}\n{\"cut\":\n");
    broken.read("row.json", Form::Json, letters(BASE62, 9, 1).as_bytes());
    let fault = broken.finish().unwrap_err();
    assert_eq!(fault, SweepFault::Unreadable { first: "app.log:2".into(), count: 2 });
}

/// All files below a folder.
fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn this_crate_has_nothing_in_it_that_looks_like_a_credential() {
    let guard = new_guard();
    let mut sweep = Sweep::new(&guard);
    let mut found = Vec::new();
    files(std::path::Path::new(env!("CARGO_MANIFEST_DIR")), &mut found);
    for file in &found {
        sweep.read(&file.display().to_string(), Form::Text, &std::fs::read(file).unwrap());
    }
    let report = sweep.finish().unwrap();
    assert!(report.texts > 20 && report.exposures.is_empty(), "{report:?}");
}
