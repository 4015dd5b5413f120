//! What only the server of its own has: sessions, locks between processes, its clock, its failures, a copy
//! into it.

mod commits;
mod copy;
mod locks;
mod schema;
mod sessions;
mod stage;
