//! Stripe's event bodies, snapshot and thin, projected.
//!
//! # The fingerprint's input (`stable`)
//! `type`, `created`, `livemode`, `account`, `object_kind`, `object_id`, `currency`, `status`, `payment_status`, and
//! the amounts of the kind of object (see [`amounts`]). Left out because they differ between deliveries or
//! between the API versions of two endpoints: `pending_webhooks`, `request`, `api_version`, and every field of the
//! object that some version renders otherwise.
//!
//! # The change key (`change`)
//! Type and object id, and for repeatable types the field of [`CHANGES`] that tells occurrences apart. Everything
//! else has none: types that are not listed, thin events, a listed type whose field is absent. Two true changes
//! must never collapse, while one change certified twice is only a nuisance; so types that repeat without a
//! field that grows are left out (`customer.subscription.updated`, `refund.updated`; `payment_intent.payment_failed`,
//! whose `latest_charge` stays when an attempt fails before a charge).

use serde_json::{Map, Value};

use crate::body::{
    amount, currency, keep, live_flag, metadata, object, take_first, take_id, take_kind, take_map, take_ref,
    take_text, take_word, unix_time,
};
use crate::event::change_key;
use crate::{Event, Mode, Rejection, Subject, time};

/// Types whose change can be named: the type, and what tells occurrences apart (empty: happens once an object).
const CHANGES: &[(&str, &str)] = &[
    ("charge.captured", "amount_captured"),
    ("charge.dispute.closed", ""),
    ("charge.dispute.created", ""),
    ("charge.expired", ""),
    ("charge.failed", ""),
    ("charge.pending", ""),
    ("charge.refunded", "amount_refunded"),
    ("charge.succeeded", ""),
    ("checkout.session.async_payment_failed", ""),
    ("checkout.session.async_payment_succeeded", ""),
    ("checkout.session.completed", ""),
    ("checkout.session.expired", ""),
    ("customer.subscription.created", ""),
    ("customer.subscription.deleted", ""),
    ("customer.subscription.trial_will_end", "trial_end"),
    ("invoice.created", ""),
    ("invoice.finalized", ""),
    ("invoice.paid", ""),
    ("invoice.payment_failed", "attempt_count"),
    ("invoice.payment_succeeded", ""),
    ("invoice.voided", ""),
    ("payment_intent.canceled", ""),
    ("payment_intent.created", ""),
    ("payment_intent.succeeded", ""),
    ("payout.created", ""),
    ("payout.failed", ""),
    ("payout.paid", ""),
    ("refund.created", ""),
    ("refund.failed", ""),
];

/// The amounts of a kind of object that every API version has; the first one is the subject's.
const fn amounts(object_kind: &str) -> &'static [&'static str] {
    match object_kind.as_bytes() {
        b"checkout.session" => &["amount_total"],
        b"payment_intent" => &["amount", "amount_received"],
        b"charge" => &["amount", "amount_refunded"],
        b"invoice" => &["amount_due", "amount_paid"],
        _ => &["amount", "amount_total", "amount_due"],
    }
}

/// Projects an event body.
pub(crate) fn project(bytes: &[u8]) -> Result<Event, Rejection> {
    let mut root = object(bytes)?;
    let id = take_id(&mut root, "id")?;
    let kind = take_kind(&mut root, "type")?;
    if root.get("object").and_then(Value::as_str) == Some("v2.core.event") {
        return thin(root, id, kind);
    }
    let mode = live_flag(root.get("livemode"), "livemode")?;
    let occurred_at = unix_time(root.get("created"), "created")?;
    let account = take_word(&mut root, "account")?;
    let mut payload = take_map(&mut take_map(&mut root, "data"), "object");

    let mut stable = Map::new();
    envelope(&mut stable, &kind, mode, occurred_at);
    keep(&mut stable, "account", account.clone());
    let change = change(&kind, &payload);
    let subject = subject(&kind, &mut payload, &mut stable)?;
    Ok(Event { id, kind, mode, occurred_at, account, subject, change, stable })
}

/// A thin event names an object and carries nothing of it.
fn thin(mut root: Map<String, Value>, id: String, kind: String) -> Result<Event, Rejection> {
    let mode = live_flag(root.get("livemode"), "livemode")?;
    let occurred_at = match root.get("created") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => {
            Some(time::rfc3339(text).ok_or_else(|| Rejection::field("created", "an RFC 3339 time"))?)
        }
        Some(_) => return Err(Rejection::field("created", "an RFC 3339 time")),
    };
    let account = take_word(&mut root, "context")?;
    let mut related = take_map(&mut root, "related_object");
    let subject = Subject {
        object_kind: take_text(&mut related, "type"),
        object_id: take_text(&mut related, "id"),
        ..Subject::default()
    };
    let mut stable = Map::new();
    envelope(&mut stable, &kind, mode, occurred_at);
    keep(&mut stable, "account", account.clone());
    keep(&mut stable, "object_kind", subject.object_kind.clone());
    keep(&mut stable, "object_id", subject.object_id.clone());
    Ok(Event { id, kind, mode, occurred_at, account, subject, change: None, stable })
}

