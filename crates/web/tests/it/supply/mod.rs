//! The supply API over HTTP, on the real stack: tokens of the built-in issuer, providers on loopback.

mod api;
mod gate;
mod life;
