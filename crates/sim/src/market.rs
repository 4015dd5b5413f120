//! A run with the supply side: suppliers mount, publish, change prices in batches, withdraw and cancel; the
//! platform's staff pay out; the system releases what was earned. All of it by the commands of the crate `supply`,
//! unchanged, through the real door. One seed in [`EVERY`] is such a run: these commands write much.
//!
//! Their statements are not imitated one by one: the rows in memory are an SQLite database, so their SQL runs as
//! it stands, with every check of the schema. What PostgreSQL would do besides is imitated around it, as for
//! all runs: two trips, locks on keys and rows, numbers from sequences, the others' transactions in between. Two
//! things are the simulation's: what a provider says of a credential ([`mount`]), and what began before
//! ([`stock`]).
//!
//! Modules in reading order: [`stock`], [`shop`] (a node), [`errand`] (what people want), [`counter`] (where
//! they ask for it), [`mount`], `steps`, [`watch`] (what must hold after each commit), `judge` (at the end).

mod counter;
mod errand;
mod judge;
mod mount;
mod opening;
mod shop;
mod steps;
mod stock;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kernel::Digest;
use parking_lot::Mutex;
use secrecy::SecretString;
use store::{Error, Memory, Query, Write, planted};
use supply::House;
use testkit::Seeded;

use crate::client::Clients;
use crate::domain::{LEASE, fingerprint};
use crate::finish;
use crate::foreign::Foreign;
use crate::run::pass;
use crate::stage::Stage;
use crate::tally::Tally;
use crate::world::World;
use counter::Counter;
use errand::Errand;
use shop::Shop;
use watch::Seen;

pub(crate) use shop::Trade;
pub(crate) use watch::OUTCOMES;

/// One seed in so many is a run with the supply side.
const EVERY: u64 = 10;
/// Which of them: not one with AuditVisa.
const NTH: u64 = 5;
/// Times that what is open is asked for again, until nothing may be.
const SWEEPS_MAX: u32 = 8;

const OPEN: &str = "select count(*) from supply_idempotency_record where response_code is null";

/// Whether a seed is such a run.
pub(crate) const fn is(seed: u64) -> bool {
    seed % EVERY == NTH
}

/// The seed of such a run, so many of them behind the first one from `first` on.
pub(crate) const fn seed(first: u64, index: u64) -> u64 {
    let behind = (NTH + EVERY - first % EVERY) % EVERY;
    first.saturating_add(behind).saturating_add(index.saturating_mul(EVERY))
}

/// What stands in the database before such a run begins.
pub(crate) fn lay_in(memory: &Memory) -> Result<(), Error> {
    stock::lay_in(memory)?;
    if planted::is("open-settlement-not-asked") {
        let drop = |sql| Write::any("planted.index", sql, Vec::new());
        memory.write(&[
            drop("drop index uq_settlement_supplier_open"),
            drop("drop index uq_settlement_supplier_processing"),
        ])?;
    }
    Ok(())
}

/// Everything of such a run.
pub(crate) struct Market {
    pub(crate) world: Arc<World>,
    foreign: Arc<Foreign>,
    shops: Vec<Shop>,
    pub(crate) clients: Clients,
    seen: Arc<Seen>,
    /// Errands that somebody went on, by name.
    errands: Mutex<BTreeMap<String, Errand>>,
    pub(crate) tally: Tally,
}

impl Market {
    pub(crate) fn new(stage: &Arc<Stage>, seed: u64, trace: bool) -> Self {
        let world = World::new(Arc::clone(stage), Seeded::new(seed), trace);
        let foreign = Foreign::new(&world);
        let count = 2 + usize::try_from(world.below(2)).unwrap_or(0);
        let start = |node| Shop::start((&world, &foreign, world.trade()), node, 1);
        let shops = (0..count).filter_map(start).collect();
        let seen = Arc::new(Seen::default());
        let watching = Arc::clone(&seen);
        world.watched_by(Arc::new(move |world, writes| watching.committed(world, writes)));
        let (clients, errands, tally) = (Clients::default(), Mutex::default(), Tally::default());
        Self { world, foreign, shops, clients, seen, errands, tally }
    }

