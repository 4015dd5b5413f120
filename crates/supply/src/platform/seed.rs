//! The platform's own ledger accounts of a currency: made at start-up, before any money moves.

use door::{Door, Failure};
use kernel::money::Currency;
use ledger::{Account, Code};
use store::Error;

use crate::books;
use crate::caller::PLATFORM;

/// Id of the platform as an owner of ledger accounts.
const OWNER: i64 = 0;

/// Opens the platform's accounts of a currency where they are missing. To be repeated at every start.
///
/// # Errors
/// A failure of the store.
pub async fn seed(door: &Door, currency: Currency) -> Result<(), Failure> {
    let opened = door.maintain("platform.seed", Vec::new(), move |_, at| {
        let of_platform = Code::ALL.into_iter().filter(|code| code.owner_type() == "platform");
        let accounts = of_platform.map(|code| Account::from_row("platform", OWNER, code.as_str()));
        let writes = accounts.map(|account| Ok(books::open(PLATFORM, account?, currency, at)));
        let damaged = |_: ledger::Error| Error::Corrupt { table: "billing_accounts", column: "owner".into() };
        Ok((writes.collect::<Result<_, _>>().map_err(damaged)?, ()))
    });
    opened.await.map(|((), _)| ())
}
