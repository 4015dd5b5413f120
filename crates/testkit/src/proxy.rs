//! A TCP proxy that does harm on demand: it stands between a client and a server, passes everything on,
//! and delays, cuts, swallows or repeats what it was told to, until it is told to stop.
//!
//! Modules in reading order: [`fault`] (what can be switched on), `board` (what is switched on, and how
//! often it fired), `line` (one connection), `pump` (one direction of it), `dialogue` (where in a
//! PostgreSQL conversation a COMMIT stands), `frames` (the messages in it), `sql` (whether a text commits),
//! `twin` (a request sent twice).
//!
//! It works below TLS and never parses it: inside TLS no COMMIT is seen and [`Proxy::commits`] stays
//! still. It has a thread and a runtime of its own, so that blocking clients can use it, and so that it
//! isn't starved by what it tests. Not here: faults of disks, clocks and processes.

mod board;
mod dialogue;
mod fault;
mod frames;
mod line;
mod pump;
mod sql;
mod twin;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

pub use board::Armed;
pub use fault::{Fault, Moment, Reach, Rule, Side, Twin, Way};

use board::Board;

/// Connections that may wait to be accepted: more than any run opens at one instant.
const BACKLOG: u32 = 16_384;

/// A running proxy. Dropping it closes its port and every connection through it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    board: Arc<Board>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and passes every connection on to `target`.
    ///
    /// # Errors
    /// No port, no thread or no runtime could be had.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let listener = listen(&runtime)?;
        let address = listener.local_addr()?;
        let board = Arc::new(Board::new(target));
        let (stop, stopped) = oneshot::channel();
        let accepting = line::accept(listener, Arc::clone(&board));
        let thread = std::thread::Builder::new().name("fault-proxy".to_owned()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = stopped => {}
                    () = accepting => {}
                }
            });
        })?;
        Ok(Self { address, board, stop: Some(stop), thread: Some(thread) })
    }

    /// Where clients connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on new connections go to `target`, as after a failover. Open ones stay where they are; see
    /// [`Self::drop_all`].
    pub fn point_at(&self, target: SocketAddr) {
        self.board.point_at(target);
    }

    /// Switches a fault on, for all connections unless the rule says otherwise. Faults add up.
    pub fn set(&self, rule: impl Into<Rule>) -> Armed {
        Board::set(&self.board, rule.into())
    }

    /// Takes every fault away. What a fault has broken stays broken: a connection that lost bytes is never
    /// mended.
    pub fn clear(&self) {
        self.board.clear();
    }

    /// Resets (RST) every open connection on both sides; the count of those told to go.
    pub fn drop_all(&self) -> usize {
        self.board.drop_all()
    }

    /// How often each fault fired since the start, by [`Fault::name`]; `"reset"` counts what
    /// [`Self::drop_all`] told to go. Faults that never fired are absent.
    #[must_use]
    pub fn fired(&self) -> BTreeMap<&'static str, u64> {
        self.board.fired()
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.board.open.load(Ordering::SeqCst)
    }

    /// How many COMMITs clients have sent, cut ones included: 0 says that the proxy can't see any.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.board.commits.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may be gone already.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(runtime: &Runtime) -> io::Result<TcpListener> {
    let _inside = runtime.enter();
    let socket = TcpSocket::new_v4()?;
    // So that the port is free again while ends of its connections linger.
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(BACKLOG)
}
