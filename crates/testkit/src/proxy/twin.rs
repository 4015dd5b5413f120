//! A request sent twice: what the client says until the server answers goes to the server once more, on a
//! connection of its own whose answer is read and thrown away.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::board::Board;
use super::fault::{Fault, Twin};

/// Longest request that is kept to be sent later; a longer one is sent once.
const KEPT_MAX: usize = 64 << 20;
/// How long the second copy's answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// An answer that asks for the rest of the request (RFC 9110, section 10.1.1).
const GO_ON: &[u8] = b"HTTP/1.1 100";

/// Copies one connection's requests.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Whether the client's last request has no answer yet.
    asking: bool,
    second: Second,
}

#[derive(Debug, Default)]
enum Second {
    /// This request is sent once.
    #[default]
    None,
    /// Another connection gets the same now.
    Now(mpsc::UnboundedSender<Vec<u8>>),
    /// Another connection gets the same later.
    Later(Vec<u8>),
}

impl Copies {
    /// The server was sent `bytes`.
    pub(super) fn asked(&mut self, board: &Board, number: u64, bytes: &[u8]) {
        if !self.asking {
            self.asking = true;
            self.second = Self::begin(board, number);
        }
        match &mut self.second {
            Second::None => {}
            // The other end is gone when the server hung up on it.
            Second::Now(sender) => drop(sender.send(bytes.to_vec())),
            Second::Later(kept) if kept.len() + bytes.len() <= KEPT_MAX => kept.extend(bytes),
            Second::Later(_) => self.second = Second::None,
        }
    }

    /// The client was sent `bytes`.
    pub(super) fn answered(&mut self, board: &Board, number: u64, bytes: &[u8]) {
        if !self.asking || bytes.starts_with(GO_ON) {
            return;
        }
        self.asking = false;
        if let Second::Later(kept) = std::mem::take(&mut self.second)
            && board.strike(number, |fault| *fault == Fault::Twice(Twin::Late)).is_some()
        {
            // Whether it can be received is seen by the receiver, which lives as long as the sender.
            let _ = open(board.target()).send(kept);
        }
    }

    fn begin(board: &Board, number: u64) -> Second {
        if board.strike(number, |fault| *fault == Fault::Twice(Twin::AtOnce)).is_some() {
            return Second::Now(open(board.target()));
        }
        let later = board.matching(number, |fault| *fault == Fault::Twice(Twin::Late));
        if later.is_empty() { Second::None } else { Second::Later(Vec::new()) }
    }
}

fn open(target: SocketAddr) -> mpsc::UnboundedSender<Vec<u8>> {
    let (sender, queue) = mpsc::unbounded_channel();
    tokio::spawn(send(target, queue));
    sender
}

/// Sends what comes, then waits for the answer: a server may drop a request whose sender hangs up.
async fn send(target: SocketAddr, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    let Ok(stream) = TcpStream::connect(target).await else { return };
    let (mut answer, mut request) = stream.into_split();
    let writing = async {
        while let Some(bytes) = queue.recv().await {
            if request.write_all(&bytes).await.is_err() {
                break;
            }
        }
    };
    let reading = async {
        let mut buffer = vec![0; 16 << 10];
        while timeout(ANSWER_MAX, answer.read(&mut buffer)).await.is_ok_and(|read| read.is_ok_and(|n| n > 0))
        {
        }
    };
    tokio::join!(writing, reading);
}
