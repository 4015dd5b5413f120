//! What a supplier reads of its money (section 8.4): sums and balance of a period, earnings, settlements.

use auth::scope;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderValue;
use axum::http::header::{HeaderName, LINK};
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use serde_json::{Map, json};
use supply::rows::{EarningStatus, SettlementStatus, Supplier};
use supply::settlements::billing::Billing;
use supply::settlements::period::{NotAPeriod, Period};
use supply::settlements::records::Records;
use supply::settlements::view;
use supply::{Code, Object, tenants};

use super::accounts::unavailable;
use super::act;
use super::enter::{Gate, Who};
use super::read::{Params, id, missing, pagination};
use super::{Shared, envelope};

const BILLING: &str = "/api/v1/supply/billing";

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let read = Gate::read(scope::BILLING_READ);
    Router::new()
        .route(BILLING, read.around(supply, get(billing)))
        .route("/api/v1/supplier/billing", read.around(supply, get(alias)))
        .route("/api/v1/supply/earnings/records", read.around(supply, get(records)))
        .route("/api/v1/supply/settlements", read.around(supply, get(all)))
        .route("/api/v1/supply/settlements/{settlement_id}", read.around(supply, get(single)))
}

/// `start_date` and `end_date`, both inclusive, as days in Shanghai.
fn period(supply: &Shared, params: &mut Params, who: &Who) -> Result<Period, Box<Response>> {
    let (start, end) = (params.text("start_date"), params.text("end_date"));
    Period::read(start.as_deref(), end.as_deref(), supply.clock.now())
        .map_err(|wrong| Box::new(unfit(who, wrong)))
}

fn unfit(who: &Who, NotAPeriod { field, rule }: NotAPeriod) -> Response {
    let mut details = Map::new();
    details.insert("fields".into(), json!([{ "field": field, "rule": rule }]));
    envelope::error(who.request_id(), Code::ComField.into(), &details)
}

/// The old form of the answer: without `balance`, with a notice.
#[derive(Serialize)]
struct Old {
    #[serde(flatten)]
    billing: Billing,
    deprecation_notice: &'static str,
}

async fn found(supply: &Shared, query: RawQuery, who: &Who) -> Result<Billing, Box<Response>> {
    let mut params = Params::of(query);
    let period = period(supply, &mut params, who);
    // Pages of `by_platform`, which has at most as many rows as there are providers.
    let _ = params.page();
    params.close(who.request_id())?;
    match Billing::of(supply.door.store(), who.principal.tenant_id, &period?).await {
        Ok(Some(billing)) => Ok(billing),
        Ok(None) => Err(Box::new(missing(who.request_id(), Code::ComMissing))),
        Err(error) => Err(Box::new(unavailable(who, &error))),
    }
}

async fn billing(State(supply): State<Shared>, query: RawQuery, who: Who) -> Response {
    match found(&supply, query, &who).await {
        Ok(billing) => envelope::data(who.request_id(), &billing),
        Err(response) => *response,
    }
}

async fn alias(State(supply): State<Shared>, query: RawQuery, who: Who) -> Response {
    let billing = match found(&supply, query, &who).await {
        Ok(billing) => billing.without_balance(),
        Err(response) => return *response,
    };
    let old = Old { billing, deprecation_notice: "use /api/v1/supply/billing" };
    let mut response = envelope::data(who.request_id(), &old);
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("deprecation"), HeaderValue::from_static("true"));
    headers.insert(LINK, HeaderValue::from_static(r#"</api/v1/supply/billing>; rel="successor-version""#));
    response
}

async fn records(State(supply): State<Shared>, query: RawQuery, who: Who) -> Response {
    let mut params = Params::of(query);
    let page = params.page();
    let status = params.read("status", EarningStatus::parse);
    let period = match period(&supply, &mut params, &who) {
        Ok(period) => Some(period),
        Err(response) => return *response,
    };
    if let Err(refused) = params.close(who.request_id()) {
        return *refused;
    }
    let records =
        Records { tenant_id: who.principal.tenant_id, period, status, page: page.0, page_size: page.1 };
    let store = supply.door.store();
    let found = match records.page(store).await {
        Ok(found) => found,
        Err(error) => return unavailable(&who, &error),
    };
    let object = match tenants::principal_of(store, who.principal.tenant_id).await {
        Ok(principal) => {
            principal.map_or_else(|| who.attempt.object.clone(), |id| Object::row(Supplier::KIND, id))
        }
        Err(error) => return unavailable(&who, &error),
    };
    let viewed =
        json!({ "page": page.0, "page_size": page.1, "items": found.items.len(), "total": found.total });
    match act::viewed(&supply, &who, ("supply.earnings.records.view", object), viewed).await {
        Ok(()) => envelope::page(who.request_id(), &found.items, pagination(page, found.total)),
        Err(later) => *later,
    }
}

async fn all(State(supply): State<Shared>, query: RawQuery, who: Who) -> Response {
    let mut params = Params::of(query);
    let page = params.page();
    let status = params.read("status", SettlementStatus::parse);
    if let Err(refused) = params.close(who.request_id()) {
        return *refused;
    }
    let list = view::List { tenant_id: who.principal.tenant_id, status, page: page.0, page_size: page.1 };
    match list.page(supply.door.store()).await {
        Ok(found) => envelope::page(who.request_id(), &found.items, pagination(page, found.total)),
        Err(error) => unavailable(&who, &error),
    }
}

async fn single(State(supply): State<Shared>, Path(text): Path<String>, who: Who) -> Response {
    let Some(settlement_id) = id(&text) else { return missing(who.request_id(), Code::SetMissing) };
    match view::get(supply.door.store(), who.principal.tenant_id, settlement_id).await {
        Ok(Some(found)) => envelope::data(who.request_id(), &found),
        Ok(None) => missing(who.request_id(), Code::SetMissing),
        Err(error) => unavailable(&who, &error),
    }
}
