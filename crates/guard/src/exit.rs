//! The words of an exit: verdicts, exposures, exceptions. Not here: how they come about (`judge`, `walk`).

use std::fmt;

/// What the guard says about something that is about to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what is exposed must be withheld"]
pub enum Verdict {
    /// It may leave.
    Clean,
    /// It must be withheld as a whole (section 15.1, "On a hit at an exit").
    Exposed(Exposure),
}

impl Verdict {
    /// The exposure, for `?`.
    ///
    /// # Errors
    /// What would have been exposed.
    pub fn clean(self) -> Result<(), Exposure> {
        match self {
            Self::Clean => Ok(()),
            Self::Exposed(exposure) => Err(exposure),
        }
    }
}

/// A credential that was about to leave. All of it may be audited, logged and shown to an operator.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location} contains what looks like a credential ({rule}); it was withheld, treat it as leaked")]
pub struct Exposure {
    /// The rule that matched: a pattern's, [`crate::FRAGMENT`] or [`crate::UNREADABLE`].
    pub rule: &'static str,
    /// The exit as the caller names it, for JSON with the path of the field (`body/data/message`). Names that
    /// might be a secret themselves are `?`.
    pub location: String,
    /// HMAC-SHA256 of the matched bytes under the guard's key: the same secret gives the same digest, and
    /// nothing else can be learnt from it. Never the match.
    pub mac: [u8; 32],
}

impl fmt::Debug for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exposure({} at {}, {})", self.rule, self.location, hex::encode(self.mac))
    }
}

/// A field that may carry a credential of our own on one route. It lifts only the named rules, and only for
/// the text of that field: an upstream credential, or a part of one, is withheld there as well.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The route's template, as the caller names it: `POST /api/v1/platform/tokens/issue`.
    pub route: &'static str,
    /// The field's path from the root of the body (RFC 6901): `/data/access_token`.
    pub field: &'static str,
    /// The rules that are lifted.
    pub rules: &'static [&'static str],
}

/// The exceptions of the token endpoints (section 15.2, "Exceptions"). The other one of that section, `secret`
/// of API-key creation with the rule `platform_key`, is added by whoever has that route. There is no switch.
pub const TOKEN_EXCEPTIONS: [Exception; 2] = [
    Exception {
        route: "POST /api/v1/platform/tokens/issue",
        field: "/data/access_token",
        rules: &["jwt", "context"],
    },
    Exception {
        route: "POST /api/v1/platform/tokens/{tokenId}/refresh",
        field: "/data/access_token",
        rules: &["jwt", "context"],
    },
];
