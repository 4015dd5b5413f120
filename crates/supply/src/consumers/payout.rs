//! Has settlements paid out (section 12, row 14): after a payout began, a payout service is told to pay, under the
//! settlement's number as its key. Whatever the answer, or none, the settlement is moved only by what the service says
//! for certain: paid, or never. In between it is asked; it is told again only while it remembers the key, and
//! afterwards only asked. The account is opened here, for the one call. Not here: the service's words
//! (`custody::pay`), the commands that move the settlement, payouts by hand.

use std::sync::Arc;
use std::time::Duration;

use custody::pay::{Order, PayoutService, Said};
use door::{Answer, Door, Failure, Submission};
use futures::future::BoxFuture;
use kernel::Time;
use relay::channel::{Pace, Reach};
use relay::{Channel, Message, Outcome, Repeats, State};
use store::{Error, Query, Row, Write, values};

use super::statement::{held, of};
use crate::Commanded;
use crate::action::{Action, Context};
use crate::caller::Caller;
use crate::exit::Withheld;
use crate::house::{House, Route};
use crate::rows::{Reader, Settlement, SettlementStatus};
use crate::settlements::{Complete, Fail, Payee, attempts};

/// The destination.
pub const NAME: &str = "payout";
/// What begins a payout.
pub const EVENT: &str = "supply.settlement.payout_start.succeeded";
/// Payouts told or asked about at the same time.
const PARALLEL: u32 = 4;

const ATTEMPTS: &str =
    "(select min(p.created_at) from supply_payout_attempts p where p.settlement_id = t.id),
  (select count(*) from supply_payout_attempts p where p.settlement_id = t.id),
  (select count(*) from supply_payout_attempts p where p.settlement_id = t.id and p.result = 'pending')";

/// Tells and asks a payout service.
pub struct Payouts {
    /// Where settlements are, and the way to move them.
    pub door: Door,
    /// Keys of the accounts, clock, channels of alerts.
    pub house: Arc<House>,
    /// Who pays.
    pub service: Arc<dyn PayoutService>,
    /// How long it remembers a key: as long it may be told again.
    pub key_life: Duration,
}

impl std::fmt::Debug for Payouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payouts").field("service", &self.service).finish_non_exhaustive()
    }
}

/// The event of which it hears.
#[must_use]
pub fn route() -> Route {
    Route { prefix: EVENT.into(), destination: NAME.into() }
}

/// A settlement, and what was tried so far.
struct Due {
    settlement: Settlement,
    /// When its first attempt was written down, before it was made.
    first_at: Option<Time>,
    attempts: i64,
    /// Whether the last attempt has no end yet.
    is_open: bool,
}

impl Due {
    fn read(row: &Row) -> Result<Self, Error> {
        let mut reader = Reader::new(row);
        let settlement = Settlement::next(&mut reader)?;
        let (first_at, attempts) = (reader.time_or_null()?, reader.int()?);
        Ok(Self { settlement, first_at, attempts, is_open: reader.int()? > 0 })
    }
}

fn refused(cause: impl Into<String>) -> Outcome {
    Outcome::Refused { cause: cause.into(), reach: Reach::Message }
}

fn later(cause: impl Into<String>) -> Outcome {
    Outcome::Retry { cause: cause.into(), after: None }
}

fn unread(cause: impl Into<Failure>) -> Outcome {
    later(format!("the settlement can't be read: {}", cause.into()))
}

impl Payouts {
    async fn deliver(&self, message: &Message) -> Result<String, Outcome> {
        let (tenant_id, id) = of(message).ok_or_else(|| refused("the event names no settlement"))?;
        let due = self.due(tenant_id, id).await?;
        let number = &due.settlement.settlement_no;
        if due.settlement.status != SettlementStatus::Processing {
            return Ok(format!("{number} is {} already", due.settlement.status.as_str()));
        }
        let now = self.house.clock.now();
        let may_tell = due.first_at.is_some_and(|first| now < first.plus(self.key_life));
        let is_first = message.attempt == 1 && due.attempts == 1 && due.is_open;
        let said = if is_first && may_tell {
            self.pay(&due).await?
        } else {
            match self.service.ask(number).await {
                Said::Absent if may_tell => self.pay(&due).await?,
                said => said,
            }
        };
        self.follow(&due, said).await
    }

    async fn due(&self, tenant_id: i64, settlement_id: i64) -> Result<Due, Outcome> {
        let columns = Settlement::COLUMNS;
        let sql = format!(
            "select {columns}, {ATTEMPTS} from supply_settlements t where t.id = $1 and t.tenant_id = $2"
        );
        let query = Query::new("payout.due", sql, values![settlement_id, tenant_id]);
        let rows = self.door.store().query(query).await.map_err(unread)?;
        let row = rows.first().ok_or_else(|| refused("there is no such settlement"))?;
        Due::read(row).map_err(unread)
    }

