//! What stands in the database before a run with the supply side begins: a platform, a supplier with an operator,
//! a buyer with a key, protected prices, mounted accounts, packages. Rows past all rules, announced to nobody;
//! whatever moves money is done by commands, at the beginning of each run.

use std::time::Duration;

use kernel::Time;
use kernel::money::Currency;
use ledger::{Account, ids};
use store::{Error, Memory, Value, Write, values};
use supply::books;

use crate::world::BEGAN;

/// Tenants: the platform is 1, then these.
pub(super) const SUPPLIER_TENANT: i64 = 12;
pub(super) const BUYER_TENANT: i64 = 13;
/// Users: the system is 1, then these.
pub(super) const SUPPLIER: i64 = 21;
pub(super) const OPERATOR: i64 = 22;
pub(super) const BUYER: i64 = 23;
pub(super) const ADMIN: i64 = 25;
/// The buyer's key.
pub(super) const KEY: i64 = 31;

/// Packages on sale, and drafts that their account has quota for one of.
pub(super) const ON_SALE: [i64; 4] = [31, 32, 33, 34];
pub(super) const DRAFTS: [i64; 2] = [41, 42];
/// Packages that there are none of.
pub(super) const MISSING: [i64; 2] = [98, 99];

const RICH: i64 = 5;
const POOR: i64 = 6;
/// A million tokens.
const MILLION: i64 = 1_000_000_000_000;
const VALID: Duration = Duration::from_secs(365 * 24 * 3600);

const TENANT: &str =
    "insert into core_tenants (id, code, name, type, created_at, updated_at) values ($1, $2, $3, $4, $5, $6)";
const USER: &str =
    "insert into iam_users (id, tenant_id, name, created_at, updated_at) values ($1, $2, $3, $4, $5)";
const SUPPLIER_ROW: &str = "insert into supply_suppliers (tenant_id, user_id, available_account_id, supplier_type, phone_cipher, phone_kms_key_alias, phone_key_version, phone_fingerprint, phone_masked, request_id, audit_trace_id, created_at, updated_at)
values ($1, $2, (select id from billing_accounts where owner_type = 'supplier' and owner_id = $3 and account_code = 'supplier_available'), 'company', 'v1.envelope', 'alias', 1, $4, '138****0000', 'stock', 'stock', $5, $6)";
const FLOOR: &str = "insert into supply_price_protection (provider, model, direction, floor_price, effective_from, request_id, created_at, created_by)
values ('openai', 'gpt-x', $1, $2, $3, 'stock', $4, $5)";
const API_KEY: &str =
    "insert into auth_api_keys (id, tenant_id, user_id, name, prefix, key_hmac, created_at, updated_at)
values ($1, $2, $3, 'first', 'lgw_00000000', $4, $5, $6)";
const ACCOUNT: &str = "insert into supply_accounts (id, tenant_id, user_id, platform, account_type, encrypted_credentials, key_id, status, risk_score, total_quota, available_quota, frozen_quota, is_verified, verified_at, tos_compliant, risk_ack_at, risk_ack_version, created_at, updated_at, created_by, updated_by, credential_kms_key_alias, credential_key_version, credential_fingerprint, request_id, audit_trace_id)
values ($1, $2, $3, 'openai', 'api_key', 'v1.envelope', $4, 'active', 10, $5, $6, $7, $8, $9, $10, $11, 'v1', $12, $13, $14, $15, 'alias', 1, $16, 'stock', 'stock')";
const PACKAGE: &str = "insert into supply_packages (id, tenant_id, supply_account_id, user_id, platform, model, total_quota, available_quota, sold_quota, price_per_1m_input, price_per_1m_output, valid_days, start_at, end_at, status, created_at, updated_at, request_id, audit_trace_id)
values ($1, $2, $3, $4, 'openai', 'gpt-x', $5, $6, $7, $8, $9, 365, $10, $11, $12, $13, $14, 'stock', 'stock')";

