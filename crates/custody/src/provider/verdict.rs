//! The result of a verification: five items, a status, the quota, the score (supply specification, section
//! 8.1, operation 1). Every text is fixed; none holds a part of the credential or a word of the provider.

use kernel::money::Quota;

use crate::format::{Finding, Mark};

/// What became of the question to the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connectivity {
    /// It knows the credential; the quota if it told one.
    Accepted(Option<Quota>),
    /// It refused it.
    Refused,
    /// It knows it, and nothing is left.
    Exhausted,
    /// There is no harmless question for this kind of credential.
    Uncheckable,
    /// The shape was wrong, so nothing was sent.
    NotAsked,
}

/// What was checked: `check_items[].item`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckItem {
    /// The shape.
    CredentialFormat,
    /// Whether the provider answers and knows the credential.
    ProviderConnectivity,
    /// Whether quota is left.
    QuotaAvailability,
    /// Whether the terms allow it.
    Tos,
    /// The score.
    Risk,
}

impl CheckItem {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CredentialFormat => "credential_format",
            Self::ProviderConnectivity => "provider_connectivity",
            Self::QuotaAvailability => "quota_availability",
            Self::Tos => "tos",
            Self::Risk => "risk",
        }
    }
}

/// One of `check_items`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What was checked.
    pub item: CheckItem,
    /// With which result.
    pub result: Mark,
    /// A fixed sentence.
    pub message: &'static str,
}

/// What follows from the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerifyStatus {
    /// All pass.
    Pass,
    /// A person looks: the account is created with `is_verified=false`.
    ReviewRequired,
    /// No account is created.
    Reject,
}

impl VerifyStatus {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::ReviewRequired => "review_required",
            Self::Reject => "reject",
        }
    }
}

/// Why a credential is rejected: the first failed item, in the order of the error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// `SUP_ACC_4001`.
    Format,
    /// `SUP_ACC_4002`.
    Provider,
    /// `SUP_ACC_4003`.
    Tos,
    /// The score; section 9.2 has no code of its own for it, `SUP_ACC_4003` comes nearest.
    Risk,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// What follows.
    pub verify_status: VerifyStatus,
    /// Always all five, in the order of the specification.
    pub items: [Item; 5],
    /// What the account is taken to have; `None`, the API's 0, unless the provider accepted the credential.
    pub available_quota: Option<Quota>,
    /// 0 to 100.
    pub risk_score: u8,
}

impl Verification {
    /// Why it is rejected, if it is.
    #[must_use]
    pub fn rejection(&self) -> Option<Rejection> {
        let failed = |item: &&Item| item.result == Mark::Fail;
        self.items.iter().find(failed).map(|item| match item.item {
            CheckItem::CredentialFormat => Rejection::Format,
            CheckItem::ProviderConnectivity | CheckItem::QuotaAvailability => Rejection::Provider,
            CheckItem::Tos => Rejection::Tos,
            CheckItem::Risk => Rejection::Risk,
        })
    }

    /// Whether the terms were checked and allow it: the column `tos_compliant`.
    #[must_use]
    pub fn tos_compliant(&self) -> bool {
        self.items.iter().any(|item| item.item == CheckItem::Tos && item.result == Mark::Pass)
    }
}

pub(super) fn assemble(
    shape: Finding,
    asked: Connectivity,
    available_quota: Option<Quota>,
    tos: Mark,
    (risk_score, risk): (u8, Mark),
) -> Verification {
    let item = |item, (result, message)| Item { item, result, message };
    let items = [
        item(CheckItem::CredentialFormat, (shape.mark, shape.message)),
        item(CheckItem::ProviderConnectivity, connectivity(asked)),
        item(CheckItem::QuotaAvailability, quota(asked, available_quota)),
        item(CheckItem::Tos, (tos, tos_text(tos))),
        item(CheckItem::Risk, (risk, risk_text(risk))),
    ];
    let worst = items.iter().map(|item| item.result).max();
    let verify_status = match worst {
        Some(Mark::Fail) => VerifyStatus::Reject,
        Some(Mark::Warn) => VerifyStatus::ReviewRequired,
        _ => VerifyStatus::Pass,
    };
    Verification { verify_status, items, available_quota, risk_score }
}

const fn connectivity(asked: Connectivity) -> (Mark, &'static str) {
    match asked {
        Connectivity::Accepted(_) => (Mark::Pass, "the provider accepts the credential"),
        Connectivity::Exhausted => (Mark::Pass, "the provider knows the credential"),
        Connectivity::Refused => (Mark::Fail, "the provider refuses the credential"),
        Connectivity::Uncheckable => {
            (Mark::Warn, "the provider can't be asked about this kind of credential")
        }
        Connectivity::NotAsked => (Mark::Warn, "not checked, since the format is wrong"),
    }
}

fn quota(asked: Connectivity, quota: Option<Quota>) -> (Mark, &'static str) {
    match asked {
        Connectivity::Accepted(_) if quota.is_some_and(|quota| !quota.is_zero()) => {
            (Mark::Pass, "quota is available")
        }
        Connectivity::Accepted(_) | Connectivity::Exhausted => {
            (Mark::Warn, "no quota is left at the provider, or the account is in arrears")
        }
        Connectivity::Refused | Connectivity::Uncheckable | Connectivity::NotAsked => {
            (Mark::Warn, "not checked, since the provider did not accept the credential")
        }
    }
}

const fn tos_text(mark: Mark) -> &'static str {
    match mark {
        Mark::Pass => "the provider's terms allow this kind of account",
        Mark::Warn => "the provider's terms need a look for this kind of account",
        Mark::Fail => "the provider's terms forbid this kind of account",
    }
}

const fn risk_text(mark: Mark) -> &'static str {
    match mark {
        Mark::Pass => "the risk score is below the review limit",
        Mark::Warn => "the risk score needs a review",
        Mark::Fail => "the risk score is above the limit",
    }
}