    /// Tells the service, once the attempt is on record.
    async fn pay(&self, due: &Due) -> Result<Said, Outcome> {
        let Settlement { id, tenant_id, net, currency, .. } = due.settlement;
        if !due.is_open {
            self.write(move |at| attempts::next(id, at)).await?;
        }
        let payee = Payee::open(self.door.store(), &self.house.keys, tenant_id, id).await.map_err(unread)?;
        // Somebody ended it by hand meanwhile; the next look sees how.
        let Payee { method, account, payout_ref } =
            payee.ok_or_else(|| later("the settlement is not processing any more"))?;
        let (amount, amount_minor) = (net.major(), net.minor());
        let currency = currency.code();
        let order = Order { reference: payout_ref, amount, amount_minor, currency, method, account };
        Ok(self.service.pay(&order).await)
    }

    /// What follows from what the service says.
    async fn follow(&self, due: &Due, said: Said) -> Result<String, Outcome> {
        let settlement_id = due.settlement.id;
        match said {
            Said::Paid { transaction_id: payment_transaction_id } => {
                let complete = Complete { settlement_id, payment_transaction_id };
                self.moved(due, complete, SettlementStatus::Completed).await
            }
            Said::Failed { code: failure_code } => {
                self.moved(due, Fail { settlement_id, failure_code }, SettlementStatus::Failed).await
            }
            // Not the channel's fault: no other payout waits for it.
            Said::Pending => Err(Outcome::Retry {
                cause: "the payout service is at work on it".into(),
                after: Some(Duration::ZERO),
            }),
            Said::NotTaken { cause, after } => {
                Err(Outcome::Retry { cause: format!("the payout service did not take it: {cause}"), after })
            }
            Said::Unknown { cause } => {
                self.unknown(settlement_id, cause).await?;
                Err(later(format!("no answer that says whether it is paid: {cause}; it will be asked")))
            }
            Said::Absent => {
                self.unknown(settlement_id, "absent").await?;
                Err(refused(
                    "the payout service knows no such reference, and may have forgotten its key, so it is not told again; look there, then complete or fail the settlement by hand",
                ))
            }
        }
    }

    async fn unknown(&self, settlement_id: i64, cause: &'static str) -> Result<(), Outcome> {
        self.write(move |at| attempts::ended(settlement_id, attempts::Result::Unknown, Some(cause), at)).await
    }

    async fn write(&self, write: impl Fn(Time) -> Write + Send + 'static) -> Result<(), Outcome> {
        let plan = move |_: Vec<Vec<Row>>, at: Time| Ok((vec![write(at)], ()));
        let written = self.door.maintain("payout.attempt", Vec::new(), plan).await;
        written.map(drop).map_err(|failure| later(format!("the attempt can't be written down: {failure}")))
    }

    /// Moves the settlement, as the platform, by a command whose state check lets it happen once.
    async fn moved<A: Action>(&self, due: &Due, action: A, to: SettlementStatus) -> Result<String, Outcome> {
        let Settlement { id, tenant_id, ref settlement_no, .. } = due.settlement;
        let caller = Caller::system(tenant_id, &format!("payout:{settlement_no}"));
        let context = Context { caller, house: Arc::clone(&self.house) };
        let (asking, object) = (context.clone(), action.object());
        let command = Commanded { context, action };
        let ended = self.door.submit(Submission { key: None, command, wait: Duration::ZERO }).await;
        match ended {
            Ok(Answer::Done(done)) if done.outcome.code < 400 => {
                return Ok(format!("{settlement_no} is {}", to.as_str()));
            }
            Ok(_) => {}
            Err(failure) => return Err(self.failed(&failure, &asking, &object).await),
        }
        match self.due(tenant_id, id).await?.settlement.status {
            status if status == to => Ok(format!("{settlement_no} is {} already", to.as_str())),
            SettlementStatus::Processing => Err(later("the settlement did not take the end of its payout")),
            status => Err(refused(format!(
                "the payout service says {}, but the settlement is {}; look at both, and set the money right by hand",
                to.as_str(),
                status.as_str()
            ))),
        }
    }

    async fn failed(&self, failure: &Failure, context: &Context, object: &crate::caller::Object) -> Outcome {
        let Some(withheld) = Withheld::of(failure) else { return later(failure.to_string()) };
        if let Err(untold) = withheld.tell(&self.door, context, object).await {
            tracing::error!(%untold, "what was withheld could not be audited");
        }
        refused("the payout service's answer looks like it holds a credential; look there")
    }
}

impl Channel for Payouts {
    fn name(&self) -> &str {
        NAME
    }

    fn kind(&self) -> &'static str {
        NAME
    }

    /// By its reference, as long as it remembers; afterwards it is only asked.
    fn repeats(&self) -> Repeats {
        Repeats::Removed
    }

    fn pace(&self) -> Pace {
        Pace { parallel: PARALLEL, burst: PARALLEL, every: Duration::ZERO }
    }

    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.deliver(message).await {
                Ok(receipt) => Outcome::Delivered { receipt },
                Err(outcome) => outcome,
            }
        })
    }

    fn held(&self, message: &Message, _: State, at: Time) -> Vec<Write> {
        held(&self.house, message, "payout_held", at)
    }
}
