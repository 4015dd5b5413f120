//! A handler's way to the door, and the audit rows of what never reaches it.

use axum::http::StatusCode;
use axum::response::Response;
use door::{Answer, AuditRow, Submission};
use guard::Exposure;
use kernel::Time;
use onceseal_http::{Call, Code, Rejection, Scope};
use serde_json::json;
use store::{Write, values};
use supply::alert::{self, Level};
use supply::record::RECORDS;
use supply::{Action, Caller, Commanded, Context, Object, Refusal};

use super::Supply;
use super::enter::{Who, of_caller};

/// Marks answers that came out of the door: their audit is in the transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submitted;

/// What a key of this call is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// 24 h.
    Usual,
    /// 72 h: withdraw and cancel.
    Money,
}

/// Runs an action of this caller under the call's key, if it came with one.
pub(super) async fn submit<A: Action>(
    supply: &Supply,
    call: &Call,
    (who, caller): (&Who, Caller),
    action: A,
    kept: Kept,
) -> Response {
    let policy = &supply.house.policy;
    let life = match kept {
        Kept::Usual => policy.key_life,
        Kept::Money => policy.key_life_money,
    };
    let owner = values![who.principal.tenant_id, who.principal.operator_id];
    let key = call.key(&Scope { table: &RECORDS, owner, life });
    let context = Context { caller, house: std::sync::Arc::clone(&supply.house) };
    let command = Commanded { context, action };
    let ended = supply.door.submit(Submission { key, command, wait: supply.twin_wait }).await;
    if matches!(ended, Ok(Answer::InProgress { same: false, .. })) {
        audited(supply, who, "idempotency.payload_mismatch", "IDEMPOTENCY_PAYLOAD_MISMATCH").await;
    }
    let mut response = call.answer(&ended);
    response.extensions_mut().insert(Submitted);
    response
}

/// As [`submit`], for objects of the caller's own tenant.
pub(super) async fn own<A: Action>(supply: &Supply, call: &Call, who: &Who, action: A) -> Response {
    submit(supply, call, (who, who.own()), action, Kept::Usual).await
}

/// The answer to fields that are refused before the door, in the shape of the protocol's own.
pub(super) fn unfit(call: &Call, refusal: &Refusal) -> Response {
    let code = refusal.code;
    let line = Code {
        name: code.as_str(),
        seed: code.status(),
        draft: code.status(),
        title: code.message(),
        message: code.message(),
        message_zh: code.message_zh(),
    };
    let mut rejection = Rejection::of(line);
    if let serde_json::Value::Object(details) = refusal.details.plain() {
        rejection.details = details;
    }
    call.reject(&rejection)
}

/// One audit row about a caller; its loss is logged, since the request is refused in any case.
pub(super) async fn audited(supply: &Supply, who: &Who, event: &'static str, code: &str) {
    let mut row = who.own().audit(event, &of_caller(who));
    row.result_code = code.to_owned();
    keep(supply, vec![row], Vec::new()).await;
}

/// What was about to leave: audited without the match, and a P0 alert (section 15.1).
pub(super) async fn exposed(supply: &Supply, who: &Who, event: &'static str, exposure: &Exposure) {
    let object = of_caller(who);
    let mut row = who.own().audit(event, &object);
    row.result_code = "SUP_COM_5002".into();
    row.metadata = json!({ "blocked": true, "rule": exposure.rule, "location": exposure.location,
        "mac": exposure.mac.iter().map(|byte| format!("{byte:02x}")).collect::<String>() });
    keep(supply, vec![row], vec![object]).await;
}

async fn keep(supply: &Supply, rows: Vec<AuditRow>, alerts: Vec<Object>) {
    let (random, house) = (supply.door.random(), std::sync::Arc::clone(&supply.house));
    let plan = move |_: Vec<Vec<store::Row>>, now: Time| {
        let mut writes: Vec<Write> = rows.iter().map(|row| row.clone().write(now, &*random)).collect();
        for object in &alerts {
            let event = alert::raised(Level::P0, "credential_exposure_blocked", object);
            let context =
                Context { caller: Caller::system(1, "alert"), house: std::sync::Arc::clone(&house) };
            writes.extend(event.told(&context, now).writes(now, &*random));
        }
        Ok((writes, ()))
    };
    if let Err(failure) = supply.door.maintain("audit", Vec::new(), plan).await {
        tracing::error!(%failure, "a refusal could not be audited");
    }
}

/// Whether an answer tells success.
pub(super) fn succeeded(response: &Response) -> bool {
    (StatusCode::OK..StatusCode::MULTIPLE_CHOICES).contains(&response.status())
}
