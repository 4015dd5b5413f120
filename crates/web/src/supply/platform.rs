//! What the platform's staff and its gateway do (section 8.5). Objects are of any tenant: the audit has the object's
//! tenant and the staff as operator.

use auth::{Need, scope};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{post, put};
use custody::sms::Phone;
use custody::{Place, Subject};
use guard::Guard;
use hmac::{Hmac, KeyInit as _, Mac as _};
use kernel::Digest;
use kernel::money::{Money, Quota, QuotaUnit, Tokens};
use onceseal_http::{Call, Fields};
use secrecy::ExposeSecret as _;
use sha2::Sha256;
use supply::accounts::{Credential, Disable, Review, Verdict};
use supply::orders::{self, Cancel, Cause, Ending, Pay, RecordUsage, Refund};
use supply::packages::Freeze;
use supply::platform::{
    ApiKey, Basis, CreateBuyer, CreateSupplier, Measure, ProtectPrice, SealedPhone, Stand, TopUp,
};
use supply::settlements::{Complete, Fail, Reject, Return, Start};
use supply::tenants::{self, Owned};
use supply::{Action, Caller, Code};

use super::accounts::unavailable;
use super::act::{Kept, submit, unfit};
use super::enter::{Gate, Who};
use super::packages::text;
use super::read::{id, instant, missing};
use super::texts::{self, named};
use super::{Shared, envelope};

/// Lengths of a name and a reason.
const NAME: std::ops::RangeInclusive<usize> = 1..=100;
/// Lengths of a code and an id of others.
const CODE: std::ops::RangeInclusive<usize> = 1..=64;
/// Longest message.
const MESSAGE: usize = 500;
/// Life of a buyer's key (section 3.3).
const KEY_LIFE: std::time::Duration = std::time::Duration::from_secs(90 * 24 * 3600);

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let risk = Gate::write(Need::write(scope::PLATFORM_RISK));
    let money = Gate::write(Need::write(scope::PLATFORM_SETTLEMENT));
    let order = Gate::write(Need::write(scope::PLATFORM_ORDER));
    let usage = Gate::write(Need::write(scope::PLATFORM_USAGE));
    // What makes tenants and moves money at will is no service's: of the platform's administrators only.
    let admin = Gate::write(Need::write(scope::ALL_PLATFORM));
    Router::new()
        .route("/api/v1/platform/supply/accounts/{id}/disable", risk.around(supply, post(disable)))
        .route("/api/v1/platform/supply/accounts/{id}/review", risk.around(supply, post(review)))
        .route("/api/v1/platform/supply/packages/{id}/freeze", risk.around(supply, post(freeze)))
        .route("/api/v1/platform/supply/packages/{id}/unfreeze", risk.around(supply, post(unfreeze)))
        .route("/api/v1/platform/price-protection", risk.around(supply, put(protect)))
        .route("/api/v1/platform/settlements/{id}/start", money.around(supply, post(start)))
        .route("/api/v1/platform/settlements/{id}/complete", money.around(supply, post(complete)))
        .route("/api/v1/platform/settlements/{id}/fail", money.around(supply, post(fail)))
        .route("/api/v1/platform/settlements/{id}/reject", money.around(supply, post(reject)))
        .route("/api/v1/platform/settlements/{id}/return", money.around(supply, post(give_back)))
        .route("/api/v1/platform/suppliers", admin.around(supply, post(create_supplier)))
        .route("/api/v1/platform/suppliers/{id}/suspend", risk.around(supply, post(suspend)))
        .route("/api/v1/platform/suppliers/{id}/resume", risk.around(supply, post(resume)))
        .route("/api/v1/platform/suppliers/{id}/risk-cases", risk.around(supply, post(open_case)))
        .route("/api/v1/platform/suppliers/{id}/risk-cases/close", risk.around(supply, post(close_case)))
        .route("/api/v1/platform/buyers", admin.around(supply, post(create_buyer)))
        .route("/api/v1/platform/buyers/{id}/topups", admin.around(supply, post(top_up)))
        .route("/api/v1/platform/orders", order.around(supply, post(create_order)))
        .route("/api/v1/platform/orders/{id}/pay", order.around(supply, post(pay)))
        .route("/api/v1/platform/orders/{id}/cancel", admin.around(supply, post(cancel)))
        .route("/api/v1/platform/orders/{id}/refund", admin.around(supply, post(refund)))
        .route("/api/v1/platform/usage-records", usage.around(supply, post(record_usage)))
}

