//! Verification of an upstream credential at its provider (supply specification, section 8.1, rows 1, 2, 9):
//! one harmless question in the provider's own request shape, at most 3 tries, 700 ms in all.
//!
//! `request` knows the shapes, `tc3` Tencent's signature, `answer` what an answer means, [`policy`] ToS and
//! risk as data, [`verdict`] puts the five items together.
//!
//! The credential goes into a header and nowhere else, to the configured address only: no redirect is
//! followed, no query carries it. Of an answer only a class is kept, since vendors quote part of the key.
//! Called outside of transactions. Not here: the audit row, rate limits, and storing anything.

mod answer;
pub mod policy;
mod request;
mod tc3;
pub mod verdict;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use kernel::money::{Quota, QuotaUnit};
use kernel::{Clock, Random};
use reqwest::header::HeaderName;
use reqwest::{Client, Url};
use secrecy::SecretString;

use self::answer::{Said, judge};
use self::policy::Policy;
use self::request::{Ask, Plan, Route, plan};
use self::verdict::{Connectivity, Verification};
use crate::breaker::{Breaker, BreakerSettings};
use crate::format::{self, AccountType, Mark, Provider};
use crate::wire::{self, Cause, Effort, Wrong};

/// Bytes of an answer at most; the longest list of models has about 100,000.
const ANSWER_MAX: usize = 1024 * 1024;

/// What is to be verified.
#[derive(Clone, Copy, Debug)]
pub struct Credential<'a> {
    /// Whose.
    pub provider: Provider,
    /// Of which type.
    pub account_type: AccountType,
    /// The text as it was given; outer white space does not count.
    pub secret: &'a SecretString,
}

/// The provider could not be asked within the budget (`SUP_ACC_5031`): nothing is known of the credential,
/// and the request burns no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is out of reach ({cause}); try again later", provider.as_str())]
pub struct Unreachable {
    /// Whom we asked.
    pub provider: Provider,
    /// Which kind of failure.
    pub cause: Cause,
}

/// Where each provider is: like `https://api.openai.com`, a path prefix is kept. Plain HTTP is for loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// `GET /v1/models` with a bearer token.
    pub openai: String,
    /// `GET /v1/models` with `x-api-key`.
    pub anthropic: String,
    /// `GET /v1beta/models` with `x-goog-api-key`.
    pub gemini: String,
    /// `GET /v2/models` with a bearer token.
    pub baidu: String,
    /// `POST /v1/chat/completions` with a bearer token: the service has no list of models.
    pub xfyun: String,
    /// `GET /v1/models` with a bearer token, for `sk-` keys.
    pub tencent: String,
    /// API 3.0, signed, for `AKID…:SecretKey`.
    pub tencent_signed: String,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            openai: "https://api.openai.com".into(),
            anthropic: "https://api.anthropic.com".into(),
            gemini: "https://generativelanguage.googleapis.com".into(),
            baidu: "https://qianfan.baidubce.com".into(),
            xfyun: "https://spark-api-open.xf-yun.com".into(),
            tencent: "https://api.hunyuan.cloud.tencent.com".into(),
            tencent_signed: "https://hunyuan.tencentcloudapi.com".into(),
        }
    }
}

/// How providers are asked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where they are.
    pub addresses: Addresses,
    /// Tries and total time of one verification.
    pub effort: Effort,
    /// For the connection.
    pub connect_within: Duration,
    /// When a provider is not asked for a while.
    pub breaker: BreakerSettings,
    /// A response header with the quota that is left, in `quota_unit`; `None` where no gateway of ours adds
    /// one. Providers themselves tell no quota for an ordinary key.
    pub quota_header: Option<String>,
    /// What a quota is counted in.
    pub quota_unit: QuotaUnit,
}

impl Default for Settings {
    /// Section 8.1: 3 tries, 700 ms in all.
    fn default() -> Self {
        Self {
            addresses: Addresses::default(),
            effort: Effort { tries: 3, budget: Duration::from_millis(700), pause: Duration::from_millis(40) },
            connect_within: Duration::from_millis(500),
            breaker: BreakerSettings::default(),
            quota_header: None,
            quota_unit: QuotaUnit::Token,
        }
    }
}

/// One address with its client and its circuit.
struct Line {
    base: Url,
    client: Client,
    breaker: Breaker,
}

