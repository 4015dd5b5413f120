//! The codes of section 9 that commands answer with: status, fixed texts in both languages. The first three
//! digits of a code are its HTTP status. Not here: codes of the protocol and of authentication, which never come
//! out of a command.

macro_rules! codes {
    ($($name:ident $word:literal, $english:literal, $chinese:literal;)+) => {
        /// A code that a command refuses with.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $english] $name,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// As it is sent: `SUP_SET_4001`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }

            /// The fixed English text.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $english,)+ }
            }

            /// The fixed Chinese text.
            #[must_use]
            pub const fn message_zh(self) -> &'static str {
                match self { $(Self::$name => $chinese,)+ }
            }
        }
    };
}

codes! {
    AccFormat "SUP_ACC_4001", "the credential does not have the form of this provider's credentials; check credential_input", "凭证格式不符合该供应商要求，请检查 credential_input";
    AccRefused "SUP_ACC_4002", "the provider refused the credential; check it with the provider", "上游校验失败，请在供应商处确认凭证";
    AccTos "SUP_ACC_4003", "the provider's terms do not allow this account in the supply pool", "该账号的服务条款不允许进入供给池";
    AccRiskAck "SUP_ACC_4004", "the risk agreement is not accepted; send risk_ack true", "未同意风险协议，请将 risk_ack 置为 true";
    AccDisabled "SUP_ACC_4031", "a disabled account can only be restored by an administrator", "账号已被禁用，仅管理员可恢复";
    AccMissing "SUP_ACC_4041", "no such account", "账号不存在";
    AccState "SUP_ACC_4091", "the account's state does not allow this, or it changed meanwhile; read it again", "账号状态冲突，请刷新后重试";
    AccActive "SUP_ACC_4092", "an active account cannot be deleted; suspend it first", "active 账号不可删除，请先暂停";
    AccBlocked "SUP_ACC_4093", "packages or orders still depend on the account; end them first", "存在未结束的套餐或订单，不可删除";
    AccMounted "SUP_ACC_4094", "this credential is already mounted or blocked; use another one", "该凭证已挂载或被封禁，请更换凭证";
    AccRiskCase "SUP_ACC_4095", "an open risk case blocks this; wait until it is closed", "存在未结清的风险单，暂不可操作";
    AccGuard "SUP_ACC_4096", "the account does not meet the conditions of activation; details.unmet names them", "账号不满足激活条件，见 details.unmet";
    AccUnreachable "SUP_ACC_5031", "the provider could not be reached in time; try again", "供应商在限定时间内不可达，请重试";
    PkgFloor "SUP_PKG_4001", "the price is below the protected price; details.floor is the lowest allowed", "售价低于保护价，最低价见 details.floor";
    PkgQuota "SUP_PKG_4002", "the account has not enough quota; details.available is what is left", "可用额度不足，余量见 details.available";
    PkgAccount "SUP_PKG_4003", "the account's state does not allow publishing; activate it first", "账号状态不允许发布，请先激活";
    PkgPrice "SUP_PKG_4004", "the price is malformed: 0 to 1000000 with at most 6 decimals", "价格格式错误：0 至 1000000，最多 6 位小数";
    PkgModel "SUP_PKG_4005", "the model is not on the provider's list; no protected price is set", "模型不在该供应商白名单内";
    PkgMissing "SUP_PKG_4041", "no such package", "套餐不存在";
    PkgState "SUP_PKG_4091", "the package's state does not allow this, or it changed meanwhile; read it again", "套餐状态冲突，请刷新后重试";
    PkgSoldOut "SUP_PKG_4092", "sold_out is set and left by the system only", "sold_out 只能由系统迁移";
    PkgExpired "SUP_PKG_4093", "an expired package cannot be restored; clone it", "套餐已过期，不可恢复，请克隆";
    PkgLocked "SUP_PKG_4094", "a platform freeze or an unfinished order blocks this; wait until it is lifted", "平台冻结或存在未完成的结算锁，暂不可操作";
    OrdMissing "SUP_ORD_4041", "no such order", "订单不存在";
    OrdState "SUP_ORD_4091", "the order's state does not allow this; read it again", "订单状态冲突，请刷新后重试";
    OrdQuota "SUP_ORD_4001", "the quota is below the package's minimum or above what is left", "购买额度低于起购量或超出余量";
    OrdFunds "SUP_ORD_4021", "the prepaid balance is too low; top up first", "预付余额不足，请先充值";
    OrdCalls "SUP_ORD_4022", "the order's escrow or quota does not cover this call", "订单余额不足以支付本次调用";
    SetFunds "SUP_SET_4001", "the amount exceeds the available balance; details.available_amount is what may be withdrawn", "提现金额超过可提现余额，可提现金额见 details.available_amount";
    SetPayee "SUP_SET_4002", "the payout account is not valid for this method; check payment_account", "收款账户与支付方式不符，请检查 payment_account";
    SetCode "SUP_SET_4003", "the SMS code is wrong, expired or used; request a new one", "短信验证码错误、过期或已使用，请重新获取";
    SetAmount "SUP_SET_4004", "the amount is malformed or not positive: at most 2 decimals", "金额格式错误或不为正数，最多 2 位小数";
    SetMinimum "SUP_SET_4005", "the amount is below the minimum withdrawal; details.minimum is the lowest", "低于最低提现金额，最低金额见 details.minimum";
    SetSingle "SUP_SET_4006", "the amount is above the limit of one withdrawal; details.maximum is the highest", "超过单笔提现上限，上限见 details.maximum";
    SetDaily "SUP_SET_4007", "the amount is above what is left of today's limit; details.left is what is left", "超过当日提现上限，剩余额度见 details.left";
    SetMissing "SUP_SET_4041", "no such settlement", "结算单不存在";
    SetOpen "SUP_SET_4091", "a withdrawal is already open; wait until it is closed or cancel it", "当前有处理中的提现单，请等待完成或撤销";
    SetFixed "SUP_SET_4092", "a withdrawal that is processing or completed cannot be cancelled", "processing/completed 的提现不可撤销";
    SetState "SUP_SET_4094", "the settlement's state does not allow this; read it again", "结算单状态冲突，请刷新后重试";
    SetBlocked "SUP_SET_4095", "the supplier is not active or has an open risk case", "供应方未激活或存在未结清的风险单";
    SetCooling "SUP_SET_4291", "the cool-down after the last payout is running; details.retry_after_seconds tells how long", "提现冷却中，剩余时间见 details.retry_after_seconds";
    SetCodes "SUP_SET_4292", "too many SMS codes; details.retry_after_seconds tells when the next may be sent", "验证码发送过于频繁，见 details.retry_after_seconds";
    SetUnbalanced "SUP_SET_5002", "settlement and ledger do not balance; nothing was changed and the platform was alerted", "结算金额与余额流水不平衡，未做任何变更，已告警";
    SetOff "SUP_SET_5031", "withdrawals are off: no SMS service is set up", "提现功能未开启：短信服务未配置";
    ComField "SUP_COM_4001", "a field is not valid; details.fields names it and the rule", "字段校验失败，见 details.fields";
    ComCurrency "SUP_COM_4003", "the currencies differ; use the supplier's settlement currency", "币种不一致，请使用结算币种";
    ComMissing "SUP_COM_4041", "no such object", "对象不存在";
    ComState "SUP_COM_4091", "the object's state does not allow this, or it changed meanwhile; read it again", "对象状态冲突，请刷新后重试";
    ComUsage "SUP_COM_4092", "this call is on record with other figures", "该调用已以不同数据入账";
}

