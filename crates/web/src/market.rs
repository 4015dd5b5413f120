//! What the server's operator orders of the supply side: the platform's first administrator, tokens without one,
//! whether the ledger balances, and whether promises are kept. With an operator's token of AuditVisa, so that a set-up needs no administrator
//! who is there already. Not here: the supply API itself ([`crate::supply`]).

use std::sync::Arc;
use std::time::Duration;

use ::supply::caller::PLATFORM;
use ::supply::platform::AddStaff;
use ::supply::rewrap::Walk;
use ::supply::slo::{Period, Report};
use ::supply::tokens::{Issue, Shown};
use ::supply::{Action, Caller, Commanded, Context, Object};
use auth::{Grant, Role, Scopes, UserType};
use axum::extract::{Request, State};
use axum::http::Uri;
use door::{Answer as Answered, Submission};
use serde_json::{Map, Value as Json, json};

use crate::arrival;
use crate::codes::{INPUT_INVALID, INTERNAL_ERROR, ROUTE_UNKNOWN};
use crate::edge::Edge;
use crate::operator::{Answer, asked, input, invalid, nothing_asked, nothing_left, shown, text, unusable};
use crate::problem::Problem;
use crate::supply::Supply;
use crate::supply::read::rfc3339;
use crate::token::Operator;

type Shared = State<Arc<Edge>>;

/// Seconds of a token's life: the longest there is, since whoever renews it does it by the supply API.
const TTL_LONGEST: u64 = 259_200;

/// Rows of each table that one order rewraps: some seconds of work.
const REWRAPPED: i64 = 200;
/// What is reported where nothing is said: budgets are a month's.
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

pub(crate) async fn administrator(operator: Operator, State(edge): Shared, request: Request) -> Answer {
    let supply = on(&edge)?;
    let request_id = arrival::of(&request);
    let mut input = input(&edge, request).await?;
    let name = text(&mut input, "name")?;
    if supply.guard.scanner().find(&name).is_some() {
        return Err(unusable("name looks like a credential; give the administrator another name"));
    }
    let ttl = ttl(&mut input)?;
    nothing_left(&input)?;
    let by = (&operator, request_id.as_str());
    let added = ordered(supply, by, PLATFORM, AddStaff { name: name.clone() }).await?;
    let user = added.get("user_id").and_then(Json::as_i64).ok_or_else(|| Problem::new(INTERNAL_ERROR))?;
    if supply.issuer.is_none() {
        // The issuer outside needs to know whom its token is to name.
        return Ok(shown(&json!({ "name": name, "added": added.get("added"), "tenant_id": PLATFORM,
            "user_id": user, "user_type": UserType::Platform.as_str(), "role": Role::Admin.as_str() })));
    }
    let scopes = Scopes::new(["*"]).map_err(|cause| unusable(cause.to_string()))?;
    let grant = Grant {
        operator_id: user,
        tenant_id: PLATFORM,
        role: Role::Admin,
        user_type: UserType::Platform,
        scopes,
        ttl,
    };
    let mut token = token(supply, by, grant).await?;
    if let Some(members) = token.as_object_mut() {
        members.insert("name".into(), name.into());
        members.insert("added".into(), added.get("added").cloned().unwrap_or_default());
    }
    Ok(shown(&token))
}

pub(crate) async fn issue(operator: Operator, State(edge): Shared, request: Request) -> Answer {
    let supply = on(&edge)?;
    let request_id = arrival::of(&request);
    let mut input = input(&edge, request).await?;
    let grant = Grant {
        tenant_id: id(&mut input, "tenant_id")?,
        operator_id: id(&mut input, "user_id")?,
        role: word(&mut input, "role", Role::from_name)?,
        user_type: word(&mut input, "user_type", UserType::from_name)?,
        scopes: scopes(&mut input)?,
        ttl: ttl(&mut input)?,
    };
    nothing_left(&input)?;
    Ok(shown(&token(supply, (&operator, &request_id), grant).await?))
}

