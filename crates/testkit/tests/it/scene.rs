//! A server that echoes and tells what it saw, behind a proxy.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use testkit::proxy::{Armed, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Everything here happens at once or, when a test fails, never.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// What the server saw, with the number of the connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Opened(usize),
    Got(usize, Vec<u8>),
    /// An orderly end, or `None` a reset.
    Ended(usize, Option<()>),
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: mpsc::UnboundedReceiver<Seen>,
}

pub(crate) async fn bounded<T>(future: impl Future<Output = T>) -> T {
    timeout(WAIT_MAX, future).await.expect("it happens in time")
}

impl Server {
    /// Answers everything it gets with what `answer` makes of it.
    pub(crate) async fn answering(answer: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = mpsc::unbounded_channel();
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let _ = tell.send(Seen::Opened(number));
                tokio::spawn(serve(stream, number, Arc::clone(&answer), tell.clone()));
            }
        });
        Self { address, seen }
    }

    pub(crate) async fn echo() -> Self {
        Self::answering(<[u8]>::to_vec).await
    }

    /// The next thing it saw.
    pub(crate) async fn saw(&mut self) -> Seen {
        bounded(self.seen.recv()).await.expect("the server lives")
    }

    /// What a connection got until it ended.
    pub(crate) async fn whole(&mut self, wanted: usize) -> Vec<u8> {
        let mut whole = Vec::new();
        loop {
            match self.saw().await {
                Seen::Got(number, bytes) if number == wanted => whole.extend(bytes),
                Seen::Ended(number, _) if number == wanted => return whole,
                _ => {}
            }
        }
    }

    /// What it saw and nobody asked for yet.
    pub(crate) fn unasked(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    number: usize,
    answer: Arc<impl Fn(&[u8]) -> Vec<u8>>,
    tell: mpsc::UnboundedSender<Seen>,
) {
    let mut buffer = vec![0; 64 << 10];
    let end = loop {
        match stream.read(&mut buffer).await {
            Ok(0) => break Some(()),
            Ok(read) => {
                let _ = tell.send(Seen::Got(number, buffer[..read].to_vec()));
                if stream.write_all(&answer(&buffer[..read])).await.is_err() {
                    break None;
                }
            }
            Err(_) => break None,
        }
    };
    let _ = tell.send(Seen::Ended(number, end));
}

/// An echo behind a proxy.
pub(crate) async fn echo() -> (Proxy, Server) {
    let server = Server::echo().await;
    (Proxy::start(server.address).unwrap(), server)
}

pub(crate) async fn connect(proxy: &Proxy) -> TcpStream {
    bounded(TcpStream::connect(proxy.address())).await.unwrap()
}

/// A new connection is reset: while it is being made, or right after.
pub(crate) async fn is_refused(proxy: &Proxy) -> bool {
    match bounded(TcpStream::connect(proxy.address())).await {
        Ok(mut client) => rest(&mut client).await == (Vec::new(), true),
        Err(cause) => cause.kind() == io::ErrorKind::ConnectionReset,
    }
}

/// A connection through the proxy that has been used once.
pub(crate) async fn connected(proxy: &Proxy) -> TcpStream {
    let mut client = connect(proxy).await;
    assert_eq!(asked(&mut client, b"hello").await, b"hello");
    client
}

/// Sends, and reads as many bytes as it sent.
pub(crate) async fn asked(client: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    client.write_all(bytes).await.unwrap();
    let mut answer = vec![0; bytes.len()];
    bounded(client.read_exact(&mut answer)).await.unwrap();
    answer
}

/// What still comes until the end, and whether that end is a reset.
pub(crate) async fn rest(client: &mut TcpStream) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    loop {
        match bounded(client.read_buf(&mut bytes)).await {
            Ok(0) => return (bytes, false),
            Ok(_) => {}
            Err(cause) => {
                assert_eq!(cause.kind(), io::ErrorKind::ConnectionReset);
                return (bytes, true);
            }
        }
    }
}

/// Nothing has come, and the connection is not known to be gone.
pub(crate) fn is_silent(client: &TcpStream) -> bool {
    client.try_read(&mut [0]).is_err_and(|cause| cause.kind() == io::ErrorKind::WouldBlock)
}

pub(crate) async fn fired(armed: &Armed, times: u64) {
    bounded(armed.reached(times)).await;
}
