//! FI-007: a credential in the address, in every spelling of section 14 of the domain's specification, on known and
//! unknown paths, with and without a bearer token: 401, before anything else, and its value is kept nowhere.

use futures::future::join_all;
use guard::canary::contains_run;

use super::super::check::{Book, Check};
use super::super::desk::{code, is};
use super::super::ground::letters;
use super::super::metrics::counter;
use super::super::proven::Kept;
use super::super::raw::Raw;
use super::super::stage::Stage;

const NAMES: &str = "key, apikey, xapikey, xgoogapikey, appkey, apisecret, apipassword, appsecret, accesskey,
accesskeyid, secretkey, secretid, secret, clientsecret, ak, sk, token, accesstoken, refreshtoken, idtoken, authtoken,
apitoken, sessiontoken, bearer, bearertoken, auth, authorization, xauthtoken, password, passwd, pwd, credential,
credentials, credentialinput, subscriptionkey, jwt, signature, sig";
const PATHS: [&str; 6] = [
    "/api/v1/supply/accounts",
    "/api/v1/supply/settlements/withdraw",
    "/v1/chat/completions",
    "/v1beta/models/gemini:generateContent",
    "/nowhere/at/all",
    "/healthz",
];
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"];
/// Requests at the same time.
const AT_ONCE: usize = 16;
/// Everything that is text in the audit.
const AUDIT: Kept = Kept {
    what: "audit",
    table: "audit_events",
    columns: &[
        "metadata",
        "before_state",
        "after_state",
        "object_id",
        "request_id",
        "trace_id",
        "user_agent",
        "idempotency_key",
        "operator_role",
    ],
};
const REJECTED: (&str, &str) = ("token.query_key.rejected", "QUERY_KEY_NOT_ALLOWED");
/// Counter of requests in which a credential was seen, and of those that were refused for it.
const COUNTERS: [&str; 2] = ["onceseal_query_key_detected_total", "onceseal_query_key_rejected_total"];

pub(super) async fn run(stage: &Stage, book: &Book) {
    book.check("FI-007.names", async |check| names(stage, check).await).await;
    book.check("FI-007.values", async |check| values(stage, check).await).await;
    book.check("FI-007.paths", async |check| paths(stage, check).await).await;
    book.check("FI-007.lookalikes", async |check| lookalikes(stage, check).await).await;
    book.check("FI-007.counted", async |check| counted(stage, check).await).await;
}

/// `name` in other spellings, with this value.
fn variants(name: &str, value: &str) -> Vec<String> {
    let (first, rest) = name.split_at(1);
    let hex: String = first.bytes().map(|byte| format!("{byte:02x}")).collect();
    let wide: String = name
        .bytes()
        .filter_map(|byte| char::from_u32(u32::from(byte) + 0xfee0))
        .flat_map(|wide| wide.to_string().into_bytes())
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    vec![
        format!("{name}={value}"),
        format!("{}={value}", name.to_uppercase()),
        name.to_owned(),
        format!("{name}="),
        format!("%{hex}{rest}={value}"),
        format!("%25{hex}{rest}={value}"),
        format!("{first}_{rest}={value}"),
        format!("{first}%5F{rest}={value}"),
        format!("{first}-{rest}={value}"),
        format!("{first}.{rest}={value}"),
        format!("{first}+{rest}={value}"),
        format!("{first}%E2%80%8B{rest}={value}"),
        format!("{name}[]={value}"),
        format!("{name}%5Ba%5D={value}"),
        format!("{wide}={value}"),
        format!("page=1&{name}={value}"),
        format!("page=1;{name}={value}"),
        format!("page=1&{name}={value}&{name}=2"),
        format!("page=%zz&{name}={value}"),
    ]
}

/// Sends all, notes all, and tells those that were not refused.
async fn refused(stage: &Stage, check: &mut Check, raws: &[Raw]) -> Result<Vec<String>, String> {
    let mut odd = Vec::new();
    for some in raws.chunks(AT_ONCE) {
        let mut checks = vec![Check::default(); some.len()];
        let sends = some.iter().zip(&mut checks).map(async |(raw, check)| stage.raw(check, raw).await);
        for (raw, answer) in some.iter().zip(join_all(sends).await) {
            let answer = answer?;
            check.sent(
                &answer.request_id,
                format!(
                    "{} {}",
                    raw.method,
                    PATHS.iter().find(|path| raw.target.starts_with(**path)).unwrap_or(&"another path")
                ),
                answer.code(),
            );
            let told = raw.method == "HEAD" || answer.error() == REJECTED.1;
            if answer.code() != 401 || !told {
                odd.push(format!("{} {}: {} {}", raw.method, raw.target, answer.code(), answer.error()));
            }
        }
    }
    Ok(odd)
}

/// All of them are refused and audited, nothing else happens, and their value is kept nowhere.
async fn none_pass(stage: &Stage, check: &mut Check, (raws, value): (Vec<Raw>, &str)) -> Result<(), String> {
    let (before, audited) = (stage.business().await?, stage.audited(REJECTED.0, REJECTED.1).await?);
    let odd = refused(stage, check, &raws).await?;
    check.value("requests", raws.len());
    check.equal("requests that were not refused", &Vec::<String>::new(), &odd);
    let now = stage.audited(REJECTED.0, REJECTED.1).await?;
    check.equal("audited", &i64::try_from(raws.len()).unwrap_or_default(), &(now - audited));
    before.unchanged(check, "tables after them", &stage.business().await?);
    if let Some(request_id) = check.requests.first().map(|sent| sent.request_id.clone()) {
        stage.sampled(check, &request_id).await?;
    }
    AUDIT.without(&stage.database, check, value).await?;
    let logs = stage.logs();
    check
        .so("there is a log of each server", logs.iter().all(|(_, log)| !log.is_empty()) && !logs.is_empty());
    check.so("the value is in no log", logs.iter().all(|(_, log)| !contains_run(log, value, 8)));
    Ok(())
}

