//! Platform: one file a command.
