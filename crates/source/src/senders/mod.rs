//! The senders, one module each: how it signs and how its body becomes an event.

mod stripe;
mod stripe_event;

use crate::{Delivery, Event, Kind, Rejection, Settings};

/// One configured sender.
pub(crate) trait Sender: Send + Sync {
    /// Signature over the raw bytes.
    fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection>;

    /// Parse and project; only after [`Sender::verify`].
    fn read(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection>;
}

/// Builds the sender of the settings' kind, or says what is wrong with them.
pub(crate) fn build(settings: &Settings, tolerance: i64) -> Result<Box<dyn Sender>, String> {
    Ok(match settings.kind {
        Kind::Stripe => Box::new(stripe::Stripe::new(settings, tolerance)?),
        _ => return Err("this kind is not there yet".into()),
    })
}
