//! Packages (section 6.2): one file a command.

mod publish;

pub use publish::Publish;
