//! The database that a thread's runs share, one after the other: the schema is made once, and each run
//! begins from the same marked state.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use store::migration::{CERTIFY, CORE, Chain, File};
use store::{Error, Memory};

use crate::domain;
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

/// A database in memory with everything that a run needs.
#[derive(Debug)]
pub struct Stage {
    memory: Mutex<Memory>,
}

impl Stage {
    /// Makes the schema.
    ///
    /// # Errors
    /// A file of the schema can't be applied.
    pub fn new() -> Result<Arc<Self>, Error> {
        let memory = Memory::open(&[CORE, CERTIFY, SEQUENCE, domain::CHAIN], BEGAN)?;
        Ok(Arc::new(Self { memory: Mutex::new(memory) }))
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }
}
