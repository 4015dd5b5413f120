//! The accounts of section 11.1 (科目): code, kind, owner, and whether a balance may be negative.

use std::fmt;

use crate::error::Error;
use crate::ids::{Buyer, Order, Supplier};

/// What an account is in double entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Balance = debits - credits.
    Asset,
    /// Balance = credits - debits.
    Liability,
    /// Balance = credits - debits.
    Income,
    /// Balance = debits - credits.
    Expense,
}

impl Kind {
    /// The balance of these sums.
    #[must_use]
    pub const fn balance(self, debits: i128, credits: i128) -> i128 {
        match self {
            Self::Asset | Self::Expense => debits - credits,
            Self::Liability | Self::Income => credits - debits,
        }
    }
}

/// The account codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// 资金清算: money at the bank. May be negative: payouts may run ahead of what was cleared.
    CashClearing,
    /// 买方预付余额: what a buyer paid and did not yet put into an order.
    BuyerPrepaid,
    /// 订单预收: what a paid order still holds.
    OrderEscrow,
    /// 待结算收益: earned, not yet released.
    SupplierPending,
    /// 可提现余额: may be withdrawn. Its row is the one that the specification of 2026-03-27 locks (3.3).
    SupplierAvailable,
    /// 提现冻结: in open settlements.
    SupplierFrozen,
    /// 供应方欠款: what a supplier owes after refunds.
    SupplierReceivable,
    /// 平台服务费收入.
    PlatformFeeRevenue,
    /// 提现服务费收入.
    WithdrawFeeRevenue,
    /// 奖励支出.
    BonusExpense,
    /// 赔付支出.
    CompensationExpense,
}

impl Code {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::CashClearing,
        Self::BuyerPrepaid,
        Self::OrderEscrow,
        Self::SupplierPending,
        Self::SupplierAvailable,
        Self::SupplierFrozen,
        Self::SupplierReceivable,
        Self::PlatformFeeRevenue,
        Self::WithdrawFeeRevenue,
        Self::BonusExpense,
        Self::CompensationExpense,
    ];

    /// The word of `account_code`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CashClearing => "cash_clearing",
            Self::BuyerPrepaid => "buyer_prepaid",
            Self::OrderEscrow => "order_escrow",
            Self::SupplierPending => "supplier_pending",
            Self::SupplierAvailable => "supplier_available",
            Self::SupplierFrozen => "supplier_frozen",
            Self::SupplierReceivable => "supplier_receivable",
            Self::PlatformFeeRevenue => "platform_fee_revenue",
            Self::WithdrawFeeRevenue => "withdraw_fee_revenue",
            Self::BonusExpense => "bonus_expense",
            Self::CompensationExpense => "compensation_expense",
        }
    }

    /// Asset, liability, income or expense.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::CashClearing | Self::SupplierReceivable => Kind::Asset,
            Self::BuyerPrepaid
            | Self::OrderEscrow
            | Self::SupplierPending
            | Self::SupplierAvailable
            | Self::SupplierFrozen => Kind::Liability,
            Self::PlatformFeeRevenue | Self::WithdrawFeeRevenue => Kind::Income,
            Self::BonusExpense | Self::CompensationExpense => Kind::Expense,
        }
    }

    /// The word of `owner_type` of its accounts.
    #[must_use]
    pub const fn owner_type(self) -> &'static str {
        match self {
            Self::BuyerPrepaid => "buyer",
            Self::OrderEscrow => "order",
            Self::SupplierPending
            | Self::SupplierAvailable
            | Self::SupplierFrozen
            | Self::SupplierReceivable => "supplier",
            Self::CashClearing
            | Self::PlatformFeeRevenue
            | Self::WithdrawFeeRevenue
            | Self::BonusExpense
            | Self::CompensationExpense => "platform",
        }
    }

    /// Whether the balance may be below zero: at the bank only.
    #[must_use]
    pub const fn may_be_negative(self) -> bool {
        matches!(self, Self::CashClearing)
    }
}

/// Whose account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The platform. Its balances are derived from entries, never cached: one hot row would put all money
    /// in a queue (section 5.9).
    Platform,
    /// A buyer.
    Buyer(Buyer),
    /// An order.
    Order(Order),
    /// A supplier.
    Supplier(Supplier),
}

/// An account without its currency: a code and an owner that fits it. The unique key of
/// `billing_accounts` is this and the currency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    code: Code,
    owner: Owner,
}

/// `owner_id` of the platform's accounts; the column is not null and nobody else has 0.
const PLATFORM_ID: i64 = 0;

impl Account {
    /// 资金清算.
    pub const CASH_CLEARING: Self = Self::platform(Code::CashClearing);
    /// 平台服务费收入.
    pub const PLATFORM_FEE_REVENUE: Self = Self::platform(Code::PlatformFeeRevenue);
    /// 提现服务费收入.
    pub const WITHDRAW_FEE_REVENUE: Self = Self::platform(Code::WithdrawFeeRevenue);
    /// 奖励支出.
    pub const BONUS_EXPENSE: Self = Self::platform(Code::BonusExpense);
    /// 赔付支出.
    pub const COMPENSATION_EXPENSE: Self = Self::platform(Code::CompensationExpense);

