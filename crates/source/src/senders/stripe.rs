//! Stripe: `Stripe-Signature: t=…,v1=…[,v1=…]`, HMAC-SHA256 over `t.body`, key = the whole `whsec_…` text.
//!
//! Strict where Stripe's own libraries disagree: one header line, exactly one `t` of ASCII digits, `v1` of 64
//! lower-case hex digits, no spaces inside, tolerance on both sides, and the raw bytes are what is signed.
//! Not here: which fields of an event are taken (`stripe_event`).

use super::{Sender, stripe_event};
use crate::header::{self, Shape};
use crate::mac::MacKeys;
use crate::{Delivery, Event, Rejection, Settings};

pub(crate) const HEADER: &str = "Stripe-Signature";
const SHAPE: Shape = Shape { separator: ',', time: "t", mac: "v1" };

pub(crate) struct Stripe {
    keys: MacKeys,
    tolerance: i64,
}

impl Stripe {
    pub(crate) fn new(settings: &Settings, tolerance: i64) -> Result<Self, String> {
        for secret in &settings.secrets {
            form(secret.expose())?;
        }
        let keys = MacKeys::new(settings.secrets.iter().map(|s| s.expose().as_bytes()))?;
        Ok(Self { keys, tolerance })
    }
}

/// A Stripe endpoint's secret is `whsec_` and text that is used as it is (SIG-10).
pub(crate) fn form(secret: &str) -> Result<(), String> {
    let rest = secret.strip_prefix("whsec_").ok_or_else(|| {
        if secret.contains(",whsec_") {
            "a secret has a version in front; remove everything before whsec_".to_owned()
        } else if ["sk_", "rk_", "pk_"].iter().any(|api| secret.starts_with(api)) {
            "a secret is an API key; use the endpoint's signing secret, which starts with whsec_".to_owned()
        } else {
            "a secret does not start with whsec_; use the endpoint's signing secret as Stripe shows it"
                .to_owned()
        }
    })?;
    if rest.len() < 8 || !rest.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("a secret has almost nothing, or spaces, after whsec_; copy it again".into());
    }
    Ok(())
}

impl Sender for Stripe {
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        let value = header::required(delivery, HEADER)?;
        let parts = header::elements(value, &SHAPE)?;
        self.keys.verify(&[parts.time_text.as_bytes(), b".", delivery.body], &parts.macs)?;
        header::fresh(parts.time, delivery.now, self.tolerance)
    }

    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        stripe_event::project(delivery.body)
    }
}
