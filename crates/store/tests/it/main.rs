//! Tests of the store through its public API, on the real engine.
//!
//! `contract` runs on both engines, as the environment says (`testkit::postgres`); the other modules hold
//! what only one of them has.

#[cfg(test)]
mod contract;
#[cfg(test)]
mod only_postgres;
#[cfg(test)]
mod only_sqlite;
#[cfg(test)]
mod scene;
