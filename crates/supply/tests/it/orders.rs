//! Orders and calls through the door: the worked example of section 11.6, repeats, races.

use std::time::Duration;

use kernel::money::{Currency, Money, Tokens};
use ledger::ids;
use ledger::{draw, posting, split::Split};
use serde_json::json;
use store::{Query, Value, Write, values};
use supply::books::{self, Books};
use supply::earnings::Release;
use supply::orders::{Call, Cancel, Cause, Close, Create, Ending, Pay, RecordUsage, Refund};
use supply::packages::Publish;
use supply::platform::{TopUp, earnings_to_release, orders_to_close, orders_to_time_out};
use supply::{Action, Caller, Capacity, Context};

use crate::market::{
    ADMIN, BUYER, BUYER_TENANT, Market, OTHER_TENANT, SUPPLIER, SUPPLIER_TENANT, Told, market, told,
};

pub(crate) const KEY: i64 = 31;
pub(crate) const WAIT: Duration = Duration::from_secs(20);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn cny(minor: &str) -> Money {
    Money::parse_minor(minor, Currency::CNY).unwrap()
}

/// A market with an active package, 17, of 5,000,000 tokens at 8 and 32, and a buyer with an API key.
pub(crate) async fn trading() -> Market {
    let market = market().await;
    market.account(5, "active").await;
    market.package(17, 5, "draft").await;
    market.floor("openai", "gpt-x", 8, 32).await;
    assert_eq!(market.run("", Publish { package_id: 17 }).await.code, 200);
    let at = market.now();
    let sql = "insert into auth_api_keys (id, tenant_id, user_id, name, prefix, key_hmac, created_at, updated_at) values ($1, $2, $3, 'first', 'lgw_00000000', $4, $5, $6)";
    let row = values![KEY, BUYER_TENANT, BUYER, vec![7_u8; 32], at, at];
    market.force(vec![Write::one("key", sql, row)]).await;
    market
}

/// A call with these tokens, under its own id.
pub(crate) fn call(market: &Market, order_id: i64, id: &str, (input, output): (u64, u64)) -> RecordUsage {
    RecordUsage {
        order_id,
        api_key_id: KEY,
        request_id: id.into(),
        tokens: Tokens { input, output },
        call: Call {
            ending: Ending::Success,
            endpoint: "/v1/chat/completions".into(),
            upstream_request_id: Some("up-1".into()),
            response_status: 200,
            latency_ms: 250,
            error_message: None,
            started_at: market.now(),
            completed_at: market.now(),
        },
    }
}

impl Market {
    /// The buyer's own, without a key.
    pub(crate) async fn buy<A: Action + std::fmt::Debug>(&self, action: A) -> Told {
        self.run_as(self.caller(BUYER_TENANT, BUYER, ""), action).await
    }

    /// Of the platform's staff, on an object of this tenant.
    pub(crate) async fn administer<A: Action + std::fmt::Debug>(&self, tenant: i64, action: A) -> Told {
        let caller = Caller { capacity: Capacity::Admin, role: "admin", ..self.caller(tenant, ADMIN, "") };
        self.run_as(caller, action).await
    }

    pub(crate) async fn top_up(&self, minor: &str) -> Told {
        self.administer(BUYER_TENANT, TopUp { buyer_id: BUYER, amount: cny(minor) }).await
    }

    /// A paid order of so many tokens.
    pub(crate) async fn order(&self, tokens: i64) -> i64 {
        let create = Create { buyer_id: BUYER, package_id: 17, quota_count: tokens * 1_000_000 };
        let told = self.buy(create).await;
        assert_eq!(told.code, 201, "{told:?}");
        let order_id = told.body["data"]["order_id"].as_i64().unwrap();
        let paid = self.buy(Pay { order_id }).await;
        assert_eq!(paid.code, 200, "{paid:?}");
        order_id
    }

    /// Releases all earnings whose hold is over.
    pub(crate) async fn release_due(&self) -> usize {
        let due = self.due(earnings_to_release(self.now(), 1000)).await;
        for due in &due {
            let told = self.run_as(due.caller("release"), Release { earning_id: due.id }).await;
            assert_eq!(told.code, 200, "{told:?}");
        }
        due.len()
    }

