//! The senders, one module each: how it signs and how its body becomes an event.

pub(crate) mod alipay;
pub(crate) mod form;
mod generic;
pub(crate) mod github;
pub(crate) mod internal;
pub(crate) mod lemon;
pub(crate) mod paddle;
pub(crate) mod standard;
pub(crate) mod stripe;
mod stripe_event;
pub(crate) mod wechat;

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
        Kind::StandardWebhooks => Box::new(standard::Standard::new(settings, tolerance)?),
        Kind::Github => Box::new(github::Github::new(settings)?),
        Kind::Paddle => Box::new(paddle::Paddle::new(settings, tolerance)?),
        Kind::LemonSqueezy => Box::new(lemon::Lemon::new(settings)?),
        Kind::WechatPay => Box::new(wechat::Wechat::new(settings, tolerance)?),
        Kind::Alipay => Box::new(alipay::Alipay::new(settings)?),
        Kind::GenericHmac => Box::new(generic::Generic::new(settings, tolerance)?),
        Kind::Internal => Box::new(internal::Internal::new(settings)?),
    })
}
