//! What a sender is answered: the stored outcome (section 8.1's fields and more), and around it what
//! belongs to this one arrival.

use std::time::Duration;

use kernel::{Digest, Outcome, Time};
use serde_json::{Map, Value as Json, json};

use crate::identity::Identity;
use crate::issue::Recorded;
use crate::shelf::Form;

/// The sentence of section 7.3.
pub const REUSED: &str = "Duplicate event detected. Existing AuditVisa reused.";
/// The sentence of section 7.3, in Chinese.
pub const REUSED_ZH: &str = "检测到重复事件，已复用既有 AuditVisa 结果。";

/// An answer to a delivery, for the edge to put into HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// JSON text.
    pub body: String,
    /// When to come again, for 202 and 503.
    pub retry_after: Option<Duration>,
    /// Whether the result stood there before.
    pub replayed: bool,
}

/// Addresses and proof of a certificate.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    pub(crate) html: String,
    pub(crate) zip: String,
    pub(crate) json: String,
    run_hash: String,
    signature: String,
    key_id: String,
}

impl Links {
    pub(crate) fn of(base: &str, certificate: &Recorded) -> Self {
        let link = |form: Form| format!("{base}/d/{}.{}", certificate.slug, form.extension());
        Self {
            html: link(Form::Html),
            zip: link(Form::Zip),
            json: link(Form::Json),
            run_hash: certificate.run_hash.to_hex(),
            signature: {
                use base64::Engine as _;
                base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(certificate.signature)
            },
            key_id: certificate.key_id.clone(),
        }
    }
}

/// What an outcome says of its event.
pub(crate) struct Stem<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) sid: Option<&'a str>,
    pub(crate) status: &'static str,
    pub(crate) mode: &'static str,
    pub(crate) created_at: Time,
    pub(crate) updated_at: Time,
    pub(crate) payload_hash: Digest,
}

impl Stem<'_> {
    fn members(&self) -> Map<String, Json> {
        let mut map = Map::new();
        map.insert("event_id".into(), self.identity.event_id.as_str().into());
        map.insert("ref".into(), self.identity.reference.as_str().into());
        map.insert("sid".into(), self.sid.into());
        map.insert("record_status".into(), self.status.into());
        map.insert("mode".into(), self.mode.into());
        map.insert("created_at".into(), self.created_at.to_rfc3339_seconds().into());
        map.insert("updated_at".into(), self.updated_at.to_rfc3339_seconds().into());
        map.insert("payload_hash".into(), self.payload_hash.to_hex().into());
        map
    }
}

/// The stored outcome of an event.
pub(crate) fn outcome(stem: &Stem<'_>, certificate: Option<(&Links, &str)>, reason: Option<&str>) -> Outcome {
    let mut map = stem.members();
    if let Some((links, summary)) = certificate {
        map.insert("html_url".into(), links.html.as_str().into());
        map.insert("zip_url".into(), links.zip.as_str().into());
        map.insert("json_url".into(), links.json.as_str().into());
        map.insert("run_hash".into(), links.run_hash.as_str().into());
        map.insert("signature".into(), links.signature.as_str().into());
        map.insert("key_id".into(), links.key_id.as_str().into());
        map.insert("summary".into(), summary.into());
    }
    if let Some(reason) = reason {
        map.insert("reason".into(), reason.into());
    }
    Outcome { code: 200, body: Json::Object(map).to_string() }
}

/// The outcome of a second report: its own names, the first one's links and hashes.
pub(crate) fn reused(kept: Map<String, Json>, stem: &Stem<'_>, first: &str) -> Outcome {
    let mut map = stem.members();
    for (key, value) in kept {
        map.entry(key).or_insert(value);
    }
    map.insert("same_change_as".into(), first.into());
    Outcome { code: 200, body: Json::Object(map).to_string() }
}

/// Whether an outcome is a second report's, with the first one's certificate.
pub(crate) fn points_elsewhere(body: &str) -> bool {
    body.contains("\"same_change_as\":")
}

