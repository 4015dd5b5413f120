//! What tests need from the machine: programs ([`install`]) and servers of their own ([`postgres`],
//! [`pgbouncer`]), each in a temporary folder, under a user without rights, on a free port of 127.0.0.1,
//! gone with the value that stands for it.
//!
//! Modules in reading order: [`packages`] (Debian's package manager), [`account`] (whom a server runs as),
//! [`folder`], [`port`], [`running`] (a started server, its end by signal), [`memory`] (what a killed one
//! leaves outside its folder), [`psql`], [`session`] (one that stays open), [`binaries`], [`postgres`], [`standby`], [`pgbouncer`].
//!
//! Not here: the machine's own database. It is never started, read or changed.
#![cfg_attr(not(test), expect(dead_code, reason = "runs use a part of it, its own tests the whole"))]

mod account;
mod binaries;
mod folder;
mod memory;
mod packages;
pub(crate) mod pgbouncer;
mod port;
pub(crate) mod postgres;
pub(crate) mod psql;
mod running;
pub(crate) mod session;
pub(crate) mod standby;
#[cfg(test)]
mod tests;

pub(crate) use packages::install;