/// Asks providers.
pub struct Verifier {
    lines: [Line; 7],
    settings: Settings,
    quota_header: Option<HeaderName>,
    policy: Policy,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("addresses", &self.settings.addresses).finish_non_exhaustive()
    }
}

impl Verifier {
    /// Checks the settings and builds the clients; nothing is sent. `clock` dates Tencent's signatures,
    /// `random` shortens pauses.
    ///
    /// # Errors
    /// [`Wrong`], naming the setting.
    pub fn new(
        settings: Settings,
        policy: Policy,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, Wrong> {
        let line = |address: &str| {
            let base = wire::address(address)?;
            let client = wire::client(&base, settings.connect_within, None)?;
            Ok::<_, Wrong>(Line { base, client, breaker: Breaker::new(settings.breaker) })
        };
        let at = &settings.addresses;
        let lines = [
            line(&at.openai)?,
            line(&at.anthropic)?,
            line(&at.gemini)?,
            line(&at.baidu)?,
            line(&at.xfyun)?,
            line(&at.tencent)?,
            line(&at.tencent_signed)?,
        ];
        let header = settings.quota_header.as_ref();
        let named = |name: &String| HeaderName::try_from(name).map_err(|_| Wrong::Name(name.clone()));
        let quota_header = header.map(named).transpose()?;
        Ok(Self { lines, settings, quota_header, policy, clock, random })
    }

    /// Verifies. A credential without the provider's shape is never sent.
    ///
    /// # Errors
    /// [`Unreachable`]: nothing is known, come again.
    pub async fn verify(&self, credential: &Credential<'_>) -> Result<Verification, Unreachable> {
        let shape = format::check(credential.provider, credential.account_type, credential.secret);
        let connectivity = if shape.mark == Mark::Fail {
            Connectivity::NotAsked
        } else {
            match plan(credential) {
                Plan::Uncheckable => Connectivity::Uncheckable,
                Plan::Ask(ask) => self.ask(credential.provider, &ask).await?,
            }
        };
        Ok(self.policy.judge(credential, shape, connectivity))
    }

    async fn ask(&self, provider: Provider, ask: &Ask) -> Result<Connectivity, Unreachable> {
        let unreachable = |cause: Cause| {
            tracing::warn!(provider = provider.as_str(), cause = cause.as_str(), "provider out of reach");
            Unreachable { provider, cause }
        };
        let line = self.line(ask.route);
        let once = || {
            let request = ask.request(&line.client, &line.base, self.clock.now());
            async move {
                let Some(request) = request else { return ControlFlow::Break(Err(Cause::Unexpected)) };
                match wire::exchange(request, ANSWER_MAX).await {
                    Ok(answer) => match judge(ask.route, &answer) {
                        Said::Accepted => ControlFlow::Break(Ok(Connectivity::Accepted(self.quota(&answer)))),
                        Said::Refused => ControlFlow::Break(Ok(Connectivity::Refused)),
                        Said::Exhausted => ControlFlow::Break(Ok(Connectivity::Exhausted)),
                        Said::Unexpected => ControlFlow::Break(Err(Cause::Unexpected)),
                        Said::Again(cause) => ControlFlow::Continue(cause),
                    },
                    Err(Cause::Unexpected) => ControlFlow::Break(Err(Cause::Unexpected)),
                    Err(cause) => ControlFlow::Continue(cause),
                }
            }
        };
        let found = wire::tried(&self.settings.effort, &line.breaker, &*self.random, once).await;
        found.and_then(|answered| answered).map_err(unreachable)
    }

    fn line(&self, route: Route) -> &Line {
        let [openai, anthropic, gemini, baidu, xfyun, tencent, signed] = &self.lines;
        match route {
            Route::Openai => openai,
            Route::Anthropic => anthropic,
            Route::Gemini => gemini,
            Route::Baidu => baidu,
            Route::Xfyun => xfyun,
            Route::Tencent => tencent,
            Route::TencentSigned => signed,
        }
    }

    fn quota(&self, answer: &wire::Answer) -> Option<Quota> {
        let text = answer.headers.get(self.quota_header.as_ref()?)?.to_str().ok()?;
        Quota::parse(text.trim(), self.settings.quota_unit).ok()
    }
}
