//! A server of S3's protocol for tests: the crate `s3s` (protocol, signatures) over `s3s-fs` (a folder), in
//! this program, with faults to switch on. Also started on its own by the example `s3_server`.
//!
//! `s3s-fs` looks whether an object is there and then writes it, so of eight writers at once several may
//! create it; a lock around each put makes put-if-absent what S3 says it is.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{Body, HttpResponse};
use tokio::net::TcpListener;

/// The bucket that is there.
pub(crate) const BUCKET: &str = "onceseal-test";
/// Largest body that is kept to be sent twice, in bytes.
const BODY_MAX: usize = 16 * 1024 * 1024;

/// What the server does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Answers 503 to everything.
    Down,
    /// Does what it is asked and closes the connection without an answer.
    LosesAnswers,
    /// Does what it is asked and never answers.
    HoldsAnswers,
    /// Does every put twice, as if a proxy had sent it again, and gives the second answer.
    Twice,
    /// Replaces objects that it was told to put only if absent.
    Forgets,
}

/// A running server; it ends with its last handle's drop.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
}

struct State {
    service: S3Service,
    bucket: PathBuf,
    fault: parking_lot::Mutex<Fault>,
    /// One put at a time, and no read meanwhile: the folder's entity tags are written after the object.
    turn: tokio::sync::RwLock<()>,
    created: AtomicU32,
}

impl Server {
    /// Starts a server on `address` for the holder of these keys; objects stand in `folder`.
    pub(crate) async fn start(address: &str, folder: &Path, id: &str, secret: &str) -> Self {
        let bucket = folder.join(BUCKET);
        std::fs::create_dir_all(&bucket).expect("a bucket");
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder).expect("a folder"));
        builder.set_auth(SimpleAuth::from_single(id, secret));
        let state = Arc::new(State {
            service: builder.build(),
            bucket,
            fault: parking_lot::Mutex::new(Fault::None),
            turn: tokio::sync::RwLock::default(),
            created: AtomicU32::default(),
        });
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, accepting }
    }

    /// From now on the server does this wrong.
    pub(crate) fn fail(&self, fault: Fault) {
        *self.state.fault.lock() = fault;
    }

    /// How many puts were answered with 200.
    pub(crate) fn created(&self) -> u32 {
        self.state.created.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let serve = service_fn(move |request| answer(Arc::clone(&state), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), serve);
        connections.spawn(async move {
            // A connection that a fault or a client cut is nobody's concern here.
            let _ = connection.await;
        });
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> std::io::Result<HttpResponse> {
    let fault = *state.fault.lock();
    if fault == Fault::Down {
        let mut down = Response::new(Body::from("<Error><Code>SlowDown</Code></Error>".to_owned()));
        *down.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return Ok(down);
    }
    let done = carry_out(&state, request, fault).await.map_err(std::io::Error::other)?;
    match fault {
        Fault::LosesAnswers => Err(std::io::Error::other("the answer is lost")),
        Fault::HoldsAnswers => std::future::pending().await,
        _ => Ok(done),
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn carry_out(state: &State, request: Request<Incoming>, fault: Fault) -> Result<HttpResponse, Failure> {
    if request.method() != Method::PUT {
        let _turn = state.turn.read().await;
        return Ok(state.service.call(request.map(Body::from)).await?);
    }
    let _turn = state.turn.write().await;
    if fault == Fault::Forgets {
        let key = request.uri().path().trim_start_matches('/').trim_start_matches(BUCKET);
        // Nothing to forget is as good.
        let _ = std::fs::remove_file(state.bucket.join(key.trim_start_matches('/')));
    }
    let (parts, body) = request.into_parts();
    let bytes = Body::from(body).store_all_limited(BODY_MAX).await?;
    let times = if fault == Fault::Twice { 2 } else { 1 };
    let mut last = None;
    for _ in 0..times {
        let mut once = Request::new(Body::from(bytes.clone()));
        (*once.method_mut(), *once.uri_mut()) = (parts.method.clone(), parts.uri.clone());
        *once.headers_mut() = parts.headers.clone();
        let done = state.service.call(once).await?;
        if done.status() == StatusCode::OK {
            state.created.fetch_add(1, Ordering::SeqCst);
        }
        last = Some(done);
    }
    last.ok_or_else(|| "nothing was done".into())
}
