//! One direction of a connection: reads, holds back, and passes on, until something ends it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::board::Live;
use super::fault::{Fault, Moment, Side, Way};
use super::line::Line;

/// Largest piece that is read at once.
const PIECE_MAX: usize = 16 << 10;
/// Pieces on the way: with delays the flow is as wide as this many pieces a delay.
const QUEUE_MAX: usize = 256;
/// Pieces a second that a throttled flow is cut into.
const PIECES_A_SECOND: u32 = 20;

/// How a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// A side has nothing more to say, and the other was told.
    Passed,
    /// Both sides are closed.
    Closed,
    /// Both sides are reset.
    Reset,
    /// Both sides stay open and are swallowed.
    Black,
    /// This side is reset, the other swallowed.
    Half(Side),
    /// The client is cut off; the server gets this, so much later.
    Late(Vec<u8>, Duration),
}

/// Something that was read.
#[derive(Debug)]
struct Arrival {
    at: Instant,
    what: What,
}

#[derive(Debug)]
enum What {
    Bytes(Vec<u8>),
    Finish,
    Broken,
}

/// Passes on everything that `from` says until it ends.
pub(super) async fn pump(line: &Line, way: Way, from: ReadHalf<'_>, to: WriteHalf<'_>) -> End {
    let (sender, queue) = mpsc::channel(QUEUE_MAX);
    let mut pump = Pump { line, way, to, rules: line.board.rules(), passed: 0, bases: HashMap::new() };
    let mut running = std::pin::pin!(pump.run(queue));
    tokio::select! {
        end = &mut running => end,
        () = read(from, sender) => running.await,
    }
}

async fn read(mut from: ReadHalf<'_>, queue: mpsc::Sender<Arrival>) {
    loop {
        let mut bytes = Vec::with_capacity(PIECE_MAX);
        let what = match from.read_buf(&mut bytes).await {
            Ok(0) => What::Finish,
            Ok(_) => What::Bytes(bytes),
            Err(_) => What::Broken,
        };
        let last = !matches!(what, What::Bytes(_));
        // Fails when the pump has ended, and then nobody reads on.
        if queue.send(Arrival { at: Instant::now(), what }).await.is_err() || last {
            return;
        }
    }
}

struct Pump<'a> {
    line: &'a Line,
    way: Way,
    to: WriteHalf<'a>,
    rules: watch::Receiver<Vec<Arc<Live>>>,
    /// Bytes passed so far.
    passed: u64,
    /// Where the counting of each cut began.
    bases: HashMap<u64, u64>,
}

