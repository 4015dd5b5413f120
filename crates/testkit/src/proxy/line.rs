//! One connection through the proxy, from its arrival to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::board::{Board, Live};
use super::dialogue::Dialogue;
use super::fault::{Fault, Side, Way};
use super::pump::{End, pump};
use super::twin::Copies;

/// Pause after an accept that failed: the usual cause is too many open files, and it passes.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);
/// How long the target may take to accept.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long a server may take over a late COMMIT.
const LATE_MAX: Duration = Duration::from_secs(60);

/// Accepts connections for ever.
pub(super) async fn accept(listener: TcpListener, board: Arc<Board>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let (number, dropped) = board.arrive();
                let line = Line {
                    board: Arc::clone(&board),
                    number,
                    dialogue: Mutex::default(),
                    copies: Mutex::default(),
                };
                board.open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move { line.carry(client, dropped).await });
            }
            Err(_) => sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// A connection. Counted as open until it is dropped.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) board: Arc<Board>,
    pub(super) number: u64,
    pub(super) dialogue: Mutex<Dialogue>,
    pub(super) copies: Mutex<Copies>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.board.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Line {
    pub(super) fn matching(&self, wanted: impl Fn(&Fault) -> bool) -> Vec<Arc<Live>> {
        self.board.matching(self.number, wanted)
    }

    pub(super) fn strike(&self, wanted: impl Fn(&Fault) -> bool) -> Option<Arc<Live>> {
        self.board.strike(self.number, wanted)
    }

    pub(super) fn strike_black(&self) -> bool {
        self.strike(|fault| *fault == Fault::BlackHole).is_some()
    }

    async fn carry(self, mut client: TcpStream, mut dropped: watch::Receiver<u64>) {
        if self.strike(|fault| *fault == Fault::Refuse).is_some() {
            return reset(client);
        }
        let Some(mut server) = connect(self.board.target()).await else { return reset(client) };
        // What the ends send in small pieces arrives in small pieces; a platform that can't is only slower.
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let end = tokio::select! {
            biased;
            _ = dropped.changed() => End::Reset,
            gone = self.half_open() => End::Half(gone),
            end = self.pass(&mut client, &mut server) => end,
        };
        tokio::select! {
            biased;
            // What is still held open then is set to end with a reset.
            _ = dropped.changed() => {}
            () = finish(end, client, server) => {}
        }
    }

    /// Waits for the fault that needs no byte to strike.
    async fn half_open(&self) -> Side {
        let mut rules = self.board.rules();
        loop {
            rules.borrow_and_update();
            let struck = self.strike(|fault| matches!(fault, Fault::HalfOpen { .. }));
            if let Some(Fault::HalfOpen { gone }) = struck.map(|live| live.rule.fault) {
                return gone;
            }
            if rules.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    async fn pass(&self, client: &mut TcpStream, server: &mut TcpStream) -> End {
        let (client_says, to_client) = client.split();
        let (server_says, to_server) = server.split();
        let mut asking = std::pin::pin!(pump(self, Way::ToServer, client_says, to_server));
        let mut answering = std::pin::pin!(pump(self, Way::ToClient, server_says, to_client));
        tokio::select! {
            end = &mut asking => match end {
                End::Passed => answering.await,
                end => end,
            },
            end = &mut answering => match end {
                End::Passed => asking.await,
                end => end,
            },
        }
    }
}

async fn connect(target: SocketAddr) -> Option<TcpStream> {
    timeout(CONNECT_MAX, TcpStream::connect(target)).await.ok()?.ok()
}

async fn finish(end: End, mut client: TcpStream, mut server: TcpStream) {
    match end {
        End::Passed => {}
        End::Closed => {
            close(&mut client).await;
            close(&mut server).await;
        }
        End::Reset => {
            reset(client);
            reset(server);
        }
        End::Black => {
            reset_on_drop(&client);
            reset_on_drop(&server);
            tokio::join!(swallow(&mut client), swallow(&mut server));
        }
        End::Half(gone) => {
            let (gone, mut kept) = match gone {
                Side::Client => (client, server),
                Side::Server => (server, client),
            };
            reset(gone);
            reset_on_drop(&kept);
            swallow(&mut kept).await;
        }
        End::Late(rest, by) => {
            close(&mut client).await;
            drop(client);
            reset_on_drop(&server);
            sleep(by).await;
            if server.write_all(&rest).await.is_ok() {
                close(&mut server).await;
                // The server ends the connection when it has done what it was told.
                let _ = timeout(LATE_MAX, swallow(&mut server)).await;
            }
        }
    }
}

async fn close(stream: &mut TcpStream) {
    // A side that has gone by itself needs no farewell.
    let _ = stream.shutdown().await;
}

fn reset_on_drop(stream: &TcpStream) {
    // Fails only for a socket that isn't one.
    let _ = stream.set_zero_linger();
}

fn reset(stream: TcpStream) {
    reset_on_drop(&stream);
    drop(stream);
}

/// Reads and forgets until the stream ends.
async fn swallow(stream: &mut TcpStream) {
    let mut buffer = vec![0; 16 << 10];
    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}
