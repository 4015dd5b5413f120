//! Makes a settlement's statement whenever the settlement has changed, and finds it again. The file is of the
//! settlement as it is when the event comes by; an event that comes twice, or after a later one, makes the same file.
//! Not here: what stands in it (`settlements::statement`), links to it (the edge).

use std::sync::Arc;
use std::time::Duration;

use door::Door;
use futures::future::BoxFuture;
use kernel::Time;
use relay::channel::{Pace, Reach};
use relay::{Channel, Message, Outcome, Repeats, State};
use store::{Error, Query, Write, values};

use crate::action::Context;
use crate::alert::{self, Level};
use crate::caller::{Caller, Object};
use crate::exit::{self, Withheld};
use crate::house::{House, Route};
use crate::rows::Settlement;
use crate::settlements::statement::Statement;

/// The destination.
pub const NAME: &str = "statement";
/// Every change of a settlement; a code that is sent for one is none.
pub const EVENTS: [&str; 6] = [
    "supply.settlement.withdraw.",
    "supply.settlement.cancel.",
    "supply.settlement.payout_start.",
    "supply.settlement.payout.",
    "supply.settlement.payout_return.",
    "supply.settlement.risk_reject.",
];
/// Files made at the same time.
const PARALLEL: u32 = 4;

const OUTSTANDING: &str = "select 1 from outbox_deliveries
where object_key = $1 and destination = $2 and status <> 'delivered' limit 1";

/// Why a file was not kept or not found: for people, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotKept(pub String);

/// Where files stand.
pub trait Files: Send + Sync {
    /// Makes a file stand whole under its name, instead of whatever stands there.
    fn put<'a>(&'a self, name: &'a str, text: String) -> BoxFuture<'a, Result<(), NotKept>>;

    /// A file's bytes, `None` where there is none.
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, NotKept>>;
}

/// Makes and finds statements.
pub struct Statements {
    /// Where settlements are.
    pub door: Door,
    /// Guard, channels of alerts.
    pub house: Arc<House>,
    /// Where the files go.
    pub files: Arc<dyn Files>,
}

/// What there is of a settlement's statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The tenant has no such settlement.
    Missing,
    /// Its file is not made yet, or can't be reached.
    NotYet,
    /// Its file stands.
    Ready(Box<Statement>),
}

impl std::fmt::Debug for Statements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Statements").finish_non_exhaustive()
    }
}

/// The events of which it hears.
pub fn routes() -> impl Iterator<Item = Route> {
    EVENTS.into_iter().map(|prefix| Route { prefix: prefix.into(), destination: NAME.into() })
}

impl Statements {
    /// The statement of a settlement at its present version. A file that was made and is gone or damaged is made
    /// again; one that is still to be made is not waited for.
    ///
    /// # Errors
    /// The store's.
    pub async fn find(&self, tenant_id: i64, settlement_id: i64) -> Result<Found, Error> {
        let store = self.door.store();
        let Some(statement) = Statement::read(store, tenant_id, settlement_id).await? else {
            return Ok(Found::Missing);
        };
        let stands = match self.files.get(&statement.kept_as()).await {
            Ok(Some(bytes)) if bytes == statement.text.as_bytes() => true,
            Ok(Some(_)) => self.kept(tenant_id, &statement).await.is_ok(),
            Ok(None) => {
                !self.is_outstanding(settlement_id).await? && self.kept(tenant_id, &statement).await.is_ok()
            }
            Err(NotKept(cause)) => {
                tracing::warn!(settlement_id, cause, "statement_not_reached");
                false
            }
        };
        Ok(if stands { Found::Ready(Box::new(statement)) } else { Found::NotYet })
    }

    async fn is_outstanding(&self, settlement_id: i64) -> Result<bool, Error> {
        let key = format!("{}:{settlement_id}", Settlement::KIND);
        let rows = self
            .door
            .store()
            .query(Query::new("statement.outstanding", OUTSTANDING, values![key, NAME]))
            .await?;
        Ok(!rows.is_empty())
    }

