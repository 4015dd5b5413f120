//! Statements of settlements (section 8.4, operation 24): a link for their owner, and the file for whoever has the
//! link. A link needs no token: it opens one file of one version for some minutes, and its key is this installation's.
//! Not here: how files are made (`supply::consumers::statement`).

use std::sync::Arc;
use std::time::Duration;

use auth::scope;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::Response;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use certify::shelf::Shelf;
use futures::future::BoxFuture;
use hmac::{Hmac, KeyInit as _, Mac as _};
use kernel::Time;
use onceseal_http::headers::REQUEST_ID;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde::Serialize;
use serde_json::json;
use sha2::Sha256;
use supply::consumers::statement::Found;
use supply::consumers::{Files, NotKept};
use supply::exact::Stamp;
use supply::exit::{self, Withheld};
use supply::rows::Settlement;
use supply::settlements::statement::{self, MEDIA_TYPE, Statement};
use supply::{Caller, Code, Context, Object};

use super::accounts::unavailable;
use super::count::Trail;
use super::enter::{Gate, Who};
use super::read::{id, missing};
use super::{Shared, Supply, act, envelope};
use crate::arrival;

/// Seconds after which a file that is not ready is asked for again.
const AGAIN: u64 = 5;
/// Before the link's own parts.
const PREFIX: &str = "/api/v1/supply/statements/";

pub(super) fn routes(supply: &Shared) -> Router<Shared> {
    let read = Gate::read(scope::BILLING_READ);
    Router::new()
        .route("/api/v1/supply/settlements/{settlement_id}/statement", read.around(supply, get(link)))
        .route("/api/v1/supply/statements/{ticket}/{file_name}", get(download))
}

/// Makes links to files, and reads them.
#[derive(Clone)]
pub struct Links {
    /// The current key first.
    keys: Vec<SecretSlice<u8>>,
    base: String,
    life: Duration,
}

/// What a link opens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Opened {
    tenant_id: i64,
    settlement_id: i64,
    version: i64,
    settlement_no: String,
    expires_at: Time,
}

impl Links {
    /// Links that begin with `base`, made with the key `current` and good for `life`; those of `former` keys are
    /// good, too.
    #[must_use]
    pub fn new(current: SecretSlice<u8>, former: Vec<SecretSlice<u8>>, base: &str, life: Duration) -> Self {
        let keys = std::iter::once(current).chain(former).collect();
        Self { keys, base: base.trim_end_matches('/').to_owned(), life }
    }

