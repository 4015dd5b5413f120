//! The supply API over HTTP, on the real stack: tokens of the built-in issuer, providers on loopback.

mod api;
mod desk;
mod exposures;
mod faults;
mod from_outside;
mod gate;
mod invariants;
mod life;
mod openapi;
mod operations;
mod passing;
mod payouts;
mod query_keys;
mod races;
mod refusals;
mod scopes;
mod slo;
mod spellings;
mod standing;
mod statements;
mod strict;
mod texts;
mod tokens;
