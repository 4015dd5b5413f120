//! Buttons and metrics over a period, out of the database alone.
