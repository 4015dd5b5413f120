//! Statements as values: what to run, with which values, and how many rows it must hit.

use std::borrow::Cow;

use crate::value::Value;

/// A read. `name` is for errors and metrics, never SQL text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Short dotted name: `events.by_ref`.
    pub name: &'static str,
    /// SQL with `$1` parameters.
    pub sql: Cow<'static, str>,
    /// One value for each parameter.
    pub values: Vec<Value>,
}

impl Query {
    /// A read with its values.
    pub fn new(name: &'static str, sql: impl Into<Cow<'static, str>>, values: Vec<Value>) -> Self {
        Self { name, sql: sql.into(), values }
    }
}

/// A write and the number of rows it must hit; another number raises and undoes the submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Short dotted name: `events.insert`.
    pub name: &'static str,
    /// SQL with `$1` parameters; may end in `returning`.
    pub sql: Cow<'static, str>,
    /// One value for each parameter.
    pub values: Vec<Value>,
    /// How many rows it must hit.
    pub expect: Expect,
    /// Whether a taken value is only a number that another transaction was faster with.
    pub numbered: bool,
}

/// How many rows a write must hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Exactly one: inserts, compare-and-set updates.
    One,
    /// Any number: sweeps, `on conflict do nothing`.
    Any,
}

impl Write {
    /// A write that must hit exactly one row.
    pub fn one(name: &'static str, sql: impl Into<Cow<'static, str>>, values: Vec<Value>) -> Self {
        Self { name, sql: sql.into(), values, expect: Expect::One, numbered: false }
    }

    /// A write that may hit any number of rows.
    pub fn any(name: &'static str, sql: impl Into<Cow<'static, str>>, values: Vec<Value>) -> Self {
        Self { name, sql: sql.into(), values, expect: Expect::Any, numbered: false }
    }

    /// The statement counts on from what stands there (`max(n) + 1`). Where another transaction took the
    /// same number meanwhile, the whole is run again instead of raising.
    #[must_use]
    pub const fn numbered(mut self) -> Self {
        self.numbered = true;
        self
    }
}
