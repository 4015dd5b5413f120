//! A delivery that was verified and parsed.

use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Types that get a certificate; every other is recorded only.
const CERTIFIED: [&str; 2] = ["checkout.session.completed", "checkout.session.async_payment_succeeded"];

/// One delivery of an event.
pub(crate) struct Event {
    /// Name of the source in the path.
    pub(crate) source: String,
    /// The sender's event id.
    pub(crate) id: String,
    /// The sender's event type.
    pub(crate) kind: String,
    /// Checkout session, where the event has one.
    pub(crate) sid: Option<String>,
    /// `paid` or another state of the session's payment.
    payment_status: Option<String>,
    /// SHA-256 of the raw body, lower-case hexadecimal.
    pub(crate) payload_hash: String,
    /// When this delivery came in, whole seconds.
    pub(crate) received_at: Timestamp,
}

impl Event {
    /// Parses a verified body.
    ///
    /// # Errors
    /// The body isn't JSON or has no `id` or `type`.
    pub(crate) fn parse(source: String, body: &[u8], received_at: Timestamp) -> serde_json::Result<Event> {
        let envelope: Envelope = serde_json::from_slice(body)?;
        let object = envelope.data.map(|it| it.object).unwrap_or_default();
        Ok(Event {
            source,
            id: envelope.id,
            kind: envelope.kind,
            sid: object.id,
            payment_status: object.payment_status,
            payload_hash: hex::encode(Sha256::digest(body)),
            received_at,
        })
    }

    /// Whether a certificate is due.
    pub(crate) fn certified(&self) -> bool {
        CERTIFIED.contains(&self.kind.as_str()) && self.payment_status.as_deref() == Some("paid")
    }
}

#[derive(Deserialize)]
struct Envelope {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    object: Object,
}

#[derive(Default, Deserialize)]
struct Object {
    id: Option<String>,
    payment_status: Option<String>,
}
