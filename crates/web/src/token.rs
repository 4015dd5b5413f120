//! Operator tokens: issued once, kept as SHA-256 only, checked in constant time, revoked within seconds.
//!
//! A token is 32 random bytes, so its plain digest can't be searched; no salt and no slow hash are needed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use door::{AuditRow, Door, Failure};
use kernel::{Clock, Digest, Random, Time};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use store::{Query, Row, Write, values};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::codes::{
    AUTH_INVALID_FORMAT, AUTH_INVALID_TOKEN, AUTH_MISSING_BEARER, AUTH_TOKEN_INACTIVE,
    AUTH_TOKEN_STATUS_UNAVAILABLE, QUERY_KEY_NOT_ALLOWED,
};
use crate::problem::Problem;

/// What every token begins with, so that scanners for leaked secrets find them.
pub const PREFIX: &str = "ost_";
/// Characters behind the prefix: 32 bytes in base64url without padding.
const LENGTH: usize = 43;
/// How long a right token is believed without a look at the store: a revocation takes effect by then.
const BELIEVED: Duration = Duration::from_secs(5);
/// Right tokens that are remembered; operators are few.
const REMEMBERED_MAX: usize = 64;
/// Longest name of a token.
pub const NAME_MAX: usize = 64;
/// Name under which the command line's own token acts.
pub const LOCAL: &str = "local";

/// An operator's token, in clear. Shown once, by whoever made it.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// A new token.
    #[must_use]
    pub fn random(random: &dyn Random) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        random.fill(&mut *bytes);
        Self(Zeroizing::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(*bytes))))
    }

    /// The text, for the one who is to use it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

/// Why a token was not issued or revoked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The name can't be used.
    #[error("the name must be 1 to {NAME_MAX} letters, digits, '-', '_', '.' or '@', and not {LOCAL:?}")]
    Name,
    /// An active token has it.
    #[error("an active token is called {0:?}; choose another name, or revoke that one first")]
    Taken(String),
    /// No active token has it.
    #[error("no active token is called {0:?}")]
    Unknown(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] Failure),
}

const ACTIVE: &str =
    "select id, expires_at from auth_tokens where tenant_id = 1 and name = $1 and state = 'active'";
const INSERT: &str =
    "insert into auth_tokens (tenant_id, name, fingerprint, state, expires_at, created_at, updated_at)
values (1, $1, $2, 'active', $3, $4, $5)";
const RETIRE: &str = "update auth_tokens set state = $1, updated_at = $2 where id = $3 and state = 'active'";
const FIND: &str = "select name, fingerprint, state, expires_at from auth_tokens where fingerprint = $1";
const LIST: &str =
    "select name, state, created_at, expires_at from auth_tokens where tenant_id = 1 order by id";

/// Issues a token for `ttl`, without an end when that is `None`. `by` is the operator who asked, for the audit.
///
/// # Errors
/// [`Error::Name`], [`Error::Taken`], or the store's; nothing is issued then.
pub async fn issue(door: &Door, name: &str, ttl: Option<Duration>, by: &str) -> Result<Token, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if name.is_empty() || name.len() > NAME_MAX || name == LOCAL || !name.chars().all(plain) {
        return Err(Error::Name);
    }
    let random = door.random();
    let token = Token::random(&*random);
    let fingerprint = token.fingerprint();
    let audit = audit("auth.token.issue", name, by);
    let owned = name.to_owned();
    let find = Query::new("tokens.active", ACTIVE, values![name]);
    let plan = move |rows: Vec<Vec<Row>>, now: Time| {
        let mut writes = Vec::new();
        for row in rows.iter().flatten() {
            match row.time_or_null(1)? {
                Some(end) if end <= now => {
                    writes.push(Write::one("tokens.expire", RETIRE, values!["expired", now, row.int(0)?]));
                }
                _ => return Ok((Vec::new(), false)),
            }
        }
        let end = ttl.map(|ttl| now.plus(ttl));
        writes.push(
            Write::one("tokens.insert", INSERT, values![&owned, fingerprint, end, now, now]).numbered(),
        );
        writes.push(audit.clone().write(now, &*random));
        Ok((writes, true))
    };
    match door.maintain("tokens.issue", vec![find], plan).await? {
        (true, _) => Ok(token),
        (false, _) => Err(Error::Taken(name.into())),
    }
}