impl Code {
    /// The HTTP status: the first three digits (section 9.1).
    #[must_use]
    pub fn status(self) -> u16 {
        self.as_str().rsplit('_').next().and_then(|digits| digits.get(..3)?.parse().ok()).unwrap_or(500)
    }

    /// After how many seconds the same request is worth sending again, where nobody knows better; of 429 and 503.
    #[must_use]
    pub fn come_again(self) -> Option<i64> {
        match (self, self.status()) {
            // Somebody has to set it up.
            (Self::SetOff, _) => Some(600),
            (_, 429 | 503) => Some(2),
            _ => None,
        }
    }

    /// Whether the key stays open: the same request may succeed later (section 7.4).
    #[must_use]
    pub fn is_passing(self) -> bool {
        self.status() == 429 || self.status() >= 500
    }
}

/// An invariant of section 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// An active account cannot be deleted.
    Acc001,
    /// A disabled account is restored by an administrator only.
    Acc002,
    /// `sold_out` is set and left by the system only.
    Pkg001,
    /// An expired package cannot be restored.
    Pkg002,
    /// No price below the protected price.
    Pkg003,
    /// Processing or completed cannot be cancelled.
    Set001,
    /// No withdrawal above the available balance.
    Set002,
    /// Settlement amount and ledger balance.
    Set003,
}

impl Invariant {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Acc001,
        Self::Acc002,
        Self::Pkg001,
        Self::Pkg002,
        Self::Pkg003,
        Self::Set001,
        Self::Set002,
        Self::Set003,
    ];

    /// Its `rule_code`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acc001 => "INV-ACC-001",
            Self::Acc002 => "INV-ACC-002",
            Self::Pkg001 => "INV-PKG-001",
            Self::Pkg002 => "INV-PKG-002",
            Self::Pkg003 => "INV-PKG-003",
            Self::Set001 => "INV-SET-001",
            Self::Set002 => "INV-SET-002",
            Self::Set003 => "INV-SET-003",
        }
    }

    /// The code that breaking it is refused with.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Acc001 => Code::AccActive,
            Self::Acc002 => Code::AccDisabled,
            Self::Pkg001 => Code::PkgSoldOut,
            Self::Pkg002 => Code::PkgExpired,
            Self::Pkg003 => Code::PkgFloor,
            Self::Set001 => Code::SetFixed,
            Self::Set002 => Code::SetFunds,
            Self::Set003 => Code::SetUnbalanced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_three_digits_are_the_status() {
        for code in Code::ALL {
            assert!((400..=503).contains(&code.status()), "{}", code.as_str());
        }
        assert_eq!(
            (Code::SetOff.status(), Code::AccDisabled.status(), Code::OrdFunds.status()),
            (503, 403, 402)
        );
    }

    #[test]
    fn no_two_codes_share_a_word() {
        let mut words: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn each_invariant_has_the_code_that_the_specification_gives_it() {
        let table: Vec<_> = Invariant::ALL.iter().map(|rule| (rule.as_str(), rule.code().as_str())).collect();
        assert_eq!(
            table,
            [
                ("INV-ACC-001", "SUP_ACC_4092"),
                ("INV-ACC-002", "SUP_ACC_4031"),
                ("INV-PKG-001", "SUP_PKG_4092"),
                ("INV-PKG-002", "SUP_PKG_4093"),
                ("INV-PKG-003", "SUP_PKG_4001"),
                ("INV-SET-001", "SUP_SET_4092"),
                ("INV-SET-002", "SUP_SET_4001"),
                ("INV-SET-003", "SUP_SET_5002"),
            ]
        );
    }
}
