//! What the server says, for a scan for secrets: its ordinary answers, and its refusals of requests that
//! carry secrets and addresses in the wrong places. Not here: the scan (`canary`).

use anyhow::{Context as _, ensure};

use super::plan::Plan;
use crate::canary::Observed;
use crate::lab::event::{self, Event};
use crate::lab::house::{BOT_TOKEN, INTERNAL_TOKEN, STRIPE_SECRET};
use crate::lab::wire::{self, Answer};
use crate::lab::{self, House, Server};

/// Asks for everything that answers, and provokes refusals.
///
/// # Errors
/// No answer, or none of the kind that was provoked.
pub(super) fn said(house: &House, server: &Server, plan: &Plan) -> anyhow::Result<Observed> {
    let mut seen = Observed {
        mails: plan.events().map(|event| event.mail.clone()).collect(),
        secrets: vec![("operator's token".into(), house.token()?)],
        ..Observed::default()
    };
    let event = plan.events().next().context("an event")?;
    seen.metrics.push(server.get("/metrics")?.body);
    seen.exports.push(server.order_raw("GET", "export")?.body);
    for path in ["events?limit=200", "announcements", "status", "tokens", &format!("events/{}", event.id)] {
        seen.pages.push(server.order_raw("GET", path)?.body);
    }
    for request in provocations(event, &house.token()?)? {
        let Answer { status, body, .. } = wire::exchange(server.address, &request)?;
        ensure!((400..500).contains(&status), "a request that must be refused is answered {status}");
        seen.errors.push(body);
    }
    Ok(seen)
}

/// Requests that are refused, each with a secret or an address where it might be repeated.
fn provocations(event: &Event, token: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let bearer = |secret: &str| format!("Bearer {secret}");
    let get = |path: &str| wire::request("GET", path, &[], b"");
    let post =
        |headers: &[(&str, &str)], body: &[u8]| wire::request("POST", "/webhooks/internal", headers, body);
    let mut changed = event::delivery(event, lab::now())?;
    if let Some(last) = changed.last_mut() {
        *last = b' ';
    }
    let foreign = bearer(STRIPE_SECRET);
    let own = bearer(INTERNAL_TOKEN);
    let not_json = format!("{{\"mail\": \"{}\", \"token\": {INTERNAL_TOKEN}", event.mail);
    let mut all = vec![
        get("/webhooks/nobody"),
        get("/d/none.html"),
        get("/api/v1/certify/events"),
        get(&format!("/api/v1/certify/events?token={token}")),
        get(&format!("/api/v1/certify/events?access_token={INTERNAL_TOKEN}")),
        get(&format!("/bot{BOT_TOKEN}/sendMessage")),
        changed,
        event::delivery(event, lab::now() - 86_400)?,
        post(&[("authorization", &foreign)], b"{}"),
        post(&[("authorization", &own)], not_json.as_bytes()),
        post(&[("authorization", &own), ("content-type", "image/png")], event.mail.as_bytes()),
    ];
    let unknown = format!("/api/v1/certify/events?mail={}&unknown={INTERNAL_TOKEN}", event.mail);
    all.push(wire::request("GET", &unknown, &[("authorization", &bearer(token))], b""));
    Ok(all)
}