/// Lays it in.
pub(super) fn lay_in(memory: &Memory) -> Result<(), Error> {
    let (mut writes, at) = (people(BEGAN), BEGAN);
    let floor = |direction: &str, major: i64| {
        Write::one("stock.floor", FLOOR, values![direction, Value::Money(major * 1_000_000), at, at, ADMIN])
    };
    writes.extend([floor("input", 8), floor("output", 32)]);
    writes.push(Write::one("stock.key", API_KEY, values![KEY, BUYER_TENANT, BUYER, vec![7_u8; 32], at, at]));
    writes.extend([account(RICH, 100, 12, at), account(POOR, 5, 0, at)]);
    writes.extend(ON_SALE.map(|id| package(id, RICH, "active", at)));
    writes.extend(DRAFTS.map(|id| package(id, POOR, "draft", at)));
    memory.write(&writes).map(drop)
}

fn people(at: Time) -> Vec<Write> {
    let mut writes = Vec::new();
    for (id, code, kind) in [(SUPPLIER_TENANT, "supplier", "supplier"), (BUYER_TENANT, "buyer", "consumer")] {
        writes.push(Write::one("stock.tenant", TENANT, values![id, code, code, kind, at, at]));
    }
    for (id, tenant, name) in [
        (SUPPLIER, SUPPLIER_TENANT, "principal"),
        (OPERATOR, SUPPLIER_TENANT, "operator"),
        (BUYER, BUYER_TENANT, "buyer"),
        (ADMIN, 1, "admin"),
    ] {
        writes.push(Write::one("stock.user", USER, values![id, tenant, name, at, at]));
    }
    for code in ledger::Code::ALL.into_iter().filter(|code| code.owner_type() == "platform") {
        let account = Account::from_row("platform", 0, code.as_str()).ok();
        writes.extend(account.map(|account| books::open(1, account, Currency::CNY, at)));
    }
    let supplier = ids::Supplier(SUPPLIER);
    for account in [
        Account::pending(supplier),
        Account::available(supplier),
        Account::frozen(supplier),
        Account::receivable(supplier),
    ] {
        writes.push(books::open(SUPPLIER_TENANT, account, Currency::CNY, at));
    }
    let prepaid = Account::prepaid(ids::Buyer(BUYER));
    writes.push(books::open(BUYER_TENANT, prepaid, Currency::CNY, at));
    let fingerprint = format!("{SUPPLIER:064}");
    let row = values![SUPPLIER_TENANT, SUPPLIER, SUPPLIER, fingerprint, at, at];
    writes.push(Write::one("stock.supplier", SUPPLIER_ROW, row));
    writes
}

/// An account with so many million tokens, so many of them committed to its packages.
fn account(id: i64, millions: i64, committed: i64, at: Time) -> Write {
    let quota = |millions: i64| Value::Money(millions * MILLION);
    let (key_id, fingerprint) = (format!("ck_{id:022}"), format!("{id:064}"));
    let row = [
        values![id, SUPPLIER_TENANT, SUPPLIER, key_id],
        vec![quota(millions), quota(millions - committed), quota(committed)],
        values![true, at, true, at, at, at, OPERATOR, OPERATOR, fingerprint],
    ];
    Write::one("stock.account", ACCOUNT, row.concat())
}

/// A package of three million tokens.
fn package(id: i64, account: i64, status: &str, at: Time) -> Write {
    let sold = status == "active";
    let (start, end) = (sold.then_some(at), sold.then(|| at.plus(VALID)));
    let row = [
        values![id, SUPPLIER_TENANT, account, SUPPLIER],
        [3 * MILLION, 3 * MILLION, 0, 8_000_000, 32_000_000].map(Value::Money).into(),
        values![start, end, status, at, at],
    ];
    Write::one("stock.package", PACKAGE, row.concat())
}