    pub(crate) async fn due(&self, query: Query) -> Vec<supply::platform::Due> {
        let rows = self.door.store().query(query).await.unwrap();
        rows.iter().map(|row| supply::platform::Due::read(row).unwrap()).collect()
    }

    /// What a withdrawal and its payout leave behind, for tests that only need a supplier who took money out.
    pub(crate) async fn paid_out(&self, settlement: i64, total: Money) {
        let context = Context {
            caller: Caller::system(SUPPLIER_TENANT, &format!("payout:{settlement}")),
            house: std::sync::Arc::clone(&self.house),
        };
        let at = self.now();
        let columns = supply::rows::Earning::COLUMNS;
        let earnings = format!(
            "select {columns} from supply_earnings e where e.user_id = $1 and e.available_amount > 0"
        );
        let reads =
            vec![books::of_supplier(SUPPLIER_TENANT), Query::new("earnings", earnings, values![SUPPLIER])];
        let paid = self.door.maintain("payout", reads, move |rows, _| {
            let mut books = Books::read(&rows[0])?;
            let lots: Vec<_> = rows[1]
                .iter()
                .map(|row| supply::rows::Earning::read(row).unwrap())
                .map(|row| draw::Lot {
                    earning: ids::Earning(row.id),
                    available_at: row.available_at,
                    amount: row.available,
                })
                .collect();
            let mut writes = Vec::new();
            for item in draw::oldest_first(total, &lots).unwrap() {
                let sql = "update supply_earnings set available_amount = available_amount - $1, withdrawn_amount = withdrawn_amount + $2, version = version + 1, status = case when available_amount = $3 then 'withdrawn' else 'available' end where id = $4";
                let count = Value::Money(item.amount.count());
                let row = [vec![count.clone(), count.clone(), count], values![item.earning.0]].concat();
                writes.push(Write::one("earning", sql, row));
            }
            let (settlement, supplier) = (ids::Settlement(settlement), ids::Supplier(SUPPLIER));
            let fee = Split::of_withdrawal(total, kernel::money::Rate::percent(1)).unwrap();
            for journal in [
                posting::withdraw(settlement, supplier, total).unwrap(),
                posting::payout_ok(settlement, supplier, fee).unwrap(),
            ] {
                writes.extend(books.post(&context, &journal, at).unwrap());
            }
            writes.extend(books.balances(at));
            Ok((writes, ()))
        });
        paid.await.unwrap();
    }

    /// Sum of an account's entries over all owners, in minor units, by its kind.
    pub(crate) async fn derived(&self, code: &str) -> String {
        let debit = matches!(
            code,
            "cash_clearing" | "supplier_receivable" | "compensation_expense" | "bonus_expense"
        );
        let plus = if debit { "dr" } else { "cr" };
        let sql = "select coalesce(sum(case when e.direction = $1 then e.amount else -e.amount end), 0) from billing_ledger_entries e join billing_accounts a on a.id = e.billing_account_id where a.account_code = $2";
        Money::from_count(self.sum(sql, values![plus, code]).await, Currency::CNY).minor()
    }

    pub(crate) async fn sum(&self, sql: &str, by: Vec<Value>) -> i64 {
        self.count(sql, by).await
    }

    /// The row of section 11.6's table.
    async fn table(&self) -> Vec<String> {
        let mut row = Vec::new();
        for code in [
            "cash_clearing",
            "buyer_prepaid",
            "order_escrow",
            "supplier_pending",
            "supplier_available",
            "supplier_frozen",
            "platform_fee_revenue",
            "withdraw_fee_revenue",
            "supplier_receivable",
        ] {
            row.push(self.derived(code).await);
        }
        row
    }

    /// What holds after every command: cached balances are those of the entries, journals balance, the supplier's
    /// balances are those of its earnings, escrows those of open orders, quotas add up.
    pub(crate) async fn sound(&self, after: &str) {
        for (rule, sql) in [
            ("a cached balance is the sum of its entries", CACHED),
            ("a journal balances", JOURNALS),
            ("the available balance is that of released earnings (11.5, 4)", AVAILABLE),
            ("the pending balance is that of held earnings (11.5, 4)", PENDING),
            ("an escrow is what calls left of an open order", ESCROW),
            ("what is reserved waits for its payment", RESERVED),
            ("what is sold is an order's", SOLD),
            ("what is committed is offered or reserved", COMMITTED),
            ("an order's totals are those of its calls", TOTALS),
        ] {
            assert_eq!(self.count(sql, vec![]).await, 0, "{rule}, after {after}");
        }
    }
}

