//! A market played over HTTP against a running server: what demo, gate and the runs that try to break the claim
//! have in common. Nothing here looks into the server or its database.
//!
//! [`client`] calls the supply API with request ids and keys; [`provider`] and [`phone`] stand in for the outside
//! world on loopback, real servers that answer as they are told; [`market`] makes suppliers, packages, buyers and
//! money out of calls. [`setting`] is the configuration under which all of it works without waiting.
//!
//! Not here: starting the server, and what must hold.

pub mod client;
pub mod market;
pub mod phone;
pub mod provider;
pub mod setting;

pub use client::{Answer, Call, Client, Watcher};
pub use market::{Buyer, Market, Supplier};
pub use phone::Phone;
pub use provider::Provider;