fn envelope(stable: &mut Map<String, Value>, kind: &str, mode: Mode, occurred_at: Option<i64>) {
    keep(stable, "type", Some(kind));
    keep(stable, "created", occurred_at);
    let live = match mode {
        Mode::Live => Some(true),
        Mode::Test => Some(false),
        Mode::Unstated => None,
    };
    keep(stable, "livemode", live);
}

fn change(kind: &str, payload: &Map<String, Value>) -> Option<String> {
    let (_, field) = CHANGES.iter().find(|(listed, _)| *listed == kind)?;
    let id = payload.get("id")?.as_str()?;
    if field.is_empty() {
        return Some(change_key(&["stripe", kind, id]));
    }
    let occurrence = payload.get(*field)?.as_i64()?.to_string();
    Some(change_key(&["stripe", kind, id, field, &occurrence]))
}

fn subject(
    kind: &str,
    payload: &mut Map<String, Value>,
    stable: &mut Map<String, Value>,
) -> Result<Subject, Rejection> {
    let object_kind = take_word(payload, "object")?;
    let object_id = take_word(payload, "id")?;
    let word = object_kind.as_deref().unwrap_or_default();
    let mut subject = Subject { amount_minor: figures(kind, word, payload, stable)?, ..Subject::default() };
    subject.currency = currency(payload.remove("currency"), "currency")?;
    let status = take_word(payload, "status")?;
    let payment_status = take_word(payload, "payment_status")?;
    keep(stable, "object_kind", object_kind.clone());
    keep(stable, "object_id", object_id.clone());
    keep(stable, "currency", subject.currency.clone());
    keep(stable, "status", status.clone());
    keep(stable, "payment_status", payment_status.clone());
    subject.status = payment_status.or(status);
    subject.metadata = metadata(take_map(payload, "metadata"));
    match word {
        "checkout.session" => session(&mut subject, object_id.as_ref(), payload),
        "payment_intent" => {
            subject.payment_id.clone_from(&object_id);
            subject.email = take_text(payload, "receipt_email");
        }
        "charge" => {
            subject.payment_id = take_ref(payload, "payment_intent");
            subject.email = take_text(&mut take_map(payload, "billing_details"), "email")
                .or_else(|| take_text(payload, "receipt_email"));
        }
        "dispute" | "refund" => {
            subject.payment_id = take_ref(payload, "payment_intent");
            subject.reference = take_ref(payload, "charge");
        }
        "invoice" => invoice(&mut subject, payload),
        "subscription" => {
            let mut item = take_first(&mut take_map(payload, "items"), "data");
            price(&mut subject, &mut item);
        }
        _ => {}
    }
    subject.object_kind = object_kind;
    subject.object_id = object_id;
    Ok(subject)
}

/// Reads the amounts, keeps them, and returns the one the event is about.
fn figures(
    kind: &str,
    object_kind: &str,
    payload: &Map<String, Value>,
    stable: &mut Map<String, Value>,
) -> Result<Option<i64>, Rejection> {
    let paid = matches!(kind, "invoice.paid" | "invoice.payment_succeeded");
    let mut first = None;
    for name in amounts(object_kind) {
        let figure = amount(payload.get(*name), name)?;
        keep(stable, name, figure);
        if first.is_none() || (paid && *name == "amount_paid" && figure.is_some()) {
            first = figure;
        }
    }
    Ok(first)
}

fn session(subject: &mut Subject, object_id: Option<&String>, payload: &mut Map<String, Value>) {
    subject.session_id = object_id.cloned();
    subject.payment_id = take_ref(payload, "payment_intent");
    subject.reference =
        take_text(payload, "client_reference_id").or_else(|| take_ref(payload, "subscription"));
    subject.email = take_text(&mut take_map(payload, "customer_details"), "email")
        .or_else(|| take_text(payload, "customer_email"));
    let named = |name: &str| subject.metadata.get(name).filter(|text| !text.is_empty()).cloned();
    let (product, price) = (named("product_id"), named("price_id"));
    subject.product_id = product;
    subject.price_id = price;
}

/// Before 2025-03-31 the subscription and the payment stood at the top, later under `parent`.
fn invoice(subject: &mut Subject, payload: &mut Map<String, Value>) {
    subject.email = take_text(payload, "customer_email");
    subject.payment_id = take_ref(payload, "payment_intent");
    subject.reference = take_ref(payload, "subscription").or_else(|| {
        take_ref(&mut take_map(&mut take_map(payload, "parent"), "subscription_details"), "subscription")
    });
    let mut line = take_first(&mut take_map(payload, "lines"), "data");
    let mut pricing = take_map(&mut take_map(&mut line, "pricing"), "price_details");
    if pricing.is_empty() {
        price(subject, &mut line);
    } else {
        subject.price_id = take_ref(&mut pricing, "price");
        subject.product_id = take_ref(&mut pricing, "product");
    }
}

fn price(subject: &mut Subject, holder: &mut Map<String, Value>) {
    let mut price = take_map(holder, "price");
    subject.product_id = take_ref(&mut price, "product");
    subject.price_id = take_text(&mut price, "id");
}
