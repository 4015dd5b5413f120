//! Accounts (section 6.1): one file a command. Mounting and rotating, which call the provider, encrypt before the
//! transaction (section 13).

mod activate;
mod delete;
mod disable;
mod state;
mod suspend;

pub use activate::Activate;
pub use delete::Delete;
pub use disable::Disable;
pub use suspend::Suspend;

#[cfg(test)]
mod tests;
