//! What only the server of its own has: sessions, locks between processes, its clock, its failures.

mod commits;
mod locks;
mod sessions;
mod stage;
