//! A store that is a file: its backup and its restore.

mod backup;
mod restored;
