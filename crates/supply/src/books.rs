//! The ledger as rows: balance rows under lock, journals and entries as writes, cached balances that change in
//! the same transaction (sections 5.9, 11.3, 11.4). Which journal is posted is the command's; that it balances
//! is `ledger`'s.

use std::collections::BTreeMap;

use kernel::Time;
use kernel::money::{Currency, Money};
use ledger::held::Posted;
use ledger::{Account, Code, Held, Journal};
use store::{Error, Query, Row, Write, values};

use crate::action::{Context, Refusal, Stop};
use crate::code::Invariant;
use crate::rows::Reader;

/// Columns of a balance row.
const COLUMNS: &str = "id, owner_type, owner_id, account_code, currency_code, balance, version";

const INSERT_JOURNAL: &str = "insert into billing_journals (journal_type, source_type, source_id, tenant_id, request_id, trace_id, occurred_at, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8)";
const INSERT_ENTRY: &str = "insert into billing_ledger_entries (journal_id, billing_account_id, tenant_id, request_id, trace_id, idempotency_key, entry_type, direction, amount, currency_code, balance_after, ref_type, ref_id, occurred_at, created_at)
values (
  (select id from billing_journals where journal_type = $1 and source_type = $2 and source_id = $3),
  (select id from billing_accounts where owner_type = $4 and owner_id = $5 and account_code = $6 and currency_code = $7),
  $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";
/// A balance that is still as it was found, and beyond that as check 4 of section 11.5 has it.
macro_rules! update {
    ($check:literal) => {
        concat!(
            "update billing_accounts set balance = $1, version = version + 1, updated_at = $2 where id = $3 and version = $4",
            $check
        )
    };
}
const UPDATE_BALANCE: &str = update!("");
const UPDATE_AVAILABLE: &str = update!(
    " and $5 = (select coalesce(sum(e.available_amount), 0) from supply_earnings e
    where e.user_id = $6 and e.currency_code = $7 and e.available_amount > 0)"
);
const UPDATE_PENDING: &str = update!(
    " and $5 = (select coalesce(sum(e.amount - e.reversed_amount), 0) from supply_earnings e
    where e.user_id = $6 and e.currency_code = $7 and e.status = 'pending' and e.amount > 0)"
);
/// The same where it is fewer than a thousand earnings; more are left to the hourly look.
const UPDATE_AVAILABLE_OF_FEW: &str = update!(
    " and $5 = (select case when count(*) < 1000 then coalesce(sum(x.part), 0) else $6 end
    from (select e.available_amount as part from supply_earnings e
      where e.user_id = $7 and e.currency_code = $8 and e.available_amount > 0
      order by e.available_at, e.id limit 1000) x)"
);
/// The writes that check 4 stands in.
const CHECKED: [&str; 2] = ["books.available", "books.pending"];
const OPEN: &str = "insert into billing_accounts (tenant_id, owner_type, owner_id, account_code, currency_code, balance, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing";

/// The four balance rows of a tenant's supplier, locked, in the order of their ids.
#[must_use]
pub fn of_supplier(tenant_id: i64) -> Query {
    let sql = format!(
        "select {COLUMNS} from billing_accounts where owner_type = 'supplier'
           and owner_id = (select user_id from supply_suppliers where tenant_id = $1)
           and currency_code = (select currency_code from supply_suppliers where tenant_id = $1)
         order by id {{for_update}}"
    );
    Query::new("books.supplier", sql, values![tenant_id])
}

/// Every balance row that `condition` (over `billing_accounts`) names, locked, in the order of their ids: for
/// commands that touch rows of several owners, in one statement.
#[must_use]
pub fn locked(condition: &str, values: Vec<store::Value>) -> Query {
    let sql = format!("select {COLUMNS} from billing_accounts where {condition} order by id {{for_update}}");
    Query::new("books.locked", sql, values)
}

/// What a raised check of a balance means: INV-SET-003, whoever was there.
#[must_use]
pub fn unbalanced(write: &str) -> Option<Refusal> {
    CHECKED.contains(&write).then(|| Refusal::broken(Invariant::Set003))
}

/// How far a balance is compared with the earnings that it stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    All,
    Few,
}

/// A new account with nothing on it; the platform's have no cached balance.
#[must_use]
pub fn open(tenant_id: i64, account: Account, currency: Currency, at: Time) -> Write {
    let balance = account.is_cached().then_some(store::Value::Money(0));
    let (owner, code) = (account.code().owner_type(), account.code().as_str());
    let row = values![tenant_id, owner, account.owner_id(), code, currency.code()];
    let row = [row, vec![balance.unwrap_or(store::Value::Null), at.into(), at.into()]].concat();
    Write::any("books.open", OPEN, row)
}

/// The balance rows of one command, as they were found and as its journals leave them.
#[derive(Clone, Debug, Default)]
pub struct Books {
    held: Held,
    found: BTreeMap<(Account, Currency), Found>,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    id: i64,
    version: i64,
    balance: Money,
}

