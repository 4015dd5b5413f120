//! One request, read and checked, in the handler's hands: exact fields out, a submission in, a response back.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequestParts, OriginalUri};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use door::{Answer, Command, Door, Failure, Key, RecordTable, Submission};
use kernel::{Digest, Fingerprint, Random};
use store::Value;

use crate::answer::Answers;
use crate::canonical::{self, Bounds, Node, Unreadable};
use crate::code::{BODY_TYPE, UNKNOWN};
use crate::fields::{Faults, Fields};
use crate::fingerprint::{Fingerprints, Payload};
use crate::headers::{self, Asked, Need, Refused, Spare};
use crate::layer::ProtocolLayer;
use crate::path::{Aliases, ApiPath};
use crate::rejection::Rejection;

/// Bounds of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of its body.
    pub body: Bounds,
    /// Time for its body to arrive.
    pub body_within: Duration,
}

impl Default for Limits {
    /// 30 s: a phone on a bad line needs some of it for 64 KiB.
    fn default() -> Self {
        Self { body: Bounds::default(), body_within: Duration::from_secs(30) }
    }
}

/// How requests are read and answered; one for a whole server.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// What makes two requests the same.
    pub fingerprints: Fingerprints,
    /// In which profile is answered.
    pub answers: Answers,
    /// Old names of paths.
    pub aliases: Aliases,
    /// Sizes and times.
    pub limits: Limits,
    /// Makes ids for requests that bring none.
    pub random: Arc<dyn Random>,
}

impl Protocol {
    /// The seed's profile with default limits and no old names.
    #[must_use]
    pub fn new(fingerprints: Fingerprints, random: Arc<dyn Random>) -> Self {
        let (answers, aliases, limits) = (Answers::default(), Aliases::default(), Limits::default());
        Self { fingerprints, answers, aliases, limits, random }
    }

    /// What a request states of its body, size and type, before a byte of it is read; whoever asks who calls asks this
    /// first (section 7.3, step 2). A body that comes without its size is judged as it arrives, by the layer.
    ///
    /// # Errors
    /// `SUP_COM_4131` above the limit, `SUP_COM_4151` for a body that is no JSON.
    pub fn stated(&self, headers: &HeaderMap, body: &Body) -> Result<(), Rejection> {
        let size = body.size_hint().lower();
        let limit = self.limits.body.bytes;
        if size > u64::try_from(limit).unwrap_or(u64::MAX) {
            return Err(Unreadable::TooLarge { limit }.into());
        }
        if size > 0 && !is_json(headers) { Err(Rejection::of(BODY_TYPE)) } else { Ok(()) }
    }

    /// The layer for routes with this need. Authentication goes around it: a request that is not allowed is
    /// not read (section 7.3).
    #[must_use]
    pub fn layer(self: &Arc<Self>, need: Need) -> ProtocolLayer {
        ProtocolLayer::new(Arc::clone(self), need)
    }

    /// What a request says of itself. One without an id that can be used has its [`Spare`] one, or a new one.
    ///
    /// # Errors
    /// As [`headers::read`].
    pub fn asked(&self, parts: &Parts, need: Need) -> Result<Asked, Box<Refused>> {
        let spare = parts.extensions.get::<Spare>();
        let made = || spare.map_or_else(|| headers::made(&*self.random), |Spare(id)| id.clone());
        headers::read_or(&parts.headers, need, made)
    }

    /// Reads a request whose body has arrived: headers, path, body, fingerprint (section 7.3).
    ///
    /// # Errors
    /// The answer that refuses it. No record is left of it.
    pub fn read(self: &Arc<Self>, parts: &Parts, body: &[u8], need: Need) -> Result<Call, Rejected> {
        let (asked, refused) = match self.asked(parts, need) {
            Ok(asked) => (asked, None),
            Err(refused) => {
                let Refused { asked, code } = *refused;
                (asked, Some(code))
            }
        };
        let wrong_type = (!body.is_empty() && !is_json(&parts.headers)).then_some(BODY_TYPE);
        if let Some(code) = wrong_type.or(refused) {
            return Err(Rejected::with(self.answers.rejected(&asked, &Rejection::of(code))));
        }
        match self.content(parts, body) {
            Ok((path, node)) => {
                let payload = self.fingerprints.of(parts.method.as_str(), &path, &node);
                let protocol = Arc::clone(self);
                let bare = body.is_empty();
                Ok(Call(Arc::new(Inner { protocol, asked, path, node, bare, payload })))
            }
            Err(rejection) => Err(Rejected::with(self.answers.rejected(&asked, &rejection))),
        }
    }

