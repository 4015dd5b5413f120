//! The reusable idempotency layer for axum and tower, over the crate `door`: what a client's request says
//! becomes a submission, and what the door says becomes a response. Not a cache of responses: the key is
//! claimed, the work is decided and the outcome is stored in one transaction, which is the door's.
//!
//! Modules in reading order: [`headers`] (`X-Request-Id`, `Idempotency-Key`, `traceparent`), [`path`] (the
//! concrete path that a key belongs to), [`canonical`] (a JSON body, read strictly and without floats) with
//! [`number`], [`fields`] (exact fields out of it, all faults at once), [`fingerprint`] (what makes two
//! requests the same), [`code`](mod@code) (the codes of the protocol and their texts), [`rejection`] (a
//! request that never reaches the door), [`answer`] (the table of answers, in two profiles), [`look_up`](mod@look_up) (an
//! operation by its key), [`call`] and [`layer`] (all of it around a handler).
//!
//! Sections are those of the supply specification (protocol of critical writes). Not here: who calls and what
//! they may (authentication goes around this layer), what a command means, routes.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use onceseal_http::{Call, Fingerprints, Need, Protocol};
//! # use secrecy::SecretSlice;
//! # fn routes(secret: SecretSlice<u8>, random: Arc<dyn kernel::Random>) -> Result<axum::Router, Box<dyn std::error::Error>> {
//! let protocol = Arc::new(Protocol::new(Fingerprints::new(&secret, &[])?, random));
//! let handler = |call: Call| async move { format!("{:?}", call.payload().fingerprint) };
//! let routes = axum::Router::new().route("/transfers", axum::routing::post(handler));
//! Ok(routes.route_layer(protocol.layer(Need::Required)))
//! # }
//! ```

pub mod answer;
pub mod call;
pub mod canonical;
pub mod code;
pub mod fields;
pub mod fingerprint;
pub mod headers;
pub mod layer;
pub mod look_up;
pub mod number;
pub mod path;
pub mod rejection;

mod text;

pub use answer::{Answers, Profile};
pub use call::{Call, Limits, Protocol, Rejected, Scope};
pub use canonical::Node;
pub use code::Code;
pub use fields::Fields;
pub use fingerprint::{Fingerprints, Payload};
pub use headers::{Asked, Need};
pub use layer::ProtocolLayer;
pub use look_up::{Operation, look_up};
pub use rejection::Rejection;
