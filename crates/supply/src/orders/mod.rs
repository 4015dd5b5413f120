//! Orders (section 6.3): one file a command. A buyer's commands find the order by the buyer's tenant, those of the
//! platform by either side's.
//!
//! Every command locks account, package, order and balances in this order, as far as it needs them: calls of one
//! order come side by side, and the second must wait and not be refused.

mod cancel;
mod close;
mod create;
mod found;
mod pay;
mod refund;
mod usage;

pub use cancel::{Cancel, Cause};
pub use close::Close;
pub use create::Create;
pub use found::Found;
pub use pay::Pay;
pub use refund::Refund;
pub use usage::{Call, Ending, RecordUsage};

#[cfg(test)]
mod tests;