/// Revokes the active token of that name. Servers that have it in memory believe it for 5 s more.
///
/// # Errors
/// [`Error::Unknown`], or the store's.
pub async fn revoke(door: &Door, name: &str, by: &str) -> Result<(), Error> {
    let random = door.random();
    let audit = audit("auth.token.revoke", name, by);
    let find = Query::new("tokens.active", ACTIVE, values![name]);
    let plan = move |rows: Vec<Vec<Row>>, now: Time| {
        let mut writes = Vec::new();
        for row in rows.iter().flatten() {
            writes.push(Write::one("tokens.revoke", RETIRE, values!["revoked", now, row.int(0)?]));
        }
        let found = !writes.is_empty();
        if found {
            writes.push(audit.clone().write(now, &*random));
        }
        Ok((writes, found))
    };
    match door.maintain("tokens.revoke", vec![find], plan).await? {
        (true, _) => Ok(()),
        (false, _) => Err(Error::Unknown(name.into())),
    }
}

/// All tokens that ever were: name, state, times; no part of a token.
///
/// # Errors
/// The store's.
pub async fn list(door: &Door, now: Time) -> Result<Json, store::Error> {
    let rows = door.store().query(Query::new("tokens.list", LIST, vec![])).await?;
    let shown = rows.iter().map(|row| {
        let end = row.time_or_null(3)?;
        let state = match row.text(1)? {
            "active" if end.is_some_and(|end| end <= now) => "expired",
            state => state,
        };
        Ok(json!({
            "name": row.text(0)?,
            "state": state,
            "created_at": row.time(2)?.to_rfc3339_seconds(),
            "expires_at": end.map(Time::to_rfc3339_seconds),
        }))
    });
    Ok(Json::Array(shown.collect::<Result<_, store::Error>>()?))
}

fn audit(name: &'static str, token: &str, by: &str) -> AuditRow {
    let mut row = AuditRow::system(name, "auth_token", token.to_owned(), format!("token:{token}"));
    row.metadata = json!({ "by": by });
    row
}

/// Checks tokens.
pub struct Tokens {
    door: Door,
    clock: Arc<dyn Clock>,
    local: Option<Digest>,
    believed: Mutex<HashMap<Digest, Believed>>,
}

struct Believed {
    name: Arc<str>,
    until: Time,
}

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Name of the token.
    pub name: Arc<str>,
}

impl Tokens {
    /// The tokens of a store.
    #[must_use]
    pub fn new(door: Door, clock: Arc<dyn Clock>) -> Self {
        Self { door, clock, local: None, believed: Mutex::default() }
    }

    /// The same, and one token that no store has: the command line's own, while this program runs.
    #[must_use]
    pub fn with_local(mut self, token: &Token) -> Self {
        self.local = Some(token.fingerprint());
        self
    }

    /// Whose token it is.
    ///
    /// # Errors
    /// 401 for a token that is not known or not active, 503 when the store can't say.
    pub async fn check(&self, text: &str) -> Result<Operator, Problem> {
        let right_form = text.strip_prefix(PREFIX).is_some_and(|rest| {
            rest.len() == LENGTH && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        });
        // Of another form: it can't be one of ours, so the store need not be asked.
        if !right_form {
            return Err(Problem::new(AUTH_INVALID_TOKEN));
        }
        let fingerprint = Digest::of(text.as_bytes());
        if self.local.is_some_and(|local| equal(local.as_bytes(), fingerprint.as_bytes())) {
            return Ok(Operator { name: LOCAL.into() });
        }
        let now = self.clock.now();
        if let Some(known) = self.believed.lock().get(&fingerprint).filter(|known| now < known.until) {
            return Ok(Operator { name: Arc::clone(&known.name) });
        }
        let (name, end) = self.look(fingerprint, now).await?;
        self.remember(fingerprint, &name, end, now);
        Ok(Operator { name })
    }

