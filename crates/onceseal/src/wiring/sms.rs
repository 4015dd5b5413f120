//! The channel `sms`: sends the codes that withdrawals ask for. The outbox row names a code by its reference; code
//! and phone come to be here, when they are sent, and are written nowhere. Not here: how the service is spoken to
//! (`custody::sms`), when it is tried again (`relay`).

use std::sync::Arc;
use std::time::Duration;

use custody::sms::{
    DevelopmentSms, HttpSms, HttpSmsSettings, Mode, Phone, Repeats as Service, Sent, Sms, SmsCodes, SmsSender,
};
use custody::{Custody, Place};
use futures::future::BoxFuture;
use kernel::{Clock, Time};
use relay::channel::{Pace, Reach};
use relay::{Channel, Message, Outcome, Repeats};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value as Json;
use store::{Query, Store, values};

use crate::config::Config;
use crate::config::secret::Layout;
use crate::config::supply::SmsSender as Kind;

/// The event that asks for a code.
pub const EVENT: &str = "supply.settlement.sms_code.";
/// The destination.
pub const NAME: &str = "sms";

const PHONE: &str = "select t.code, s.phone_kms_key_alias, s.phone_cipher
from supply_suppliers s join core_tenants t on t.id = s.tenant_id where s.id = $1";
/// Messages sent at the same time.
const PARALLEL: u32 = 4;
/// A supplier may ask once a minute; more than this is no supplier.
const EVERY: Duration = Duration::from_millis(50);

/// Whoever sends, by the configuration; `None` where nobody does.
///
/// # Errors
/// Says which setting, why, and what to do.
pub fn sender(config: &Config) -> Result<Option<Arc<dyn SmsSender>>, String> {
    let set = &config.supply.sms;
    if !config.supply.enabled {
        return Ok(None);
    }
    match set.sender {
        Kind::Off => Ok(None),
        Kind::Development => {
            let mode = if config.supply.development { Mode::Development } else { Mode::Production };
            let sender = DevelopmentSms::new(mode).map_err(|cause| format!("supply.sms.sender: {cause}"))?;
            Ok(Some(Arc::new(sender)))
        }
        Kind::Http => {
            let missing =
                || "supply.sms.sender is \"http\"; set supply.sms.url and supply.sms.token".to_owned();
            let (url, token) = set.url.as_ref().zip(set.token.as_ref()).ok_or_else(missing)?;
            let token = token.read(Layout::Line).map_err(|cause| format!("supply.sms.token: {cause}"))?;
            let token = SecretString::from(token.expose().to_owned());
            let mut settings = HttpSmsSettings::new(url, token, &set.template);
            settings.repeats = if set.removes_repeats { Service::Removed } else { Service::Shown };
            let sender = HttpSms::new(settings).map_err(|cause| format!("supply.sms.url: {cause}"))?;
            Ok(Some(Arc::new(sender)))
        }
    }
}

/// The channel.
pub struct Codes {
    /// Whoever sends.
    pub sender: Arc<dyn SmsSender>,
    /// Whether the sender may be given a message twice.
    pub repeats: Repeats,
    /// Derives codes.
    pub codes: Arc<SmsCodes>,
    /// Opens phones.
    pub custody: Custody,
    /// Where phones are.
    pub store: Store,
    /// Whether a code holds still.
    pub clock: Arc<dyn Clock>,
}

impl Channel for Codes {
    fn name(&self) -> &str {
        NAME
    }

    fn kind(&self) -> &'static str {
        NAME
    }

    fn repeats(&self) -> Repeats {
        self.repeats
    }

    fn pace(&self) -> Pace {
        Pace { parallel: PARALLEL, burst: PARALLEL, every: EVERY }
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.written(message).await {
                Ok(sms) => outcome(self.sender.send(&sms).await),
                Err(outcome) => outcome,
            }
        })
    }
}

impl Codes {
    async fn written(&self, message: &Message) -> Result<Sms, Outcome> {
        let refused = |cause: &str| Outcome::Refused { cause: cause.into(), reach: Reach::Message };
        let later = |cause: &str| Outcome::Retry { cause: cause.into(), after: None };
        let asked = Asked::read(&message.payload).ok_or_else(|| refused("the event names no code"))?;
        let now = self.clock.now();
        if asked.expires_at <= now {
            return Err(refused("the code has ended; the supplier asks for another"));
        }
        let code = self.codes.code(asked.key_version, &asked.code_ref);
        let code = code.map_err(|cause| refused(&cause.to_string()))?;
        let query = Query::new("sms.phone", PHONE, values![asked.supplier_id]);
        let rows = self.store.query(query).await.map_err(|_| later("the store can't be read"))?;
        let row = rows.first().ok_or_else(|| refused("there is no such supplier"))?;
        let damaged = |_| refused("the supplier's row can't be read");
        let tenant = row.text(0).map_err(damaged)?;
        // As it was sealed: the tenant's code is known before its number is.
        let place = Place { tenant_id: 0, table: "supply_suppliers", row: tenant, platform: "phone" };
        let (alias, cipher) = (row.text(1).map_err(damaged)?, row.text(2).map_err(damaged)?);
        let opened = self.custody.open(&place, alias, cipher).await;
        let phone = opened.map_err(|cause| later(&cause.to_string()))?;
        let to = Phone::parse(phone.expose_secret()).map_err(|_| refused("the phone is no number"))?;
        let event_id = message.event_id.to_string();
        Ok(Sms { event_id, to, code, holds: asked.expires_at.since(now) })
    }
}

struct Asked {
    code_ref: String,
    key_version: u32,
    supplier_id: i64,
    expires_at: Time,
}

impl Asked {
    fn read(payload: &Json) -> Option<Self> {
        let after = payload.get("after_state")?;
        Some(Self {
            code_ref: after.get("code_ref")?.as_str()?.to_owned(),
            key_version: u32::try_from(after.get("key_version")?.as_u64()?).ok()?,
            supplier_id: after.get("supplier_id")?.as_i64()?,
            expires_at: Time::parse_rfc3339(after.get("expires_at")?.as_str()?).ok()?,
        })
    }
}

fn outcome(sent: Sent) -> Outcome {
    match sent {
        Sent::Accepted { receipt } => {
            Outcome::Delivered { receipt: receipt.unwrap_or_else(|| "taken".into()) }
        }
        Sent::Refused { cause } => Outcome::Refused { cause: cause.into(), reach: Reach::Message },
        Sent::Retry { cause, after } => Outcome::Retry { cause: cause.into(), after },
        Sent::Uncertain { cause } => Outcome::Uncertain { cause: cause.into() },
    }
}
