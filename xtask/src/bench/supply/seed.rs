//! The market that is measured: one supplier made over the API, and copies of it made in SQL, all alike but for
//! their ids. Ids of a table begin at a number of its own, and a copy's ids are its original's plus a step: so an
//! id can be told from any other number in a recorded statement, and moved to another copy.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use play::{Market, Phone, Supplier};
use serde_json::{Value as Json, json};

use crate::services::psql::Psql;

/// Between the ids of a row and of its next copy; more than rows of one supplier.
pub(super) const STEP: i64 = 1_000;
/// Ids of each table begin at a multiple of this.
pub(super) const RANGE: i64 = 20_000_000;
/// So many copies fit below the ids of the measuring.
pub(super) const COPIES_MAX: i64 = 10_000;
/// Packages of a batch.
pub(super) const ITEMS: usize = 200;
/// Suppliers who have withdrawn before anything is measured. A table that its statistics call empty is read whole by each
/// plan made since, however it grows: no market in operation has one.
pub(super) const HISTORY: usize = 500;
/// CNY that each supplier can withdraw at least, and that each does.
pub(super) const EARNED: u64 = 1_000;
pub(super) const WITHDRAWN: u64 = 50;

/// How many suppliers there are, and how many of them have packages for a batch.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) suppliers: usize,
    pub(super) batches: usize,
}

/// What there is; copy number 0 is the original.
pub(super) struct Seeded {
    pub(super) owner: Supplier,
    /// The code that all suppliers were sent.
    pub(super) code: String,
    /// The draft that is published.
    pub(super) draft: i64,
    /// The packages of the batch.
    pub(super) packages: Vec<i64>,
    /// Tokens of the copies' owners, the original's first.
    pub(super) tokens: Vec<String>,
}

/// Where ids begin within their table's range, by when their rows are made.
#[derive(Clone, Copy)]
pub(super) enum Era {
    Seeding,
    /// Beyond the copies: the id of a recorded row, moved to another copy, meets no row of the seeding.
    Measuring,
}

/// Ranges of their own for all ids that are given from now on.
///
/// # Errors
/// As `psql` says.
pub(super) fn spread_ids(admin: &str, era: Era) -> Result<()> {
    let first = match era {
        Era::Seeding => 0,
        Era::Measuring => STEP * COPIES_MAX,
    };
    let sql = format!(
        "do $$ declare r record; n bigint := 1; begin
           for r in select schemaname, sequencename from pg_sequences order by 1, 2 loop
             perform setval(format('%I.%I', r.schemaname, r.sequencename), n * {RANGE} + {first}); n := n + 1;
           end loop; end $$"
    );
    Psql::at(admin)?.ask(&sql).map(drop)
}

/// Makes all of it.
///
/// # Errors
/// No answer of the server, or a refusal; as `psql` says.
pub(super) async fn seed(market: &Market, phone: &Phone, admin: &str, size: Size) -> Result<Seeded> {
    let made = original(market, phone).await.map_err(|cause| anyhow!(cause))?;
    copy(admin, &made, size)?;
    let mut tokens = vec![made.owner.token.clone()];
    for number in 1..=size.suppliers {
        let moved = |id: i64| id + STEP * i64::try_from(number).unwrap_or_default();
        let of = (moved(made.owner.tenant_id), moved(made.owner.operator_id));
        let token = market.token(of, &play::market::SCOPES).await;
        tokens.push(token.map_err(|cause| anyhow!(cause)).context("the token of a copy")?);
    }
    Ok(Seeded { tokens, ..made })
}

async fn original(market: &Market, phone: &Phone) -> Result<Seeded, String> {
    market.floors().await?;
    let owner = market.supplier("original").await?;
    let account = market.account(&owner, &format!("sk-{}", "b4".repeat(20))).await?;
    let draft = market.draft(&owner, account, 1_000_000).await?;
    let mut packages = Vec::new();
    for _ in 0..ITEMS {
        packages.push(market.draft(&owner, account, 1_000_000).await?);
    }
    market.earn(&owner, &format!("sk-{}", "c5".repeat(20)), EARNED, &rfc3339(crate::lab::now())).await?;
    released(market, &owner).await?;
    let before = phone.count(&owner.phone);
    market.client.make("/api/v1/supply/settlements/withdraw/sms-code", &owner.token, Json::Null).await?;
    let code = phone.code(&owner.phone, before).await?;
    Ok(Seeded { owner, code, draft, packages, tokens: Vec::new() })
}

