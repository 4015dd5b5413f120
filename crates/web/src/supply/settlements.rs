//! Withdrawals (section 8.4).

use auth::{Need, scope};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use onceseal_http::Call;
use supply::Code;
use supply::settlements::{Cancel, SendCode, Withdraw};

use super::Shared;
use super::act::{Kept, own, submit, unfit};
use super::enter::{Gate, Who};
use super::packages::text;
use super::read::{id, missing};

/// Where a supplier asks for the code of a withdrawal.
pub const SMS_CODE: &str = "/api/v1/supply/settlements/withdraw/sms-code";

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let need = Need::write(scope::SETTLEMENT_WITHDRAW);
    Router::new()
        .route(SMS_CODE, Gate::write(need).around(supply, post(send_code)))
        .route("/api/v1/supply/settlements/withdraw", Gate::critical(need).around(supply, post(withdraw)))
        .route(
            "/api/v1/supply/settlements/{settlement_id}/cancel",
            Gate::critical(need).around(supply, post(cancel)),
        )
}

async fn send_code(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    match call.fields(|_| Some(())) {
        Ok(()) => own(&supply, &call, &who, SendCode).await,
        Err(rejected) => rejected.into_response(),
    }
}

async fn withdraw(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let read = call.fields(|fields| {
        let amount = text(fields, "withdraw_amount");
        let method = fields.word("payment_method", ["bank", "alipay", "wechat"]);
        let (account, code) = (fields.secret("payment_account", 2..=100), fields.secret("sms_code", 4..=10));
        let Some(amount) = amount? else { return fields.fault("withdraw_amount", "required") };
        Some(Withdraw {
            amount: amount.to_owned(),
            method: method?.to_owned(),
            account: account?,
            code: code?,
        })
    });
    match read {
        Ok(action) => match action.total(supply.house.policy.currency) {
            Ok(_) => submit(&supply, &call, (&who, who.own()), action, Kept::Money).await,
            Err(refusal) => unfit(&call, &refusal),
        },
        Err(rejected) => rejected.into_response(),
    }
}

async fn cancel(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
    let Some(settlement_id) = id(&text) else { return missing(who.request_id(), Code::SetMissing) };
    match call.fields(|_| Some(())) {
        Ok(()) => submit(&supply, &call, (&who, who.own()), Cancel { settlement_id }, Kept::Money).await,
        Err(rejected) => rejected.into_response(),
    }
}