const CACHED: &str = "select count(*) from billing_accounts a where a.balance is not null
  and a.balance <> (select coalesce(sum(case when (e.direction = 'dr') = (a.account_code = 'supplier_receivable') then e.amount else -e.amount end), 0)
    from billing_ledger_entries e where e.billing_account_id = a.id)";
const JOURNALS: &str =
    "select count(*) from (select journal_id from billing_ledger_entries group by journal_id
  having sum(case direction when 'dr' then amount else -amount end) <> 0) x";
const AVAILABLE: &str = "select count(*) from billing_accounts a where a.account_code = 'supplier_available'
  and a.balance <> (select coalesce(sum(e.available_amount), 0) from supply_earnings e where e.user_id = a.owner_id and e.status <> 'pending')";
const PENDING: &str = "select count(*) from billing_accounts a where a.account_code = 'supplier_pending'
  and a.balance <> (select coalesce(sum(e.amount - e.reversed_amount), 0) from supply_earnings e where e.user_id = a.owner_id and e.status = 'pending' and e.amount > 0)";
const ESCROW: &str = "select count(*) from billing_accounts a join supply_orders o on o.id = a.owner_id where a.account_code = 'order_escrow'
  and a.balance <> case when o.status in ('paid', 'using') then o.total_amount - o.platform_fee - o.supplier_earnings else 0 end";
const RESERVED: &str = "select count(*) from supply_packages p where p.reserved_quota <> (select coalesce(sum(o.quota_amount), 0) from supply_orders o where o.supply_package_id = p.id and o.status = 'pending')";
const SOLD: &str = "select count(*) from supply_packages p where p.sold_quota <> (select coalesce(sum(case o.status when 'refunded' then o.used_quota else o.quota_amount end), 0)
  from supply_orders o where o.supply_package_id = p.id and o.paid_at is not null)";
const COMMITTED: &str = "select count(*) from supply_accounts a where a.frozen_quota <> (select coalesce(sum(case p.status when 'expired' then p.reserved_quota else p.available_quota + p.reserved_quota end), 0)
  from supply_packages p where p.supply_account_id = a.id and p.status <> 'draft')";
const TOTALS: &str = "select count(*) from supply_orders o where o.platform_fee + o.supplier_earnings <> (select coalesce(sum(r.total_cost), 0) from supply_usage_records r where r.order_id = o.id)";

#[tokio::test]
async fn the_worked_example_comes_out_to_the_last_digit() {
    // Section 11.6; rows 5 to 7 are the withdrawals' own tests.
    let market = trading().await;
    assert_eq!(market.top_up("20000").await.code, 201);
    assert_eq!(market.table().await, ["20000", "20000", "0", "0", "0", "0", "0", "0", "0"]);
    let order = market.order(5_000_000).await;
    assert_eq!(market.table().await, ["20000", "4000", "16000", "0", "0", "0", "0", "0", "0"]);
    for (id, tokens) in [("call-1", (2_000_000, 1_500_000)), ("call-2", (1_234, 567))] {
        let told = market.administer(BUYER_TENANT, call(&market, order, id, tokens)).await;
        assert_eq!(told.code, 200, "{told:?}");
    }
    assert_eq!(
        market.table().await,
        ["20000", "4000", "9597.1984", "5442.38136", "0", "0", "960.42024", "0", "0"]
    );
    market.clock.advance(DAY * 7 - Duration::from_micros(1));
    assert_eq!(market.release_due().await, 0);
    market.clock.advance(Duration::from_micros(1));
    assert_eq!(market.release_due().await, 2);
    assert_eq!(
        market.table().await,
        ["20000", "4000", "9597.1984", "0", "5442.38136", "0", "960.42024", "0", "0"]
    );
    market.sound("releases").await;
    market.paid_out(1, cny("5000")).await;
    assert_eq!(
        market.table().await,
        ["15050", "4000", "9597.1984", "0", "442.38136", "0", "960.42024", "50", "0"]
    );
    let refund = Refund { order_id: order, charge: Some(cny("1000")) };
    let told = market.administer(SUPPLIER_TENANT, refund).await;
    assert_eq!(told.code, 200, "{told:?}");
    // Rows 9 and 10 are one command: it gives 10.00 of charges back and closes.
    let last = ["15050", "14597.1984", "0", "0", "0", "0", "810.42024", "50", "407.61864"];
    assert_eq!(market.table().await, last);
    assert_eq!(told.body["data"]["returned_amount_minor"], "9597.1984");
    market.sound("the refund").await;
    let after_nine =
        "select count(*) from billing_ledger_entries e join billing_journals j on j.id = e.journal_id
        where j.journal_type = 'J-REFUND' and e.direction = 'cr' and e.balance_after = $1";
    assert_eq!(market.count(after_nine, vec![Value::Money(5_000_000_000)]).await, 1, "row 9: prepaid 5000");
}

