//! The whole of section 11.5 over everything that is stored: hourly, and in `onceseal ledger verify`. One state of
//! the store, read plainly; sums are made where the rows are, so what comes over is a row an account, a
//! settlement and a supplier. What it means that something is found is [`super::Unbalanced`]'s.

use std::collections::BTreeMap;

use kernel::money::{Currency, Money, Sum};
use ledger::check::{self, Object, Rule, SettlementState, SettlementSums, Violation};
use ledger::ids::{Settlement, Supplier};
use ledger::{Account, Balances, Code, JournalKind};
use store::{Error, Query, Row, Store};

use crate::rows::{FailReason, Reader, SettlementStatus};

/// 1: journals that are uneven, of several currencies, or without a leg.
const JOURNALS: &str = "select j.id,
  {sum case when e.direction = 'dr' then e.amount else 0 end},
  {sum case when e.direction = 'cr' then e.amount else 0 end}
from billing_journals j left join billing_ledger_entries e on e.journal_id = j.id group by j.id
having count(distinct e.currency_code) <> 1
  or {sum case when e.direction = 'dr' then e.amount else 0 end}
    <> {sum case when e.direction = 'cr' then e.amount else 0 end}
order by j.id";

/// 5, 7 and section 11.3: every account with its cached balance and its entries.
const ACCOUNTS: &str = "select a.owner_type, a.owner_id, a.account_code, a.currency_code, a.balance,
  {sum case when e.direction = 'dr' then e.amount else 0 end},
  {sum case when e.direction = 'cr' then e.amount else 0 end}
from billing_accounts a left join billing_ledger_entries e on e.billing_account_id = a.id
group by a.id, a.owner_type, a.owner_id, a.account_code, a.currency_code, a.balance order by a.id";

/// 2 and 6: every settlement with its items and its journals.
const SETTLEMENTS: &str = "select t.id, t.user_id, t.currency_code, t.status, t.fail_reason, t.total_amount, t.fee_amount, t.net_amount,
  (select {sum i.amount} from supply_settlement_items i where i.settlement_id = t.id),
  (select {sum e.amount} from billing_journals j join billing_ledger_entries e on e.journal_id = j.id
    where j.journal_type = 'J-WITHDRAW' and j.source_type = 'settlement' and j.source_id = cast(t.id as text)
      and e.direction = 'dr'),
  (select count(*) from billing_journals j
    where j.journal_type = 'J-CANCEL' and j.source_type = 'settlement' and j.source_id = cast(t.id as text)),
  (select count(*) from billing_journals j
    where j.journal_type = 'J-PAYOUT-OK' and j.source_type = 'settlement' and j.source_id = cast(t.id as text)),
  (select count(*) from billing_journals j
    where j.journal_type = 'J-PAYOUT-FAIL' and j.source_type = 'settlement' and j.source_id = cast(t.id as text))
from supply_settlements t order by t.id";

/// 4: what of the earnings stands in the available and in the pending balance.
const EARNINGS: &str = "select e.user_id, e.currency_code,
  {sum case when e.status <> 'pending' then e.available_amount else 0 end},
  {sum case when e.status = 'pending' and e.amount > 0 then e.amount - e.reversed_amount else 0 end}
from supply_earnings e group by e.user_id, e.currency_code order by e.user_id, e.currency_code";

/// Everything that is not as section 11.5 says; nothing when all is well.
///
/// # Errors
/// The store's; [`Error::Corrupt`] for a row that can't be what it must be.
pub async fn reconcile(store: &Store) -> Result<Vec<Violation>, Error> {
    let reads = vec![
        Query::new("reconcile.journals", JOURNALS, vec![]),
        Query::new("reconcile.accounts", ACCOUNTS, vec![]),
        Query::new("reconcile.settlements", SETTLEMENTS, vec![]),
        Query::new("reconcile.earnings", EARNINGS, vec![]),
    ];
    let answers = store.survey(reads).await?;
    let [journals, accounts, settlements, earnings] = answers.as_slice() else {
        return Err(damaged("answers"));
    };
    let mut found = journals.iter().map(uneven).collect::<Result<Vec<_>, _>>()?;
    let mut suppliers = Suppliers::default();
    found.extend(suppliers.balances(accounts)?);
    found.extend(suppliers.settlements(settlements)?);
    suppliers.earnings(earnings)?;
    found.extend(suppliers.found());
    Ok(found)
}

fn uneven(row: &Row) -> Result<Violation, Error> {
    let mut reader = Reader::new(row);
    let object = Object::Journal(reader.int()?);
    // Of which currency does not matter to the two sides.
    let (expected, found) = (reader.sum(Currency::CNY)?.count(), reader.sum(Currency::CNY)?.count());
    Ok(Violation { rule: Rule::Journal, object, expected, found })
}

