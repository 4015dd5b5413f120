//! Sockets: accept, bound, answer, stop. HTTP/1.1 by hyper, TLS by rustls.
//!
//! A stop is graceful: no new connection, idle ones closed, requests under way answered, all within a bound.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use axum::routing::future::RouteFuture;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower::Service as _;

use crate::stall::Bounded;
use crate::tls::Tls;

/// Pause after an accept that failed for want of file handles; connections that end give some back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a closed connection is read on, so that a client still sending gets to see the answer.
const LINGER: Duration = Duration::from_secs(1);
/// Most that is read then, in bytes.
const LINGER_BYTES: usize = 4 * 1024 * 1024;
/// Pause between two turns of the meters' upkeep, which folds histograms together.
const UPKEEP: Duration = Duration::from_secs(5);

/// Bounds of a listener.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Time for a request's head to arrive, also how long an idle connection is kept.
    pub header_read: Duration,
    /// Largest head, bytes.
    pub max_header_bytes: usize,
    /// Connections open at once; further ones wait in the system's queue.
    pub max_connections: usize,
    /// Time that a client may leave its answer unread.
    pub write_stall: Duration,
    /// Time that a stop may take. What is not answered by then is cut.
    pub stop_within: Duration,
    /// TLS, where it is not ended in front of us.
    pub tls: Option<Arc<Tls>>,
    /// Meters that need upkeep, if any.
    pub metrics: Option<metrics_exporter_prometheus::PrometheusHandle>,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            header_read: Duration::from_secs(10),
            max_header_bytes: 64 * 1024,
            max_connections: 4096,
            write_stall: Duration::from_secs(30),
            stop_within: Duration::from_secs(10),
            tls: None,
            metrics: None,
        }
    }
}

/// How a stop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Connections that had not ended within the bound and were cut.
    pub cut: usize,
}

/// Serves until `stop` is there and everything is answered, or the bound is over.
///
/// # Errors
/// Only what the listener itself can't recover from.
pub async fn serve<F>(
    listener: TcpListener,
    router: Router,
    settings: ServeSettings,
    stop: F,
) -> io::Result<Stopped>
where
    F: Future<Output = ()> + Send,
{
    let (stopping, stopped) = watch::channel(());
    let places = Arc::new(Semaphore::new(settings.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let server =
        Server { http: http(&settings), router, tls: settings.tls, write_stall: settings.write_stall };
    let server = Arc::new(server);
    let mut connections = JoinSet::new();
    let upkeep = settings.metrics.map(|handle| tokio::spawn(keep_up(handle)));
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            _ = connections.join_next(), if !connections.is_empty() => {}
            accepted = accept(&listener, &places) => {
                let (stream, peer, place) = accepted?;
                connections.spawn(connection(Arc::clone(&server), stream, peer, stopped.clone(), place));
            }
        }
    }
    drop(listener);
    // The connections hear of it by the sender's end.
    drop(stopping);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    let in_time = tokio::time::timeout(settings.stop_within, all_ended).await.is_ok();
    let cut = if in_time { 0 } else { connections.len() };
    connections.shutdown().await;
    if let Some(upkeep) = upkeep {
        upkeep.abort();
    }
    tracing::info!(cut, "server_stopped");
    Ok(Stopped { cut })
}

struct Server {
    http: Builder,
    router: Router,
    tls: Option<Arc<Tls>>,
    write_stall: Duration,
}

fn http(settings: &ServeSettings) -> Builder {
    let mut http = Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(settings.header_read)
        .max_header_size(settings.max_header_bytes)
        .max_buf_size(settings.max_header_bytes.max(MIN_BUFFER));
    http
}

/// Smallest buffer that hyper takes.
const MIN_BUFFER: usize = 8 * 1024;

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Ok((stream, peer, place)),
            // The client went before it was accepted.
            Err(cause) if cause.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(cause) => {
                tracing::warn!(%cause, "accept_failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    server: Arc<Server>,
    stream: TcpStream,
    peer: SocketAddr,
    stopped: watch::Receiver<()>,
    _place: OwnedSemaphorePermit,
) {
    // A failure to switch Nagle's algorithm off costs time, not correctness.
    let _ = stream.set_nodelay(true);
    let Some(tls) = &server.tls else { return talk(&server, stream, peer, stopped).await };
    // A handshake is a head of its own kind: the same time for it.
    match tokio::time::timeout(HANDSHAKE, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => talk(&server, stream, peer, stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "handshake_failed"),
        Err(_) => tracing::debug!("handshake_timed_out"),
    }
}

/// Time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// One connection's requests, until it ends.
async fn talk<I>(server: &Server, io: I, peer: SocketAddr, mut stopped: watch::Receiver<()>)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let service = Routed { router: server.router.clone(), peer };
    let mut connection =
        server.http.serve_connection(TokioIo::new(Bounded::new(io, server.write_stall)), service);
    let mut gone = Box::pin(async move {
        // Nothing is ever sent: the end of the channel is the message.
        while stopped.changed().await.is_ok() {}
    });
    let mut stopping = false;
    let ended = poll_fn(|context| {
        if !stopping && gone.as_mut().poll(context).is_ready() {
            stopping = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(context)
    })
    .await;
    if let Err(error) = ended {
        tracing::debug!(%error, "connection_ended");
    }
    linger(connection.into_parts().io.into_inner()).await;
}

/// Ends a connection without throwing away the answer: what the client still sends is read for a moment,
/// or its system would answer our close with a reset before the answer was read (RFC 9112, section 9.6).
async fn linger<I: AsyncRead + AsyncWrite + Unpin>(mut io: I) {
    let reading = async {
        if io.shutdown().await.is_err() {
            return;
        }
        let (mut rest, mut read) = ([0; 8192], 0);
        while read < LINGER_BYTES {
            match io.read(&mut rest).await {
                Ok(0) | Err(_) => return,
                Ok(more) => read += more,
            }
        }
    };
    let _ = tokio::time::timeout(LINGER, reading).await;
}

/// The router as hyper calls it.
struct Routed {
    router: Router,
    peer: SocketAddr,
}

impl hyper::service::Service<hyper::Request<Incoming>> for Routed {
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn call(&self, request: hyper::Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(self.peer));
        // A router is always ready.
        self.router.clone().call(request)
    }
}

async fn keep_up(handle: metrics_exporter_prometheus::PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        handle.run_upkeep();
    }
}
