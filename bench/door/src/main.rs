//! The door with a keyed transfer as its command, for `cargo xtask bench door`.
//!
//! It is linked like the server: same driver, same allocator, same HTTP. Not here: authentication,
//! rate limits, logs, metrics.

mod load;
mod serve;
mod system;
mod transfer;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use door::Door;
use store::{Postgres, Settings, Store};

use crate::load::Load;
use crate::system::{SystemClock, SystemRandom};
use crate::transfer::CHAINS;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The door with a keyed transfer as its command.
#[derive(Parser)]
struct Args {
    /// PostgreSQL's URL; without it SQLite in the folder
    #[arg(long, env = "BENCH_DATABASE", hide_env_values = true)]
    database: Option<String>,
    /// SQLite's folder
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Connections to PostgreSQL
    #[arg(long)]
    connections: Option<usize>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Bring the schema up
    Schema,
    /// Serve `POST /transfers`
    Serve {
        /// Address to listen on; port 0 takes a free one
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
    /// Put load on the door without HTTP
    Load(Load),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let settings = match args.database {
        None => Settings::folder(args.folder),
        Some(url) => {
            let mut server = Postgres::new(url);
            server.connections = args.connections.unwrap_or(server.connections);
            Settings::Postgres(server)
        }
    };
    let store = Store::open(&settings, &CHAINS, Arc::new(SystemClock)).await?;
    let door = Door::new(store, Arc::new(SystemRandom));
    match args.what {
        What::Schema => Ok(()),
        What::Serve { listen } => serve::run(door, listen).await,
        What::Load(load) => load::run(door, &load).await,
    }
}
