//! Every kind of fault, by its subject. Each is one function: it prepares, strikes under load, and puts things
//! back as they were.

mod clients;
mod clock;
mod disk;
mod front;
mod locks;
mod node;
mod pooler;
mod replica;
mod server;
mod sessions;
mod shelf;
mod wire;

use anyhow::Result;

pub(super) use shelf::bucket_program;

use super::scene::Played;
use super::site::Site;

/// A kind of fault.
pub(super) struct Kind {
    /// As `--only` names it.
    pub(super) name: &'static str,
    /// What is broken, in a few words.
    pub(super) about: &'static str,
    /// Plays it.
    pub(super) play: fn(&mut Site) -> Result<Played>,
}

/// All of them, in the order in which they are played.
pub(super) fn all() -> impl Iterator<Item = &'static Kind> {
    [
        wire::KINDS,
        sessions::KINDS,
        locks::KINDS,
        server::KINDS,
        disk::KINDS,
        node::KINDS,
        clock::KINDS,
        front::KINDS,
        clients::KINDS,
        pooler::KINDS,
        replica::KINDS,
        shelf::KINDS,
    ]
    .into_iter()
    .flatten()
}
