//! The operator API, over HTTP where a server runs, else in this process on the folder itself: the same
//! router either way, so that a command has one code path. Not here: what the routes do (`web`).

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, Request};
use bytes::Bytes;
use reqwest::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use source::Secret;
use tower::ServiceExt as _;

use super::Globals;
use super::fetch::innermost;
use super::out::{Exit, Stop};
use crate::config::secret::{Layout, SecretRef};
use crate::config::{Loaded, endpoint};
use crate::wiring::{House, Surroundings, has_store, public_url};

/// Where the operator API begins.
const PREFIX: &str = "/api/v1/certify";
/// Largest answer that is read, in bytes: a page of the export, or the longest list of problems.
const ANSWER_MAX: usize = 64 * 1024 * 1024;
/// For the connection. The answer may take long: a check reads everything.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The operator API.
pub enum Api {
    /// Of a server.
    Remote {
        /// Speaks HTTP.
        client: Client,
        /// Address without a slash at its end.
        base: String,
        /// The operator's.
        token: Secret,
    },
    /// Of the folder, in this process.
    Local {
        /// Keeps the folder open.
        house: House,
        /// All routes.
        router: Router,
    },
}

/// What is sent.
#[derive(Clone, Debug)]
pub struct Order {
    method: Method,
    path: String,
    body: Option<(&'static str, Bytes)>,
}

/// What came back, with status 200.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Header lines.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Whether a command may begin a data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// It must be there.
    Expected,
    /// It is made when it isn't.
    Made,
}

impl Order {
    /// Asks.
    #[must_use]
    pub fn get(path: impl std::fmt::Display) -> Self {
        Self { method: Method::GET, path: format!("{PREFIX}{path}"), body: None }
    }

    /// Asks for the published anchor keys.
    #[must_use]
    pub fn anchor_keys() -> Self {
        Self { method: Method::GET, path: super::verify::KEYS_PATH.into(), body: None }
    }

    /// Orders.
    #[must_use]
    pub fn post(path: impl std::fmt::Display) -> Self {
        Self { method: Method::POST, path: format!("{PREFIX}{path}"), body: None }
    }

    /// With a JSON body.
    #[must_use]
    pub fn json(self, body: &Json) -> Self {
        Self { body: Some(("application/json", body.to_string().into())), ..self }
    }

    /// With JSON lines.
    #[must_use]
    pub fn lines(self, body: Vec<u8>) -> Self {
        Self { body: Some(("application/x-ndjson", body.into())), ..self }
    }
}

/// A path of segments, each percent-encoded, and a query.
#[must_use]
pub fn path(segments: &[&str], query: &[(&str, String)]) -> String {
    // The address only carries the path; `url` knows what must be encoded where.
    let Ok(mut url) = url::Url::parse("http://localhost") else { return String::new() };
    if let Ok(mut path) = url.path_segments_mut() {
        path.extend(segments);
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

impl Api {
    /// The server named by `--server`, else the one that runs on the folder, else the folder itself.
    ///
    /// # Errors
    /// There is no folder, no token, or the folder can't be opened.
    pub async fn open(globals: &Globals, folder: Folder) -> Result<Self, Stop> {
        if let Some(server) = &globals.server {
            let base = server.trim_end_matches('/').to_owned();
            return Ok(Self::Remote { client: client(Trusted::Checked)?, base, token: token(globals)? });
        }
        let loaded = globals.load()?;
        if let Some(running) = running(&loaded.config.storage.folder)? {
            let token = Secret::new(running.token).map_err(|cause| Stop::failed(cause.to_string()))?;
            return Ok(Self::Remote { client: client(Trusted::Own)?, base: running.address, token });
        }
        if folder == Folder::Expected && !has_store(&loaded) {
            let text = format!(
                "there is no data in {} (storage.folder); give --data or --config, or start a server first",
                loaded.config.storage.folder.display()
            );
            return Err(Stop::new(Exit::NothingFound, text));
        }
        Self::local(&loaded).await
    }

    /// The folder itself, in this process.
    ///
    /// # Errors
    /// It can't be opened.
    pub async fn local(loaded: &Loaded) -> Result<Self, Stop> {
        let config = &loaded.config;
        let url = public_url(config, &format!("http://{}", config.server.listen));
        // Whoever looks at events needs no secret of a sender.
        let endpoints = endpoint::all(loaded).unwrap_or_default();
        let house = House::open(config, &url, endpoints).await.map_err(Stop::failed)?;
        let router = house.router(config, Surroundings::default()).map_err(Stop::failed)?;
        Ok(Self::Local { house, router })
    }

    /// Sends an order and reads the JSON of its answer.
    ///
    /// # Errors
    /// What the API says, or that it can't be reached.
    pub async fn call(&self, order: Order) -> Result<Json, Stop> {
        let answer = self.send(order).await?;
        serde_json::from_slice(&answer.body)
            .map_err(|_| Stop::failed("the server's answer is not JSON; is it an Onceseal server?"))
    }

    /// Sends an order and reads its answer.
    ///
    /// # Errors
    /// What the API says, or that it can't be reached.
    pub async fn send(&self, order: Order) -> Result<Answer, Stop> {
        let (status, headers, body) = match self {
            Self::Remote { client, base, token } => {
                let mut request =
                    client.request(order.method, format!("{base}{}", order.path)).bearer_auth(token.expose());
                if let Some((kind, body)) = order.body {
                    request = request.header(CONTENT_TYPE, kind).body(body);
                }
                let unreachable = |cause| {
                    Stop::new(Exit::Server, format!("{base} can't be reached: {}", innermost(&cause)))
                };
                let answer = request.send().await.map_err(unreachable)?;
                let (status, headers) = (answer.status(), answer.headers().clone());
                (status, headers, answer.bytes().await.map_err(unreachable)?)
            }
            Self::Local { house, router } => {
                let bearer = format!("Bearer {}", house.token.expose());
                let mut request = Request::builder().method(order.method).uri(order.path);
                request = request.header(AUTHORIZATION, bearer);
                let body = match order.body {
                    Some((kind, body)) => {
                        request = request.header(CONTENT_TYPE, kind);
                        Body::from(body)
                    }
                    None => Body::empty(),
                };
                let request = request.body(body).map_err(|cause| Stop::failed(cause.to_string()))?;
                let answer = match router.clone().oneshot(request).await {
                    Ok(answer) => answer,
                    Err(never) => match never {},
                };
                let (parts, body) = answer.into_parts();
                let body = axum::body::to_bytes(body, ANSWER_MAX).await;
                (parts.status, parts.headers, body.map_err(|cause| Stop::failed(cause.to_string()))?)
            }
        };
        if status.is_success() { Ok(Answer { headers, body }) } else { Err(refused(status.as_u16(), &body)) }
    }
}

/// What a problem says, for people.
fn refused(status: u16, body: &[u8]) -> Stop {
    let exit = match status {
        404 => Exit::NothingFound,
        502..=504 => Exit::Server,
        _ => Exit::Failed,
    };
    let problem: Json = serde_json::from_slice(body).unwrap_or(Json::Null);
    let text = |name: &str| problem.get(name).and_then(Json::as_str).map(super::out::clean);
    let Some(message) = text("message") else {
        return Stop::new(exit, format!("the server answered {status} without saying why"));
    };
    match text("next") {
        Some(next) => Stop::new(exit, format!("{message}; {next}")),
        None => Stop::new(exit, message),
    }
}

/// Whose certificate a server on the other end must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trusted {
    /// One that the system's roots vouch for.
    Checked,
    /// Any: the address comes from a file that only its user can write, while the folder is locked, and
    /// leads to this machine; a certificate for a public name can't name it.
    Own,
}

fn client(trusted: Trusted) -> Result<Client, Stop> {
    let mut client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_WITHIN)
        .user_agent(concat!("onceseal/", env!("CARGO_PKG_VERSION")));
    if trusted == Trusted::Own {
        client = client.tls_danger_accept_invalid_certs(true).no_proxy();
    }
    client.build().map_err(|cause| Stop::failed(format!("no HTTP client: {}", innermost(&cause))))
}

