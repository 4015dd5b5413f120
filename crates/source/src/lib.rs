//! Webhook senders: how each signs, identifies and repeats its messages, and wants to be answered.
//!
//! Pure: bytes and a time in, an [`Event`] or a [`Rejection`] out. No I/O, no clock, no storage; whether an event
//! was seen before is the store's question.
//!
//! [`Source::verify`] looks at raw bytes only; [`Source::open`] verifies, then parses, then projects.

mod body;
mod event;
mod header;
mod kind;
mod mac;
mod rejection;
mod rsa;
pub mod samples;
mod secret;
mod senders;
mod settings;
mod signer;
mod time;

pub use event::{Event, Mode, Subject};
pub use kind::{Kind, ReplyStyle, UnknownKind};
pub use rejection::Rejection;
pub use secret::{Secret, SecretError};
pub use settings::{Encoding, GenericRule, IdRule, PublicKey, Settings, SettingsError, TimestampRule};
pub use signer::Signer;

/// One delivery as it came off the wire.
#[derive(Clone, Copy)]
pub struct Delivery<'a> {
    /// Header lines in wire order; names in any case; a name may occur twice.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The raw body.
    pub body: &'a [u8],
    /// The time to judge by, Unix seconds.
    pub now: i64,
}

/// One configured endpoint. Share it behind an `Arc`.
pub struct Source {
    name: String,
    account: String,
    kind: Kind,
    sender: Box<dyn senders::Sender>,
}

impl Source {
    /// Builds an endpoint from its settings.
    ///
    /// # Errors
    /// No usable secret or key, a secret of another sender's form, a tolerance out of range, or a generic
    /// sender without an id rule. The text names the fault and never a secret.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        match settings::common(&settings).and_then(|tolerance| senders::build(&settings, tolerance)) {
            Ok(sender) => {
                Ok(Self { name: settings.name, account: settings.account, kind: settings.kind, sender })
            }
            Err(fault) => Err(SettingsError { source_name: settings.name.chars().take(64).collect(), fault }),
        }
    }

    /// Name in the address `/webhooks/{name}`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Scope of the event ids.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Whose rules apply.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// How the sender wants to be answered.
    #[must_use]
    pub const fn reply_style(&self) -> ReplyStyle {
        self.kind.reply_style()
    }

    /// Checks the signature over the raw bytes, and its time where it has one. Parses nothing of the body
    /// (Alipay's signature is a field of the form, so there the form is split).
    ///
    /// # Errors
    /// Missing, malformed, wrong, stale or future signature, or an unknown key.
    pub fn verify(&self, delivery: &Delivery<'_>) -> Result<(), Rejection> {
        self.sender.verify(delivery)
    }

    /// Verifies, then parses and projects the body.
    ///
    /// # Errors
    /// As [`Source::verify`]; then a body that is not the sender's form, no valid id, or a field with an
    /// impossible value.
    pub fn open(&self, delivery: &Delivery<'_>) -> Result<Event, Rejection> {
        self.sender.verify(delivery)?;
        self.sender.read(delivery)
    }
}
