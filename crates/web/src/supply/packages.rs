//! Packages (sections 8.2, 8.3).

use auth::{Need, scope};
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use custody::Provider;
use onceseal_http::number::Number;
use onceseal_http::{Call, Fields as Body, Node};
use supply::Code;
use supply::packages::{
    BatchPrice, CloneDraft, EditDraft, Fields, Item, Pause, Publish, SaveDraft, Texts, Unlist, view,
};
use supply::rows::PackageStatus;

use super::accounts::unavailable;
use super::act::{own, unfit};
use super::enter::{Gate, Who};
use super::read::{Params, id, missing, pagination};
use super::{Shared, envelope, texts};

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let write = Gate::write(Need::write(scope::PACKAGE_WRITE));
    let offline = Gate::write(Need::write(scope::PACKAGE_OFFLINE));
    let publish = Gate::critical(Need::write(scope::PACKAGE_PUBLISH));
    let batch = Gate::critical(Need::write(scope::PACKAGE_WRITE));
    let read = Gate::read(scope::PACKAGE_READ);
    Router::new()
        .route("/api/v1/supply/packages/draft", write.around(supply, post(save)))
        .route("/api/v1/supply/packages/batch-price", batch.around(supply, post(self::batch)))
        .route("/api/v1/supply/packages/{package_id}/draft", write.around(supply, put(edit)))
        .route("/api/v1/supply/packages/{package_id}/publish", publish.around(supply, post(self::publish)))
        .route("/api/v1/supply/packages/{package_id}/pause", offline.around(supply, post(pause)))
        .route("/api/v1/supply/packages/{package_id}/unlist", offline.around(supply, post(unlist)))
        .route("/api/v1/supply/packages/{package_id}/clone", write.around(supply, post(clone)))
        .route("/api/v1/supply/packages/{package_id}", read.around(supply, get(single)))
        .route("/api/v1/supply/packages", read.around(supply, get(all)))
}

/// The text of a number or a string, as it stood there; `None` where nothing does. Other kinds are faults.
pub(super) fn text<'a>(fields: &mut Body<'a>, name: &'static str) -> Option<Option<&'a str>> {
    fields.optional(name, |fields, name| match fields.node(name)? {
        Node::Number(number) => Some(number.text()),
        Node::Text(text) => Some(text.as_str()),
        _ => fields.fault(name, "number"),
    })
}

/// A price of a batch's item, as it stood there.
fn offered<'a>(item: &mut Body<'a>, name: &'static str) -> Option<&'a str> {
    let (text, plain) = match item.node(name)? {
        Node::Number(number) => (number.text(), number.plain()),
        Node::Text(text) => (text.as_str(), text.as_str()),
        _ => return item.fault(name, "number"),
    };
    match Item::spelt(text, plain) {
        Ok(()) => Some(text),
        Err(malformed) => item.fault(name, malformed.rule()),
    }
}

/// The plain digits of a number; `None` where nothing stands.
fn whole<'a>(fields: &mut Body<'a>, name: &'static str) -> Option<Option<&'a str>> {
    fields.optional(name, |fields, name| fields.number(name).map(Number::plain))
}

/// A string; `None` where nothing stands.
fn word<'a>(fields: &mut Body<'a>, name: &'static str) -> Option<Option<&'a str>> {
    fields.optional(name, |fields, name| match fields.node(name)? {
        Node::Text(text) => Some(text.as_str()),
        _ => fields.fault(name, "string"),
    })
}

