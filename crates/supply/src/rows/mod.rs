//! What the tables say, as values: one file a table, each with its column list and how a row of it is read. Not
//! here: which rows a command needs, and what follows from them.

mod account;
mod earning;
mod order;
mod package;
mod reader;
mod settlement;
mod supplier;
mod words;

pub use account::{Account, AccountStatus};
pub use earning::{Earning, EarningStatus};
pub use order::{Order, OrderStatus};
pub use package::{Package, PackageStatus};
pub use reader::Reader;
pub use settlement::{FailReason, Settlement, SettlementStatus};
pub use supplier::{Supplier, SupplierStatus};