/// What the promises of sections 18 and 19 came to, over a period.
pub(crate) async fn slo(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    let supply = on(&edge)?;
    let asked = asked(uri.query().unwrap_or_default(), &["since", "until"])?;
    let instant = |name: &str| {
        let text = asked.get(name).and_then(Json::as_str);
        let wrong = |text: &str| {
            let shown: String = text.chars().take(40).collect();
            invalid(format!("{name}: {shown:?} is not a time like 2026-03-01T09:49:14Z"))
        };
        text.map(|text| rfc3339(text).ok_or_else(|| wrong(text))).transpose()
    };
    // The store's clock may be ahead of what is known of it, and what was just counted is part of it.
    let to = instant("until")?.unwrap_or_else(|| supply.clock.now().plus(Duration::from_secs(1)));
    let from = instant("since")?.unwrap_or_else(|| to.minus(MONTH));
    if to <= from {
        return Err(invalid(format!("until {to} is not after since {from}")));
    }
    if to.since(from) > Period::LONGEST {
        let days = Period::LONGEST.as_secs() / (24 * 3600);
        return Err(invalid(format!(
            "since {from} is more than {days} days before until {to}; ask for less at once"
        )));
    }
    supply.tally.keep(&supply.door).await?;
    let report = Report::of(supply.door.store(), Period { from, to }).await?;
    let broken = report.is_broken();
    let mut json = serde_json::to_value(&report).map_err(|_| Problem::new(INTERNAL_ERROR))?;
    if let Some(members) = json.as_object_mut() {
        members.insert("broken".into(), broken.into());
    }
    Ok(shown(&json))
}

/// Every rule of section 11.5 over everything that is stored, and the ledger on one page. Changes nothing.
pub(crate) async fn ledger(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    let supply = on(&edge)?;
    nothing_asked(&uri)?;
    let store = supply.door.store();
    let found = ::supply::settlements::reconcile(store).await?;
    let totals = ::supply::settlements::totals(store).await?;
    let violations: Vec<Json> = found
        .iter()
        .map(|one| {
            json!({ "object": one.object.to_string(), "rule": format!("{:?}", one.rule),
                "expected": one.expected.to_string(), "found": one.found.to_string(), "text": one.to_string() })
        })
        .collect();
    let totals: Vec<Json> = totals
        .iter()
        .map(|one| {
            json!({ "account_code": one.code.as_str(), "currency_code": one.balance.currency().code(),
                "debits": one.debits.major(), "credits": one.credits.major(), "balance": one.balance.major() })
        })
        .collect();
    Ok(shown(&json!({ "violations": violations, "totals": totals })))
}

/// Versions of the key that wraps data keys, and how many rows need each.
pub(crate) async fn wrapping_keys(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    let supply = on(&edge)?;
    nothing_asked(&uri)?;
    let alias = supply.house.keys.custody.kms().alias();
    let versions = ::supply::rewrap::versions(supply.door.store(), alias).await?;
    Ok(shown(&json!({ "alias": alias, "versions": versions })))
}

/// Rewraps some rows at once, as the scheduler does by and by; `after` is the `next` of the round before. Each is
/// audited.
pub(crate) async fn rewrap(_operator: Operator, State(edge): Shared, uri: Uri) -> Answer {
    let supply = on(&edge)?;
    let asked = asked(uri.query().unwrap_or_default(), &["after"])?;
    let walk = match asked.get("after").and_then(Json::as_str) {
        None => Walk::default(),
        Some(text) => Walk::parse(text).ok_or_else(|| {
            invalid("after is not the `next` of a round before; leave it out to begin anew".into())
        })?,
    };
    let round = ::supply::rewrap::round(&supply.door, &supply.house, walk, REWRAPPED).await?;
    let next = round.next.map(|walk| walk.to_string());
    Ok(shown(&json!({ "rewrapped": round.rewrapped, "left": round.left, "next": next })))
}

fn on(edge: &Edge) -> Result<&Supply, Problem> {
    let off = "the supply side is off; set supply.enabled = true and start the server again";
    edge.supply.as_deref().ok_or_else(|| Problem::new(ROUTE_UNKNOWN).saying(off))
}

