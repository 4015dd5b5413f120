//! What may happen next in a run with the supply side.

use std::time::Duration;

use kernel::money::Tokens;
use relay::held::Settlement;
use store::Query;
use supply::Caller;
use supply::earnings::Release;
use supply::orders::{Call, Ending, RecordUsage};
use supply::settlements::SendCode;

use super::Market;
use super::errand::{Errand, Who};
use super::stock::{BUYER_TENANT, DRAFTS, KEY, SUPPLIER_TENANT};
use crate::domain::{LEASE, LIVES};
use crate::node::{Act, held_ones};
use crate::world::World;

const SETTLEMENTS: &str = "select id from supply_settlements order by id desc";
const HELD: &str = "select id from supply_earnings order by id desc limit 3";
const ORDERS: &str = "select id from supply_orders";

/// Does something.
pub(super) fn step(market: &mut Market) {
    let world = market.world.clone();
    let shop = usize::try_from(world.below(market.shops.len() as u64)).unwrap_or(0);
    match world.below(1000) {
        0..60 => code(market, shop),
        60..170 => withdraw(market, shop),
        170..440 => settle(market, shop),
        440..530 => go(market, shop, Errand::Batch(world.below(3))),
        530..590 => publish(market, shop),
        590..650 => go(market, shop, Errand::Mount(world.below(3))),
        650..690 => release(market, shop),
        690..730 => call(market, shop),
        730..760 => market.clients.give_up(&world),
        760..800 => restart(market, shop),
        800..860 => pause_or_resume(market, shop),
        860..890 => advance(market),
        890..930 => turn(market, shop),
        930..970 => mishap(market, shop),
        970..985 => act(market, shop),
        _ => misset(market, shop),
    }
}

/// Goes on an errand, now and then several times at once, on any nodes.
fn go(market: &Market, shop: usize, errand: Errand) {
    let world = &market.world;
    let times = if world.chance(30) { 2 + world.below(2) } else { 1 };
    for nth in 0..times {
        let any = usize::try_from(world.below(market.shops.len() as u64)).unwrap_or(0);
        let payload = if world.chance(85) { 1 } else { 2 };
        let wait = Duration::from_millis(world.pick(&[0, 0, 200, 2_000]).copied().unwrap_or(0));
        market.go(errand, payload, if nth == 0 { shop } else { any }, wait);
    }
}

fn code(market: &Market, shop: usize) {
    if let Some(counter) = market.counter(shop, Duration::ZERO) {
        counter.fact("code".into(), counter.keyless(Who::Operator), SendCode);
    }
}

/// Most ask for a code first; the answer to that may come too late.
fn withdraw(market: &Market, shop: usize) {
    let fresh = "select count(*) from supply_sms_codes where consumed_at is null";
    if crate::finish::count(&market.world, fresh) == 0 && market.world.chance(75) {
        return code(market, shop);
    }
    go(market, shop, Errand::Withdraw(market.world.below(8)));
}

fn settle(market: &Market, shop: usize) {
    let world = &market.world;
    let ids = numbers(world, SETTLEMENTS);
    let newest = ids.first().copied();
    let Some(id) = (if world.chance(80) { newest } else { world.pick(&ids).copied() }) else {
        return withdraw(market, shop);
    };
    let errand = match world.below(100) {
        0..24 => Errand::Cancel(id, world.below(2)),
        24..56 => Errand::Start(id),
        56..74 => Errand::Complete(id),
        74..84 => Errand::Fail(id),
        84..91 => Errand::Reject(id),
        _ => Errand::Return(id),
    };
    go(market, shop, errand);
}

fn publish(market: &Market, shop: usize) {
    if let Some(id) = market.world.pick(&DRAFTS) {
        go(market, shop, Errand::Publish(*id, market.world.below(2)));
    }
}

/// The scheduler finds an earning whose hold is over, or one that another node was faster with.
fn release(market: &Market, shop: usize) {
    let found = numbers(&market.world, HELD);
    let (Some(id), Some(counter)) = (market.world.pick(&found), market.counter(shop, Duration::ZERO)) else {
        return;
    };
    let fact = format!("release:{id}");
    counter.fact(fact.clone(), Caller::system(SUPPLIER_TENANT, &fact), Release { earning_id: *id });
}

/// The gateway reports a call, not always for the first time.
fn call(market: &Market, shop: usize) {
    let (world, orders) = (&market.world, numbers(&market.world, ORDERS));
    let (Some(order_id), Some(counter)) = (orders.first(), market.counter(shop, Duration::ZERO)) else {
        return;
    };
    let nth = world.below(6);
    let used = RecordUsage {
        order_id: *order_id,
        api_key_id: KEY,
        request_id: format!("call-{nth}"),
        tokens: Tokens { input: 100_000, output: 50_000 + nth },
        call: Call {
            ending: Ending::Success,
            endpoint: "/v1/chat/completions".into(),
            upstream_request_id: None,
            response_status: 200,
            latency_ms: 250,
            error_message: None,
            started_at: crate::world::BEGAN,
            completed_at: crate::world::BEGAN,
        },
    };
    let caller = Caller { tenant_id: BUYER_TENANT, ..counter.keyless(Who::Staff) };
    counter.fact(format!("call-{nth}"), caller, used);
}

fn restart(market: &mut Market, shop: usize) {
    let (world, foreign) = (market.world.clone(), market.foreign.clone());
    if let Some(shop) = market.shops.get_mut(shop) {
        shop.restart((&world, &foreign, world.trade()), &market.clients);
    }
}

fn pause_or_resume(market: &Market, shop: usize) {
    if let Some(shop) = market.shops.get(shop) {
        shop.node.pause_or_resume(&market.world);
    }
}

fn advance(market: &Market) {
    let world = &market.world;
    let by = match world.below(6) {
        0 | 1 => world.millis(5_000),
        2 | 3 => LEASE + world.millis(3_000),
        4 => Duration::from_secs(301),
        _ => LIVES + world.millis(3_000),
    };
    world.tell(|| format!("the store's clock moves by {by:?}"));
    world.advance(by);
}

fn turn(market: &Market, shop: usize) {
    if let Some(shop) = market.shops.get(shop) {
        shop.node.turn(&market.world);
    }
}

fn mishap(market: &Market, node: usize) {
    let mishap = market.world.plan(node);
    market.world.tell(|| format!("node {node}: next is {}", mishap.as_str()));
}

fn act(market: &Market, shop: usize) {
    let held = held_ones(&market.world);
    let (Some(id), Some(shop)) = (market.world.pick(&held), market.shops.get(shop)) else { return };
    let act = match market.world.below(4) {
        0 => Act::Settle(Settlement::Delivered),
        1 => Act::Settle(Settlement::Dead),
        _ => Act::Redrive,
    };
    shop.node.act(&market.world, *id, act);
}

fn misset(market: &Market, shop: usize) {
    if let Some(shop) = market.shops.get(shop) {
        shop.node.misset(&market.world);
    }
}

fn numbers(world: &World, sql: &'static str) -> Vec<i64> {
    let rows = world.read(&Query::new("market.numbers", sql, Vec::new())).unwrap_or_default();
    rows.iter().filter_map(|row| row.int(0).ok()).collect()
}