#[tokio::test]
async fn a_debt_is_paid_by_the_next_release() {
    let market = trading().await;
    market.top_up("40000").await;
    let order = market.order(2_000_000).await;
    market.administer(BUYER_TENANT, call(&market, order, "call-1", (0, 1_000_000))).await;
    market.clock.advance(DAY * 7);
    market.release_due().await;
    market.paid_out(1, cny("2700")).await;
    let told = market.administer(SUPPLIER_TENANT, Refund { order_id: order, charge: None }).await;
    assert_eq!(told.body["data"]["refunded_amount_minor"], "3200");
    assert_eq!(market.balance("supplier_receivable").await, "2700");
    market.sound("the refund").await;
    let next = market.order(2_000_000).await;
    market.administer(BUYER_TENANT, call(&market, next, "call-2", (0, 1_500_000))).await;
    market.clock.advance(DAY * 7);
    assert_eq!(market.release_due().await, 1);
    assert_eq!(
        (market.balance("supplier_receivable").await, market.balance("supplier_available").await),
        ("0".into(), "1380".into())
    );
    assert_eq!(market.announced("supply.earning.reverse.succeeded").await, 2);
    market.sound("the recovery").await;
}

#[tokio::test]
async fn a_call_reported_again_is_billed_once_and_answered_alike() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    let report = || market.administer(BUYER_TENANT, call(&market, order, "call-1", (1_000, 2_000)));
    let first = report().await;
    let again = report().await;
    assert_eq!((first.code, &again.body), (200, &first.body));
    market.clock.advance(DAY);
    let other = market.administer(BUYER_TENANT, call(&market, order, "call-1", (1_000, 2_001))).await;
    assert_eq!((other.code, other.error()), (409, "SUP_COM_4092"));
    assert_eq!(market.audited("supply.order.use", "SUP_COM_4092").await, 1);
    let records = market.count("select count(*) from supply_usage_records", vec![]).await;
    let journals =
        market.count("select count(*) from billing_journals where journal_type = 'J-USAGE'", vec![]).await;
    assert_eq!((records, journals), (1, 1));
    market.sound("repeats").await;
}

#[tokio::test]
async fn a_call_raced_over_two_doors_is_billed_once() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    for round in 0..5 {
        let submit = |key: &str| {
            let caller = Caller { capacity: Capacity::System, ..market.caller(BUYER_TENANT, ADMIN, key) };
            market.submission(caller, call(&market, order, &format!("call-{round}"), (100, 200)), WAIT)
        };
        let (one, two) = tokio::join!(market.door.submit(submit("")), market.other.submit(submit("")));
        let (one, two) = (told(one), told(two));
        assert_eq!((one.code, two.code, &one.body), (200, 200, &two.body), "{one:?} {two:?}");
    }
    assert_eq!(market.count("select count(*) from supply_usage_records", vec![]).await, 5);
    assert_eq!(market.count("select count(*) from supply_earnings", vec![]).await, 5);
    market.sound("the race").await;
}