    pub(crate) async fn play(mut self, steps: u64) -> Self {
        if let Err(cause) = opening::open(&self).await {
            self.world.find(format!("the market can't open: {cause}"));
            return self;
        }
        crate::run::rates(&self.world, &self.foreign);
        for _ in 0..steps {
            steps::step(&mut self);
            self.tally.steps += 1;
            let pause = if self.world.chance(15) { 1_500 } else { 25 };
            pass(self.world.millis(pause)).await;
        }
        self.finish().await;
        judge::judge(&self).await;
        self.tally.traded = 1;
        self.tally.outcomes = self.seen.counts();
        self
    }

    /// A place to ask at, on a node.
    fn counter(&self, shop: usize, wait: Duration) -> Option<Counter<'_>> {
        Some(Counter { market: self, shop: self.shops.get(shop)?, wait })
    }

    /// Somebody goes on an errand.
    fn go(&self, errand: Errand, payload: i64, shop: usize, wait: Duration) {
        self.errands.lock().insert(errand.name(), errand);
        if let Some(counter) = self.counter(shop, wait) {
            errand.send(self, &counter, payload);
        }
    }

    /// The newest code, as the telephone shows it; a wrong one where none came.
    fn newest_code(&self, house: &House) -> SecretString {
        let sql =
            "select code_ref, key_version from supply_sms_codes order by created_at desc, id desc limit 1";
        let rows = self.world.read(&Query::new("market.code", sql, Vec::new())).unwrap_or_default();
        let code = rows.first().and_then(|row| {
            let version = u32::try_from(row.int(1).ok()?).ok()?;
            house.keys.sms.as_ref()?.code(version, row.text(0).ok()?).ok()
        });
        code.unwrap_or_else(|| SecretString::from("000000"))
    }

    async fn finish(&self) {
        let nodes = self.shops.iter().map(|shop| &shop.node);
        finish::all_well(&self.world, &self.foreign, nodes.clone());
        finish::settle(&self.world, &self.clients).await;
        let mut sweeps = 0;
        while finish::count(&self.world, OPEN) > 0 && sweeps < SWEEPS_MAX {
            self.world.advance(LEASE);
            self.again("and response_code is null").await;
            sweeps += 1;
        }
        let before = self.clients.all().len();
        self.again("").await;
        for sent in self.clients.all().iter().skip(before).filter(|sent| !sent.is_finished()) {
            self.world.find(format!("{}: the last one has no formal result: {sent:?}", sent.key));
        }
        finish::deliver(&self.world, nodes).await;
        finish::nothing_left(&self.world, OPEN, "records are open");
        finish::closed(&self.world);
    }

    /// Each errand whose record `condition` names once more, with the payload on record.
    async fn again(&self, condition: &str) {
        let sql = format!(
            "select idempotency_key, payload_hash from supply_idempotency_record where id > 0 {condition} order by id"
        );
        let rows = match self.world.read(&Query::new("market.records", sql, Vec::new())) {
            Ok(rows) => rows,
            Err(error) => return self.world.find(format!("the records can't be read: {error}")),
        };
        for row in rows {
            let (Ok(key), Ok(hash)) = (row.text(0), row.text(1)) else { continue };
            let name = Errand::name_of(key).unwrap_or_default();
            let errand = self.errands.lock().get(name).copied();
            let Some((errand, payload)) = errand.zip(payload_of(name, hash)) else {
                self.world.find(format!("{key}: a record that nobody asked for"));
                continue;
            };
            let shop = usize::try_from(self.world.below(self.shops.len() as u64)).unwrap_or(0);
            self.go(errand, payload, shop, Duration::from_secs(1));
        }
        pass(Duration::from_secs(5)).await;
    }
}

/// Which payload a kept hash stands for.
fn payload_of(name: &str, hash: &str) -> Option<i64> {
    let kept = Digest::from_hex(hash)?;
    [1, 2].into_iter().find(|payload| fingerprint(name, *payload) == kept)
}
