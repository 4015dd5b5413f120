//! Packages (section 6.2): one file a command. In reading order: [`fields`] (what a draft must be), `floor` (protected
//! prices), `found` (what commands share); `draft`, `edit`, `clone`, `publish`, `pause`, `unlist` by owners;
//! [`view`] (what is read).

mod clone;
mod draft;
mod edit;
pub mod fields;
pub(crate) mod floor;
mod found;
mod pause;
mod publish;
mod unlist;
pub mod view;

#[cfg(test)]
mod fixture;

pub use clone::CloneDraft;
pub use draft::SaveDraft;
pub use edit::EditDraft;
pub use fields::{Fields, Texts};
pub use pause::Pause;
pub use publish::Publish;
pub use unlist::Unlist;
pub use view::{List, View};
