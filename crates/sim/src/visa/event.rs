//! What senders report: a payment, the same change under a second event id, another payment, and an event
//! that is only recorded. Not here: who sends when (`steps`).

use bytes::Bytes;
use certify::Endpoint;
use certify::identity::Plain;
use certify::policy::CertifiedMode;
use kernel::Digest;
use source::{Kind, Secret, Signer, Source, samples};

use crate::world::World;

const SECRET: &str = "whsec_for_the_simulation_only";
/// Name of the only endpoint.
pub(super) const ENDPOINT: &str = "stripe";

/// An event with the bodies that may be sent for it.
struct Reported {
    /// Its id, as the sender gave it.
    id: String,
    /// Body and payload: bodies of one payload differ only in how they were rendered.
    bodies: Vec<(String, i64)>,
}

/// All senders.
pub(super) struct Senders {
    events: Vec<Reported>,
    signer: Option<Signer>,
}

/// The key of an event in histories.
pub(crate) fn key(event: usize) -> String {
    format!("e{event}")
}

impl Senders {
    pub(super) fn new(world: &World) -> Self {
        let signer = Secret::new(SECRET).ok().and_then(|secret| Signer::new(Kind::Stripe, &secret).ok());
        if signer.is_none() {
            world.find("the senders can't sign".into());
        }
        let paid = samples::CHECKOUT_PAID;
        let other = paid
            .replace("evt_1SkQl3B7WZ01zgkWh3b8kqQe", "evt_2")
            .replace("cs_test_a1YS1URlnyQCN5fUUduORoQ7Pw41PJqDWkIVQCpJPqkfIhd6tVY8XB1OLY", "cs_test_2")
            .replace("pi_3SkQl0B7WZ01zgkW0Zc3hJ7Q", "pi_2");
        let dearer = |body: &str| body.replace("\"amount_total\": 2000", "\"amount_total\": 2500");
        let events = vec![
            Reported {
                id: "evt_1SkQl3B7WZ01zgkWh3b8kqQe".into(),
                bodies: vec![
                    (paid.into(), 1),
                    (samples::CHECKOUT_PAID_RENDERED_AGAIN.into(), 1),
                    (dearer(paid), 2),
                ],
            },
            Reported {
                id: "evt_1SkQl4B7WZ01zgkWj4c9lrRg".into(),
                bodies: vec![(samples::CHECKOUT_PAID_SECOND_ID.into(), 1)],
            },
            Reported { id: "evt_2".into(), bodies: vec![(other.clone(), 1), (dearer(&other), 2)] },
            Reported {
                id: id_of(samples::CHECKOUT_UNPAID),
                bodies: vec![(samples::CHECKOUT_UNPAID.into(), 1)],
            },
        ];
        Self { events, signer }
    }

    pub(super) fn count(&self) -> usize {
        self.events.len()
    }

    /// A body of an event and its payload; `which` counts round.
    pub(super) fn body(&self, event: usize, which: usize) -> Option<(Bytes, i64)> {
        let bodies = &self.events.get(event)?.bodies;
        let (body, payload) = bodies.get(which.checked_rem(bodies.len())?)?;
        Some((Bytes::copy_from_slice(body.as_bytes()), *payload))
    }

    /// The headers of a delivery that is signed at `now` (Unix seconds).
    pub(super) fn headers(&self, body: &[u8], now: i64) -> Vec<(String, String)> {
        self.signer.as_ref().map(|signer| signer.sign(body, now, "unused")).unwrap_or_default()
    }

    /// Number of the event with this id.
    pub(super) fn number(&self, id: &str) -> Option<usize> {
        self.events.iter().position(|event| event.id == id)
    }

    /// Which payload a kept hash stands for.
    pub(super) fn payload(&self, event: usize, hash: Digest) -> Option<i64> {
        let bodies = &self.events.get(event)?.bodies;
        bodies.iter().find(|(body, _)| Digest::of(body.as_bytes()) == hash).map(|(_, payload)| *payload)
    }
}

/// The receiving side.
pub(super) fn endpoint() -> Option<Endpoint> {
    let mut settings = source::Settings::new(ENDPOINT, Kind::Stripe);
    settings.account = ENDPOINT.into();
    settings.secrets = vec![Secret::new(SECRET).ok()?];
    Some(Endpoint { source: Source::new(settings).ok()?, plain: Plain::Yes, unstated: CertifiedMode::Live })
}

fn id_of(body: &str) -> String {
    let id = body.split_once("\"id\": \"").and_then(|(_, rest)| rest.split_once('"'));
    id.map(|(id, _)| id.to_owned()).unwrap_or_default()
}