/// The caller on the tenant that an object belongs to; an object that is not there is refused by its command.
async fn on(supply: &Shared, who: &Who, owned: Owned) -> Result<Caller, Box<Response>> {
    match tenants::of(supply.door.store(), owned).await {
        Ok(tenant) => Ok(who.caller(tenant.unwrap_or(who.principal.tenant_id))),
        Err(error) => Err(Box::new(unavailable(who, &error))),
    }
}

/// Runs a command of staff on the tenant that an object belongs to.
pub(super) async fn act<A: Action>(
    supply: &Shared,
    call: &Call,
    (who, owned): (&Who, Owned),
    action: A,
) -> Response {
    match on(supply, who, owned).await {
        Ok(caller) => submit(supply, call, (who, caller), action, Kept::Usual).await,
        Err(response) => *response,
    }
}

async fn disable(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    let Some(account_id) = id(&path) else { return missing(who.request_id(), Code::AccMissing) };
    let read = call.fields(|fields| {
        let (reason, compromised) =
            (fields.line("reason", NAME), fields.optional("compromised", Fields::flag));
        let credential =
            if compromised?.unwrap_or(false) { Credential::Compromised } else { Credential::Kept };
        Some((reason?.to_owned(), credential))
    });
    match read {
        Ok((reason, credential)) => {
            let reason = texts::prose(&supply.guard, &reason, *NAME.end());
            let action = Disable { account_id, reason, credential };
            act(&supply, &call, (&who, Owned::Account(account_id)), action).await
        }
        Err(rejected) => rejected.into_response(),
    }
}

async fn review(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    let Some(account_id) = id(&path) else { return missing(who.request_id(), Code::AccMissing) };
    let read = call.fields(|fields| {
        let (decision, reason) = (fields.word("decision", ["accept", "reject"]), fields.line("reason", NAME));
        let quota = fields.optional("available_quota", |fields, name| fields.decimal(name, 6));
        let quota = match quota?.map(|text| Quota::parse(&text, QuotaUnit::Credit)).transpose() {
            Ok(quota) => quota.map(Quota::count),
            Err(malformed) => return fields.fault("available_quota", malformed.rule()),
        };
        let verdict = match (decision?, quota) {
            ("accept", quota) => Verdict::Accept { quota },
            (_, None) => Verdict::Reject,
            (_, Some(_)) => return fields.fault("available_quota", "accept_only"),
        };
        Some((verdict, reason?.to_owned()))
    });
    match read {
        Ok((verdict, reason)) => {
            let reason = texts::prose(&supply.guard, &reason, *NAME.end());
            let action = Review { account_id, verdict, reason };
            act(&supply, &call, (&who, Owned::Account(account_id)), action).await
        }
        Err(rejected) => rejected.into_response(),
    }
}