fn rfc3339(seconds: i64) -> String {
    kernel::Time::from_micros(seconds * 1_000_000).to_rfc3339_millis()
}

/// Until the scheduler has released the earning.
async fn released(market: &Market, owner: &Supplier) -> Result<(), String> {
    for _ in 0..600 {
        let bill = market.client.read("/api/v1/supply/billing", &owner.token).await?;
        if bill.pointer("/balance/pending_amount_minor") == Some(&json!("0")) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("the earning was not released within 30 s".into())
}

/// Waits until every statement of the past is made; then the server's statistics know of all, and the ids of the
/// measuring begin.
///
/// # Errors
/// As `psql` says; statements are still missing after 60 s.
pub(super) async fn settle(admin: &str) -> Result<()> {
    let left = "select count(*) from outbox_deliveries where status in ('pending', 'sending')";
    for _ in 0..1200 {
        if Psql::at(admin)?.ask(left)?.trim() == "0" {
            Psql::at(admin)?.ask("vacuum analyze")?;
            return spread_ids(admin, Era::Measuring);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("statements of the first withdrawals are missing after 60 s")
}

fn copy(admin: &str, made: &Seeded, Size { suppliers, batches }: Size) -> Result<()> {
    let moved = |names: &[&str]| -> String {
        names.iter().map(|name| format!("'{name}', r.{name} + g * {STEP}")).collect::<Vec<_>>().join(", ")
    };
    let tenant = made.owner.tenant_id;
    let of_tenant = format!("r.tenant_id = {tenant}");
    let fingerprint = "md5(r.id::text || '-' || g) || md5(g || '-' || r.id)";
    let tables = [
        (
            "core_tenants",
            format!("r.id = {tenant}"),
            format!("{}, 'code', r.code || '-' || g", moved(&["id"])),
            suppliers,
        ),
        ("iam_users", of_tenant.clone(), moved(&["id", "tenant_id"]), suppliers),
        (
            "billing_accounts",
            format!("{of_tenant} and r.owner_type = 'supplier'"),
            moved(&["id", "tenant_id", "owner_id"]),
            suppliers,
        ),
        (
            "supply_suppliers",
            of_tenant.clone(),
            moved(&["id", "tenant_id", "user_id", "available_account_id"]),
            suppliers,
        ),
        (
            "supply_accounts",
            of_tenant.clone(),
            format!(
                "{}, 'key_id', 'ck_' || lpad(r.id || 'x' || g, 22, '0'), 'credential_fingerprint', {fingerprint}",
                moved(&["id", "tenant_id", "user_id", "created_by", "updated_by"])
            ),
            suppliers,
        ),
        (
            "supply_earnings",
            of_tenant.clone(),
            format!(
                "{}, 'earnings_type', 'bonus', 'order_id', null, 'usage_record_id', null",
                moved(&["id", "tenant_id", "user_id", "supply_account_id"])
            ),
            suppliers,
        ),
        (
            "supply_packages",
            format!("r.id = {}", made.draft),
            moved(&["id", "tenant_id", "user_id", "supply_account_id"]),
            suppliers,
        ),
        (
            "supply_packages",
            format!(
                "{of_tenant} and r.id > {} and r.id <= {}",
                made.draft,
                made.packages.last().copied().unwrap_or_default()
            ),
            moved(&["id", "tenant_id", "user_id", "supply_account_id"]),
            batches,
        ),
        ("supply_sms_codes", of_tenant, moved(&["id", "tenant_id", "supplier_id", "created_by"]), suppliers),
    ];
    // All copies have the code that came to the original's phone.
    let mut sql = format!("{}\ndrop index uq_sms_code_ref;\n", include_str!("seed.sql"));
    for (table, which, changed, copies) in tables {
        sql.push_str(&format!(
            "select bench_copy('{table}', $which${which}$which$, $c${changed}$c$, {copies});\n"
        ));
    }
    Psql::at(admin)?.ask(&sql).context("copying the supplier").map(drop)
}
