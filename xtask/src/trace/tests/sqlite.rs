//! SQLite as tracee: the whole tool must find a database sound that is, and one unsound that
//! is made so.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use rusqlite::Connection;

use super::{PORT, Stage, tracee_in};
use crate::trace::{Durability, Plan, Point, Recording, replay, replay_with, run};

const ROWS: usize = 4;

/// The tracee's side: rows committed one by one, each acknowledged over TCP.
pub(super) fn play(role: &str) -> bool {
    let Some(synchronous) = role.strip_prefix("sqlite-") else { return false };
    let port: u16 = std::env::var(PORT).unwrap().parse().unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let store = Connection::open("store.db").unwrap();
    store.pragma_update(None, "journal_mode", "wal").unwrap();
    store.pragma_update(None, "synchronous", synchronous).unwrap();
    store.execute_batch("create table if not exists row (id integer primary key) strict").unwrap();
    for _ in 0..ROWS {
        store.execute("insert into row default values", ()).unwrap();
        client.write_all(b"+").unwrap();
    }
    std::mem::forget(store);
    true
}

fn traced(stage: &Stage, role: &str, kill_at: Option<u64>) -> Recording {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reader = std::thread::spawn(move || listener.accept().unwrap().0.read_to_end(&mut Vec::new()));
    let mut command = tracee_in(&stage.live(), role);
    command.env(PORT, port.to_string());
    let plan = Plan::new(command, stage.live());
    let recording = run(if let Some(number) = kill_at { plan.kill_at(number) } else { plan }).unwrap();
    let _ = TcpStream::connect(("127.0.0.1", port));
    let _ = reader.join().unwrap();
    recording
}

/// Rows acknowledged by these points, and rows that the database in `folder` holds.
fn acknowledged_and_held(points: &[Point], folder: &Path) -> (usize, usize) {
    let acknowledged = points.iter().filter_map(|point| point.sent()).map(|(_, bytes)| bytes.len()).sum();
    let store = Connection::open(folder.join("store.db")).unwrap();
    let sound: String = store.query_row("pragma integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
    let held: i64 = store.query_row("select count(*) from row", (), |row| row.get(0)).unwrap_or(0);
    (acknowledged, usize::try_from(held).unwrap())
}

/// The database's files without the shared-memory index, which no call writes.
fn database(folder: &Path) -> [Option<Vec<u8>>; 2] {
    ["store.db", "store.db-wal"].map(|name| std::fs::read(folder.join(name)).ok())
}

fn power_cuts(role: &str) -> Vec<(usize, usize)> {
    let stage = Stage::new(&[]);
    let recording = traced(&stage, role, None);
    assert!(recording.counted > 30, "only {} points", recording.counted);
    (1..=recording.counted + 1)
        .map(|number| {
            let left = stage.fresh(&format!("left-{number}"));
            replay(&stage.base(), recording.before(number), &left).unwrap();
            assert!(!left.join("store.db-shm").exists());
            acknowledged_and_held(recording.before(number), &left)
        })
        .collect()
}

#[test]
fn a_database_that_syncs_loses_no_acknowledged_row_at_any_power_cut() {
    let cuts = power_cuts("sqlite-full");
    assert!(cuts.iter().all(|(told, held)| told <= held && *held <= told + 1), "{cuts:?}");
    assert_eq!(cuts.last(), Some(&(ROWS, ROWS)));
}

#[test]
fn a_database_that_does_not_sync_is_caught() {
    let cuts = power_cuts("sqlite-normal");
    assert!(cuts.iter().any(|(told, held)| told > held), "{cuts:?}");
}

#[test]
fn a_killed_database_holds_what_it_acknowledged_without_and_with_a_power_cut() {
    for number in (1..200).step_by(9) {
        let stage = Stage::new(&[]);
        let recording = traced(&stage, "sqlite-full", Some(number));
        let left = stage.fresh("left");
        replay(&stage.base(), &recording.points, &left).unwrap();
        let all = stage.fresh("all");
        replay_with(&stage.base(), &recording.points, &all, Durability::Everything).unwrap();
        assert_eq!(database(&all), database(&stage.live()), "killed at {number}");
        for folder in [left, stage.live()] {
            let (told, held) = acknowledged_and_held(&recording.points, &folder);
            assert!(told <= held && held <= told + 1, "killed at {number}: {told} told, {held} held");
        }
        if recording.killed_at.is_none() {
            return;
        }
    }
    panic!("more points than looked for");
}
