//! Settlements (sections 6.4, 11, 12): one file a command. Asking for money ([`Withdraw`], with a code of
//! [`SendCode`]), and what becomes of it: the commands of [`step`].

pub mod attempts;
pub mod step;

mod cancel;
mod complete;
mod fail;
mod fields;
mod give_back;
mod parts;
mod reject;
mod send_code;
mod start;
mod withdraw;

pub use cancel::Cancel;
pub use complete::Complete;
pub use fail::Fail;
pub use give_back::Return;
pub use reject::Reject;
pub use send_code::SendCode;
pub use start::Start;
pub use withdraw::Withdraw;