    async fn look(&self, fingerprint: Digest, now: Time) -> Result<(Arc<str>, Option<Time>), Problem> {
        let unavailable = |error: store::Error| {
            tracing::error!(%error, "token_status_unavailable");
            Problem::new(AUTH_TOKEN_STATUS_UNAVAILABLE)
        };
        let query = Query::new("tokens.find", FIND, values![fingerprint]);
        let rows = self.door.store().query(query).await.map_err(unavailable)?;
        let row = rows.first().ok_or_else(|| Problem::new(AUTH_INVALID_TOKEN))?;
        // The index search compares digests, of which nobody can choose a prefix; this is for the last word.
        if !equal(row.bytes(1).map_err(unavailable)?, fingerprint.as_bytes()) {
            return Err(Problem::new(AUTH_INVALID_TOKEN));
        }
        let end = row.time_or_null(3).map_err(unavailable)?;
        let active = row.text(2).map_err(unavailable)? == "active" && end.is_none_or(|end| now < end);
        if !active {
            return Err(Problem::new(AUTH_TOKEN_INACTIVE));
        }
        Ok((row.text(0).map_err(unavailable)?.into(), end))
    }

    fn remember(&self, fingerprint: Digest, name: &Arc<str>, end: Option<Time>, now: Time) {
        let until = now.plus(BELIEVED);
        let until = end.map_or(until, |end| end.min(until));
        let mut believed = self.believed.lock();
        if believed.len() >= REMEMBERED_MAX {
            believed.retain(|_, known| now < known.until);
        }
        if believed.len() < REMEMBERED_MAX {
            believed.insert(fingerprint, Believed { name: Arc::clone(name), until });
        }
    }
}

fn equal(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

/// The operator of a request. A credential in the query is refused first, also beside a right header: it is
/// in every log on the way.
///
/// # Errors
/// 401, or 503 when the store can't say.
pub(crate) async fn operator(tokens: &Tokens, uri: &Uri, headers: &HeaderMap) -> Result<Operator, Problem> {
    if uri.query().is_some_and(names_a_credential) {
        return Err(Problem::new(QUERY_KEY_NOT_ALLOWED));
    }
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Err(Problem::new(AUTH_MISSING_BEARER)) };
    let unreadable = || Problem::new(AUTH_INVALID_FORMAT);
    if lines.next().is_some() {
        return Err(unreadable());
    }
    let (scheme, token) = line.to_str().ok().and_then(|line| line.split_once(' ')).ok_or_else(unreadable)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(unreadable());
    }
    tokens.check(token.trim()).await
}

/// Names under which credentials travel in addresses, without case, `-` and `_`.
const CREDENTIALS: [&str; 12] = [
    "key",
    "apikey",
    "token",
    "accesstoken",
    "authtoken",
    "bearertoken",
    "auth",
    "authorization",
    "bearer",
    "secret",
    "password",
    "operatortoken",
];
/// Rounds of percent-decoding: once is right, once more finds what somebody hid from a filter.
const DECODINGS: usize = 2;

/// Whether a query has a parameter that is called like a credential: in any case, encoded, as an array
/// (`key[]`), behind `;`.
fn names_a_credential(query: &str) -> bool {
    let mut text = query.to_owned();
    for _ in 0..=DECODINGS {
        if text.split(['&', ';', '?']).any(is_credential) {
            return true;
        }
        text = percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned();
    }
    false
}

fn is_credential(parameter: &str) -> bool {
    let name = parameter.split(['=', '[']).next().unwrap_or_default();
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    CREDENTIALS.contains(&plain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_in_the_query_is_found_in_every_disguise() {
        for query in [
            "key=1",
            "KEY=1",
            "%6bey=1",
            "%256bey=1",
            "a=1;key=1",
            "key[]=1",
            "key%5B%5D=1",
            "api_key=1",
            "api-key=1",
            "ApiKey=1",
            "token",
            "access_token=",
            "limit=1&Access-Token=1",
            "+key=1",
            "a=%26key=1",
        ] {
            assert!(names_a_credential(query), "{query}");
        }
        for query in ["", "limit=10&status=failed", "source=key", "session=token", "keyboard=1", "before=7"] {
            assert!(!names_a_credential(query), "{query}");
        }
    }

    #[test]
    fn a_token_does_not_show_itself() {
        let token = Token::random(&testkit::CountingRandom::default());
        assert!(token.expose().starts_with(PREFIX) && token.expose().len() == PREFIX.len() + LENGTH);
        assert_eq!(format!("{token:?}"), "Token(hidden)");
    }
}