    async fn make(&self, message: &Message) -> Result<String, Outcome> {
        let refused = |cause: &str| Outcome::Refused { cause: cause.into(), reach: Reach::Message };
        let later = |cause: String| Outcome::Retry { cause, after: None };
        let (tenant_id, settlement_id) =
            of(message).ok_or_else(|| refused("the event names no settlement"))?;
        let statement = Statement::read(self.door.store(), tenant_id, settlement_id).await;
        let statement = statement.map_err(|error| later(format!("the settlement can't be read: {error}")))?;
        let statement = statement.ok_or_else(|| refused("there is no such settlement"))?;
        self.kept(tenant_id, &statement).await?;
        Ok(statement.kept_as())
    }

    /// Puts a file, unless something in it looks like a credential.
    async fn kept(&self, tenant_id: i64, statement: &Statement) -> Result<(), Outcome> {
        let name = statement.kept_as();
        let exposure = self
            .house
            .guard
            .as_deref()
            .and_then(|guard| guard.text("statement", &statement.text).clean().err());
        if let Some(exposure) = exposure {
            self.tell(tenant_id, statement, &exposure).await;
            let cause =
                "the statement looks like it holds a credential; look at the audit, mend the rows, re-drive";
            return Err(Outcome::Refused { cause: cause.into(), reach: Reach::Message });
        }
        let kept = self.files.put(&name, statement.text.clone()).await;
        kept.map_err(|NotKept(cause)| {
            tracing::warn!(file = name, cause, "statement_not_kept");
            Outcome::Retry { cause: format!("the file can't be written: {cause}"), after: None }
        })
    }

    async fn tell(&self, tenant_id: i64, statement: &Statement, exposure: &guard::Exposure) {
        let id = statement.settlement.settlement_id;
        let caller = Caller::system(tenant_id, &format!("statement:{id}:{}", statement.settlement.version));
        let context = Context { caller, house: Arc::clone(&self.house) };
        let object = Object::row(Settlement::KIND, id);
        if let Err(failure) =
            Withheld::new(exit::IN_EXPORT, exposure).tell(&self.door, &context, &object).await
        {
            tracing::error!(%failure, "a withheld statement could not be audited");
        }
    }
}

impl Channel for Statements {
    fn name(&self) -> &str {
        NAME
    }

    fn kind(&self) -> &'static str {
        NAME
    }

    /// The same file under the same name.
    fn repeats(&self) -> Repeats {
        Repeats::Removed
    }

    fn pace(&self) -> Pace {
        Pace { parallel: PARALLEL, burst: PARALLEL, every: Duration::ZERO }
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.make(message).await {
                Ok(receipt) => Outcome::Delivered { receipt },
                Err(outcome) => outcome,
            }
        })
    }

    fn held(&self, message: &Message, _: State, at: Time) -> Vec<Write> {
        held(&self.house, message, "statement_held", at)
    }
}

/// Tenant and settlement of an event.
pub(super) fn of(message: &Message) -> Option<(i64, i64)> {
    if message.object_type != Settlement::KIND {
        return None;
    }
    Some((message.payload.get("tenant_id")?.as_i64()?, message.object_id.parse().ok()?))
}

/// An alert that a settlement's event waits for a person.
pub(super) fn held(house: &Arc<House>, message: &Message, reason: &'static str, at: Time) -> Vec<Write> {
    let Some((tenant_id, settlement_id)) = of(message) else { return Vec::new() };
    let caller = Caller::system(tenant_id, &format!("{reason}:{}", message.delivery_id));
    let context = Context { caller, house: Arc::clone(house) };
    let event = alert::raised(Level::S1, reason, &Object::row(Settlement::KIND, settlement_id));
    event.told(&context, at).writes(at, &*house.random)
}
