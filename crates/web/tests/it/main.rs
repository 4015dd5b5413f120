//! The edge on the real stack: SQLite in a folder of its own, a clock that stands still, real sockets where
//! the socket matters.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test that can't go on says why")]

mod answers;
mod bad_input;
mod client;
mod delivery;
mod health;
mod house;
mod keys;
mod only_sqlite;
mod operators;
mod pages;
mod sockets;
mod stopping;
mod supply;
mod tls;
mod twins;
