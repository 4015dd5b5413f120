//! The whole of section 11.5 over everything that is stored: hourly, and in `onceseal ledger verify`. One state of
//! the store, read plainly; sums are made where the rows are, so what comes over is a row an account, a
//! settlement and a supplier. What it means that something is found is [`super::Unbalanced`]'s.

use std::collections::BTreeMap;

use kernel::money::{Currency, Money};
use ledger::check::{self, EarningParts, Hold, Object, Rule, SettlementState, SettlementSums, Violation};
use ledger::ids::{Earning, Settlement, Supplier};
use ledger::{Account, Balances, Code, Direction, Entry, JournalKind};
use store::{Error, Query, Row, Store};

use crate::rows::{FailReason, Reader, SettlementStatus};

/// 1: journals that are uneven, of several currencies, or without a leg.
const JOURNALS: &str = "select j.id,
  coalesce(sum(case when e.direction = 'dr' then e.amount else 0 end), 0),
  coalesce(sum(case when e.direction = 'cr' then e.amount else 0 end), 0)
from billing_journals j left join billing_ledger_entries e on e.journal_id = j.id group by j.id
having count(distinct e.currency_code) <> 1
  or sum(case when e.direction = 'dr' then e.amount else 0 end)
    <> sum(case when e.direction = 'cr' then e.amount else 0 end)
order by j.id";

/// 5, 7 and section 11.3: every account with its cached balance and its entries.
const ACCOUNTS: &str = "select a.owner_type, a.owner_id, a.account_code, a.currency_code, a.balance,
  coalesce(sum(case when e.direction = 'dr' then e.amount else 0 end), 0),
  coalesce(sum(case when e.direction = 'cr' then e.amount else 0 end), 0)
from billing_accounts a left join billing_ledger_entries e on e.billing_account_id = a.id
group by a.id, a.owner_type, a.owner_id, a.account_code, a.currency_code, a.balance order by a.id";

/// 2 and 6: every settlement with its items and its journals.
const SETTLEMENTS: &str = "select t.id, t.user_id, t.currency_code, t.status, t.fail_reason, t.total_amount, t.fee_amount, t.net_amount,
  (select coalesce(sum(i.amount), 0) from supply_settlement_items i where i.settlement_id = t.id),
  (select coalesce(sum(e.amount), 0) from billing_journals j join billing_ledger_entries e on e.journal_id = j.id
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
  sum(case when e.status <> 'pending' then e.available_amount else 0 end),
  sum(case when e.status = 'pending' and e.amount > 0 then e.amount - e.reversed_amount else 0 end)
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
    let answers = store.queries(reads).await?;
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
    let (expected, found) = (reader.int()?.into(), reader.int()?.into());
    Ok(Violation { rule: Rule::Journal, object, expected, found })
}

/// Both sides of checks 3 and 4, in 10^-6 minor units: of balances, and of settlements and earnings.
#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    frozen: i64,
    available: i64,
    pending: i64,
    open: i64,
    released: i64,
    held: i64,
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
            for direction in [Direction::Debit, Direction::Credit] {
                balances.apply(&Entry { account, direction, amount: reader.money(currency)? });
            }
            let Some(balance) = balance else { continue };
            cached.push((account, Money::from_count(balance, currency)));
            let supplier = Supplier(owner_id);
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
            let [total, fee, net, items, withdrawn] = money(&mut reader, currency)?;
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
                let open = &mut self.of(supplier, currency).open;
                *open = open.checked_add(total.count()).ok_or_else(|| damaged("total_amount"))?;
            }
            let sums = SettlementSums { settlement, total, fee, net, items: &[items], withdrawn };
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
            (sides.released, sides.held) = (reader.int()?, reader.int()?);
        }
        Ok(())
    }

    fn found(self) -> impl Iterator<Item = Violation> {
        self.0.into_iter().flat_map(|((supplier, currency), sides)| {
            let money = |count| Money::from_count(count, currency);
            let zero = money(0);
            // All earnings of a side, as one that stands for their sum.
            let sum = EarningParts {
                earning: Earning(0),
                amount: zero,
                available: zero,
                frozen: zero,
                withdrawn: zero,
                reversed: zero,
                hold: Hold::Over,
            };
            let released = EarningParts { available: money(sides.released), ..sum };
            let held = EarningParts { amount: money(sides.held), hold: Hold::Running, ..sum };
            [
                check::frozen(supplier, money(sides.frozen), [money(sides.open)]).err(),
                check::available(supplier, money(sides.available), &[released]).err(),
                check::pending(supplier, money(sides.pending), &[held]).err(),
            ]
            .into_iter()
            .flatten()
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