async fn frozen(supply: Shared, path: &str, (who, call): (Who, Call), of: fn(i64) -> Freeze) -> Response {
    let Some(package_id) = id(path) else { return missing(who.request_id(), Code::PkgMissing) };
    match call.fields(|_| Some(())) {
        Ok(()) => act(&supply, &call, (&who, Owned::Package(package_id)), of(package_id)).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn freeze(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    frozen(supply, &path, (who, call), Freeze::On).await
}

async fn unfreeze(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    frozen(supply, &path, (who, call), Freeze::Off).await
}

async fn protect(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let read = call.fields(|fields| {
        let (provider, model) = (fields.text("provider", NAME), named(&supply.guard, fields, "model", NAME));
        let (official_in, official_out) = (text(fields, "official_input"), text(fields, "official_output"));
        let (floor_in, floor_out) = (text(fields, "floor_input"), text(fields, "floor_output"));
        let from = fields.optional("effective_from", instant);
        Some((
            provider?.to_owned(),
            model?.to_owned(),
            (official_in?, floor_in?),
            (official_out?, floor_out?),
            from?,
        ))
    });
    let (provider, model, input, output, effective_from) = match read {
        Ok(read) => read,
        Err(rejected) => return rejected.into_response(),
    };
    let bases = Basis::parse("input", input.0, input.1)
        .and_then(|input| Ok((input, Basis::parse("output", output.0, output.1)?)));
    match bases {
        Ok((input, output)) => {
            let action = ProtectPrice { provider, model, input, output, effective_from };
            submit(&supply, &call, (&who, who.own()), action, Kept::Usual).await
        }
        Err(refusal) => unfit(&call, &refusal),
    }
}

/// A command on a settlement, with what its body says.
async fn settle<A: Action>(
    supply: &Shared,
    path: &str,
    (who, call): (&Who, &Call),
    read: impl FnOnce(&mut Fields<'_>, i64) -> Option<A>,
) -> Response {
    let Some(settlement_id) = id(path) else { return missing(who.request_id(), Code::SetMissing) };
    match call.fields(|fields| read(fields, settlement_id)) {
        Ok(action) => act(supply, call, (who, Owned::Settlement(settlement_id)), action).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn start(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    settle(&supply, &path, (&who, &call), |_, settlement_id| Some(Start { settlement_id })).await
}

async fn complete(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    settle(&supply, &path, (&who, &call), |fields, settlement_id| {
        let payment_transaction_id = named(&supply.guard, fields, "payment_transaction_id", NAME)?.to_owned();
        Some(Complete { settlement_id, payment_transaction_id })
    })
    .await
}

async fn fail(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    settle(&supply, &path, (&who, &call), |fields, settlement_id| {
        let failure_code = named(&supply.guard, fields, "failure_code", CODE)?.to_owned();
        Some(Fail { settlement_id, failure_code })
    })
    .await
}

async fn reject(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    settle(&supply, &path, (&who, &call), |fields, settlement_id| {
        let reason = texts::prose(&supply.guard, fields.line("reason", NAME)?, *NAME.end());
        Some(Reject { settlement_id, reason })
    })
    .await
}

async fn give_back(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    settle(&supply, &path, (&who, &call), |_, settlement_id| Some(Return { settlement_id })).await
}

async fn create_supplier(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let read = call.fields(|fields| {
        let guard = &supply.guard;
        let (code, name) = (named(guard, fields, "code", CODE), named(guard, fields, "name", NAME));
        let supplier_type = fields.word("supplier_type", ["individual", "company"]);
        let (operator, phone) = (named(guard, fields, "operator", NAME), fields.secret("phone", 5..=20));
        let Ok(phone) = Phone::parse(phone?.expose_secret()) else {
            return fields.fault("phone", "e164");
        };
        let owned = |text: &str| text.to_owned();
        Some((owned(code?), owned(name?), owned(supplier_type?), owned(operator?), phone))
    });
    let (code, name, supplier_type, operator, phone) = match read {
        Ok(read) => read,
        Err(rejected) => return rejected.into_response(),
    };
    let keys = &supply.house.keys;
    // The tenant's own id is made with the row; its code is as unique, and known before.
    let place = Place { tenant_id: 0, table: "supply_suppliers", row: &code, platform: "phone" };
    let sealed = match keys.custody.seal(&place, phone.secret()).await {
        Ok(sealed) => sealed,
        Err(error) => {
            tracing::error!(request_id = who.request_id(), %error, "seal_failed");
            return envelope::later(who.request_id(), envelope::DEPENDENCY, 2);
        }
    };
    let phone = SealedPhone {
        cipher: sealed.envelope,
        cipher_algo: sealed.cipher_algo.to_owned(),
        key_alias: sealed.kms_key_alias,
        key_version: sealed.key_version.into(),
        fingerprint: keys.fingerprints.of(Subject::Phone, phone.secret()).as_str().to_owned(),
        masked: phone.masked().to_owned(),
    };
    let action = CreateSupplier { code, name, supplier_type, operator, phone };
    submit(&supply, &call, (&who, who.own()), action, Kept::Usual).await
}

async fn stands(supply: &Shared, path: &str, (who, call): (&Who, &Call), measure: Measure) -> Response {
    let Some(supplier_id) = id(path) else { return missing(who.request_id(), Code::ComMissing) };
    match call.fields(|fields| fields.line("reason", NAME)) {
        Ok(reason) => {
            let reason = texts::prose(&supply.guard, reason, *NAME.end());
            let action = Stand { supplier_id, measure, reason };
            act(supply, call, (who, Owned::Supplier(supplier_id)), action).await
        }
        Err(rejected) => rejected.into_response(),
    }
}

async fn suspend(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    stands(&supply, &path, (&who, &call), Measure::Suspend).await
}

async fn resume(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    stands(&supply, &path, (&who, &call), Measure::Resume).await
}

async fn open_case(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    stands(&supply, &path, (&who, &call), Measure::OpenCase).await
}

async fn close_case(
    State(supply): State<Shared>,
    Path(path): Path<String>,
    who: Who,
    call: Call,
) -> Response {
    stands(&supply, &path, (&who, &call), Measure::CloseCase).await
}

/// A buyer with its first key, of which only a keyed hash is kept. Keys for buyers' own calls are not handed out
/// yet; the gateway names the row.
async fn create_buyer(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let read = call.fields(|fields| {
        let guard = &supply.guard;
        let (code, name) = (named(guard, fields, "code", CODE), named(guard, fields, "name", NAME));
        Some((code?.to_owned(), name?.to_owned()))
    });
    let (code, name) = match read {
        Ok(read) => read,
        Err(rejected) => return rejected.into_response(),
    };
    let (prefix, hmac) = drawn(&supply);
    let expires_at = supply.clock.now().plus(KEY_LIFE);
    let key = ApiKey { name: "first".into(), prefix, hmac, expires_at };
    submit(&supply, &call, (&who, who.own()), CreateBuyer { code, name, key }, Kept::Usual).await
}

/// Prefix and keyed hash of a new key; the key itself is forgotten.
fn drawn(supply: &Shared) -> (String, Digest) {
    let mut bytes = [0; 32];
    supply.house.random.fill(&mut bytes);
    let prefix = format!("lgw_{}", Digest::of(&bytes).to_hex().chars().take(8).collect::<String>());
    // Any length of key is taken.
    let mac = Hmac::<Sha256>::new_from_slice(supply.buyer_keys.expose_secret());
    let hash = mac.map(|mut mac| {
        mac.update(&bytes);
        mac.finalize().into_bytes()
    });
    let hash = hash.ok().and_then(|hash| Digest::from_slice(&hash));
    (prefix, hash.unwrap_or_else(|| Digest::of(&bytes)))
}

async fn top_up(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    let Some(buyer_id) = id(&path) else { return missing(who.request_id(), Code::ComMissing) };
    let currency = supply.house.policy.currency;
    let amount = call.fields(|fields| {
        let text = fields.decimal("amount", 8)?;
        match Money::parse_major(&text, currency, currency.exponent()) {
            Ok(amount) => Some(amount),
            Err(malformed) => fields.fault("amount", malformed.rule()),
        }
    });
    match amount {
        Ok(amount) => act(&supply, &call, (&who, Owned::User(buyer_id)), TopUp { buyer_id, amount }).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn create_order(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let read = call.fields(|fields| {
        let (buyer, package) =
            (fields.whole("buyer_id", 1..=i64::MAX), fields.whole("package_id", 1..=i64::MAX));
        let quota = fields.decimal("quota_amount", 6);
        let quota = match Quota::parse(&quota?, QuotaUnit::Credit) {
            Ok(quota) => quota.count(),
            Err(malformed) => return fields.fault("quota_amount", malformed.rule()),
        };
        Some(orders::Create { buyer_id: buyer?, package_id: package?, quota_count: quota })
    });
    match read {
        Ok(action) => act(&supply, &call, (&who, Owned::User(action.buyer_id)), action).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn ordered<A: Action>(
    supply: &Shared,
    path: &str,
    (who, call): (&Who, &Call),
    read: impl FnOnce(&mut Fields<'_>, i64) -> Option<A>,
) -> Response {
    let Some(order_id) = id(path) else { return missing(who.request_id(), Code::OrdMissing) };
    match call.fields(|fields| read(fields, order_id)) {
        Ok(action) => act(supply, call, (who, Owned::Order(order_id)), action).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn pay(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    ordered(&supply, &path, (&who, &call), |_, order_id| Some(Pay { order_id })).await
}

async fn cancel(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    ordered(&supply, &path, (&who, &call), |_, order_id| Some(Cancel { order_id, cause: Cause::Buyer })).await
}

async fn refund(State(supply): State<Shared>, Path(path): Path<String>, who: Who, call: Call) -> Response {
    let currency = supply.house.policy.currency;
    ordered(&supply, &path, (&who, &call), |fields, order_id| {
        let charge = fields.optional("charge_amount", |fields, name| fields.decimal(name, 8))?;
        match charge.map(|text| Money::parse_major(&text, currency, 8)).transpose() {
            Ok(charge) => Some(Refund { order_id, charge }),
            Err(malformed) => fields.fault("charge_amount", malformed.rule()),
        }
    })
    .await
}

fn usage(guard: &Guard, fields: &mut Fields<'_>) -> Option<RecordUsage> {
    let (order, key) = (fields.whole("order_id", 1..=i64::MAX), fields.whole("api_key_id", 1..=i64::MAX));
    let request = named(guard, fields, "request_id", CODE);
    let most = 1_000_000_000_000;
    let (input, output) =
        (fields.whole("request_tokens", 0..=most), fields.whole("response_tokens", 0..=most));
    let (success, endpoint) = (fields.flag("success"), texts::endpoint(guard, fields, "endpoint", 1..=200));
    let upstream = fields.optional("upstream_request_id", |fields, name| named(guard, fields, name, 1..=128));
    let (status, latency) =
        (fields.whole("response_status", 100..=599), fields.whole("latency_ms", 0..=86_400_000));
    let message = fields.optional("error_message", |fields, name| fields.text(name, 0..=MESSAGE));
    let (started, completed) = (instant(fields, "started_at"), instant(fields, "completed_at"));
    let call = orders::Call {
        ending: if success? { Ending::Success } else { Ending::Failure },
        endpoint: endpoint?.to_owned(),
        upstream_request_id: upstream?.map(ToOwned::to_owned),
        response_status: u16::try_from(status?).ok()?,
        latency_ms: u32::try_from(latency?).ok()?,
        error_message: message?.map(|text| texts::prose(guard, text, MESSAGE)),
        started_at: started?,
        completed_at: completed?,
    };
    let tokens = Tokens { input: u64::try_from(input?).ok()?, output: u64::try_from(output?).ok()? };
    Some(RecordUsage { order_id: order?, api_key_id: key?, request_id: request?.to_owned(), tokens, call })
}

async fn record_usage(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    match call.fields(|fields| usage(&supply.guard, fields)) {
        Ok(action) => {
            let order = Owned::Order(action.order_id);
            act(&supply, &call, (&who, order), action).await
        }
        Err(rejected) => rejected.into_response(),
    }
}