    /// The link, whole.
    fn write(&self, opened: &Opened) -> String {
        let parts = opened.ticket();
        let mac = self.keys.first().and_then(|key| mac(key, opened));
        let mac = mac.map_or_else(String::new, |mac| URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
        let file = statement::file_name(&opened.settlement_no);
        format!("{}{PREFIX}{parts}.{mac}/{file}", self.base)
    }

    /// What it opens; `None` where no key of ours made it. Whether it has ended is not judged.
    fn read(&self, ticket: &str, file_name: &str) -> Option<Opened> {
        let (parts, given) = ticket.rsplit_once('.')?;
        let given = URL_SAFE_NO_PAD.decode(given).ok()?;
        let mut numbers = parts.split('.').map(|part| part.parse::<i64>().ok());
        let mut next = || numbers.next().flatten();
        let opened = Opened {
            tenant_id: next()?,
            settlement_id: next()?,
            version: next()?,
            expires_at: Time::from_seconds(next()?),
            settlement_no: file_name.strip_prefix("statement_")?.strip_suffix(".csv")?.to_owned(),
        };
        let made = |key| mac(key, &opened).is_some_and(|mac| mac.verify_slice(&given).is_ok());
        // The text again, so that no second spelling of the same numbers is a link.
        (opened.ticket() == parts && self.keys.iter().any(made)).then_some(opened)
    }
}

impl Opened {
    fn ticket(&self) -> String {
        let Self { tenant_id, settlement_id, version, expires_at, .. } = self;
        format!("{tenant_id}.{settlement_id}.{version}.{}", expires_at.seconds())
    }
}

/// Over everything that a link says; none of its parts holds a bar.
fn mac(key: &SecretSlice<u8>, opened: &Opened) -> Option<Hmac<Sha256>> {
    // A key of any length does.
    let mut mac = Hmac::<Sha256>::new_from_slice(key.expose_secret()).ok()?;
    mac.update(format!("statement|{}|{}", opened.ticket(), opened.settlement_no).as_bytes());
    Some(mac)
}

/// The certificates' shelf, which every node reaches, for files of the supply side.
pub struct OnShelf(pub Shelf);

impl Files for OnShelf {
    fn put<'a>(&'a self, name: &'a str, text: String) -> BoxFuture<'a, Result<(), NotKept>> {
        Box::pin(async move {
            let put = self.0.put_named(name, Bytes::from(text)).await;
            put.map_err(|cause| NotKept(cause.to_string()))
        })
    }

    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, NotKept>> {
        Box::pin(async move {
            let found = self.0.get_named(name).await.map_err(|cause| NotKept(cause.to_string()))?;
            Ok(found.map(Vec::from))
        })
    }
}

#[derive(Serialize)]
struct Link {
    settlement_id: i64,
    file_name: String,
    download_url: String,
    expires_at: Stamp,
}

async fn link(State(supply): State<Shared>, Path(text): Path<String>, who: Who) -> Response {
    let Some(settlement_id) = id(&text) else { return missing(who.request_id(), Code::SetMissing) };
    let tenant_id = who.principal.tenant_id;
    let statement = match supply.statements.find(tenant_id, settlement_id).await {
        Ok(Found::Ready(statement)) => statement,
        Ok(Found::Missing) => return missing(who.request_id(), Code::SetMissing),
        Ok(Found::NotYet) => return envelope::later(who.request_id(), envelope::DEPENDENCY, AGAIN),
        Err(error) => return unavailable(&who, &error),
    };
    let expires_at = Time::from_seconds(supply.clock.now().plus(supply.links.life).seconds());
    if let Err(later) = exported(&supply, &who, &statement, expires_at).await {
        return *later;
    }
    let (settlement_no, version) = (statement.settlement.settlement_no.clone(), statement.settlement.version);
    let download_url =
        supply.links.write(&Opened { tenant_id, settlement_id, version, settlement_no, expires_at });
    let (file_name, expires_at) = (statement.file_name(), Stamp(expires_at));
    envelope::data(who.request_id(), &Link { settlement_id, file_name, download_url, expires_at })
}

/// Who got a link to what stands in the audit, or there is no link.
async fn exported(
    supply: &Supply,
    who: &Who,
    statement: &Statement,
    until: Time,
) -> Result<(), Box<Response>> {
    let found = &statement.settlement;
    let object = Object::row(Settlement::KIND, found.settlement_id);
    let mut row = who.own().audit("supply.settlement.statement.export", &object);
    row.before_state = json!({ "status": found.status, "version": found.version });
    row.after_state = row.before_state.clone();
    row.metadata = json!({ "file_name": statement.file_name(), "expires_at": until.to_rfc3339_millis() });
    act::on_record(supply, who.request_id(), row).await
}

/// The file itself. Whatever no link of ours opens is missing.
async fn download(
    State(supply): State<Shared>,
    Path((ticket, file_name)): Path<(String, String)>,
    request: Request,
) -> Response {
    let request_id = arrival::of(&request);
    let (opened, trail) = (supply.links.read(&ticket, &file_name), request.extensions().get::<Trail>());
    let Some(opened) = opened else {
        trail.into_iter().for_each(Trail::turned_away);
        return missing(&request_id, Code::SetMissing);
    };
    // The link is the platform's own word for who may.
    trail.into_iter().for_each(|trail| trail.passed(&request_id));
    if opened.expires_at <= supply.clock.now() {
        return envelope::plain(&request_id, envelope::LINK_ENDED);
    }
    let kept_as = statement::kept_as(&opened.settlement_no, opened.version);
    let Ok(Some(bytes)) = supply.statements.files.get(&kept_as).await else {
        // It was there when the link was made.
        return envelope::later(&request_id, envelope::DEPENDENCY, AGAIN);
    };
    if let Err(exposure) = supply.guard.body(PREFIX, "body", &bytes).clean() {
        let caller = Caller::system(opened.tenant_id, &request_id);
        let context = Context { caller, house: Arc::clone(&supply.house) };
        let object = Object::row(Settlement::KIND, opened.settlement_id);
        act::told(&supply, &Withheld::new(exit::IN_EXPORT, &exposure), (&context, &object)).await;
        return envelope::plain(&request_id, envelope::WITHHELD);
    }
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let attachment = format!("attachment; filename=\"{file_name}\"");
    for (name, value) in [(CONTENT_DISPOSITION, attachment), (REQUEST_ID, request_id)] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(seed: u8, former: &[u8]) -> Links {
        let key = |seed: u8| SecretSlice::from(vec![seed; 32]);
        let former = former.iter().map(|seed| key(*seed)).collect();
        Links::new(key(seed), former, "https://a.example/", Duration::from_secs(900))
    }

    fn opened() -> Opened {
        let (settlement_no, expires_at) = ("STL20260327AB".to_owned(), Time::from_seconds(1_774_580_584));
        Opened { tenant_id: 17, settlement_id: 301, version: 2, settlement_no, expires_at }
    }

    /// Ticket and file of a link.
    fn parts(link: &str) -> (&str, &str) {
        link.strip_prefix("https://a.example/api/v1/supply/statements/").unwrap().split_once('/').unwrap()
    }

    #[test]
    fn a_link_opens_what_it_was_made_for_also_after_a_change_of_the_key() {
        let link = links(1, &[]).write(&opened());
        let (ticket, file) = parts(&link);
        assert_eq!(file, "statement_STL20260327AB.csv");
        assert_eq!(links(1, &[]).read(ticket, file), Some(opened()));
        assert_eq!(links(2, &[1]).read(ticket, file), Some(opened()));
        assert_eq!(links(2, &[]).read(ticket, file), None);
    }

    #[test]
    fn no_other_spelling_of_a_link_opens_anything() {
        let (links, link) = (links(1, &[]), links(1, &[]).write(&opened()));
        let (ticket, file) = parts(&link);
        for (from, to) in
            [("17.", "18."), ("17.", "017."), ("17.", "+17."), (".301.", ".302."), (".2.", ".3.")]
        {
            let forged = ticket.replacen(from, to, 1);
            assert!(forged != ticket && links.read(&forged, file).is_none(), "{forged}");
        }
        for ticket in ["", ".", "17.301.2.1774580584.", &ticket[..ticket.len() - 1], &format!("{ticket}.x")] {
            assert_eq!(links.read(ticket, file), None, "{ticket}");
        }
        for file in
            ["statement_STL20260327AC.csv", "statement_STL20260327AB", "../statement_STL20260327AB.csv", ""]
        {
            assert_eq!(links.read(ticket, file), None, "{file}");
        }
    }
}
