//! The ledger on one page: what all accounts of a code hold, from their entries. Not here: whether that is right
//! ([`reconcile()`](super::reconcile())).

use kernel::money::{Currency, Sum};
use ledger::Code;
use store::{Error, Query, Store};

use crate::rows::Reader;

const TOTALS: &str = "select a.account_code, a.currency_code,
  {sum case when e.direction = 'dr' then e.amount else 0 end},
  {sum case when e.direction = 'cr' then e.amount else 0 end}
from billing_accounts a join billing_ledger_entries e on e.billing_account_id = a.id
group by a.account_code, a.currency_code order by a.currency_code, a.account_code";

/// All accounts of a code in a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Which accounts.
    pub code: Code,
    /// Sum of their debits.
    pub debits: Sum,
    /// Sum of their credits.
    pub credits: Sum,
    /// Debits less credits of assets and expenses, credits less debits of the others.
    pub balance: Sum,
}

/// One for each code and currency that has entries. Over all of a currency, debits equal credits.
///
/// # Errors
/// The store's; [`Error::Corrupt`] for a row that can't be what it must be.
pub async fn totals(store: &Store) -> Result<Vec<Total>, Error> {
    let answers = store.survey(vec![Query::new("ledger.totals", TOTALS, vec![])]).await?;
    let read = |row| {
        let mut reader = Reader::new(row);
        let name = reader.text()?;
        let code = Code::ALL.into_iter().find(|code| code.as_str() == name);
        let code = code.ok_or_else(|| damaged("account_code"))?;
        let currency: Currency = reader.currency()?;
        let (debits, credits) = (reader.sum(currency)?, reader.sum(currency)?);
        let balance = Sum::from_count(code.kind().balance(debits.count(), credits.count()), currency);
        Ok(Total { code, debits, credits, balance })
    };
    answers.iter().flatten().map(read).collect()
}

fn damaged(column: &str) -> Error {
    Error::Corrupt { table: "billing_accounts", column: column.into() }
}