    fn content(&self, parts: &Parts, body: &[u8]) -> Result<(ApiPath, Node), Rejection> {
        // A nested router has taken the beginning off.
        let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
        let path = ApiPath::of(uri.path(), &self.aliases).map_err(|_| Rejection::of(UNKNOWN))?;
        Ok((path, canonical::read(body, &self.limits.body)?))
    }
}

/// `application/json`, any parameters, not encoded.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    essence.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
        && headers.get_all(CONTENT_ENCODING).iter().all(|value| value == "identity")
}

/// Where the records of a caller's keys stand. Key columns of the table: those of the owner, then the path, then
/// the key (section 7.2: tenant, operator, path, key).
#[derive(Clone, Debug)]
pub struct Scope {
    /// The table.
    pub table: &'static RecordTable,
    /// Whose keys: one value for each key column before the path.
    pub owner: Vec<Value>,
    /// How long a result is kept for repeats, counted from its commit.
    pub life: Duration,
}

impl Scope {
    /// The key to look an operation up by.
    #[must_use]
    pub fn find(&self, path: &ApiPath, key: &str) -> Key {
        let unknown =
            Payload { fingerprint: Fingerprint::UNKNOWN, former: Vec::new(), unkeyed: Digest::UNKNOWN };
        self.key(path, key, &unknown)
    }

    fn key(&self, path: &ApiPath, key: &str, payload: &Payload) -> Key {
        let mut values = self.owner.clone();
        values.extend([path.as_str().into(), key.into()]);
        let Payload { fingerprint, former, unkeyed } = payload.clone();
        Key { table: self.table, values, fingerprint, former, payload: unkeyed, life: Some(self.life) }
    }
}

/// A request that was read. Cheap to clone. A handler takes it as an argument, under the layer.
#[derive(Clone, Debug)]
pub struct Call(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    protocol: Arc<Protocol>,
    asked: Asked,
    path: ApiPath,
    node: Node,
    bare: bool,
    payload: Payload,
}

impl Call {
    /// Ids and key.
    #[must_use]
    pub fn asked(&self) -> &Asked {
        &self.0.asked
    }

    /// The concrete path.
    #[must_use]
    pub fn path(&self) -> &ApiPath {
        &self.0.path
    }

    /// Whether it came without a body, which otherwise counts as `{}`.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.0.bare
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Node {
        &self.0.node
    }

    /// What makes it the same as another one.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        &self.0.payload
    }

    /// Its key in `scope`; `None` if it came without one.
    #[must_use]
    pub fn key(&self, scope: &Scope) -> Option<Key> {
        let key = self.0.asked.key.as_ref()?;
        Some(scope.key(&self.0.path, key.as_str(), &self.0.payload))
    }

    /// The fields of the body.
    ///
    /// # Errors
    /// The answer that names all faults.
    pub fn fields<'a, T>(&'a self, build: impl FnOnce(&mut Fields<'a>) -> Option<T>) -> Result<T, Rejected> {
        Fields::read(&self.0.node, build)
            .map_err(|faults: Faults| Rejected::with(self.reject(&faults.into())))
    }

    /// Runs `command` under the call's key in `scope`, or gives the result that stands there; without a key it
    /// just runs. A twin that is running is waited for as long as `wait`.
    pub async fn submit<C: Command>(
        &self,
        door: &Door,
        scope: &Scope,
        command: C,
        wait: Duration,
    ) -> Response {
        let submission = Submission { key: self.key(scope), command, wait };
        self.answer(&door.submit(submission).await)
    }

    /// The response to what a door said.
    #[must_use]
    pub fn answer(&self, result: &Result<Answer, Failure>) -> Response {
        self.0.protocol.answers.answered(&self.0.asked, result)
    }

    /// A response of the protocol's own.
    #[must_use]
    pub fn reject(&self, rejection: &Rejection) -> Response {
        self.0.protocol.answers.rejected(&self.0.asked, rejection)
    }
}

/// The answer to a request that is refused, as a handler's error: `call.fields(..)?`.
// Boxed: it travels in every `Result`, and is rare.
#[derive(Debug)]
pub struct Rejected(Box<Response>);

impl Rejected {
    fn with(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl IntoResponse for Rejected {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// A handler stands outside of the layer. It must not run: nothing would hold its key.
#[derive(Clone, Copy, Debug)]
pub struct Unlayered;

impl IntoResponse for Unlayered {
    fn into_response(self) -> Response {
        tracing::error!("a handler takes a Call, and its route has no layer of the idempotency protocol");
        axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

impl<S: Sync> FromRequestParts<S> for Call {
    type Rejection = Unlayered;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Unlayered> {
        parts.extensions.get::<Self>().cloned().ok_or(Unlayered)
    }
}

/// What a service says that can't fail.
pub(crate) type Answered = Result<Response, Infallible>;