#[tokio::test]
async fn calls_of_one_order_side_by_side_are_all_billed() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    let submit = |id: &str| {
        let caller = Caller { capacity: Capacity::System, ..market.caller(BUYER_TENANT, ADMIN, "") };
        market.submission(caller, call(&market, order, id, (10, 20)), WAIT)
    };
    let (a, b, c, d) = tokio::join!(
        market.door.submit(submit("a")),
        market.other.submit(submit("b")),
        market.door.submit(submit("c")),
        market.other.submit(submit("d"))
    );
    assert_eq!([a, b, c, d].map(|answer| told(answer).code), [200; 4]);
    let counted = "select count(*) from supply_accounts where total_requests = 4 and total_tokens = 120 and success_rate = $1";
    assert_eq!(market.count(counted, vec![Value::Money(100_000_000)]).await, 1);
    market.sound("side by side").await;
}

#[tokio::test]
async fn orders_payments_and_calls_of_one_package_wait_for_each_other() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    let create = Create { buyer_id: BUYER, package_id: 17, quota_count: 1_000_000_000 };
    let pending = market.buy(create).await.body["data"]["order_id"].as_i64().unwrap();
    let buyer = || market.caller(BUYER_TENANT, BUYER, "");
    let gateway = || Caller { capacity: Capacity::System, ..buyer() };
    let usage = |id: &str| market.submission(gateway(), call(&market, order, id, (10, 20)), WAIT);
    let (a, b, c, d, e) = tokio::join!(
        market.door.submit(usage("a")),
        market.other.submit(market.submission(buyer(), create, WAIT)),
        market.door.submit(market.submission(buyer(), Pay { order_id: pending }, WAIT)),
        market.other.submit(usage("b")),
        market.door.submit(market.submission(buyer(), create, WAIT))
    );
    assert_eq!([a, b, c, d, e].map(|answer| told(answer).code), [200, 201, 200, 200, 201]);
    market.sound("all of them").await;
}

#[tokio::test]
async fn an_order_is_paid_once_and_only_with_the_money() {
    let market = trading().await;
    let create = Create { buyer_id: BUYER, package_id: 17, quota_count: 1_000_000_000_000 };
    let order_id = market.buy(create).await.body["data"]["order_id"].as_i64().unwrap();
    market.top_up("3199").await;
    assert_eq!(market.buy(Pay { order_id }).await.error(), "SUP_ORD_4021");
    market.top_up("1").await;
    let submit =
        |key: &str| market.submission(market.caller(BUYER_TENANT, BUYER, key), Pay { order_id }, WAIT);
    let (one, two) = tokio::join!(
        market.door.submit(submit("key-0000000000001")),
        market.other.submit(submit("key-0000000000002"))
    );
    let mut codes = [told(one).code, told(two).code];
    codes.sort_unstable();
    assert_eq!(codes, [200, 409]);
    assert_eq!(market.announced("supply.order.pay.succeeded").await, 1);
    let frozen = "select frozen_quota from supply_accounts where id = 5";
    assert_eq!(market.sum(frozen, vec![]).await, 4_000_000_000_000, "what is sold is consumed");
    market.sound("the payment").await;
}

#[tokio::test]
async fn of_two_buyers_of_the_last_quota_one_gets_it() {
    let market = trading().await;
    let submit = |key: &str| {
        let create = Create { buyer_id: BUYER, package_id: 17, quota_count: 3_000_000_000_000 };
        market.submission(market.caller(BUYER_TENANT, BUYER, key), create, WAIT)
    };
    let (one, two) = tokio::join!(
        market.door.submit(submit("key-0000000000001")),
        market.other.submit(submit("key-0000000000002"))
    );
    let (one, two) = (told(one), told(two));
    let lost = if one.code == 201 { &two } else { &one };
    assert_eq!((one.code.min(two.code), lost.error()), (201, "SUP_ORD_4001"));
    assert_eq!(lost.body["error"]["details"]["available"], json!(2_000_000));
    market.sound("the race").await;
}