/// Whether an outcome names a certificate: it is final for ever.
pub(crate) fn is_certified(body: &str) -> bool {
    body.contains("\"html_url\":")
}

/// How this arrival's answer is headed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heading {
    Processed,
    Reused,
    Recorded,
    Failed,
}

impl Heading {
    /// From the outcome's own text: what kind of result is it?
    pub(crate) fn of(body: &str, replayed: bool) -> Self {
        let certified = is_certified(body);
        let second = points_elsewhere(body);
        match (certified, replayed || second) {
            (true, true) => Self::Reused,
            (true, false) => Self::Processed,
            (false, _) if body.contains("\"record_status\":\"failed\"") => Self::Failed,
            (false, _) => Self::Recorded,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Reused => "duplicate_reused",
            Self::Recorded => "recorded",
            Self::Failed => "failed",
        }
    }
}

/// The word that a reply's body begins its `status` with.
pub(crate) fn heading(body: &str) -> Option<&str> {
    body.split_once("\"status\":\"")?.1.split_once('"').map(|(word, _)| word)
}

/// Puts what belongs to this arrival in front of the stored outcome's members.
pub(crate) fn reply(outcome: &Outcome, replayed: bool, arrivals: i64, payload_differs: bool) -> Reply {
    let heading = Heading::of(&outcome.body, replayed);
    let mut head = json!({ "status": heading.word(), "duplicate": replayed || heading == Heading::Reused, "arrivals": arrivals });
    if let Some(map) = head.as_object_mut() {
        if heading == Heading::Reused {
            map.insert("message".into(), REUSED.into());
            map.insert("message_zh".into(), REUSED_ZH.into());
        }
        if payload_differs {
            map.insert("payload_differs".into(), true.into());
        }
    }
    Reply {
        status: outcome.code,
        body: joined(&head.to_string(), &outcome.body),
        retry_after: None,
        replayed,
    }
}

/// Two JSON objects as one. Both are ours, so their members differ and neither is empty.
fn joined(head: &str, tail: &str) -> String {
    let head = head.strip_suffix('}').unwrap_or(head);
    let tail = tail.strip_prefix('{').unwrap_or(tail);
    format!("{head},{tail}")
}

/// The answer while a durable claim is held: the work will be finished even if this process dies.
pub(crate) fn processing(identity: &Identity, retry_after: Duration) -> Reply {
    let body = json!({
        "status": "processing",
        "duplicate": true,
        "event_id": identity.event_id,
        "ref": identity.reference,
        "retry_after_ms": u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX),
    });
    Reply { status: 202, body: body.to_string(), retry_after: Some(retry_after), replayed: false }
}

/// The answer when nothing durable can be promised: the sender must come again.
pub(crate) fn come_again(code: &str, message: &str, message_zh: &str, retry_after: Duration) -> Reply {
    let body = json!({
        "type": format!("https://onceseal.dev/errors/{code}"),
        "title": "Try again later",
        "status": 503,
        "code": code,
        "message": message,
        "message_zh": message_zh,
        "detail": message,
        "next": "Send the same delivery again after the time in Retry-After; nothing was acknowledged.",
        "retry_after_ms": u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX),
    });
    Reply { status: 503, body: body.to_string(), retry_after: Some(retry_after), replayed: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_object_with_the_outcomes_members() {
        let outcome = Outcome { code: 200, body: r#"{"html_url":"h","ref":"r"}"#.into() };
        let reply = reply(&outcome, true, 3, true);
        let json: Json = serde_json::from_str(&reply.body).expect("an object");
        assert_eq!(json["status"], "duplicate_reused");
        assert_eq!(
            (&json["arrivals"], &json["html_url"], &json["payload_differs"]),
            (&json!(3), &json!("h"), &json!(true))
        );
        assert_eq!(json["message"], REUSED);
    }
}
