//! The configuration: `onceseal.toml`, then environment, then flags; every setting has a name, a unit and
//! limits, and an unknown one stops the start.
//!
//! Modules in reading order: [`mod@unit`] (durations and sizes), [`secret`] (where secrets stand), [`layer`]
//! (which place wins), [`settings`] (all settings with their defaults), [`limit`] (what is refused),
//! [`supply`] and [`policy`] (the supply side), [`fault`] (how a refusal is worded), [`load`] (from places to settings), [`endpoint`] (sources with
//! their secrets), [`files`] (where certificates' files stand), [`show`] (back to text).

pub mod endpoint;
pub mod fault;
pub mod files;
pub mod layer;
pub mod limit;
pub mod load;
pub mod policy;
pub mod secret;
pub mod settings;
pub mod show;
pub mod supply;
pub mod unit;

pub use fault::Fault;
pub use load::{Loaded, Places};
pub use settings::Config;
