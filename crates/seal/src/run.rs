//! What every run must say, whatever else it holds: its version, when it was issued, live or test.
//!
//! A run is the structure that a certificate certifies (the projected event, the policy version and so on).
//! This module reads three members and leaves the rest alone; the hash of the whole is [`crate::hash`]'s.

use std::fmt;

use serde_json::Value;

/// Whether money moved, or a test was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The event came from the sender's live mode.
    Live,
    /// The event came from a test mode and certifies no payment.
    Test,
}

impl Mode {
    /// The word in `run.mode`: `live` or `test`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The members that a verifier reads out of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// `run.v`: version of the structure, at least 1.
    pub version: u64,
    /// `run.issued_at`: issue time, seconds since 1970-01-01T00:00:00Z.
    pub issued_at: i64,
    /// `run.mode`.
    pub mode: Mode,
}

/// A run that lacks one of the three members or has it in another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("run has no usable member {member:?}; write it as {wanted}")]
pub struct Error {
    /// Name of the member.
    pub member: &'static str,
    /// What it should be.
    pub wanted: &'static str,
}

impl Head {
    /// Reads the three members.
    ///
    /// # Errors
    /// [`Error`] names the first member that is missing or of another type.
    pub fn read(run: &Value) -> Result<Self, Error> {
        let version = run
            .get("v")
            .and_then(Value::as_u64)
            .filter(|v| *v > 0)
            .ok_or(Error { member: "v", wanted: "an integer of at least 1" })?;
        let issued_at = run
            .get("issued_at")
            .and_then(Value::as_i64)
            .ok_or(Error { member: "issued_at", wanted: "whole Unix seconds" })?;
        let mode = match run.get("mode").and_then(Value::as_str) {
            Some("live") => Mode::Live,
            Some("test") => Mode::Test,
            _ => return Err(Error { member: "mode", wanted: "\"live\" or \"test\"" }),
        };
        Ok(Self { version, issued_at, mode })
    }
}