/// A draft's fields, or the answer that names what is wrong.
fn draft(supply: &Shared, call: &Call) -> Result<Fields, Box<Response>> {
    let texts = call.fields(|fields| {
        let account = whole(fields, "supply_account_id");
        let (model, unit) = (word(fields, "model"), word(fields, "quota_unit"));
        let scanner = supply.guard.scanner();
        let model = model
            .and_then(|it| it.map_or(Some(None), |it| texts::kept(scanner, fields, "model", it).map(Some)));
        let (days, concurrent) = (whole(fields, "valid_days"), whole(fields, "max_concurrent"));
        let rpm = whole(fields, "rate_limit_rpm");
        let (total, least) = (text(fields, "total_quota"), text(fields, "min_purchase"));
        let (input, output) = (text(fields, "price_per_1m_input"), text(fields, "price_per_1m_output"));
        Some(Texts {
            supply_account_id: account?,
            model: model?,
            total_quota: total?,
            quota_unit: unit?,
            price_per_1m_input: input?,
            price_per_1m_output: output?,
            valid_days: days?,
            max_concurrent: concurrent?,
            rate_limit_rpm: rpm?,
            min_purchase: least?,
        })
    });
    let texts = texts.map_err(|rejected| Box::new(rejected.into_response()))?;
    Fields::parse(&texts).map_err(|refusal| Box::new(unfit(call, &refusal)))
}

async fn save(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    match draft(&supply, &call) {
        Ok(fields) => own(&supply, &call, &who, SaveDraft { fields }).await,
        Err(response) => *response,
    }
}

async fn edit(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
    let Some(package_id) = id(&text) else { return missing(who.request_id(), Code::PkgMissing) };
    match draft(&supply, &call) {
        Ok(fields) => own(&supply, &call, &who, EditDraft { package_id, version: None, fields }).await,
        Err(response) => *response,
    }
}

macro_rules! moves {
    ($($handler:ident: $action:ident),+ $(,)?) => {
        $(async fn $handler(State(supply): State<Shared>, Path(text): Path<String>, who: Who, call: Call) -> Response {
            let Some(package_id) = id(&text) else { return missing(who.request_id(), Code::PkgMissing) };
            match call.fields(|_| Some(())) {
                Ok(()) => own(&supply, &call, &who, $action { package_id }).await,
                Err(rejected) => rejected.into_response(),
            }
        })+
    };
}

moves!(publish: Publish, pause: Pause, unlist: Unlist, clone: CloneDraft);

async fn batch(State(supply): State<Shared>, who: Who, call: Call) -> Response {
    let most = supply.house.policy.batch_max;
    let items = call.fields(|fields| {
        fields.each("items", 1..=most, |item| {
            let package = item.whole("package_id", 1..=i64::MAX);
            let (input, output) = (offered(item, "price_per_1m_input"), offered(item, "price_per_1m_output"));
            Some(Item::parse(package?, input?, output?))
        })
    });
    let items = match items {
        Ok(items) => items,
        Err(rejected) => return rejected.into_response(),
    };
    match BatchPrice::of(&supply.house.policy, items) {
        Ok(action) => own(&supply, &call, &who, action).await,
        Err(refusal) => unfit(&call, &refusal),
    }
}

async fn all(State(supply): State<Shared>, query: RawQuery, who: Who) -> Response {
    let mut params = Params::of(query);
    let page = params.page();
    let status = params.read("status", PackageStatus::parse);
    let provider =
        params.read("provider", |word| Provider::parse(word).map(|provider| provider.as_str().to_owned()));
    if let Err(refused) = params.close(who.request_id()) {
        return *refused;
    }
    let (tenant_id, (number, size)) = (who.principal.tenant_id, page);
    let list = view::List { tenant_id, status, provider, page: number, page_size: size };
    match list.page(supply.door.store()).await {
        Ok(found) => envelope::page(who.request_id(), &found.items, pagination(page, found.total)),
        Err(error) => unavailable(&who, &error),
    }
}

async fn single(State(supply): State<Shared>, Path(text): Path<String>, who: Who) -> Response {
    let Some(package_id) = id(&text) else { return missing(who.request_id(), Code::PkgMissing) };
    match view::get(supply.door.store(), who.principal.tenant_id, package_id).await {
        Ok(Some(found)) => envelope::data(who.request_id(), &found),
        Ok(None) => missing(who.request_id(), Code::PkgMissing),
        Err(error) => unavailable(&who, &error),
    }
}
