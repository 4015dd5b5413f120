//! The supply API (sections 3, 7, 8, 14, 15 of the domain's specification): routes, who may call them, what leaves.
//!
//! Modules in reading order: [`enter`] (who calls, and what stands around every handler), `envelope` (the one shape
//! of answers), `rate` (how often), `count` (what is counted), `ids` (what a request calls itself), `attempt` (what a refused one tried), `ingress` (a provider's key as a token), `act` (a handler's way to the door), `read` (fields and queries), `texts`
//! (none holds a credential); then the handlers: `accounts`, `packages`, `settlements`, `statements`, `money`, `platform`, `tokens`, `audit`, `operations`;
//! [`openapi`] describes them.
//!
//! A request meets, in this order (section 7.3): credentials in its URL, size and type that it states of its
//! body, bearer token and its standing, rate, scope
//! and role, headers and body of the protocol, the door. Not here: what a command means (`supply`), what a token
//! is (`auth`), what a credential looks like (`guard`).

mod accounts;
mod act;
mod attempt;
mod audit;
pub(crate) mod count;
mod egress;
mod enter;
pub(crate) mod envelope;
pub(crate) mod ids;
mod ingress;
mod money;
mod openapi;
mod operations;
mod packages;
mod platform;
pub(crate) mod query_key;
mod rate;
pub(crate) mod read;
mod settlements;
mod statements;
mod texts;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use auth::{Callers, Issuer};
use axum::Router;
use door::Door;
use guard::Guard;
use kernel::Clock;
use onceseal_http::Protocol;
use supply::House;
use supply::consumers::Statements;
use supply::exit::Quiet;
use supply::slo::Tally;

pub use rate::{Rate, Rates};
pub use settlements::SMS_CODE;
pub use statements::{Links, OnShelf};

/// What the supply API needs.
pub struct Supply {
    /// The way to write.
    pub door: Door,
    /// Policy, keys, channels.
    pub house: Arc<House>,
    /// Tells who calls.
    pub callers: Callers,
    /// The built-in issuer; without it tokens come from outside.
    pub issuer: Option<Arc<Issuer>>,
    /// How requests are read and answered.
    pub protocol: Arc<Protocol>,
    /// What must not leave.
    pub guard: Arc<Guard>,
    /// How often operators may call.
    pub rates: Rates,
    /// Which exposures it told of late.
    pub quiet: Quiet,
    /// What this server counts.
    pub tally: Arc<Tally>,
    /// How long a twin that is running is waited for.
    pub twin_wait: Duration,
    /// What buyers' keys are hashed under.
    pub buyer_keys: secrecy::SecretSlice<u8>,
    /// Makes and finds statements.
    pub statements: Arc<Statements>,
    /// Makes and reads links to them.
    pub links: Links,
    /// The server's clock, as far as the database's is known.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Supply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supply").field("house", &self.house).finish_non_exhaustive()
    }
}

/// Shared by all handlers.
pub(crate) type Shared = Arc<Supply>;

/// All routes below `/api/v1`.
pub(crate) fn routes(supply: &Shared) -> Router {
    count::begin();
    let api = Router::new()
        .merge(accounts::routes(supply))
        .merge(packages::routes(supply))
        .merge(settlements::routes(supply))
        .merge(statements::routes(supply))
        .merge(money::routes(supply))
        .merge(platform::routes(supply))
        .merge(egress::routes(supply))
        .merge(tokens::routes(supply))
        .merge(audit::routes(supply))
        .merge(operations::routes(supply))
        .merge(openapi::routes());
    api.with_state(Arc::clone(supply))
}

/// Whether a path is the supply API's, whose errors have its envelope.
pub(crate) fn owns(path: &str) -> bool {
    ["supply", "supplier", "platform", "audit"].iter().any(|part| {
        path.strip_prefix("/api/v1/")
            .and_then(|rest| rest.strip_prefix(part))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::owns;

    #[test]
    fn whole_segments_tell_whose_a_path_is() {
        for path in
            ["/api/v1/supply", "/api/v1/supply/accounts", "/api/v1/platform/tokens", "/api/v1/audit/x"]
        {
            assert!(owns(path), "{path}");
        }
        for path in ["/api/v1/supplyX", "/api/v1/certify/events", "/supply", "/", "/api/v1", "/api/v2/supply"]
        {
            assert!(!owns(path), "{path}");
        }
    }
}
