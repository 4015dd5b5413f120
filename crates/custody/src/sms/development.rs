//! A sender for development: the code goes to the log under a target of its own instead of to a phone. It
//! can only be made where the configuration says development, and a production configuration that names it
//! does not start (supply specification, section 12, row 10).

use futures::future::BoxFuture;
use secrecy::ExposeSecret;

use super::{Sent, Sms, SmsSender};

/// The one log target that carries codes: route it to the server's own log file, or nowhere.
pub const TARGET: &str = "custody::sms::development";

/// What the server is run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For users.
    Production,
    /// For people who write it.
    Development,
}

/// The development sender was named in production.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the development SMS sender writes codes to the log; configure an SMS service, or switch withdrawals off"
)]
pub struct NotDevelopment;

/// Writes codes to the log.
#[derive(Debug)]
pub struct DevelopmentSms(());

impl DevelopmentSms {
    /// Made in development only.
    ///
    /// # Errors
    /// [`NotDevelopment`] otherwise.
    pub const fn new(mode: Mode) -> Result<Self, NotDevelopment> {
        match mode {
            Mode::Development => Ok(Self(())),
            Mode::Production => Err(NotDevelopment),
        }
    }
}

impl SmsSender for DevelopmentSms {
    fn send<'a>(&'a self, sms: &'a Sms) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            tracing::info!(
                target: TARGET,
                event_id = sms.event_id,
                to = sms.to.masked(),
                code = sms.code.expose_secret(),
                "sms_code",
            );
            Sent::Accepted { receipt: None }
        })
    }
}
