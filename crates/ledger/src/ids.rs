//! Ids that must not be taken for each other: those of owners, and those of facts that are posted. Each is
//! the row id of its table, a positive `i64`; nothing here depends on the value.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

ids! {
    /// The supplier principal: `user_id` of section 3.1, not the operator, not the tenant.
    Supplier;
    /// The buyer: `buyer_user_id` of section 5.4.
    Buyer;
    /// An order; it owns its escrow.
    Order;
    /// A payment of a buyer to the platform.
    Topup;
    /// A row of `supply_usage_records`.
    Usage;
    /// A row of `supply_earnings`.
    Earning;
    /// A row of `supply_settlements`.
    Settlement;
    /// The refund of a charge or of a part of one.
    Refund;
    /// A compensation for a broken service level.
    Compensation;
}