fn token(globals: &Globals) -> Result<Secret, Stop> {
    let wrong = |cause: String| Stop::new(Exit::Usage, format!("operator token: {cause}"));
    match (&globals.token_file, &globals.token) {
        (Some(file), _) => SecretRef::File(file.clone()).read(Layout::Line).map_err(wrong),
        (None, Some(text)) => Secret::new(text.as_str()).map_err(|cause| wrong(cause.to_string())),
        (None, None) => Err(wrong(
            "--server needs one; give --token-file or ONCESEAL_TOKEN (see `onceseal token issue`)".into(),
        )),
    }
}

/// Where a running server says how to reach it, inside the data folder.
pub const RUN_FILE: &str = "run/server.json";

/// What a running server says about itself; readable by its own user only.
#[derive(Clone, Serialize, Deserialize)]
pub struct Running {
    /// Base address.
    pub address: String,
    /// Token that lives as long as the server.
    pub token: String,
    /// Process id.
    pub pid: u32,
}

impl Running {
    /// Writes the file, mode 0600, in one step.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<RunFile> {
        use std::io::Write as _;
        let path = folder.join(RUN_FILE);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let aside = path.with_extension("new");
        // The mode holds from the first byte only for a new file.
        match std::fs::remove_file(&aside) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(&aside, &path)?;
        Ok(RunFile(path))
    }

    /// What the server of this data folder wrote; nothing where none runs.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(RUN_FILE)).ok()?).ok()
    }
}

/// Removes the file when the server ends.
#[derive(Debug)]
pub struct RunFile(PathBuf);

impl Drop for RunFile {
    fn drop(&mut self) {
        // What stays behind is stale: without the folder's lock nobody believes it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The server that runs on the folder, if one does.
///
/// # Errors
/// One does, but this user can't read how to reach it.
pub fn running(folder: &Path) -> Result<Option<Running>, Stop> {
    let locked = store::is_locked(folder).map_err(|cause| Stop::failed(cause.to_string()))?;
    if !locked {
        return Ok(None);
    }
    match Running::read(folder) {
        Some(running) => Ok(Some(running)),
        None => Err(Stop::new(
            Exit::Server,
            format!(
                "a server or another command uses {}, and {RUN_FILE} can't be read; run as the server's user, or give --server and --token-file",
                folder.display()
            ),
        )),
    }
}

/// Base address to send to: `--server`, the running server's, or the configured one.
///
/// # Errors
/// As [`running`].
pub fn address(globals: &Globals, loaded: &Loaded) -> Result<String, Stop> {
    if let Some(server) = &globals.server {
        return Ok(server.trim_end_matches('/').to_owned());
    }
    let running = running(&loaded.config.storage.folder)?;
    Ok(running.map_or_else(|| format!("http://{}", loaded.config.server.listen), |running| running.address))
}
