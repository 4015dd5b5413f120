//! How a run begins, while nothing goes wrong yet: a buyer pays in, orders and pays a package; the supplier is given
//! something that it may withdraw, and something that is still held.

use std::time::Duration;

use door::{Answer, Submission};
use kernel::money::{Currency, Money};
use serde_json::Value as Json;
use supply::earnings::{Bonus, Release};
use supply::orders::{Create, Pay};
use supply::platform::TopUp;
use supply::{Action, Caller, Capacity, Commanded, Context};

use super::Market;
use super::stock::{ADMIN, BUYER, BUYER_TENANT, ON_SALE, SUPPLIER_TENANT};

/// A hundredth of the currency's unit.
const MINOR: i64 = 1_000_000;
/// Two million tokens, in steps of 10^-6.
const ORDERED: i64 = 2_000_000_000_000;
const PATIENT: Duration = Duration::from_secs(60);

/// Opens the market.
pub(super) async fn open(market: &Market) -> Result<(), String> {
    let amount = |major: i64| Money::from_count(major * 100 * MINOR, Currency::CNY);
    let desk = Desk(market);
    desk.run(desk.staff(BUYER_TENANT, 1), TopUp { buyer_id: BUYER, amount: amount(100) }).await?;
    let [package_id, ..] = ON_SALE;
    let create = Create { buyer_id: BUYER, package_id, quota_count: ORDERED };
    let ordered = desk.run(desk.buyer(2), create).await?;
    let order_id = number(&ordered, "order_id")?;
    desk.run(desk.buyer(3), Pay { order_id }).await?;
    for (step, major) in [(4, 100), (5, 60), (6, 40)] {
        let bonus = Bonus { amount: amount(major), description: "for the run".into() };
        let granted = desk.run(desk.staff(SUPPLIER_TENANT, step), bonus).await?;
        if step < 6 {
            let earning_id = number(&granted, "earning_id")?;
            let caller = Caller::system(SUPPLIER_TENANT, &format!("release:{earning_id}"));
            desk.run(caller, Release { earning_id }).await?;
        }
    }
    Ok(())
}

fn number(answer: &Json, name: &str) -> Result<i64, String> {
    let found = answer.get("data").and_then(|data| data.get(name)).and_then(Json::as_i64);
    found.ok_or_else(|| format!("no {name} in {answer}"))
}

struct Desk<'m>(&'m Market);

impl Desk<'_> {
    fn staff(&self, tenant_id: i64, step: u32) -> Caller {
        let caller = Caller::system(tenant_id, &format!("opening-{step}"));
        Caller {
            operator_id: ADMIN,
            capacity: Capacity::Admin,
            role: "admin",
            idempotency_key: None,
            ..caller
        }
    }

    fn buyer(&self, step: u32) -> Caller {
        let caller = Caller::system(BUYER_TENANT, &format!("opening-{step}"));
        Caller {
            operator_id: BUYER,
            capacity: Capacity::User,
            role: "owner",
            idempotency_key: None,
            ..caller
        }
    }

    async fn run<A: Action>(&self, caller: Caller, action: A) -> Result<Json, String> {
        let shop = self.0.shops.first().ok_or("there is no node")?;
        let context = Context { caller, house: shop.house.clone() };
        let command = Commanded { context, action };
        let answer = shop.node.door.submit(Submission { key: None, command, wait: PATIENT }).await;
        match answer {
            Ok(Answer::Done(done)) if done.outcome.code < 400 => {
                serde_json::from_str(&done.outcome.body).map_err(|error| error.to_string())
            }
            other => Err(format!("{other:?}")),
        }
    }
}
