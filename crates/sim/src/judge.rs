//! What must hold at the end of a run, whatever happened in it: between the tables (`tables`), and between
//! the tables and what clients and receivers saw (`told`).

pub(crate) mod tables;
pub(crate) mod told;

use std::collections::BTreeMap;

use kernel::Time;
use store::{Error, Query, Row};

use crate::run::Scene;
use crate::world::World;

/// Judges a run that is over.
pub(crate) fn judge(scene: &Scene) {
    let judged = Effects::read(scene).and_then(|effects| {
        tables::judge(scene, &effects)?;
        told::judge(scene, &effects)
    });
    if let Err(error) = judged {
        scene.world.find(format!("the tables can't be judged: {error}"));
    }
}

/// One formal result as the domain's own table has it.
#[derive(Clone, Debug)]
struct Effect {
    key: String,
    payload: i64,
    serial: i64,
    code: i64,
    body: String,
    expires_at: Option<Time>,
    /// Which life of the key.
    generation: u32,
}

/// All of them, in the order of their commits.
struct Effects(Vec<Effect>);

impl Effects {
    fn read(scene: &Scene) -> Result<Self, Error> {
        let sql = "select key, payload, serial, code, body, made_at, expires_at from sim_effects order by id";
        let mut lives: BTreeMap<String, (u32, Option<Time>)> = BTreeMap::new();
        let mut effects = Vec::new();
        for row in rows(&scene.world, sql)? {
            let (key, made_at, expires_at) = (row.text(0)?.to_owned(), row.time(5)?, row.time_or_null(6)?);
            let generation = match lives.get(&key) {
                None => 0,
                Some((generation, Some(end))) if *end <= made_at => generation + 1,
                Some((generation, _)) => *generation,
            };
            lives.insert(key.clone(), (generation, expires_at));
            let (payload, serial, code) = (row.int(1)?, row.int(2)?, row.int(3)?);
            let body = row.text(4)?.to_owned();
            effects.push(Effect { key, payload, serial, code, body, expires_at, generation });
        }
        Ok(Self(effects))
    }

    fn last(&self, key: &str) -> Option<&Effect> {
        self.0.iter().rev().find(|effect| effect.key == key)
    }

    fn by_body(&self, body: &[u8]) -> Option<&Effect> {
        self.0.iter().find(|effect| effect.body.as_bytes() == body)
    }

    fn by_serial(&self, serial: i64) -> Option<&Effect> {
        self.0.iter().find(|effect| effect.serial == serial)
    }
}

pub(crate) fn rows(world: &World, sql: &'static str) -> Result<Vec<Row>, Error> {
    world.read(&Query::new("judge", sql, Vec::new()))
}
