//! A second database of a gate, for what is tried on an empty one: made, brought up as often as one likes, dropped.

use std::path::PathBuf;
use std::sync::Arc;

use secrecy::SecretString;
use store::migration::Chain;
use store::{Settings, Store};

use super::database::{Address, Database};
use super::stage::Stage;
use crate::random::SystemClock;

/// The database.
pub struct Scratch {
    folder: PathBuf,
    server: Option<(Address, String)>,
}

impl Scratch {
    /// An empty one, of the engine of the stage.
    ///
    /// # Errors
    /// It can't be made.
    pub async fn make(stage: &Stage) -> Result<Self, String> {
        let folder = stage.folder().join(format!("scratch-{}", stage.next()));
        std::fs::create_dir_all(&folder)
            .map_err(|cause| format!("the gate's folder can't be written: {cause}"))?;
        Ok(Self { folder, server: stage.another().await? })
    }

    fn address(&self) -> Result<Option<Address>, String> {
        self.server.as_ref().map(|(server, name)| server.named(name)).transpose()
    }

    /// Opens it with these files, as a server does, and closes it.
    ///
    /// # Errors
    /// What the store says.
    pub async fn opened(&self, chains: &[Chain]) -> Result<(), String> {
        let settings = match self.address()? {
            None => Settings::folder(&self.folder),
            Some(address) => Settings::Postgres(store::Postgres {
                connections: 2,
                ..store::Postgres::new(SecretString::from(address.whole()?))
            }),
        };
        let opened = Store::open(&settings, chains, Arc::new(SystemClock)).await;
        opened.map(drop).map_err(|cause| cause.to_string())
    }

    /// A view of it.
    ///
    /// # Errors
    /// It can't be opened.
    pub async fn database(&self) -> Result<Database, String> {
        match self.address()? {
            None => Database::sqlite(&self.folder),
            Some(address) => Database::postgres(&address).await,
        }
    }

    /// Drops it.
    ///
    /// # Errors
    /// Somebody uses it.
    pub async fn end(self) -> Result<(), String> {
        let Some((server, name)) = self.server else { return Ok(()) };
        Database::postgres(&server).await?.run(&format!("drop database {name} with (force)")).await
    }
}
