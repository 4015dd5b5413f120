//! The market once more, written from the text of the domain's specification (sections 4, 6, 7.4, 11, 12) and from
//! nothing of the product: plain `i128` counts of 10^-6 minor units and ordered maps. It is told each command and
//! the answer in the order of commits, decides by itself what had to be answered, and keeps its own books.
//!
//! Of an answer it takes over what only names something: ids. All else is compared.
//!
//! A success must be explained by the state at its place, and so must a refusal of whatever locks the rows that it
//! is decided from. Commands on one package read it plainly: their refusals must be explained by the state at
//! some moment since they were sent, or by somebody who changed the package in between.

mod books;
mod earnings;
mod figures;
mod keys;
mod orders;
mod packages;
mod settlements;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::command::{By, Place, Sent, What};
use books::Books;
pub(super) use figures::minor;
pub(super) use keys::life;

/// Why a command is refused: the code.
type Refused = &'static str;
/// What a command comes to: figures of its answer that must be there, by name; or a refusal.
type Decided = Result<Vec<(&'static str, i128)>, Refused>;

/// A supplier.
#[derive(Debug, Default)]
pub(super) struct Supplier {
    pub(super) user: i64,
    /// Earnings whose hold runs, and those of which something is available, oldest first.
    held: BTreeSet<(i64, i64)>,
    released: BTreeSet<(i64, i64)>,
    codes: Vec<settlements::Code>,
    settlements: Vec<i64>,
}

/// A buyer: tenant, API key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buyer {
    pub(super) tenant: i64,
    pub(super) key: i64,
}

/// Everything.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) books: Books,
    /// By tenant.
    pub(super) suppliers: BTreeMap<i64, Supplier>,
    /// By user.
    pub(super) buyers: BTreeMap<i64, Buyer>,
    pub(super) packages: packages::Packages,
    pub(super) orders: BTreeMap<i64, orders::Order>,
    /// By the buyer's tenant, API key and id of the call.
    pub(super) calls: BTreeMap<(i64, i64, String), orders::Call>,
    pub(super) earnings: BTreeMap<i64, earnings::Earning>,
    pub(super) settlements: BTreeMap<i64, settlements::Settlement>,
    /// Rows that show what refunds took of suppliers: how many, how much.
    pub(super) taken_back: (u64, i128),
    keys: keys::Keys,
}

impl Model {
    /// A supplier, with the rows that its money stands in.
    pub(super) fn supplier(&mut self, tenant: i64, user: i64) {
        self.suppliers.insert(tenant, Supplier { user, ..Supplier::default() });
        for code in ["supplier_pending", "supplier_available", "supplier_frozen", "supplier_receivable"] {
            self.books.open("supplier", user, code);
        }
    }

    /// A buyer with an API key.
    pub(super) fn buyer(&mut self, user: i64, buyer: Buyer) {
        self.buyers.insert(user, buyer);
        self.books.open("buyer", user, "buyer_prepaid");
    }

    /// A mounted, active account with this much quota.
    pub(super) fn mounted(&mut self, account: i64, tenant: i64, available: i128) {
        let account_of = packages::Account { tenant, available, frozen: 0 };
        self.packages.accounts.insert(account, account_of);
    }

    /// A batch begins: nothing before it can have been seen by what is sent from now on.
    pub(super) fn batch(&mut self) {
        self.packages.forget();
    }

    /// Judges a command and carries it out.
    ///
    /// # Errors
    /// What should have been answered and was not.
    pub(super) fn replay(&mut self, sent: &Sent, place: Place) -> Result<(), String> {
        let told = format!("{} {}", sent.told.code, sent.told.error());
        let wrong = |why: String| format!("{} {:?}: {why}, answered {told}", sent.request, sent.command);
        if self.keys.stands(sent, place.answered).map_err(wrong)? {
            return Ok(());
        }
        let json = sent.told.json();
        let data = json.get("data").unwrap_or(&Json::Null);
        let (succeeded, error) = (sent.told.code < 300, sent.told.error());
        self.packages.moment(place.at);
        if !succeeded && self.packages.explains(sent, place).contains(&error.as_str()) {
            self.keys.keep(sent, place.answered);
            return Ok(());
        }
        match (self.decided(sent, place, data), succeeded) {
            (Ok(figures), true) => compare(&figures, data).map_err(wrong)?,
            (Err(code), false) if code == error => {}
            (Ok(_), false) => return Err(wrong("must succeed".into())),
            (Err(code), _) => return Err(wrong(format!("must be refused with {code}"))),
        }
        self.keys.keep(sent, place.answered);
        Ok(())
    }

    /// What it comes to. Effects stay only where it succeeds.
    fn decided(&mut self, sent: &Sent, place: Place, data: &Json) -> Decided {
        let (by, time) = (sent.command.by, place.time);
        match &sent.command.what {
            What::TopUp { buyer, amount } => self.top_up(by, *buyer, i128::from(*amount)),
            What::Create { buyer, package, quota } => {
                self.create(by, (*buyer, *package, i128::from(*quota)), time, data)
            }
            What::Pay { order } => self.pay(by, *order, time),
            What::CancelOrder { order } => self.cancel_order(by, *order, None),
            What::TimeOut { order } => self.cancel_order(by, *order, Some(time)),
            What::Close { order } => self.close(by, *order, time),
            What::Refund { order, charge } => self.refund(by, *order, charge.map(i128::from)),
            What::Use { .. } => self.call(&sent.command.what, by, time, data),
            What::Bonus { amount } => self.bonus(by, i128::from(*amount), time, data),
            What::CompensateSupplier { supplier, amount } => {
                self.compensate_supplier(by, *supplier, (i128::from(*amount), time), data)
            }
            What::CompensateBuyer { buyer, amount } => self.compensate_buyer(by, *buyer, i128::from(*amount)),
            What::Release { earning } => self.release(by, *earning, time),
            What::SendCode => self.send_code(by, time, sent.code_ref.as_ref()),
            What::Withdraw { amount, code, payee } => self.withdraw(by, (amount, code, payee), time, data),
            What::Cancel { settlement } => self.step(by, *settlement, settlements::Step::Cancel, time),
            What::Reject { settlement } => self.step(by, *settlement, settlements::Step::Reject, time),
            What::Start { settlement } => self.step(by, *settlement, settlements::Step::Start, time),
            What::Complete { settlement } => self.step(by, *settlement, settlements::Step::Complete, time),
            What::Fail { settlement } => self.step(by, *settlement, settlements::Step::Fail, time),
            What::Return { settlement } => self.step(by, *settlement, settlements::Step::Return, time),
            what => self.packages.decide((what, by), place, data),
        }
    }

    /// The supplier of a tenant.
    fn supplier_of(&self, by: By) -> Option<&Supplier> {
        self.suppliers.get(&by.tenant)
    }
}

/// The id that an answer gives to what it made.
fn id(data: &Json, name: &str) -> i64 {
    data.get(name).and_then(Json::as_i64).unwrap_or_default()
}

fn compare(figures: &[(&'static str, i128)], data: &Json) -> Result<(), String> {
    for (name, wanted) in figures {
        let found = data.get(*name);
        let read = match found {
            Some(Json::String(text)) => figures::read_minor(text),
            Some(Json::Number(number)) => number.as_i64().map(i128::from),
            _ => None,
        };
        if read != Some(*wanted) {
            return Err(format!("{name} must be {wanted} and is {found:?}"));
        }
    }
    Ok(())
}