impl Books {
    /// Reads what [`of_supplier`] or [`locked`] found.
    ///
    /// # Errors
    /// A damaged row.
    pub fn read(rows: &[Row]) -> Result<Self, Error> {
        let mut books = Self::default();
        for row in rows {
            let mut reader = Reader::new(row);
            let id = reader.int()?;
            let (owner_type, owner_id, code) = (reader.text()?, reader.int()?, reader.text()?);
            let damaged =
                |_| Error::Corrupt { table: "billing_accounts", column: format!("owner and code of {id}") };
            let account = Account::from_row(owner_type, owner_id, code).map_err(damaged)?;
            let currency = reader.currency()?;
            let (balance, version) = (reader.money(currency)?, reader.int()?);
            books.held.hold(account, balance);
            books.found.insert((account, currency), Found { id, version, balance });
        }
        Ok(books)
    }

    /// A balance, with all journals posted so far.
    ///
    /// # Errors
    /// A row that the command did not load.
    pub fn balance(&self, account: Account, currency: Currency) -> Result<Money, Stop> {
        Ok(self.held.balance(account, currency)?)
    }

    /// Posts a journal: its rows, without the balances ([`Books::balances`]).
    ///
    /// # Errors
    /// `SUP_SET_5002` when the ledger does not take it.
    pub fn post(&mut self, context: &Context, journal: &Journal, at: Time) -> Result<Vec<Write>, Stop> {
        let posted = self.held.post(journal)?;
        let caller = &context.caller;
        let (kind, source) = (journal.kind().as_str(), journal.source());
        let (source_type, source_id) = (source.kind.as_str(), source.id.to_string());
        let head = values![
            kind,
            source_type,
            &source_id,
            caller.tenant_id,
            &caller.request_id,
            &caller.trace_id,
            at,
            at
        ];
        let mut writes = vec![Write::one("books.journal", INSERT_JOURNAL, head)];
        for Posted { entry, balance_after } in posted {
            let (account, amount) = (entry.account, entry.amount);
            let row = values![
                kind,
                source_type,
                &source_id,
                account.code().owner_type(),
                account.owner_id(),
                account.code().as_str(),
                amount.currency().code(),
                caller.tenant_id,
                &caller.request_id,
                &caller.trace_id,
                caller.idempotency_key.clone(),
                kind,
                entry.direction.as_str(),
                store::Value::Money(amount.count()),
                amount.currency().code(),
                balance_after.map_or(store::Value::Null, |balance| store::Value::Money(balance.count())),
                source_type,
                &source_id,
                at,
                at,
            ];
            writes.push(Write::one("books.entry", INSERT_ENTRY, row));
        }
        Ok(writes)
    }

    /// The cached balances that the journals moved, each once, after the rows of their earnings: a supplier's available
    /// and pending balance is to be what the earnings come to (section 11.5, check 4), or the write raises and
    /// [`unbalanced`] says what it means.
    #[must_use]
    pub fn balances(&self, at: Time) -> Vec<Write> {
        self.moved(Reach::All, at)
    }

    /// As [`Books::balances`] for what happens with every call, where adding up all earnings each time would cost the
    /// square of their number: only an available balance of few earnings is compared.
    #[must_use]
    pub fn balances_of_a_call(&self, at: Time) -> Vec<Write> {
        self.moved(Reach::Few, at)
    }

    fn moved(&self, reach: Reach, at: Time) -> Vec<Write> {
        let moved = self.held.rows().filter_map(|(account, balance)| {
            let found = self.found.get(&(account, balance.currency()))?;
            (found.balance != balance).then(|| found.update(account, balance, reach, at))
        });
        moved.collect()
    }
}

impl Found {
    fn update(&self, account: Account, balance: Money, reach: Reach, at: Time) -> Write {
        let count = store::Value::Money(balance.count());
        let (name, sql, times) = match (account.code(), reach) {
            (Code::SupplierAvailable, Reach::All) => ("books.available", UPDATE_AVAILABLE, 1),
            (Code::SupplierAvailable, Reach::Few) => ("books.available", UPDATE_AVAILABLE_OF_FEW, 2),
            (Code::SupplierPending, Reach::All) => ("books.pending", UPDATE_PENDING, 1),
            _ => ("books.balance", UPDATE_BALANCE, 0),
        };
        let mut row = vec![count.clone()];
        row.extend(values![at, self.id, self.version]);
        if times > 0 {
            row.extend(vec![count; times]);
            row.extend(values![account.owner_id(), balance.currency().code()]);
        }
        Write::one(name, sql, row)
    }
}

#[cfg(test)]
impl Books {
    /// Rows that hold these balances, with ids from 1, for tables of tests.
    pub(crate) fn holding(balances: &[(Account, Money)]) -> Self {
        let mut books = Self::default();
        for (id, (account, balance)) in (1..).zip(balances) {
            books.held.hold(*account, *balance);
            books.found.insert((*account, balance.currency()), Found { id, version: 0, balance: *balance });
        }
        books
    }
}
