//! A server on a socket, and a client that sends bytes as they are.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use web::{ServeSettings, Stopped, serve};

use crate::house::House;

pub(crate) struct Running {
    pub(crate) house: House,
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<Stopped>>,
}

impl Running {
    pub(crate) async fn new(house: House, settings: ServeSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let router = house.router.clone();
        let serving = tokio::spawn(serve(listener, router, settings, async {
            let _ = stopped.await;
        }));
        Self { house, address, stop, serving }
    }

    pub(crate) async fn plain() -> Self {
        Self::new(House::new().await, ServeSettings::default()).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("a connection")
    }

    /// Sends these bytes and gives everything that comes until the server closes.
    pub(crate) async fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        // A server that refuses early may close while we still send; what it said is what counts.
        let _ = stream.write_all(bytes.as_ref()).await;
        to_end(&mut stream).await
    }

    /// Tells the server to stop.
    pub(crate) fn stop(self) -> (House, JoinHandle<std::io::Result<Stopped>>) {
        let _ = self.stop.send(());
        (self.house, self.serving)
    }
}

pub(crate) async fn to_end(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A reset after the answer is an end as well.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a request and reads one answer with a stated length; the connection stays.
pub(crate) async fn ask(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    bytes: impl AsRef<[u8]>,
) -> String {
    stream.write_all(bytes.as_ref()).await.expect("sent");
    let mut got = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&got).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(ToOwned::to_owned));
            let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        let mut more = [0; 4096];
        let read = stream.read(&mut more).await.expect("an answer");
        assert!(read > 0, "closed after {text:?}");
        got.extend_from_slice(&more[..read]);
    }
}

/// Status lines in what came.
pub(crate) fn statuses(text: &str) -> Vec<u16> {
    let lines = text.split("HTTP/1.1 ").skip(1);
    lines.map(|line| line[..3].parse().expect("a status")).collect()
}
