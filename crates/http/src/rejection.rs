//! A request that gets an answer of the protocol's own instead of an outcome: code, details, when to come
//! again.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::canonical::Unreadable;
use crate::code::{BODY_LARGE, BODY_UNREADABLE, Code, FIELD_INVALID};
use crate::fields::Faults;

/// An answer of the protocol's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// Its line in the table.
    pub code: Code,
    /// For the client; no secret, no value of the request.
    pub details: Map<String, Json>,
    /// When to come again, where that may help.
    pub retry_after: Option<Duration>,
}

impl Rejection {
    /// With a code and nothing else.
    #[must_use]
    pub fn of(code: Code) -> Self {
        Self { code, details: Map::new(), retry_after: None }
    }

    /// With one more detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.details.insert(name.into(), value.into());
        self
    }

    /// To be tried again after this time; `details` and `Retry-After` say so.
    #[must_use]
    pub fn again(mut self, after: Duration) -> Self {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.retry_after = Some(after);
        self.with("retry_after_ms", millis).with("retryable", true)
    }
}

impl From<Unreadable> for Rejection {
    fn from(unreadable: Unreadable) -> Self {
        let code =
            if matches!(unreadable, Unreadable::TooLarge { .. }) { BODY_LARGE } else { BODY_UNREADABLE };
        let rejection = Self::of(code).with("reason", unreadable.reason());
        match unreadable {
            Unreadable::Syntax { line, column } => rejection.with("line", line).with("column", column),
            Unreadable::TooLarge { limit } | Unreadable::TooDeep { limit } => rejection.with("limit", limit),
            _ => rejection,
        }
    }
}

impl From<Faults> for Rejection {
    /// A name that nobody knows makes the whole body unreadable (section 9.5); the fields are named all the
    /// same.
    fn from(faults: Faults) -> Self {
        let code = if faults.has_unknown() { BODY_UNREADABLE } else { FIELD_INVALID };
        let fields: Vec<Json> = faults
            .iter()
            .map(|fault| serde_json::json!({ "field": fault.field, "rule": fault.rule }))
            .collect();
        Self::of(code).with("fields", fields)
    }
}
