//! What a certificate says: the `run`, a structure that is hashed and signed as a whole.
//!
//! Every member is always there, `null` where there is nothing, so that absent and empty can't be
//! mistaken for each other; amounts are text, so that no reader rounds them. The rule of its hash is
//! `seal::hash::run_hash`.

use kernel::Fingerprint;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use source::{Event, Kind};

use crate::identity::Identity;
use crate::policy::{CertifiedMode, Policy, Terms, shown_email};

/// Version of the structure.
pub const VERSION: u32 = 1;

/// Who issues: part of every certificate, so that a rebuild needs no configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issuer {
    /// Name of the issuer as shown.
    pub name: String,
    /// Public address, without a slash at its end.
    pub url: String,
}

/// Everything that a run is made of.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Which event.
    pub identity: &'a Identity,
    /// Which kind of sender.
    pub kind: Kind,
    /// The projected event.
    pub event: &'a Event,
    /// Live or test.
    pub mode: CertifiedMode,
    /// Issue time: the event's own signed time, else the first arrival's; Unix seconds.
    pub issued_at: i64,
    /// Digest of the event's stable fields.
    pub fingerprint: Fingerprint,
    /// The policy it was judged by.
    pub policy: &'a Policy,
    /// What the policy read out of it.
    pub terms: &'a Terms,
    /// Who issues.
    pub issuer: &'a Issuer,
}

/// Builds the run. Pure: the same facts give the same structure.
#[must_use]
pub fn run(facts: &Facts<'_>) -> Value {
    let Facts { identity, event, policy, terms, .. } = facts;
    let subject = &event.subject;
    json!({
        "v": VERSION,
        "template": crate::page::TEMPLATE,
        "ref": identity.reference,
        "issued_at": facts.issued_at,
        "mode": facts.mode.as_str(),
        "issuer": facts.issuer,
        "event": {
            "sender": facts.kind.as_str(),
            "account": identity.account,
            "sub_account": event.account,
            "id": identity.event_id,
            "type": event.kind,
            "occurred_at": event.occurred_at,
            "fingerprint": facts.fingerprint.to_hex(),
            "change": event.change,
        },
        "subject": {
            "object": subject.object_kind,
            "object_id": subject.object_id,
            "session_id": subject.session_id,
            "payment_id": subject.payment_id,
            "status": subject.status,
            "amount_minor": subject.amount_minor.map(|minor| minor.to_string()),
            "currency": subject.currency,
            "reference": subject.reference,
            "product": terms.product,
            "price": terms.price,
            "target": terms.target,
            "email": subject.email.as_deref().and_then(|email| shown_email(email, policy.email)),
        },
        "policy": { "version": policy.version, "digest": digest(policy) },
    })
}

/// SHA-256 over the canonical JSON of the policy's settings, in hex.
#[must_use]
pub fn digest(policy: &Policy) -> String {
    // Settings are plain strings and integers, which always have a canonical form.
    seal::jcs::to_vec(policy).map_or_else(|_| String::new(), |bytes| kernel::Digest::of(&bytes).to_hex())
}
