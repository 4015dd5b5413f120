//! A seeded simulation of door, recovery and relay, with their real code, over a store that fails.
//!
//! A run is a function of its seed: several nodes in one thread, virtual time, every choice from the seed.
//! Modules in reading order: [`mod@run`] (a seed from its draw to its judgement), `steps` (what may happen),
//! `node` and `process` (what is killed, paused and started anew), `client` (who submits, and what they are
//! told), `domain` (the commands), `visa` (runs with AuditVisa instead), `market` (runs with the supply side
//! instead), `foreign` (the provider and the channels), `driver`, `session`, `locks`, `rows` and `mishap` (the
//! unreliable store: the two trips of PostgreSQL's driver over rows in memory), `world` (what all nodes share), [`stage`] (the database, reused), `finish` and `judge` (what must hold
//! at the end), [`tally`] (what was done), [`trace`] (what happened), [`hunt`] (many seeds on many threads).
//!
//! Not here: the engines themselves (the suites of `store` and `door` run on both), and real processes and
//! networks (`cargo xtask crash`, `race` and `faults`).

pub mod hunt;
pub mod run;
pub mod stage;
pub mod tally;
pub mod trace;

mod client;
mod domain;
mod driver;
mod finish;
mod foreign;
mod judge;
mod locks;
mod market;
mod mishap;
mod node;
mod process;
mod rows;
mod session;
mod steps;
mod visa;
mod world;

pub use run::{Report, run};
pub use stage::Stage;
pub use tally::Tally;