/// Both sides of checks 3 and 4, in 10^-6 minor units: of balances, and of settlements and earnings.
#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    frozen: i128,
    available: i128,
    pending: i128,
    open: i128,
    released: i128,
    held: i128,
}

#[derive(Debug, Default)]
struct Suppliers(BTreeMap<(Supplier, Currency), Sides>);

impl Suppliers {
    fn of(&mut self, supplier: Supplier, currency: Currency) -> &mut Sides {
        self.0.entry((supplier, currency)).or_default()
    }

    fn balances(&mut self, rows: &[Row]) -> Result<Vec<Violation>, Error> {
        let mut balances = Balances::default();
        let mut cached = Vec::new();
        for row in rows {
            let mut reader = Reader::new(row);
            let (owner_type, owner_id, code) = (reader.text()?, reader.int()?, reader.text()?);
            let account =
                Account::from_row(owner_type, owner_id, code).map_err(|_| damaged("account_code"))?;
            let (currency, balance) = (reader.currency()?, reader.int_or_null()?);
            let sides = (reader.sum(currency)?.count(), reader.sum(currency)?.count());
            balances.add(account, currency, sides);
            let Some(balance) = balance else { continue };
            cached.push((account, Money::from_count(balance, currency)));
            let (supplier, balance) = (Supplier(owner_id), i128::from(balance));
            match account.code() {
                Code::SupplierFrozen => self.of(supplier, currency).frozen = balance,
                Code::SupplierAvailable => self.of(supplier, currency).available = balance,
                Code::SupplierPending => self.of(supplier, currency).pending = balance,
                _ => {}
            }
        }
        let stale = cached
            .into_iter()
            .filter_map(|(account, cached)| check::cached(account, cached, &balances).err());
        Ok(stale.chain(check::whole(&balances)).collect())
    }

    fn settlements(&mut self, rows: &[Row]) -> Result<Vec<Violation>, Error> {
        let mut found = Vec::new();
        for row in rows {
            let mut reader = Reader::new(row);
            let (settlement, supplier) = (Settlement(reader.int()?), Supplier(reader.int()?));
            let (currency, status) = (reader.currency()?, SettlementStatus::read(reader.text()?)?);
            let reason = reader.text_or_null()?.map(FailReason::read).transpose()?;
            let [total, fee, net] = money(&mut reader, currency)?;
            let (items, withdrawn) = (reader.sum(currency)?, reader.sum(currency)?);
            let state = match (status, reason) {
                (SettlementStatus::Pending | SettlementStatus::Processing, _) => SettlementState::Open,
                (SettlementStatus::Completed, _) => SettlementState::Completed,
                (SettlementStatus::Failed, Some(FailReason::PayoutFailed)) => SettlementState::PayoutFailed,
                (SettlementStatus::Failed, _) => SettlementState::Cancelled,
            };
            let mut kinds = Vec::new();
            for kind in [JournalKind::Cancel, JournalKind::PayoutOk, JournalKind::PayoutFail] {
                kinds.extend((0..reader.int()?).map(|_| kind));
            }
            if state == SettlementState::Open {
                self.of(supplier, currency).open += i128::from(total.count());
            }
            let sums = SettlementSums { settlement, total, fee, net, items, withdrawn };
            found.extend(check::settlement(&sums).err());
            found.extend(check::closing(settlement, state, &kinds).err());
        }
        Ok(found)
    }

    fn earnings(&mut self, rows: &[Row]) -> Result<(), Error> {
        for row in rows {
            let mut reader = Reader::new(row);
            let (supplier, currency) = (Supplier(reader.int()?), reader.currency()?);
            let sides = self.of(supplier, currency);
            (sides.released, sides.held) = (reader.sum(currency)?.count(), reader.sum(currency)?.count());
        }
        Ok(())
    }

    fn found(self) -> impl Iterator<Item = Violation> {
        self.0.into_iter().flat_map(|((supplier, currency), sides)| {
            let object = Object::Supplier(supplier);
            [
                (Rule::Frozen, sides.frozen, sides.open),
                (Rule::Available, sides.available, sides.released),
                (Rule::Pending, sides.pending, sides.held),
            ]
            .into_iter()
            .filter_map(move |(rule, balance, rows)| {
                let sum = |count| Sum::from_count(count, currency);
                check::sums_equal(rule, object, sum(balance), sum(rows)).err()
            })
        })
    }
}

fn money<const N: usize>(reader: &mut Reader<'_>, currency: Currency) -> Result<[Money; N], Error> {
    let mut amounts = [Money::zero(currency); N];
    for amount in &mut amounts {
        *amount = reader.money(currency)?;
    }
    Ok(amounts)
}

fn damaged(column: &str) -> Error {
    Error::Corrupt { table: "ledger", column: column.into() }
}
