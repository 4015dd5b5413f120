//! One run under trace: start, deliver, be killed; and what was told to whom before. Not here: what must
//! hold afterwards.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value as Json;

use crate::lab::{self, House, event, server, wire};
use crate::trace::{self, Arm, Durability, Effect, Origin, Phase, Plan, Recording};

use super::stage::{Clock, Stage};
use super::telegram::Telegram;

/// How long a run may take from the delivery to the last mark.
const PATIENCE: Duration = Duration::from_secs(30);

/// A run that was killed, or counted to its end.
pub(super) struct Traced {
    /// The folder as it was left.
    pub(super) house: House,
    /// Every point up to the end.
    pub(super) recording: Recording,
    /// Bodies of the 2xx answers that the kernel took.
    pub(super) told: Vec<Json>,
    /// Announcements that Telegram heard.
    pub(super) announced: Vec<String>,
}

/// Runs a copy of the base in a house of that name, delivers the event, and kills it before the
/// `kill_at`-th point; without one it ends after the last that counts.
///
/// # Errors
/// The program does not start, or hangs.
pub(super) fn run(stage: &Stage, name: &str, kill_at: Option<u64>) -> anyhow::Result<Traced> {
    let house = stage.house(name, &[], Durability::Strict)?;
    let telegram = Telegram::start()?;
    let (reader, writer) = io::pipe()?;
    let mut command = stage.command(&house, &telegram, (Clock::True, &["serve"]));
    command.stdin(Stdio::null()).stdout(writer).stderr(File::create(house.next_log()?)?);
    let plan = Plan::new(command, house.data()).arm(Arm::FirstByte).stop_when(until_marked(telegram.address));
    let running = trace::start(kill_at.into_iter().fold(plan, Plan::kill_at))?;
    let address = server::listening(reader).context("the traced program does not say where it listens")?;
    // The answer is read from the recording: a kill cuts this side's.
    let _ = wire::exchange(address, &event::delivery(&stage.event, lab::now())?);
    let reached = running.wait_for(Phase::Ended, PATIENCE);
    ensure!(
        reached >= Phase::Ended,
        "within {PATIENCE:?} the traced program did not announce, sync the files, export and sync its last mark"
    );
    let recording = running.stop()?;
    let announced = telegram.settle()?;
    let told = told(&recording)?;
    Ok(Traced { house, recording, told, announced })
}

/// What has happened of all that follows a delivery.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    announced: bool,
    synced: bool,
    exported: bool,
}

/// The stretch that counts ends with the sync of the log by which all marks are durable: that the
/// announcement went out, that the files were synced, that the export has its line.
fn until_marked(telegram: SocketAddr) -> impl FnMut(&trace::Seen<'_>) -> bool + Send + 'static {
    let mut seen = Seen::default();
    move |now| match now {
        trace::Seen::Received { socket, .. } => {
            seen.announced |= socket.origin == Origin::Connected && socket.peer == telegram;
            false
        }
        trace::Seen::Point(point) => {
            let synced = matches!(point.effect, Effect::Synced { .. });
            let Some(path) = point.path().and_then(Path::to_str).filter(|_| synced) else { return false };
            seen.synced |= path == "deliveries";
            seen.exported |= path == "processed.jsonl";
            path == "state.db-wal" && seen.announced && seen.synced && seen.exported
        }
    }
}

/// Bodies of all 2xx answers to clients, as far as the kernel took them.
pub(super) fn told(recording: &Recording) -> anyhow::Result<Vec<Json>> {
    let mut answers: BTreeMap<SocketAddr, Vec<u8>> = BTreeMap::new();
    for (socket, bytes) in recording.points.iter().filter_map(trace::Point::sent) {
        if socket.origin == Origin::Accepted {
            answers.entry(socket.peer).or_default().extend(bytes);
        }
    }
    let mut told = Vec::new();
    for answer in answers.into_values() {
        let text = String::from_utf8(answer).context("an answer that is no text")?;
        if text.starts_with("HTTP/1.1 2") {
            // Cut inside the body, the sender still has its 2xx.
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
            told.push(serde_json::from_str(body).unwrap_or_default());
        }
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Point, Socket, Target};

    fn sent((origin, peer): (Origin, u16), bytes: &str) -> Point {
        let [local, peer] = [80, peer].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        Point {
            number: None,
            thread: 1,
            call: "writev",
            target: Target::Socket(Socket { local, peer, origin }),
            effect: Effect::Sent(bytes.as_bytes().to_vec()),
            result: Some(1),
        }
    }

    #[test]
    fn only_2xx_to_clients_is_a_promise_even_without_the_whole_body() {
        let points = vec![
            sent((Origin::Accepted, 1), "HTTP/1.1 200 OK\r\n\r\n{\"run_hash\""),
            sent((Origin::Accepted, 2), "HTTP/1.1 503 Service Unavailable\r\n\r\n{}"),
            sent((Origin::Connected, 3), "HTTP/1.1 200 OK\r\n\r\n{}"),
            sent((Origin::Accepted, 1), ":\"ab\"}"),
            sent((Origin::Accepted, 4), "HTTP/1.1 202 Accepted\r\n\r\n{\"sta"),
        ];
        let recording = Recording { points, counted: 0, killed_at: None, killed_before: None, exit: None };
        assert_eq!(told(&recording).unwrap(), [serde_json::json!({ "run_hash": "ab" }), Json::Null]);
    }
}
