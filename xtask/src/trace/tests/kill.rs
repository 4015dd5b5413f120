//! Counting over threads and children, and the kill at the n-th point.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::Duration;

use super::{Stage, append, expected, tracee_in, tree};
use crate::trace::{Effect, Phase, Target, run, start};

/// The tracee's side.
pub(super) fn play(role: &str) -> bool {
    match role {
        "steps" => steps("log", 5),
        "threads" => {
            std::thread::scope(|scope| {
                scope.spawn(|| steps("first", 20));
                scope.spawn(|| steps("second", 20));
            });
        }
        "child" => {
            let status = tracee_in(&std::env::current_dir().unwrap(), "steps").status().unwrap();
            assert!(status.success());
            steps("own", 1);
        }
        "failing" => {
            fs::create_dir("there").unwrap_err();
            fs::remove_file("absent").unwrap_err();
        }
        "noise" => noise(),
        "forever" => loop {
            std::thread::park();
        },
        _ => return false,
    }
    true
}

/// Three points a round (open, write, sync).
fn steps(name: &str, rounds: usize) {
    for _ in 0..rounds {
        append(name, "x").sync_data().unwrap();
    }
}

fn noise() {
    use std::io::Write as _;
    use std::os::unix::net::UnixDatagram;
    std::io::stderr().write_all(b"").unwrap();
    println!("standard output");
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"pipe").unwrap();
    std::io::Read::read_exact(&mut reader, &mut [0; 4]).unwrap();
    let (one, _other) = UnixDatagram::pair().unwrap();
    one.send(b"unix").unwrap();
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"udp", "127.0.0.1:9").unwrap();
    fs::write("../outside", "elsewhere").unwrap();
}

#[test]
fn points_of_all_threads_get_one_row_of_numbers() {
    let stage = Stage::new(&[]);
    let recording = stage.run("threads");
    assert_eq!(recording.counted, 2 * 20 * 3);
    let numbers: Vec<u64> = recording.points.iter().filter_map(|point| point.number).collect();
    assert_eq!(numbers, (1..=120).collect::<Vec<u64>>());
    let threads: BTreeSet<i32> = recording.points.iter().map(|point| point.thread).collect();
    assert_eq!(threads.len(), 2);
    assert!(recording.points.iter().all(super::super::Point::succeeded));
}

#[test]
fn the_log_holds_offset_and_bytes_of_plain_writes() {
    let recording = Stage::new(&[("log", "ab")]).run("steps");
    let writes: Vec<(u64, &[u8])> = recording
        .points
        .iter()
        .filter_map(|point| match &point.effect {
            Effect::Wrote { offset, bytes, .. } => Some((*offset, bytes.as_slice())),
            _ => None,
        })
        .collect();
    assert_eq!(writes, [2, 3, 4, 5, 6].map(|offset| (offset, b"x".as_slice())));
    let line = recording.points[1].to_string();
    assert!(line.starts_with("2 [") && line.ends_with("] write log 1@2 = 1"), "{line}");
}

#[test]
fn the_kill_comes_before_the_planned_point_and_after_all_earlier() {
    for number in 1..=15 {
        let stage = Stage::new(&[]);
        let recording = run(stage.plan("steps").kill_at(number)).unwrap();
        assert_eq!(recording.killed_at, Some(number));
        assert_eq!(recording.exit.unwrap().signal(), Some(libc::SIGKILL));
        assert_eq!(recording.counted, number - 1);
        let written = "x".repeat(usize::try_from((number) / 3).unwrap());
        let left = if number == 1 { expected(&[]) } else { expected(&[("log", &written)]) };
        assert_eq!(tree(&stage.live()), left, "killed at {number}");
    }
}

#[test]
fn a_number_that_never_comes_kills_nothing() {
    let recording = run(Stage::new(&[]).plan("steps").kill_at(16)).unwrap();
    assert!(recording.killed_at.is_none() && recording.exit.unwrap().success());
}

#[test]
fn after_a_kill_between_threads_the_log_tells_the_folder_exactly() {
    for number in [2, 31, 64, 97] {
        let stage = Stage::new(&[]);
        let recording = run(stage.plan("threads").kill_at(number)).unwrap();
        assert!(recording.points.iter().all(super::super::Point::succeeded));
        for name in ["first", "second"] {
            let written = recording.points.iter().filter(|point| {
                point.target == Target::File(name.into()) && matches!(point.effect, Effect::Wrote { .. })
            });
            let length = fs::metadata(stage.live().join(name)).map_or(0, |found| found.len());
            assert_eq!(length, written.count() as u64, "killed at {number}");
        }
    }
}

#[test]
fn children_are_followed_and_die_with_it() {
    let stage = Stage::new(&[]);
    assert_eq!(stage.run("child").counted, 15 + 3);
    let killed = Stage::new(&[]);
    let recording = run(killed.plan("child").kill_at(5)).unwrap();
    assert_eq!(recording.exit.unwrap().signal(), Some(libc::SIGKILL));
    assert_eq!(tree(&killed.live()), expected(&[("log", "x")]));
}

#[test]
fn a_failed_call_counts_and_changes_nothing() {
    let recording = Stage::new(&[("there/file", "")]).run("failing");
    assert_eq!(recording.counted, 2);
    assert!(recording.points.iter().all(|point| point.effect == Effect::Nothing && !point.succeeded()));
}

#[test]
fn writes_to_pipes_streams_other_sockets_and_other_folders_do_not_count() {
    assert_eq!(Stage::new(&[]).run("noise").counted, 0);
}

#[test]
fn another_thread_stops_a_run_that_would_not_end() {
    let stage = Stage::new(&[]);
    let running = start(stage.plan("forever")).unwrap();
    assert_eq!(running.wait_for(Phase::Gone, Duration::from_millis(50)), Phase::Counting);
    let recording = running.stop().unwrap();
    assert_eq!(recording.exit.unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn a_real_time_signal_reaches_the_program() {
    let stage = Stage::new(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap 'echo caught > log' 40; kill -40 $$; :"]).current_dir(stage.live());
    let recording = run(super::Plan::new(shell, stage.live())).unwrap();
    assert!(recording.exit.unwrap().success());
    assert_eq!(tree(&stage.live()), expected(&[("log", "caught\n")]));
}

#[test]
fn a_program_that_does_not_exist_is_an_error() {
    let stage = Stage::new(&[]);
    let plan = super::Plan::new(Command::new("/nonexistent/program"), stage.live());
    assert!(start(plan).unwrap_err().to_string().contains("can't be started"));
}
