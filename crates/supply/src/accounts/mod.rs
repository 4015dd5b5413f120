//! Accounts (section 6.1): one file a command. Mounting and rotating, which call the provider, encrypt before the
//! transaction (section 13).

mod activate;
mod checked;
mod create;
mod delete;
mod disable;
mod remind;
mod review;
mod rotate;
mod state;
mod suspend;
mod threshold;
mod verify;
pub mod view;

pub use activate::Activate;
pub use checked::{Checked, Kind};
pub use create::Create;
pub use delete::Delete;
pub use disable::{Credential, Disable};
pub use remind::{Remind, to_remind};
pub use review::{Review, Verdict};
pub use rotate::Rotate;
pub use suspend::Suspend;
pub(crate) use threshold::fallen;
pub use verify::Verify;

#[cfg(test)]
mod tests;
