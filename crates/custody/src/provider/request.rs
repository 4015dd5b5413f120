//! The question to each provider, as its documentation has it. All but one list models and cost nothing;
//! iFlytek's OpenAI-compatible service has no list, so it is asked for one token of its free model.

use reqwest::header::HeaderValue;
use reqwest::{Client, RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use kernel::Time;

use super::{Credential, tc3};
use crate::format::{AccountType, Provider};
use crate::wire;

/// The API version that Anthropic wants named.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// One token of the free model, not streamed.
const XFYUN_BODY: &str =
    r#"{"model":"lite","messages":[{"role":"user","content":"hi"}],"max_tokens":1,"stream":false}"#;
/// Counts tokens: free, and needs no region.
const TENCENT_ACTION: &str = "GetTokenCount";
const TENCENT_VERSION: &str = "2023-09-01";
const TENCENT_SERVICE: &str = "hunyuan";
const TENCENT_BODY: &str = r#"{"Prompt":"hi"}"#;

/// Which of the configured addresses, and which rules for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Openai,
    Anthropic,
    Gemini,
    Baidu,
    Xfyun,
    Tencent,
    TencentSigned,
}

/// How the credential is shown to the provider.
enum Proof {
    Bearer(Zeroizing<String>),
    Header(&'static str, Zeroizing<String>),
    /// `AKID…` and the secret key.
    Signed(Zeroizing<String>, SecretString),
}

pub(super) struct Ask {
    pub(super) route: Route,
    proof: Proof,
}

pub(super) enum Plan {
    Ask(Ask),
    /// There is no harmless question that needs nothing but the credential: an OAuth credential needs its
    /// client's exchange, and Baidu's old `AK:SK` pair travels in a query.
    Uncheckable,
}

/// What to ask for a credential whose shape was checked.
pub(super) fn plan(credential: &Credential<'_>) -> Plan {
    if credential.account_type == AccountType::Oauth {
        return Plan::Uncheckable;
    }
    let text = credential.secret.expose_secret().trim();
    let bearer = |route, text: &str| Ask { route, proof: Proof::Bearer(Zeroizing::new(text.to_owned())) };
    let header = |route, name, text: &str| {
        Plan::Ask(Ask { route, proof: Proof::Header(name, Zeroizing::new(text.to_owned())) })
    };
    match credential.provider {
        Provider::Openai => Plan::Ask(bearer(Route::Openai, text)),
        Provider::Anthropic => header(Route::Anthropic, "x-api-key", text),
        Provider::Gemini => header(Route::Gemini, "x-goog-api-key", text),
        Provider::Baidu if text.starts_with("bce-v3/") => Plan::Ask(bearer(Route::Baidu, text)),
        Provider::Baidu => Plan::Uncheckable,
        Provider::Xfyun => Plan::Ask(bearer(Route::Xfyun, without_appid(text))),
        Provider::Tencent => match text.split_once(':') {
            Some((id, key)) => {
                let proof = Proof::Signed(Zeroizing::new(id.to_owned()), SecretString::from(key));
                Plan::Ask(Ask { route: Route::TencentSigned, proof })
            }
            None => Plan::Ask(bearer(Route::Tencent, text)),
        },
    }
}

/// `APPID:` in front of a pair is no part of it.
fn without_appid(text: &str) -> &str {
    match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => rest,
        _ => text,
    }
}

impl Ask {
    /// `None` if the credential fits in no header, which its shape rules out.
    pub(super) fn request(&self, client: &Client, base: &Url, now: Time) -> Option<RequestBuilder> {
        let get = |path: &str| client.get(wire::under(base, path));
        let request = match self.route {
            Route::Openai | Route::Tencent => get("/v1/models"),
            Route::Anthropic => get("/v1/models?limit=1").header("anthropic-version", ANTHROPIC_VERSION),
            Route::Gemini => get("/v1beta/models?pageSize=1"),
            Route::Baidu => get("/v2/models"),
            Route::Xfyun => client
                .post(wire::under(base, "/v1/chat/completions"))
                .header("content-type", "application/json")
                .body(XFYUN_BODY),
            Route::TencentSigned => client.post(wire::under(base, "/")),
        };
        let request = request.header("accept", "application/json");
        match &self.proof {
            Proof::Bearer(text) => {
                let value = Zeroizing::new(format!("Bearer {}", text.as_str()));
                Some(request.header("authorization", wire::hidden(&value)?))
            }
            Proof::Header(name, text) => Some(request.header(*name, wire::hidden(text)?)),
            Proof::Signed(id, key) => signed(request, base, (id, key), now),
        }
    }
}

fn signed(
    request: RequestBuilder,
    base: &Url,
    (id, key): (&str, &SecretString),
    now: Time,
) -> Option<RequestBuilder> {
    let host = match base.port() {
        Some(port) => format!("{}:{port}", base.host_str()?),
        None => base.host_str()?.to_owned(),
    };
    let path = Url::parse(&wire::under(base, "/")).ok()?.path().to_owned();
    let call = tc3::Call {
        service: TENCENT_SERVICE,
        action: TENCENT_ACTION,
        host: &host,
        path: &path,
        payload: TENCENT_BODY,
        at: now,
    };
    let authorization = wire::hidden(&call.authorization(id, key))?;
    let request = request
        .header("content-type", tc3::CONTENT_TYPE)
        .header("x-tc-action", TENCENT_ACTION)
        .header("x-tc-version", TENCENT_VERSION)
        .header("x-tc-timestamp", HeaderValue::from(now.seconds()))
        .header("authorization", authorization)
        .body(TENCENT_BODY);
    Some(request)
}
