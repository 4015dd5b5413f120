//! A walk of a few hundred commands from a seed, in which nothing may come apart: after each of them every balance
//! is the sum of its entries, and the supplier's balances are those of its earnings.

use std::time::Duration;

use kernel::money::{Currency, Money};
use ledger::posting::Beneficiary;
use ledger::{Account, ids};
use store::{Query, Value, values};
use supply::earnings::{Bonus, Compensate};
use supply::orders::{Cancel, Cause, Close, Create, Ending, Pay, Refund};
use supply::packages::{Due as PackageDue, Expire, Restock, SellOut, Turn};
use supply::platform::{orders_to_close, orders_to_time_out};
use testkit::Seeded;

use crate::market::{BUYER, BUYER_TENANT, Market, SUPPLIER, SUPPLIER_TENANT, Told};
use crate::orders_desk::{call, cny, trading};

const COMMANDS: u32 = 400;

struct Walk {
    market: Market,
    chance: Seeded,
    step: u32,
}

impl Walk {
    /// Any order in one of these states; 0 if there is none.
    async fn any(&mut self, states: &str) -> i64 {
        let sql = format!("select id from supply_orders where status in ({states}) order by id");
        let rows = self.market.door.store().query(Query::new("any", sql, vec![])).await.unwrap();
        let at = self.chance.below(rows.len() as u64);
        rows.get(usize::try_from(at).unwrap()).map_or(0, |row| row.int(0).unwrap())
    }

    fn amount(&mut self, most: u64) -> Money {
        Money::from_count(i64::try_from(self.chance.below(most) + 1).unwrap(), Currency::CNY)
    }

    async fn use_some(&mut self) -> Told {
        let order = self.any("'paid', 'using'").await;
        let tokens = (self.chance.below(15_000), self.chance.below(15_000));
        // Now and then a call that was reported before, with other figures.
        let number = if self.chance.chance(10) { self.chance.below(40) } else { 1000 + u64::from(self.step) };
        let mut call = call(&self.market, order, &format!("call-{number}"), tokens);
        if self.chance.chance(10) {
            call.call.ending = Ending::Failure;
        }
        self.market.administer(BUYER_TENANT, call).await
    }

    async fn refund(&mut self) -> Told {
        let order_id = self.any("'paid', 'using', 'expired'").await;
        let charge = self.chance.chance(60).then(|| self.amount(2_000_000_000));
        self.market.administer(SUPPLIER_TENANT, Refund { order_id, charge }).await
    }

    /// A payout of whole minor units, if there is anything.
    async fn pay_out(&mut self) {
        let sql = "select balance from billing_accounts where account_code = 'supplier_available' and owner_id = $1";
        let available = Money::from_count(self.market.sum(sql, values![SUPPLIER]).await, Currency::CNY);
        if available.floor_to_minor().count() > 1_000_000 {
            self.market.paid_out(i64::from(self.step), available.floor_to_minor()).await;
        }
    }

    async fn time_passes(&mut self) {
        let halves = self.chance.below(60) + 1;
        self.market.clock.advance(Duration::from_secs(halves * 1800));
        // Now and then the packages' turn comes before that of their orders.
        if self.chance.chance(50) {
            self.packages().await;
        }
        self.orders().await;
        self.packages().await;
    }

    async fn packages(&self) {
        for turn in [Turn::Expire, Turn::SellOut, Turn::Restock] {
            let (store, now) = (self.market.door.store(), self.market.now());
            for due in PackageDue::list(store, turn, now, 100).await.unwrap() {
                let (caller, package_id) = (due.caller(), due.package_id);
                let told = match turn {
                    Turn::Expire => self.market.run_as(caller, Expire { package_id }).await,
                    Turn::SellOut => self.market.run_as(caller, SellOut { package_id }).await,
                    Turn::Restock => self.market.run_as(caller, Restock { package_id }).await,
                };
                assert_eq!(told.code, 200, "{told:?}");
            }
        }
    }

    async fn orders(&self) {
        self.market.release_due().await;
        for due in self.market.due(orders_to_time_out(self.market.now(), 100, &self.market.house)).await {
            let time_out = Cancel { order_id: due.id, cause: Cause::Timeout };
            assert_eq!(self.market.run_as(due.caller("timeout"), time_out).await.code, 200);
        }
        for due in self.market.due(orders_to_close(self.market.now(), 100)).await {
            let close = Close { order_id: due.id };
            assert_eq!(self.market.run_as(due.caller("close"), close).await.code, 200);
        }
    }

