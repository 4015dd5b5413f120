//! What the platform's staff do before anybody trades: its own ledger accounts, suppliers and where they stand, buyers,
//! money that buyers paid. And what the scheduler has to see to. Protected prices, too. Not here: orders, what is
//! earned.

mod buyer;
mod due;
mod egress;
pub(crate) mod fields;
mod people;
mod price_protection;
mod seed;
mod staff;
mod standing;
mod supplier;
mod topup;

pub use buyer::{ApiKey, CreateBuyer};
pub use due::{Due, earnings_to_release, orders_to_close, orders_to_time_out};
pub use egress::{DIRECT, ReportEgress};
pub use price_protection::{Basis, ProtectPrice};
pub use seed::seed;
pub use staff::AddStaff;
pub use standing::{Measure, Stand};
pub use supplier::{CreateSupplier, SealedPhone};
pub use topup::TopUp;
