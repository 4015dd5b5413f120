//! A handler's way to the door, and the audit rows of what never reaches it.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use door::{Answer, AuditRow, Done, Failure, Submission};
use guard::Exposure;
use kernel::Time;
use onceseal_http::{Call, Code, Rejection, Scope};
use serde_json::Value as Json;
use store::{Error, values};
use supply::exit::{self, Withheld};
use supply::record::RECORDS;
use supply::{Action, Caller, Commanded, Context, Live, Object, Refusal};

use super::enter::Who;
use super::{Supply, count, envelope};

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
    let held = key.as_ref().map(|key| key.values.clone());
    let context = Context { caller, house: Arc::clone(&supply.house) };
    let (asking, object, event) = (context.clone(), action.object(), action.event());
    let live = action.live();
    let command = Commanded { context, action };
    let ended = supply.door.submit(Submission { key, command, wait: supply.twin_wait }).await;
    let ended = ended.map_err(unaudited);
    if let (Some(live), Ok(Answer::Done(done))) = (&live, &ended) {
        settled(supply, live, (&object, done));
    }
    if let Some(withheld) = ended.as_ref().err().and_then(Withheld::of) {
        told(supply, &withheld, (&asking, &object)).await;
        return envelope::plain(who.request_id(), envelope::WITHHELD);
    }
    who.trail.ended(count::end(supply, held, &ended).await);
    if matches!(ended, Ok(Answer::InProgress { same: false, .. })) {
        let mut row = who.own().audit("idempotency.payload_mismatch", &object);
        row.action = event;
        row.result_code = "IDEMPOTENCY_PAYLOAD_MISMATCH".into();
        if let Err(later) = on_record(supply, who.request_id(), row).await {
            return *later;
        }
    }
    let mut response = call.answer(&ended);
    response.extensions_mut().insert(Submitted);
    response
}

/// Tells the guard what is live now. A repeat is of long ago: the account may have another credential since.
fn settled(supply: &Supply, live: &Live, (object, done): (&Object, &Done)) {
    if done.replayed || done.outcome.code >= 300 {
        return;
    }
    let body = serde_json::from_str::<Json>(&done.outcome.body).ok();
    let made = body.as_ref().and_then(|body| body.pointer("/data/account_id")?.as_i64());
    if let Some(account_id) = made.or_else(|| object.id.parse().ok()) {
        supply.house.settled(live, account_id);
    }
}

/// Where audit or outbox can't be written nothing was kept, whatever the reason: it is a dependency that is not there
/// just now, 503 (section 10, "If it cannot be written the answer is 503").
fn unaudited(failure: Failure) -> Failure {
    let name = match &failure {
        Failure::Store(Error::Raised(raise)) => raise.write,
        Failure::Store(Error::Statement { name, .. }) => name,
        _ => return failure,
    };
    match name {
        "audit.insert" | "outbox.insert" | "outbox.delivery" => {
            Failure::Step { step: name, cause: failure.to_string() }
        }
        _ => failure,
    }
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
    if let Json::Object(details) = refusal.details.plain() {
        rejection.details = details;
    }
    call.reject(&rejection)
}

/// One audit row about a caller who is refused, with what they tried.
///
/// # Errors
/// 503 in place of the refusal: without its row there is none (FI-004).
pub(super) async fn audited(
    supply: &Supply,
    who: &Who,
    event: &'static str,
    code: &str,
) -> Result<(), Box<Response>> {
    let mut row = who.own().audit(event, &who.attempt.object);
    who.attempt.stamp(&mut row);
    row.result_code = code.to_owned();
    on_record(supply, who.request_id(), row).await
}

/// One audit row about what was read of an object, where the specification has it on record; without it nothing is
/// shown.
///
/// # Errors
/// 503 in place of the answer.
pub(super) async fn viewed(
    supply: &Supply,
    who: &Who,
    (event, object): (&'static str, Object),
    metadata: Json,
) -> Result<(), Box<Response>> {
    let mut row = who.own().audit(event, &object);
    row.metadata = metadata;
    on_record(supply, who.request_id(), row).await
}

/// One audit row, in a transaction of its own.
///
/// # Errors
/// 503 in place of the answer; 500 where the row would hold what looks like a credential.
pub(super) async fn on_record(supply: &Supply, request_id: &str, row: AuditRow) -> Result<(), Box<Response>> {
    let (random, house) = (supply.door.random(), Arc::clone(&supply.house));
    let about = Object { kind: row.object_type, id: row.object_id.clone() };
    let caller = Caller { operator_id: row.operator_id, ..Caller::system(row.tenant_id, request_id) };
    let plan = move |_: Vec<Vec<store::Row>>, now: Time| {
        exit::rows(&house, std::slice::from_ref(&row), &[])?;
        Ok((vec![row.clone().write(now, &*random)], ()))
    };
    match supply.door.maintain("audit", Vec::new(), plan).await {
        Ok(_) => Ok(()),
        Err(failure) => {
            if let Some(withheld) = Withheld::of(&failure) {
                let context = Context { caller, house: Arc::clone(&supply.house) };
                told(supply, &withheld, (&context, &about)).await;
                return Err(Box::new(envelope::plain(request_id, envelope::WITHHELD)));
            }
            tracing::error!(request_id, %failure, "what was asked for could not be audited");
            Err(Box::new(envelope::later(request_id, envelope::DEPENDENCY, 2)))
        }
    }
}

/// What was about to leave with an answer: audited without the match, and a P0 alert (section 15.1).
pub(super) async fn exposed(supply: &Supply, who: &Who, exposure: &Exposure) {
    let context = Context { caller: who.own(), house: Arc::clone(&supply.house) };
    told(supply, &Withheld::new(exit::IN_RESPONSE, exposure), (&context, &who.attempt.object)).await;
}

pub(super) async fn told(supply: &Supply, withheld: &Withheld, (context, object): (&Context, &Object)) {
    if let Err(failure) = withheld.tell_once(&supply.quiet, &supply.door, (context, object)).await {
        tracing::error!(%failure, "a withheld answer could not be audited");
    }
}

/// Whether an answer tells success.
pub(super) fn succeeded(response: &Response) -> bool {
    (StatusCode::OK..StatusCode::MULTIPLE_CHOICES).contains(&response.status())
}
