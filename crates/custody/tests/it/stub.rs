//! A server that keeps what it is asked and answers by a rule; and the search for a planted secret.

use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Response};
use serde_json::Value as Json;
use tracing_subscriber::fmt::MakeWriter;

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// With the query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap_or(""))
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or(Json::Null)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Status, one header, body.
    Says(u16, (&'static str, String), String),
    /// Takes the request and never answers.
    Hangs,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &impl ToString) -> Self {
        Self::Says(status, ("content-type", "application/json".into()), body.to_string())
    }
}

type Rule = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

pub(crate) struct Stub {
    pub(crate) address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Stub {
    /// Answers each request by the rule. Served on a thread of its own, so that its logs are not ours.
    pub(crate) async fn start(rule: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let rule: Rule = Arc::new(rule);
        let kept = Arc::clone(&seen);
        let app =
            Router::new().fallback(move |request| answer(request, Arc::clone(&kept), Arc::clone(&rule)));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, app).await.unwrap();
            });
        });
        Self { address, seen }
    }

    /// Always the same answer.
    pub(crate) async fn always(reply: Reply) -> Self {
        Self::start(move |_| reply.clone()).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

async fn answer(request: Request, seen: Arc<Mutex<Vec<Seen>>>, rule: Rule) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let request = Seen {
        method: parts.method.to_string(),
        target: parts.uri.to_string(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let reply = rule(&request);
    seen.lock().unwrap().push(request);
    match reply {
        Reply::Says(status, (name, value), body) => {
            Response::builder().status(status).header(name, value).body(Body::from(body)).unwrap()
        }
        Reply::Hangs => std::future::pending().await,
    }
}

/// What this thread logs, at every level.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    pub(crate) fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let captured = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(captured.clone())
            .finish();
        (captured, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The first run of 8 characters of the secret that stands in the text.
pub(crate) fn shown<'a>(secret: &'a str, text: &str) -> Option<&'a str> {
    (0..=secret.len() - 8).map(|start| &secret[start..start + 8]).find(|run| text.contains(run))
}
