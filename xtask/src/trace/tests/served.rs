//! A server as tracee: counting from the first byte to the announcement's answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::{PORT, Stage, append, tracee_in};
use crate::trace::{Arm, Origin, Phase, Plan, Running, Seen, start};

const LIMIT: Duration = Duration::from_secs(20);

/// The tracee's side: a record, an answer, an announcement, a note that it went out. The first
/// client that says `ping` is only greeted.
pub(super) fn play(role: &str) -> bool {
    if role != "server" {
        return false;
    }
    append("boot", "x");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("listening {}", listener.local_addr().unwrap().port());
    loop {
        let (mut client, _) = listener.accept().unwrap();
        let mut text = [0; 4];
        client.read_exact(&mut text).unwrap();
        if &text != b"ping" {
            append("event", "x").sync_all().unwrap();
        }
        client.write_all(b"200").unwrap();
        if &text != b"ping" {
            let mut stub = TcpStream::connect(("127.0.0.1", port())).unwrap();
            stub.write_all(b"news").unwrap();
            stub.read_exact(&mut [0; 2]).unwrap();
            append("event", "announced");
        }
    }
}

fn port() -> u16 {
    std::env::var(PORT).unwrap().parse().unwrap()
}

fn ask(port: u16, text: &str) -> std::io::Result<[u8; 3]> {
    let mut answer = [0; 3];
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(text.as_bytes())?;
    stream.read_exact(&mut answer).map(|()| answer)
}

/// Answers one announcement, if one comes.
fn stub() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        if stream.read_exact(&mut [0; 4]).is_ok() {
            let _ = stream.write_all(b"ok");
        }
    });
    port
}

/// The server under `shape`d plan, and the port it listens on.
fn serve(stage: &Stage, shape: impl Fn(Plan, u16) -> Plan) -> (Running, u16) {
    let stub = stub();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = tracee_in(&stage.live(), "server");
    command.stdout(writer).env(PORT, stub.to_string());
    let running = start(shape(Plan::new(command, stage.live()), stub)).unwrap();
    let line =
        BufReader::new(reader).lines().map(Result::unwrap).find(|line| line.contains("listening ")).unwrap();
    (running, line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

#[test]
fn counting_runs_from_the_first_byte_to_the_answer_of_the_announcement() {
    let stage = Stage::new(&[]);
    let (running, port) = serve(&stage, |plan, stub| plan.arm(Arm::FirstByte).stop_at_answer_from(stub));
    assert_eq!(running.phase(), Phase::Waiting);
    assert_eq!(&ask(port, "post").unwrap(), b"200");
    assert_eq!(running.wait_for(Phase::Ended, LIMIT), Phase::Ended);
    let recording = running.stop().unwrap();
    let counted: Vec<&str> =
        recording.points.iter().filter(|point| point.number.is_some()).map(|point| point.call).collect();
    assert_eq!(counted, ["openat", "write", "fsync", "sendto", "sendto"]);
    let sent: Vec<(Origin, &[u8])> = recording
        .points
        .iter()
        .filter_map(|point| point.sent())
        .map(|(to, bytes)| (to.origin, bytes))
        .collect();
    assert_eq!(sent, [(Origin::Accepted, b"200".as_slice()), (Origin::Connected, b"news")]);
    assert_eq!(recording.points[0].path().unwrap().to_str(), Some("boot"));
}

#[test]
fn a_caller_may_probe_over_tcp_before_it_arms_the_count() {
    let stage = Stage::new(&[]);
    let (running, port) =
        serve(&stage, |plan, stub| plan.arm(Arm::FirstByteOnceArmed).stop_at_answer_from(stub));
    ask(port, "ping").unwrap();
    assert_eq!(running.phase(), Phase::Waiting);
    running.arm();
    ask(port, "post").unwrap();
    running.wait_for(Phase::Ended, LIMIT);
    assert_eq!(running.stop().unwrap().counted, 5);
}

#[test]
fn a_kill_at_the_answer_leaves_the_client_without_one() {
    let stage = Stage::new(&[]);
    let (running, port) = serve(&stage, |plan, _| plan.arm(Arm::FirstByte).kill_at(4));
    ask(port, "post").unwrap_err();
    let recording = running.wait_limit(LIMIT).unwrap();
    assert_eq!((recording.killed_at, recording.killed_before.unwrap().call), (Some(4), "sendto"));
    assert_eq!(std::fs::read(stage.live().join("event")).unwrap(), b"x");
}

#[test]
fn a_caller_ends_the_count_at_a_point_or_an_answer_of_its_choice() {
    let stage = Stage::new(&[]);
    let judges: [fn(&Seen<'_>) -> bool; 2] = [
        |seen| matches!(seen, Seen::Point(point) if point.sent().is_some_and(|(_, bytes)| bytes == b"200")),
        |seen| matches!(seen, Seen::Received { bytes: b"ok", .. }),
    ];
    let counted = judges.map(|judge| {
        let (running, port) = serve(&stage, |plan, _| plan.arm(Arm::FirstByte).stop_when(judge));
        ask(port, "post").unwrap();
        running.wait_for(Phase::Ended, LIMIT);
        running.stop().unwrap().counted
    });
    assert_eq!(counted, [4, 5]);
}
