//! Accounts: one file a command.
