//! The engines. Everything that knows one by name is below here.

pub(crate) mod sqlite;
