//! What only an installation on PostgreSQL can do: be moved to, be brought up while others serve.

mod copy;
mod migrate;
mod moving;
mod operations;
mod restored;
mod two_servers;
