//! The server and command line of Onceseal, put together from the other crates.
//!
//! Modules in reading order: [`config`] (from `onceseal.toml`, environment and flags to settings),
//! [`random`] (the real clock and randomness), [`core_dump`] (none), [`logging`], [`wiring`] (from settings to a running server),
//! [`demo`] (a server of its own and a story told to it), [`gate`] (servers of its own, and everything that must hold),
//! [`slo`] (promises as files for Prometheus and Grafana),
//! [`cli`] (one file a command).
//!
//! Not here: HTTP routes (`web`), certificates (`certify`), verification (`seal`).

pub mod cli;
pub mod config;
pub mod core_dump;
pub mod demo;
pub mod gate;
pub mod logging;
pub mod random;
pub mod slo;
#[cfg(feature = "otel")]
pub mod telemetry;
pub mod wiring;
