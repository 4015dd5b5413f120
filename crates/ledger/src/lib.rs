//! Double entry for the supply side: which accounts there are, which journals may be posted, what every
//! balance follows from, and how it is checked that all of it agrees. Source: supply specification,
//! section 11.
//!
//! A [`Journal`] comes out of a function of [`posting`] only, one for each kind of section 11.2, and is
//! balanced, of one currency, and without a leg of zero or less. Amounts are split by subtraction, so no
//! residue of a rounding is ever left over. Amounts are [`kernel::money::Money`].
//!
//! Modules in reading order: [`ids`], [`account`] (the chart of section 11.1), [`journal`] (legs and what
//! they stand for), [`split`] (fee and rest; a refund over the supplier's accounts), [`posting`] (the
//! journals), [`held`] (the balance rows of one command, which refuse to go below zero), [`balances`] (the
//! fold over all entries), [`draw`] (a sum taken from earnings, oldest first), [`check`] (section 11.5).
//!
//! Not here: SQL, which rows are locked, who may withdraw how much (crate `supply`).

pub mod account;
pub mod balances;
pub mod check;
pub mod draw;
pub mod error;
pub mod held;
pub mod ids;
pub mod journal;
pub mod posting;
pub mod split;

pub use account::{Account, Code, Kind, Owner};
pub use balances::Balances;
pub use error::Error;
pub use held::Held;
pub use journal::{Direction, Entry, Journal, JournalKind, Source, SourceKind};
pub use split::{Reversal, Split};