/// Issues, and gives what is shown once.
async fn token(supply: &Supply, by: (&Operator, &str), grant: Grant) -> Result<Json, Problem> {
    let Some(issuer) = &supply.issuer else {
        return Err(unusable("tokens come from the issuer outside (supply.issuer.jwks_url); ask there"));
    };
    let issuer = Arc::clone(issuer);
    let random = supply.door.random();
    // What can't be granted is told as such; in the command it would be a failure of a step.
    let tried = issuer.mint(&grant, supply.clock.now(), &*random);
    tried.map_err(|cause| unusable(cause.to_string()))?;
    let shown = Shown::default();
    let tenant = grant.tenant_id;
    let mut data = ordered(supply, by, tenant, Issue { grant, issuer, shown: shown.clone() }).await?;
    let token = shown.take().ok_or_else(|| Problem::new(INTERNAL_ERROR))?;
    if let Some(members) = data.as_object_mut() {
        members.insert("access_token".into(), token.expose().into());
    }
    Ok(data)
}

/// Carries out an action as the system; its `data`. Who ordered it is a row of its own in the audit.
async fn ordered<A: Action>(
    supply: &Supply,
    (operator, request_id): (&Operator, &str),
    tenant_id: i64,
    action: A,
) -> Result<Json, Problem> {
    let caller = Caller { idempotency_key: None, ..Caller::system(tenant_id, request_id) };
    // Of the platform: the tenant may be one that there is not.
    let mut row =
        Caller::system(PLATFORM, request_id).audit("platform.operator.order", &Object::new_of("operator"));
    row.action = action.event();
    row.metadata = json!({ "by": &*operator.name });
    let random = supply.door.random();
    let plan = move |_: Vec<Vec<store::Row>>, now| Ok((vec![row.clone().write(now, &*random)], ()));
    supply.door.maintain("operator.order", Vec::new(), plan).await?;
    let context = Context { caller, house: Arc::clone(&supply.house) };
    let command = Commanded { context, action };
    let ended = supply.door.submit(Submission { key: None, command, wait: Duration::ZERO }).await?;
    let outcome = match ended {
        Answered::Done(done) => done.outcome,
        Answered::Open { outcome: Some(outcome), .. } => outcome,
        _ => return Err(Problem::new(INTERNAL_ERROR)),
    };
    let body: Json = serde_json::from_str(&outcome.body).unwrap_or_default();
    match (outcome.code, body.get("data"), body.pointer("/error/message").and_then(Json::as_str)) {
        (200..300, Some(data), _) => Ok(data.clone()),
        (400..500, _, Some(message)) => {
            let details = body.pointer("/error/details").cloned().unwrap_or_default();
            Err(Problem::new(INPUT_INVALID).saying(format!("{message}: {details}")))
        }
        _ => Err(Problem::new(INTERNAL_ERROR)),
    }
}

fn id(input: &mut Map<String, Json>, name: &str) -> Result<i64, Problem> {
    let id = input.remove(name).and_then(|value| value.as_i64()).filter(|id| *id > 0);
    id.ok_or_else(|| unusable(format!("{name} must be a whole number, at least 1")))
}

fn word<T>(
    input: &mut Map<String, Json>,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, Problem> {
    let word = text(input, name)?;
    read(&word).ok_or_else(|| unusable(format!("{name} {word:?} is not known; compare it with docs/api.md")))
}

fn scopes(input: &mut Map<String, Json>) -> Result<Scopes, Problem> {
    let wrong = || unusable("scope must be a list of texts such as \"supply:account:read\"");
    let Some(Json::Array(list)) = input.remove("scope") else { return Err(wrong()) };
    let texts: Option<Vec<&str>> = list.iter().map(Json::as_str).collect();
    Scopes::new(texts.ok_or_else(wrong)?).map_err(|_| wrong())
}

fn ttl(input: &mut Map<String, Json>) -> Result<Duration, Problem> {
    match input.remove("ttl_s") {
        None | Some(Json::Null) => Ok(Duration::from_secs(TTL_LONGEST)),
        Some(value) => {
            let seconds = value.as_u64().filter(|ttl| (60..=TTL_LONGEST).contains(ttl));
            let wrong = || unusable(format!("ttl_s must be a number of seconds, 60 to {TTL_LONGEST}"));
            seconds.map(Duration::from_secs).ok_or_else(wrong)
        }
    }
}
