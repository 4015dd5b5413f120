//! What "the same thing, once" means, as plain values and pure functions.
//!
//! Modules in reading order: [`time`] (instants, the clock and randomness as parameters), [`digest`]
//! (hashes whose fields can't be shifted into each other), [`claim`] (who works on a key, and until
//! when), [`record`] (what is remembered of a key), [`meeting`] (what an arrival meets there: the one
//! table of answers), [`money`] (exact amounts, prices, rates, quotas).
//!
//! Not here: SQL, I/O, async, HTTP. The crate `store` keeps records, the crate `door` acts on them.

pub mod claim;
pub mod digest;
pub mod meeting;
pub mod money;
pub mod record;
pub mod time;

pub use claim::{Claim, Lease};
pub use digest::{Digest, Fingerprint};
pub use meeting::{Binding, Meeting, meet};
pub use record::{Outcome, Record, Standing};
pub use time::{Clock, Random, Time};
