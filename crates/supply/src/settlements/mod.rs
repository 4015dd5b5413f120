//! Settlements (sections 6.4, 11, 12): one file a command. Asking for money ([`Withdraw`], with a code of
//! [`SendCode`]), and what becomes of it: the commands of [`step`]. Then what is read: settlements ([`view`]),
//! earnings ([`records`]), sums ([`billing`]), statements ([`statement`]), and whether all of it balances
//! ([`reconcile()`]).

pub mod attempts;
pub mod billing;
pub mod due;
pub mod period;
pub mod records;
pub mod statement;
pub mod step;
pub mod view;

mod cancel;
mod complete;
mod fail;
mod fields;
mod give_back;
mod parts;
mod payee;
mod reconcile;
mod reject;
mod send_code;
mod start;
mod stuck;
mod totals;
mod unbalanced;
mod withdraw;

pub use cancel::Cancel;
pub use complete::Complete;
pub use fail::Fail;
pub use give_back::Return;
pub use payee::Payee;
pub use reconcile::reconcile;
pub use reject::Reject;
pub use send_code::SendCode;
pub use start::Start;
pub use stuck::Stuck;
pub use totals::{Total, totals};
pub use unbalanced::Unbalanced;
pub use withdraw::Withdraw;
