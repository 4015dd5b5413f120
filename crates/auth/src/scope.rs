//! Scopes: what a token opens, as texts like `supply:account:read` (domain specification, section 3.2).
//! Not here: whether they suffice for a request; that is [`access`](crate::access).

use std::fmt;

use crate::access::UserType;

/// Read the supplier's accounts.
pub const ACCOUNT_READ: &str = "supply:account:read";
/// Mount, activate, suspend, delete accounts.
pub const ACCOUNT_WRITE: &str = "supply:account:write";
/// Replace a mounted credential.
pub const CREDENTIAL_MANAGE: &str = "supply:credential:manage";
/// Read packages.
pub const PACKAGE_READ: &str = "supply:package:read";
/// Create and change packages, prices included.
pub const PACKAGE_WRITE: &str = "supply:package:write";
/// Publish packages.
pub const PACKAGE_PUBLISH: &str = "supply:package:publish";
/// Pause and unlist packages.
pub const PACKAGE_OFFLINE: &str = "supply:package:offline";
/// Withdraw, cancel a withdrawal, ask for the SMS code.
pub const SETTLEMENT_WITHDRAW: &str = "supply:settlement:withdraw";
/// Read the audit log of the supplier's own objects.
pub const SUPPLY_AUDIT_READ: &str = "supply:audit:read";
/// Read earnings, settlements, balances.
pub const BILLING_READ: &str = "billing:read";
/// Start, complete, fail, reject, return payouts.
pub const PLATFORM_SETTLEMENT: &str = "platform:settlement:operate";
/// Disable accounts, freeze packages, set price floors.
pub const PLATFORM_RISK: &str = "platform:risk:operate";
/// Report usage.
pub const PLATFORM_USAGE: &str = "platform:usage:write";
/// Place and pay orders for buyers.
pub const PLATFORM_ORDER: &str = "platform:order:write";
/// Read all audit events and the gate's metrics.
pub const PLATFORM_AUDIT_READ: &str = "platform:audit:read";
/// Call models through the gateway.
pub const ROUTER_INVOKE: &str = "router:invoke";

/// Everything that fits the kind of user; counts for platform users only.
pub const ALL: &str = "*";
/// All scopes of the platform; counts for platform users only.
pub const ALL_PLATFORM: &str = "platform:*";

/// Most scopes in a token; section 3.2 names sixteen.
pub const SCOPES_MAX: usize = 64;
/// Longest scope, in characters.
pub const SCOPE_MAX: usize = 64;

/// A token's scopes: well formed, each once, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Vec<Box<str>>);

/// A list that can't be a token's scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "scopes are at most {SCOPES_MAX} texts of at most {SCOPE_MAX} lower-case characters, segments joined by \
     a colon, like supply:account:read"
)]
pub struct Malformed;

impl Scopes {
    /// Takes a list; repeats are dropped.
    ///
    /// # Errors
    /// [`Malformed`]: too many, or one of another grammar.
    pub fn new<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Result<Self, Malformed> {
        let mut taken: Vec<Box<str>> = Vec::new();
        for scope in scopes {
            if taken.len() >= SCOPES_MAX || !is_scope(scope) {
                return Err(Malformed);
            }
            taken.push(scope.into());
        }
        taken.sort_unstable();
        taken.dedup();
        Ok(Self(taken))
    }

    /// The scopes, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Whether the needed scope is among them, by itself or, for platform users only, under a wildcard.
    #[must_use]
    pub fn cover(&self, needed: &str, user_type: UserType) -> bool {
        let has = |scope: &str| self.0.binary_search_by(|held| held.as_ref().cmp(scope)).is_ok();
        has(needed)
            || user_type == UserType::Platform
                && (has(ALL) || needed.starts_with("platform:") && has(ALL_PLATFORM))
    }

    /// Whether a wildcard is among them.
    #[must_use]
    pub fn have_wildcard(&self) -> bool {
        self.iter().any(|scope| scope.ends_with('*'))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// Lower case, segments joined by `:`; the last may be `*`.
fn is_scope(text: &str) -> bool {
    let segments = match text {
        ALL => return true,
        _ => text.strip_suffix(":*").unwrap_or(text),
    };
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    text.len() <= SCOPE_MAX && segments.split(':').all(|part| !part.is_empty() && part.bytes().all(fine))
}
