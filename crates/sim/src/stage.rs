//! The database that a thread's runs share, one after the other: the schema is made once, and each run
//! begins from the same marked state.

use std::path::Path;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use store::Memory;
use store::migration::{CERTIFY, CORE, Chain, File, SUPPLY};
use tempfile::TempDir;

use crate::domain;
use crate::market::{self, Trade};
use crate::visa;
use crate::world::BEGAN;

/// Numbers of deliveries come from a sequence, as where rows commit in another order than their numbers.
const SEQUENCE: Chain = Chain {
    name: "sim",
    files: &[File::new(
        "sim_sequence",
        "create table sim_sequence (next {int} not null) {strict};
         insert into sim_sequence values (1);
         create trigger sim_number after insert on outbox_deliveries begin
           update outbox_deliveries set id = (select next from sim_sequence) where id = new.id;
           update sim_sequence set next = next + 1;
         end;",
    )],
};

/// A database in memory with everything that a run needs, and a folder of key files.
#[derive(Debug)]
pub struct Stage {
    memory: Mutex<Memory>,
    keys: TempDir,
    trade: Trade,
}

impl Stage {
    /// Makes the schema and the keys.
    ///
    /// # Errors
    /// A file of the schema can't be applied, or the keys can't be written.
    pub fn new() -> anyhow::Result<Arc<Self>> {
        let memory = Memory::open(&[CORE, CERTIFY, SEQUENCE, domain::CHAIN, SUPPLY], BEGAN)?;
        market::lay_in(&memory)?;
        let (memory, keys) = (Mutex::new(memory), tempfile::tempdir()?);
        let stage = Arc::new(Self { memory, keys, trade: Trade::new()? });
        visa::first_keys(&stage)?;
        Ok(stage)
    }

    /// The folder of key files.
    pub(crate) fn keys(&self) -> &Path {
        self.keys.path()
    }

    /// What all runs with the supply side have in common.
    pub(crate) const fn trade(&self) -> &Trade {
        &self.trade
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }
}