    /// 买方预付余额.
    #[must_use]
    pub const fn prepaid(buyer: Buyer) -> Self {
        Self { code: Code::BuyerPrepaid, owner: Owner::Buyer(buyer) }
    }

    /// 订单预收.
    #[must_use]
    pub const fn escrow(order: Order) -> Self {
        Self { code: Code::OrderEscrow, owner: Owner::Order(order) }
    }

    /// 待结算收益.
    #[must_use]
    pub const fn pending(supplier: Supplier) -> Self {
        Self { code: Code::SupplierPending, owner: Owner::Supplier(supplier) }
    }

    /// 可提现余额.
    #[must_use]
    pub const fn available(supplier: Supplier) -> Self {
        Self { code: Code::SupplierAvailable, owner: Owner::Supplier(supplier) }
    }

    /// 提现冻结.
    #[must_use]
    pub const fn frozen(supplier: Supplier) -> Self {
        Self { code: Code::SupplierFrozen, owner: Owner::Supplier(supplier) }
    }

    /// 供应方欠款.
    #[must_use]
    pub const fn receivable(supplier: Supplier) -> Self {
        Self { code: Code::SupplierReceivable, owner: Owner::Supplier(supplier) }
    }

    const fn platform(code: Code) -> Self {
        Self { code, owner: Owner::Platform }
    }

    /// From a row of `billing_accounts`.
    ///
    /// # Errors
    /// [`Error::UnknownAccount`] when the code is unknown, or its accounts have another type of owner.
    pub fn from_row(owner_type: &str, owner_id: i64, code: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownAccount {
            owner_type: owner_type.chars().take(40).collect(),
            code: code.chars().take(40).collect(),
        };
        let known = Code::ALL.into_iter().find(|known| known.as_str() == code);
        let code = known.filter(|known| known.owner_type() == owner_type).ok_or_else(unknown)?;
        let owner = match owner_type {
            "buyer" => Owner::Buyer(Buyer(owner_id)),
            "order" => Owner::Order(Order(owner_id)),
            "supplier" => Owner::Supplier(Supplier(owner_id)),
            _ => Owner::Platform,
        };
        Ok(Self { code, owner })
    }

    /// Its code.
    #[must_use]
    pub const fn code(self) -> Code {
        self.code
    }

    /// Whose it is.
    #[must_use]
    pub const fn owner(self) -> Owner {
        self.owner
    }

    /// The value of `owner_id`: 0 for the platform.
    #[must_use]
    pub const fn owner_id(self) -> i64 {
        match self.owner {
            Owner::Platform => PLATFORM_ID,
            Owner::Buyer(id) => id.0,
            Owner::Order(id) => id.0,
            Owner::Supplier(id) => id.0,
        }
    }

    /// Whether `billing_accounts.balance` caches its balance: all but the platform's.
    #[must_use]
    pub const fn is_cached(self) -> bool {
        !matches!(self.owner, Owner::Platform)
    }
}

/// `supplier_available of supplier 7`, `cash_clearing`.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.as_str())?;
        if self.is_cached() {
            write!(f, " of {} {}", self.code.owner_type(), self.owner_id())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_is_that_of_section_11_1() {
        let chart: Vec<_> = Code::ALL
            .into_iter()
            .map(|code| (code.as_str(), code.kind(), code.owner_type(), code.may_be_negative()))
            .collect();
        let expected = [
            ("cash_clearing", Kind::Asset, "platform", true),
            ("buyer_prepaid", Kind::Liability, "buyer", false),
            ("order_escrow", Kind::Liability, "order", false),
            ("supplier_pending", Kind::Liability, "supplier", false),
            ("supplier_available", Kind::Liability, "supplier", false),
            ("supplier_frozen", Kind::Liability, "supplier", false),
            ("supplier_receivable", Kind::Asset, "supplier", false),
            ("platform_fee_revenue", Kind::Income, "platform", false),
            ("withdraw_fee_revenue", Kind::Income, "platform", false),
            ("bonus_expense", Kind::Expense, "platform", false),
            ("compensation_expense", Kind::Expense, "platform", false),
        ];
        assert_eq!(chart, expected);
    }

    #[test]
    fn a_row_is_read_back_and_a_wrong_owner_is_refused() {
        for account in [Account::CASH_CLEARING, Account::prepaid(Buyer(3)), Account::frozen(Supplier(4))] {
            let (owner, code) = (account.code().owner_type(), account.code().as_str());
            assert_eq!(Account::from_row(owner, account.owner_id(), code), Ok(account));
        }
        assert!(Account::from_row("buyer", 3, "supplier_available").is_err());
        assert!(Account::from_row("supplier", 3, "supplier").is_err());
    }
}