    /// One command; what it is called.
    async fn one(&mut self) -> String {
        let description = || "for the walk".to_owned();
        let (name, told) = match self.chance.below(100) {
            0..5 => ("top-up", self.market.top_up("4000").await),
            5..17 => {
                let quota = i64::try_from(self.chance.below(300_000)).unwrap() * 1_000_000;
                let create = Create { buyer_id: BUYER, package_id: 17, quota_count: quota };
                ("create", self.market.buy(create).await)
            }
            17..33 => {
                let states = if self.chance.chance(90) { "'pending'" } else { "'paid', 'using', 'expired'" };
                let order_id = self.any(states).await;
                ("pay", self.market.buy(Pay { order_id }).await)
            }
            33..35 => {
                let order_id = self.any("'pending', 'using'").await;
                ("cancel", self.market.buy(Cancel { order_id, cause: Cause::Buyer }).await)
            }
            35..76 => ("use", self.use_some().await),
            76..82 => ("refund", self.refund().await),
            82..84 => {
                let bonus = Bonus { amount: self.amount(5_000_000), description: description() };
                ("bonus", self.market.administer(SUPPLIER_TENANT, bonus).await)
            }
            84..87 => {
                let to = Beneficiary::Supplier(ids::Supplier(SUPPLIER));
                let compensate =
                    Compensate { to, amount: self.amount(5_000_000), description: description() };
                ("compensate", self.market.administer(SUPPLIER_TENANT, compensate).await)
            }
            87..91 => {
                self.pay_out().await;
                return "payout".into();
            }
            _ => {
                self.time_passes().await;
                return "time".into();
            }
        };
        assert!(told.code < 500, "{name}: {told:?}");
        format!("{name} ({} {})", told.code, told.error())
    }
}

async fn walk(seed: u64) {
    let market = trading().await;
    market.top_up("20000").await;
    let mut walk = Walk { market, chance: Seeded::new(seed), step: 0 };
    for step in 0..COMMANDS {
        walk.step = step + 1;
        let name = walk.one().await;
        walk.market.sound(&format!("{name}, step {step} of seed {seed}")).await;
    }
    let calls =
        walk.market.count("select count(*) from supply_usage_records where total_cost > 0", vec![]).await;
    let ended = walk
        .market
        .count(
            "select count(*) from supply_orders where close_reason in ('refunded', 'quota_used_up')",
            vec![],
        )
        .await;
    // In the end everything is over, and nothing is left in between.
    walk.market.clock.advance(Duration::from_secs(60 * 24 * 3600));
    walk.packages().await;
    walk.market.sound(&format!("the package's end, seed {seed}")).await;
    walk.orders().await;
    walk.market.sound(&format!("the end, seed {seed}")).await;
    let between = "select count(*) from billing_accounts where account_code in ('order_escrow', 'supplier_pending') and balance <> 0";
    assert_eq!(walk.market.count(between, vec![]).await, 0);
    assert_eq!(walk.market.sum("select frozen_quota from supply_accounts where id = 5", vec![]).await, 0);
    assert!(calls > 40 && ended > 0, "the walk goes somewhere: {calls} calls, {ended} orders");
}

#[tokio::test]
async fn nothing_comes_apart_on_a_walk() {
    walk(1).await;
}

#[tokio::test]
async fn nothing_comes_apart_on_another_walk() {
    walk(20_260_327).await;
}

#[tokio::test]
async fn a_refund_reaches_over_many_earnings() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    for number in 0..12 {
        market.administer(BUYER_TENANT, call(&market, order, &format!("call-{number}"), (7, 11))).await;
        market.clock.advance(Duration::from_secs(24 * 3600));
    }
    // Some are released, of which a part is paid out; some are held.
    market.release_due().await;
    let charge = cny("0.3");
    let told = market.administer(SUPPLIER_TENANT, Refund { order_id: order, charge: Some(charge) }).await;
    assert_eq!(told.code, 200, "{told:?}");
    market.sound("the refund").await;
    let account = Account::pending(ids::Supplier(SUPPLIER));
    assert_eq!(market.balance(account.code().as_str()).await, "0", "what is held goes first");
    let whole =
        "select count(*) from supply_earnings where earnings_type = 'usage' and reversed_amount = amount";
    assert!(market.count(whole, vec![]).await >= 7);
    let shown = "select count(*) from supply_earnings where earnings_type = 'refund' and amount = $1";
    assert_eq!(market.count(shown, vec![Value::Money(-255_000)]).await, 1);
}