async fn names(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let (desk, value) = (stage.desk().await?, letters(20));
    let mut raws = Vec::new();
    for (nth, name) in NAMES.split(',').map(str::trim).enumerate() {
        for (of, query) in variants(name, &value).into_iter().enumerate() {
            let path = PATHS.get((nth + of) % PATHS.len()).copied().unwrap_or_default();
            let raw = Raw::get(format!("{path}?{query}"));
            raws.push(match (nth + of) % 3 {
                0 => raw.with("authorization", format!("Bearer {}", desk.owner.token)),
                1 => raw.with("authorization", "Bearer no.such.token"),
                _ => raw,
            });
        }
    }
    check.equal("names and spellings", &(38 * 19), &raws.len());
    none_pass(stage, check, (raws, &value)).await
}

async fn values(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let (desk, value) = (stage.desk().await?, letters(40));
    let openai = format!("sk-{value}");
    let jwt = format!("eyJ{}.eyJ{}.{value}", letters(20), letters(20));
    let spellings = [
        jwt,
        openai.clone(),
        format!("sk-ant-api03-{value}"),
        format!("AIza{}", value.get(..35).unwrap_or_default()),
        format!("lgw_{value}"),
        encoded(&openai),
        format!("Bearer%20{value}"),
        openai.replace("sk-", "sk%252D"),
    ];
    let raws = spellings
        .iter()
        .flat_map(|value| {
            [format!("/v1/models?model={value}"), format!("/api/v1/supply/packages?page=1&x={value}")]
        })
        .map(|target| Raw::get(target).with("authorization", format!("Bearer {}", desk.owner.token)))
        .collect();
    none_pass(stage, check, (raws, &value)).await
}

/// Base64url without padding.
fn encoded(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}

async fn paths(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let (desk, value) = (stage.desk().await?, letters(20));
    let mut raws = Vec::new();
    for path in PATHS {
        for method in METHODS {
            for bearer in [None, Some(desk.owner.token.as_str()), Some(stage.market.admin.as_str())] {
                let raw = Raw { method: method.into(), ..Raw::get(format!("{path}?api_key={value}")) };
                raws.push(match bearer {
                    Some(token) => raw.with("authorization", format!("Bearer {token}")),
                    None => raw,
                });
            }
        }
        raws.push(Raw::get(format!("{path};key={value}")));
    }
    raws.push(Raw::get(format!("/v1/models;api_key={value}/y")));
    none_pass(stage, check, (raws, &value)).await
}

/// Names that only look alike pass, and what can't be read is told as such.
async fn lookalikes(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let desk = stage.desk().await?;
    let bearer = format!("Bearer {}", desk.owner.token);
    let audited = stage.audited(REJECTED.0, REJECTED.1).await?;
    let known = ["page=1&page_size=20", "status=active&provider=openai"];
    let unknown = ["monkey=1", "keyword=a", "tokenizer=b", "model=x", "start_date=2026-01-01"];
    for query in known {
        let raw = Raw::get(format!("/api/v1/supply/accounts?{query}")).with("authorization", bearer.as_str());
        let got = stage.raw(check, &raw).await?;
        check.equal(query, &200, &got.code());
    }
    for query in unknown {
        let raw = Raw::get(format!("/api/v1/supply/accounts?{query}")).with("authorization", bearer.as_str());
        let got = stage.raw(check, &raw).await?;
        check.equal(query, &is(400, "SUP_COM_4002"), &code(&got));
    }
    for query in ["page=%zz", "page=%", "page=1;page_size=2"] {
        let raw = Raw::get(format!("/nowhere?{query}"));
        let got = stage.raw(check, &raw).await?;
        check.equal(query, &is(400, "SUP_COM_4002"), &code(&got));
    }
    check.equal("none was refused as a credential", &audited, &stage.audited(REJECTED.0, REJECTED.1).await?);
    Ok(())
}

/// Seen and refused are counted at two places.
async fn counted(stage: &Stage, check: &mut Check) -> Result<(), String> {
    let before = counters(stage).await?;
    let (sent, value) = (24, letters(20));
    let raws: Vec<Raw> = (0..sent).map(|n| Raw::get(format!("/v1/models?token={value}{n}"))).collect();
    let odd = refused(stage, check, &raws).await?;
    check.equal("requests that were not refused", &Vec::<String>::new(), &odd);
    let now = counters(stage).await?;
    let counted = (now.0 - before.0, now.1 - before.1);
    check.value("detected", counted.0);
    check.value("rejected", counted.1);
    check.equal("detected, rejected", &(sent, sent), &counted);
    AUDIT.proven(&stage.database, check, &value).await
}

async fn counters(stage: &Stage) -> Result<(i64, i64), String> {
    let [detected, rejected] = COUNTERS;
    Ok((counter(stage, detected).await?, counter(stage, rejected).await?))
}
