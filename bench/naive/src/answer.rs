//! The answer to a delivery: the same fields as the server it is compared with.
//!
//! Built once, at the first delivery, and stored with the event; a repeat gets
//! it back with three fields changed.

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::event::Event;

/// What the sender is told. Links, hashes and signature are `None` for an event
/// that is recorded and not certified.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) event_id: String,
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    pub(crate) sid: Option<String>,
    pub(crate) status: String,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) html_url: Option<String>,
    pub(crate) zip_url: Option<String>,
    pub(crate) json_url: Option<String>,
    pub(crate) run_hash: Option<String>,
    pub(crate) payload_hash: String,
    pub(crate) signature: Option<String>,
    pub(crate) summary: String,
    pub(crate) duplicate: bool,
    pub(crate) arrivals: i64,
}

impl Answer {
    /// The answer to the first delivery of `event`.
    pub(crate) fn first(event: &Event, key: &Hmac<Sha256>) -> Answer {
        let at = event.received_at.to_string();
        let issued = event.certified().then(|| Issued::of(event, key));
        let (status, summary) = match issued {
            Some(_) => ("processed", "AuditVisa issued. 已出具 AuditVisa。"),
            None => ("recorded", "Recorded, no certificate for this type. 已记录，此类型不出证。"),
        };
        let link = |suffix: &str| {
            issued.as_ref().map(|it| format!("https://deliver.example.com/d/{}.{suffix}", it.slug))
        };
        Answer {
            event_id: event.id.clone(),
            reference: format!("av_{}", event.id),
            sid: event.sid.clone(),
            status: status.to_owned(),
            created_at: at.clone(),
            updated_at: at,
            html_url: link("html"),
            zip_url: link("zip"),
            json_url: link("json"),
            run_hash: issued.as_ref().map(|it| it.run_hash.clone()),
            payload_hash: event.payload_hash.clone(),
            signature: issued.as_ref().map(|it| it.signature.clone()),
            summary: summary.to_owned(),
            duplicate: false,
            arrivals: 1,
        }
    }

    /// The same answer as a repeat gets it, at its `arrivals`-th arrival.
    pub(crate) fn repeated(self, arrivals: i64) -> Answer {
        let (status, summary) = match self.run_hash {
            Some(_) => (
                "duplicate_reused",
                "Duplicate event detected. Existing AuditVisa reused. 检测到重复事件，已复用既有 AuditVisa 结果。",
            ),
            None => ("recorded", self.summary.as_str()),
        };
        Answer { status: status.to_owned(), summary: summary.to_owned(), duplicate: true, arrivals, ..self }
    }
}

/// The parts only a certified event has. No certificate is built: the
/// comparison is about the write.
struct Issued {
    slug: String,
    run_hash: String,
    signature: String,
}

impl Issued {
    fn of(event: &Event, key: &Hmac<Sha256>) -> Issued {
        let run = Sha256::new()
            .chain_update(event.id.as_bytes())
            .chain_update(event.payload_hash.as_bytes())
            .finalize();
        let signature = key.clone().chain_update(run).finalize().into_bytes();
        let slug = Sha256::new().chain_update(signature).finalize();
        let slug = hex::encode(slug).chars().take(32).collect();
        Issued { slug, run_hash: hex::encode(run), signature: hex::encode(signature) }
    }
}
