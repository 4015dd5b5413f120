//! Settlements: one file a command.