#[tokio::test]
async fn what_is_not_paid_in_time_may_be_bought_by_others() {
    let market = trading().await;
    market.top_up("20000").await;
    let create = Create { buyer_id: BUYER, package_id: 17, quota_count: 5_000_000_000_000 };
    let order_id = market.buy(create).await.body["data"]["order_id"].as_i64().unwrap();
    let another = Create { quota_count: 1_000_000, ..create };
    assert_eq!(market.buy(another).await.error(), "SUP_ORD_4001");
    let list = || market.due(orders_to_time_out(market.now(), 10, &market.house));
    market.clock.advance(Duration::from_secs(899));
    assert!(list().await.is_empty());
    market.clock.advance(Duration::from_secs(1));
    assert_eq!(market.buy(Pay { order_id }).await.error(), "SUP_ORD_4091", "the scheduler is late");
    let due = list().await[0];
    let time_out = Cancel { order_id: due.id, cause: Cause::Timeout };
    assert_eq!(market.run_as(due.caller("timeout"), time_out).await.code, 200);
    let again = market.run_as(due.caller("timeout"), time_out).await;
    assert!(again.replayed);
    assert_eq!(market.buy(another).await.code, 201);
    assert_eq!(market.announced("supply.order.close.succeeded").await, 1);
    market.sound("the time-out").await;
}

#[tokio::test]
async fn the_end_of_validity_gives_the_rest_of_the_escrow_back() {
    let market = trading().await;
    market.top_up("20000").await;
    let order = market.order(1_000_000).await;
    market.administer(BUYER_TENANT, call(&market, order, "call-1", (0, 500_000))).await;
    market.clock.advance(DAY * 30);
    let late = market.administer(BUYER_TENANT, call(&market, order, "call-2", (0, 1))).await;
    assert_eq!(late.error(), "SUP_ORD_4091");
    let due = market.due(orders_to_close(market.now(), 10)).await;
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [order]);
    assert_eq!(market.run_as(due[0].caller("close"), Close { order_id: order }).await.code, 200);
    assert_eq!(market.derived("buyer_prepaid").await, "18400");
    for refused in [
        market.administer(SUPPLIER_TENANT, Refund { order_id: order, charge: None }).await,
        market.buy(Pay { order_id: order }).await,
        market.buy(Cancel { order_id: order, cause: Cause::Buyer }).await,
    ] {
        assert_eq!(refused.error(), "SUP_ORD_4091");
    }
    market.sound("the end").await;
}

#[tokio::test]
async fn tiny_calls_never_cost_more_than_the_escrow() {
    let market = trading().await;
    // 99,999 tokens at 0.100001 a million come to one millionth less than 1, and 5,000 to half a millionth more
    // than they are rounded up from.
    let sql = "update supply_packages set price_per_1m_input = $1, price_per_1m_output = $2";
    let price = Value::Money(100_001);
    market.force(vec![Write::any("prices", sql, vec![price.clone(), price])]).await;
    market.top_up("100").await;
    let order = market.order(99_999).await;
    assert_eq!(market.derived("order_escrow").await, "1");
    let mut costs = Vec::new();
    for number in 1..=20 {
        let tokens = if number < 20 { 5_000 } else { 4_999 };
        let call = call(&market, order, &format!("call-{number}"), (tokens, 0));
        let told = market.administer(BUYER_TENANT, call).await;
        costs.push(told.body["data"]["total_cost_minor"].as_str().unwrap().to_owned());
    }
    assert_eq!(costs[..19], ["0.050001"; 19].map(ToOwned::to_owned));
    assert_eq!(costs[19], "0.049981", "0.04999 without the others' roundings");
    assert_eq!(market.derived("order_escrow").await, "0");
    market.sound("tiny calls").await;
    let over = market.administer(BUYER_TENANT, call(&market, order, "over", (1, 0))).await;
    assert_eq!(over.error(), "SUP_ORD_4091", "the last call closed the order");
}

#[tokio::test]
async fn an_order_of_others_is_missing() {
    let market = trading().await;
    market.top_up("20000").await;
    let order_id = market.order(1_000_000).await;
    let stranger = || market.caller(OTHER_TENANT, 24, "");
    let supplier = || market.operator("");
    for told in [
        market.run_as(stranger(), Pay { order_id }).await,
        market.run_as(supplier(), Cancel { order_id, cause: Cause::Buyer }).await,
        market.administer(OTHER_TENANT, Refund { order_id, charge: None }).await,
        market.administer(OTHER_TENANT, call(&market, order_id, "call-1", (1, 1))).await,
    ] {
        assert_eq!((told.code, told.error()), (404, "SUP_ORD_4041"));
    }
    let foreign = Create { buyer_id: BUYER, package_id: 17, quota_count: 1_000_000 };
    assert_eq!(market.run_as(stranger(), foreign).await.error(), "SUP_COM_4041");
}
