//! An issuer on a loopback port that answers as it is told and counts who asks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// How the issuer answers.
#[derive(Clone)]
pub(crate) enum Answer {
    /// 200 with this body.
    Set(String),
    /// A whole response.
    Raw(String),
    /// Nothing, and the connection stays open.
    Silence,
    /// 200 and a body without an end; stops when the other side hangs up.
    Endless,
    /// 200 with this body, but only once it is let go.
    Held(String),
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicUsize>,
    answer: Arc<Mutex<Answer>>,
    gate: Arc<Notify>,
}

impl Server {
    pub(crate) async fn plain(answer: Answer) -> Self {
        Self::start(answer, None).await
    }

    pub(crate) async fn tls(answer: Answer) -> Self {
        let chain = CertificateDer::pem_slice_iter(include_bytes!("../vectors/tls-loopback.pem"));
        let chain: Vec<_> = chain.map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_slice(include_bytes!("../vectors/tls-loopback.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        Self::start(answer, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start(answer: Answer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self {
            address,
            asked: Arc::default(),
            answer: Arc::new(Mutex::new(answer)),
            gate: Arc::default(),
        };
        let (asked, answer, gate) =
            (Arc::clone(&server.asked), Arc::clone(&server.answer), Arc::clone(&server.gate));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, gate, answer) = (Arc::clone(&asked), Arc::clone(&gate), answer.lock().clone());
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, answer, &asked, &gate).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, answer, &asked, &gate).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/jwks.json", self.address)
    }

    pub(crate) fn answers(&self, answer: Answer) {
        *self.answer.lock() = answer;
    }

    /// Requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Waits until the other side has hung up on an endless answer.
    pub(crate) async fn hung_up(&self) {
        self.gate.notified().await;
    }

    /// Lets one held answer go.
    pub(crate) fn let_go(&self) {
        self.gate.notify_one();
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    answer: Answer,
    asked: &AtomicUsize,
    gate: &Notify,
) {
    let mut request = [0; 2048];
    let mut length = 0;
    while !request[..length].ends_with(b"\r\n\r\n") {
        match stream.read(&mut request[length..]).await {
            Ok(read @ 1..) => length += read,
            _ => return,
        }
    }
    asked.fetch_add(1, Ordering::SeqCst);
    let ok = |body: String| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let text = match answer {
        Answer::Set(body) => ok(body),
        Answer::Raw(text) => text,
        Answer::Held(body) => {
            gate.notified().await;
            ok(body)
        }
        Answer::Silence => std::future::pending().await,
        Answer::Endless => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
            let mut sent = stream.write_all(head.as_bytes()).await;
            while sent.is_ok() {
                sent = stream.write_all(&[b' '; 64 * 1024]).await;
            }
            return gate.notify_one();
        }
    };
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}
