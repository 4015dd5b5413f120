//! Who calls, and what they may: bearer tokens of the platform (domain specification, sections 3.1 to 3.3).
//!
//! Modules in reading order:
//!
//! 1. [`code`]: the public codes with status and fixed texts
//! 2. [`refusal`]: which check was not passed, for logs and audit
//! 3. [`bearer`]: the `Authorization` header, to the letter; [`token`]: the token in clear
//! 4. [`keys`]: an issuer's public keys, and the check of a signature
//! 5. [`claims`]: what a token must say
//! 6. [`verify`]: is it genuine, for us, and alive
//! 7. [`issuer`]: the built-in issuer; [`jwks`]: the keys of an outside one
//! 8. [`status`]: is it still active at the token service
//! 9. [`caller`]: all of it behind each other, from the header to the one who calls
//! 10. [`scope`] and [`access`]: does it suffice for the request
//!
//! ```text
//! Authorization -> bearer -> verify (jws, keys, claims) -> status -> Principal -> Need::judge
//! ```
//!
//! What it is not: no route, no SQL, no session cookies; credentials in the query are refused before this
//! (section 14), and buyers' keys (`lgw_`) are turned away. It knows neither HTTP types nor the store: the
//! status of tokens is a port.

pub mod access;
pub mod bearer;
pub mod caller;
pub mod claims;
pub mod code;
pub mod issuer;
pub mod jwks;
mod jws;
pub mod keys;
pub mod refusal;
pub mod scope;
pub mod status;
pub mod token;
pub mod verify;

pub use access::{Act, Need, Principal, Role, UserType};
pub use caller::Callers;
pub use claims::Claims;
pub use code::Code;
pub use issuer::{Grant, Issuer, IssuerKey};
pub use keys::{KeyRing, Keys};
pub use refusal::Refusal;
pub use scope::Scopes;
pub use status::{Standing, Statuses};
pub use token::Token;
pub use verify::{Verified, Verifier};
