//! Where people ask: a node's door, with a caller for each of them, and what they are told written down.

use std::time::Duration;

use door::{Answer, Done, Failure, Submission};
use store::{Error, Query, values};
use supply::record::{self, Payload};
use supply::{Action, Caller, Capacity, Commanded, Context};
use testkit::history;

use super::Market;
use super::errand::{Errand, Who};
use super::shop::Shop;
use super::stock::{ADMIN, OPERATOR, SUPPLIER_TENANT};
use super::watch::Seen;
use crate::client::{shown, stands};
use crate::domain::{LIVES, fingerprint};
use crate::world::World;

/// What ids of requests under a key begin with, and of those without one.
pub(super) const KEYED: &str = "sim-k-";
const KEYLESS: &str = "sim-f-";

/// A place to ask at.
pub(super) struct Counter<'m> {
    pub(super) market: &'m Market,
    pub(super) shop: &'m Shop,
    pub(super) wait: Duration,
}

impl Counter<'_> {
    /// Asks for an errand under its key.
    pub(super) fn submit<A: Action>(&self, errand: Errand, payload: i64, action: A) {
        let (world, name) = (&self.market.world, errand.name());
        let caller = caller(errand.who(), world, KEYED, Some(errand.key()));
        let path = match errand.object() {
            Some(id) => format!("/api/v1/{}/{id}", errand.word()),
            None => format!("/api/v1/{}", errand.word()),
        };
        let hash = fingerprint(&name, payload);
        let hashed = Payload { fingerprint: hash, former: Vec::new(), unkeyed: hash };
        let key = record::key(&caller, SUPPLIER_TENANT, &path, hashed, LIVES);
        if let Some(key) = &key {
            world.name(key.digest().word(), &name);
        }
        let context = Context { caller, house: self.shop.house.clone() };
        let command = Commanded { context, action };
        let submission = Submission { key, command, wait: self.wait };
        let (door, process) = (self.shop.node.door.clone(), self.shop.node.process.clone());
        let (shared, seen) = (world.clone(), self.market.seen.clone());
        self.market.clients.send(world, &self.shop.node.process, (name.clone(), payload), async move {
            let answer = door.submit(submission).await;
            process.pass().await;
            shared.tell(|| format!("{} {name} is told {}", process.name, shown(&answer)));
            heard(&shared, &seen, &name, answer)
        });
    }

    /// Sends what needs no key: whatever is told, the tables say whether it happened once.
    pub(super) fn fact<A: Action>(&self, name: String, who: Caller, action: A) {
        let world = &self.market.world;
        let context = Context { caller: who, house: self.shop.house.clone() };
        let command = Commanded { context, action };
        let (door, process) = (self.shop.node.door.clone(), self.shop.node.process.clone());
        let (shared, wait) = (world.clone(), self.wait);
        self.market.clients.send(world, &self.shop.node.process, (name.clone(), 1), async move {
            let answer = door.submit(Submission { key: None, command, wait }).await;
            process.pass().await;
            shared.tell(|| format!("{} {name} is told {}", process.name, shown(&answer)));
            history::Answer::Unknown
        });
    }

    /// A caller without a key.
    pub(super) fn keyless(&self, who: Who) -> Caller {
        caller(who, &self.market.world, KEYLESS, None)
    }
}

fn caller(who: Who, world: &World, prefix: &str, idempotency_key: Option<String>) -> Caller {
    let request_id = format!("{prefix}{}", world.serial());
    let (operator_id, capacity, role) = match who {
        Who::Operator => (OPERATOR, Capacity::User, "owner"),
        Who::Staff => (ADMIN, Capacity::Admin, "admin"),
    };
    Caller {
        tenant_id: SUPPLIER_TENANT,
        operator_id,
        capacity,
        role,
        trace_id: request_id.clone(),
        request_id,
        idempotency_key,
        client_ip: Some("192.0.2.7".into()),
        user_agent: Some("sim/1".into()),
    }
}

fn heard(world: &World, seen: &Seen, name: &str, answer: Result<Answer, Failure>) -> history::Answer {
    match answer {
        Ok(Answer::Done(Done { outcome, replayed, same, .. })) => {
            if !seen.has(name, &outcome) {
                world.find(format!("{name}: a client was told a result that is not kept"));
            }
            if replayed {
                seen.count(if same { "replayed" } else { "mismatch" });
            }
            let outcome = super::watch::bytes(outcome.code.into(), &outcome.body);
            history::Answer::Finished(history::Finished { outcome, replayed, same, generation: None })
        }
        Ok(Answer::InProgress { durable, .. }) => {
            if durable {
                let sql = "select count(*) from supply_idempotency_record where idempotency_key = $1";
                let key = format!("{}{name}", super::errand::PREFIX);
                stands(world, name, "of a claim that is not kept", &Query::new("told", sql, values![key]));
            }
            history::Answer::InProgress
        }
        Ok(Answer::Open { outcome: Some(outcome), .. }) => {
            seen.passed(world, name, &outcome.body);
            history::Answer::Unknown
        }
        Ok(Answer::Open { .. } | Answer::Orphaned) => history::Answer::Unknown,
        Err(failure) => {
            if let Failure::Store(Error::Raised(raise)) = &failure {
                world.find(format!("{name}: a check raised that no rule stands behind: {raise}"));
            }
            history::Answer::Unknown
        }
    }
}
