//! Orders: one file a command.