impl Pump<'_> {
    async fn run(&mut self, mut queue: mpsc::Receiver<Arrival>) -> End {
        while let Some(arrival) = queue.recv().await {
            self.hold(arrival.at).await;
            if self.line.strike_black() {
                return End::Black;
            }
            let passed = match arrival.what {
                What::Bytes(bytes) => self.pass(&bytes).await,
                What::Finish => Err(self.finish().await),
                What::Broken => Err(End::Reset),
            };
            if let Err(end) = passed {
                return end;
            }
        }
        End::Reset
    }

    async fn finish(&mut self) -> End {
        match self.to.shutdown().await {
            Ok(()) => End::Passed,
            Err(_) => End::Reset,
        }
    }

    /// Waits as long as a delay or a hold says of what arrived then.
    async fn hold(&mut self, arrived: Instant) {
        let mut counted = HashMap::new();
        loop {
            // Changes from here on wake the wait below.
            self.rules.borrow_and_update();
            let wait = self.wait(arrived, &mut counted);
            tokio::select! {
                () = wake(wait) => return,
                // The board lives as long as its lines.
                _ = self.rules.changed() => {}
            }
        }
    }

    /// How long to wait; each rule is counted once for each piece.
    fn wait(&self, arrived: Instant, counted: &mut HashMap<u64, bool>) -> Wait {
        let holding = self.line.matching(|fault| match fault {
            Fault::Delay { way, .. } | Fault::Hold(way) => way.covers(self.way),
            _ => false,
        });
        let mut wait = Wait::No;
        for live in holding {
            let fires = *counted.entry(live.id).or_insert_with(|| self.line.board.fire(&live));
            wait = match (live.rule.fault, wait) {
                (Fault::Hold(_), _) if fires => Wait::Lifted,
                (Fault::Delay { by, .. }, Wait::No) if fires => Wait::Until(arrived + by),
                (Fault::Delay { by, .. }, Wait::Until(end)) if fires => Wait::Until(end.max(arrived + by)),
                (_, wait) => wait,
            };
        }
        wait
    }

    async fn pass(&mut self, bytes: &[u8]) -> Result<(), End> {
        let places = match self.way {
            Way::ToClient => self.line.dialogue.lock().answered(bytes),
            Way::ToServer | Way::Both => self.line.dialogue.lock().asked(bytes),
        };
        let mut sent = 0;
        for place in places {
            self.send(bytes.get(sent..place.start).unwrap_or_default()).await?;
            sent = place.start;
            self.meet_commit(bytes, place)?;
        }
        self.send(bytes.get(sent..).unwrap_or_default()).await
    }

    /// A COMMIT, or the answer to one, is next.
    fn meet_commit(&self, bytes: &[u8], place: Range<usize>) -> Result<(), End> {
        let asked = self.way == Way::ToServer;
        if asked {
            self.line.board.commits.fetch_add(1, Ordering::SeqCst);
        }
        let struck = self.line.strike(|fault| match fault {
            Fault::Commit(Moment::Before | Moment::Late(_)) => asked,
            Fault::Commit(Moment::After) => !asked,
            _ => false,
        });
        match struck.map(|live| live.rule.fault) {
            None => Ok(()),
            Some(Fault::Commit(Moment::Late(by))) => {
                Err(End::Late(bytes.get(place).unwrap_or_default().to_vec(), by))
            }
            Some(_) => Err(End::Closed),
        }
    }

    /// Sends as much as no cut forbids.
    async fn send(&mut self, bytes: &[u8]) -> Result<(), End> {
        let (allowed, cut) = self.allowed(bytes.len());
        self.write(bytes.get(..allowed).unwrap_or_default()).await?;
        if cut { Err(End::Closed) } else { Ok(()) }
    }

    fn allowed(&mut self, length: usize) -> (usize, bool) {
        let cuts =
            self.line.matching(|fault| matches!(fault, Fault::CutAfter { way, .. } if way.covers(self.way)));
        let mut nearest: Option<(u64, Arc<Live>)> = None;
        for live in cuts {
            let Fault::CutAfter { bytes, .. } = live.rule.fault else { continue };
            let base = *self.bases.entry(live.id).or_insert(self.passed);
            let left = (base + bytes).saturating_sub(self.passed);
            if left <= length as u64 && nearest.as_ref().is_none_or(|(near, _)| left < *near) {
                nearest = Some((left, live));
            }
        }
        match nearest {
            Some((left, live)) if length > 0 && self.line.board.fire(&live) => {
                (usize::try_from(left).unwrap_or(length), true)
            }
            _ => (length, false),
        }
    }

    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(self.throttled(bytes.len()).await);
            self.to.write_all(piece).await.map_err(|_| End::Reset)?;
            self.passed += piece.len() as u64;
            bytes = rest;
            let mut copies = self.line.copies.lock();
            match self.way {
                Way::ToClient => copies.answered(&self.line.board, self.line.number, piece),
                Way::ToServer | Way::Both => copies.asked(&self.line.board, self.line.number, piece),
            }
        }
        Ok(())
    }

    /// How many of so many bytes may go now, after the time that they take.
    async fn throttled(&self, length: usize) -> usize {
        let struck =
            self.line.strike(|fault| matches!(fault, Fault::Throttle { way, .. } if way.covers(self.way)));
        let Some(Fault::Throttle { bytes_per_second, .. }) = struck.map(|live| live.rule.fault) else {
            return length;
        };
        let speed = bytes_per_second.max(1);
        let piece = speed.div_ceil(PIECES_A_SECOND).min(u32::try_from(length).unwrap_or(u32::MAX));
        sleep(Duration::from_secs(1) * piece / speed).await;
        piece as usize
    }
}

/// How long something is held back.
#[derive(Clone, Copy, Debug)]
enum Wait {
    No,
    Until(Instant),
    /// Until the rules change.
    Lifted,
}

async fn wake(wait: Wait) {
    match wait {
        Wait::No => {}
        Wait::Until(end) => sleep_until(end).await,
        Wait::Lifted => std::future::pending().await,
    }
}
