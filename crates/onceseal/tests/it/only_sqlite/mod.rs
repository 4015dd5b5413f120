//! A store that is a file: its backup and its restore, and somebody who writes into it.

mod backup;
mod restored;
