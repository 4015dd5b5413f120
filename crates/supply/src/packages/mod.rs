//! Packages (section 6.2): one file a command. In reading order: [`fields`] (what a draft must be), `floor` (protected
//! prices), `found` (what commands share); `draft`, `edit`, `clone`, `publish`, `pause`, `unlist`, `batch` by
//! owners; `freeze` by staff; `expire`, `sell_out`, `restock` by the system, and [`due`] (when); [`view`] (what is
//! read).

mod batch;
mod clone;
mod draft;
pub mod due;
mod edit;
mod expire;
pub mod fields;
pub(crate) mod floor;
mod found;
mod freeze;
mod pause;
mod publish;
mod restock;
mod sell_out;
mod unlist;
pub mod view;

#[cfg(test)]
mod fixture;

pub use batch::{BatchPrice, ITEMS_MOST, Item};
pub use clone::CloneDraft;
pub use draft::SaveDraft;
pub use due::{Due, Turn};
pub use edit::EditDraft;
pub use expire::Expire;
pub use fields::{Fields, Texts};
pub use freeze::Freeze;
pub use pause::Pause;
pub use publish::Publish;
pub use restock::Restock;
pub use sell_out::SellOut;
pub use unlist::Unlist;
pub use view::{List, View};
