//! Terms of service and risk, as data: what a deployment decides without a new build.
//!
//! The risk score is a sum, 0 to 100: a base, what the provider adds, and what each sign adds. From
//! `review_from` a person looks, above `reject_above` the account is not taken (supply specification,
//! section 5.2: > 80 reject, 60..80 review).

use kernel::money::Quota;

use super::Credential;
use super::verdict::{Connectivity, Verification, assemble};
use crate::format::{AccountType, Finding, Mark, Provider};

/// Whether a provider's terms allow an account in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TosRule {
    /// Whose; `None` for all.
    pub provider: Option<Provider>,
    /// Of which type; `None` for both.
    pub account_type: Option<AccountType>,
    /// Allowed, to be looked at, forbidden.
    pub mark: Mark,
}

/// Points of the risk score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Risk {
    /// Of every account.
    pub base: u8,
    /// Of a provider.
    pub providers: Vec<(Provider, u8)>,
    /// Of an OAuth credential.
    pub oauth: u8,
    /// Of a shape with an unusual length.
    pub unusual_format: u8,
    /// Of a credential that the provider could not be asked about.
    pub uncheckable: u8,
    /// Of one whose quota is used up.
    pub exhausted: u8,
    /// Of terms that want a look.
    pub tos: u8,
    /// From this score a person looks.
    pub review_from: u8,
    /// Above this score the account is not taken.
    pub reject_above: u8,
}

/// What a deployment decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The first that fits counts; none fits: to be looked at, since nobody decided.
    pub tos: Vec<TosRule>,
    /// Points and limits.
    pub risk: Risk,
    /// What an account is taken to have when the provider accepts it and names no figure: providers tell
    /// none for an ordinary key.
    pub assumed_quota: Quota,
}

impl Policy {
    /// API keys are allowed, OAuth credentials (mostly of personal subscriptions) are looked at; base risk
    /// 20; the given quota is assumed.
    #[must_use]
    pub fn standard(assumed_quota: Quota) -> Self {
        let rule = |account_type, mark| TosRule { provider: None, account_type: Some(account_type), mark };
        Self {
            tos: vec![rule(AccountType::ApiKey, Mark::Pass), rule(AccountType::Oauth, Mark::Warn)],
            risk: Risk {
                base: 20,
                providers: Vec::new(),
                oauth: 20,
                unusual_format: 15,
                uncheckable: 25,
                exhausted: 15,
                tos: 10,
                review_from: 60,
                reject_above: 80,
            },
            assumed_quota,
        }
    }

    /// Puts the five items together.
    pub(super) fn judge(
        &self,
        credential: &Credential<'_>,
        shape: Finding,
        connectivity: Connectivity,
    ) -> Verification {
        let tos = self.tos(credential);
        let score = self.score(credential, shape.mark, connectivity, tos);
        let risk = if score > self.risk.reject_above {
            Mark::Fail
        } else if score >= self.risk.review_from {
            Mark::Warn
        } else {
            Mark::Pass
        };
        let quota = match connectivity {
            Connectivity::Accepted(told) => Some(told.unwrap_or(self.assumed_quota)),
            _ => None,
        };
        assemble(shape, connectivity, quota, tos, (score, risk))
    }

    fn tos(&self, credential: &Credential<'_>) -> Mark {
        let fits = |rule: &&TosRule| {
            rule.provider.is_none_or(|provider| provider == credential.provider)
                && rule.account_type.is_none_or(|kind| kind == credential.account_type)
        };
        self.tos.iter().find(fits).map_or(Mark::Warn, |rule| rule.mark)
    }

    fn score(&self, credential: &Credential<'_>, shape: Mark, asked: Connectivity, tos: Mark) -> u8 {
        let risk = &self.risk;
        let provider = risk.providers.iter().find(|(provider, _)| *provider == credential.provider);
        let when = |sign: bool, points: u8| if sign { points } else { 0 };
        let points = [
            risk.base,
            provider.map_or(0, |(_, points)| *points),
            when(credential.account_type == AccountType::Oauth, risk.oauth),
            when(shape != Mark::Pass, risk.unusual_format),
            when(asked == Connectivity::Uncheckable, risk.uncheckable),
            when(asked == Connectivity::Exhausted, risk.exhausted),
            when(tos != Mark::Pass, risk.tos),
        ];
        points.into_iter().fold(0u8, u8::saturating_add).min(100)
    }
}
