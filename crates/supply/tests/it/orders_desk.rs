//! What tests of orders begin with: a package on sale, a buyer with a key, short words for who does what; and what
//! must hold after every command.

use std::fmt::Debug;
use std::time::Duration;

use kernel::money::{Currency, Money, Rate, Tokens};
use ledger::ids;
use ledger::{draw, posting, split::Split};
use store::{Query, Value, Write, values};
use supply::books::{self, Books};
use supply::earnings::Release;
use supply::orders::{Call, Create, Ending, Pay, RecordUsage};
use supply::packages::Publish;
use supply::platform::{Due, TopUp, earnings_to_release};
use supply::rows::Earning;
use supply::{Action, Caller, Capacity, Context};

use crate::market::{ADMIN, BUYER, BUYER_TENANT, Market, SUPPLIER, SUPPLIER_TENANT, Told, market};

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
    pub(crate) async fn buy<A: Action + Debug>(&self, action: A) -> Told {
        self.run_as(self.caller(BUYER_TENANT, BUYER, ""), action).await
    }

    /// Of the platform's staff, on an object of this tenant.
    pub(crate) async fn administer<A: Action + Debug>(&self, tenant: i64, action: A) -> Told {
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

    pub(crate) async fn due(&self, query: Query) -> Vec<Due> {
        let rows = self.door.store().query(query).await.unwrap();
        rows.iter().map(|row| Due::read(row).unwrap()).collect()
    }

    /// What a withdrawal and its payout leave behind, for tests that only need a supplier who took money out.
    pub(crate) async fn paid_out(&self, settlement: i64, total: Money) {
        let context = Context {
            caller: Caller::system(SUPPLIER_TENANT, &format!("payout:{settlement}")),
            house: std::sync::Arc::clone(&self.house),
        };
        let at = self.now();
        let columns = Earning::COLUMNS;
        let earnings = format!(
            "select {columns} from supply_earnings e where e.user_id = $1 and e.available_amount > 0"
        );
        let reads =
            vec![books::of_supplier(SUPPLIER_TENANT), Query::new("earnings", earnings, values![SUPPLIER])];
        let paid = self.door.maintain("payout", reads, move |rows, _| {
            let mut books = Books::read(&rows[0])?;
            let lots: Vec<_> = rows[1]
                .iter()
                .map(|row| Earning::read(row).unwrap())
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
            let fee = Split::of_withdrawal(total, Rate::percent(1)).unwrap();
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
    pub(crate) async fn table(&self) -> Vec<String> {
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
