//! Earnings: one file a command.
