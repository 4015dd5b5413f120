//! What must never leave the platform, and never come in through an address: credentials, whole or in parts.
//! Pure: no I/O, no clock, no randomness; keys are parameters. The source is sections 14, 15 and 13.3 of the
//! supply specification.
//!
//! - [`query`] judges a request target before routing: is there a credential in the address?
//! - [`Scanner`] knows the shapes of credentials ([`PATTERNS`]) and looks behind the usual encodings.
//! - [`Fragments`] knows the live secrets themselves, as keyed digests of their 12-byte windows.
//! - [`Guard`] is both at an exit, with the exceptions by route and field. [`Window`] is the guard of a stream,
//!   [`Sweep`] the one of stored texts.
//! - [`mask`] shortens data that people may see in part; [`canary`] searches for runs of a planted secret.
//!
//! What the guard can't know: after a restart the fragments are only those of secrets decrypted since, so a
//! part of a secret without a shape of its own is then seen only once that secret was in use again.
//!
//! Not here: what happens after a hit (a withheld answer, an alert, an audit row), and which exits there are.

pub mod canary;
mod decode;
mod exit;
mod fragments;
mod judge;
mod mac;
pub mod mask;
mod patterns;
pub mod query;
mod scan;
mod sweep;
mod views;
mod walk;
mod window;

pub use exit::{Exception, Exposure, TOKEN_EXCEPTIONS, Verdict};
pub use fragments::{Fragments, TooShort, WINDOW};
pub use judge::{FRAGMENT, GLIMPSES, Guard, UNREADABLE, holds_part};
pub use patterns::{PATTERNS, Pattern, Start};
pub use scan::{BadPattern, Hit, Scanner};
pub use sweep::{Form, Report, Sweep, SweepFault};
pub use window::{OVERLAP, Window};
