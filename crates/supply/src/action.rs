//! The form of every command of this crate: which rows it looks at ([`Action::load`]), what they say
//! ([`Action::read`]), what follows ([`Action::decide`], pure, with a table of tests each). Not here: how it becomes a
//! command of the door ([`crate::commanded`]).

use std::sync::Arc;

use door::{AuditRow, Failure, Form, OutboxRow, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use store::{Error, Query, Row, Value, Write, values};

use crate::caller::{Caller, Object};
use crate::code::{Code, Invariant};
use crate::exact::Details;
use crate::house::{House, Live};

/// The only version of an outbox payload so far.
const SCHEMA_VERSION: i64 = 1;

/// Who asks, and the house that it is asked of.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who acts.
    pub caller: Caller,
    /// Numbers, keys, channels.
    pub house: Arc<House>,
}

impl Context {
    /// What a changed row is stamped with, in this order: `request_id`, `idempotency_key`, `audit_trace_id`,
    /// `updated_ip`, `updated_at` (section 5.0).
    #[must_use]
    pub fn stamp(&self, at: Time) -> [Value; 5] {
        let Caller { request_id, idempotency_key, trace_id, client_ip, .. } = &self.caller;
        let stamp = values![request_id, idempotency_key.clone(), trace_id, client_ip.clone(), at];
        stamp.try_into().unwrap_or([const { Value::Null }; 5])
    }
}

/// A command of the supply side.
pub trait Action: Send + Sync + 'static {
    /// What is made before the transaction: an envelope, a verification.
    type Prepared: Send + Sync + 'static;
    /// What the loaded rows say.
    type State;

    /// Name of its audit event: `supply.package.publish`.
    fn event(&self) -> &'static str;

    /// What a refusal before anything was found is about.
    fn object(&self) -> Object;

    /// Atomic unless there is a call to the outside, or slices.
    fn form(&self, context: &Context) -> Form {
        let _ = context;
        Form::Atomic
    }

    /// Whether [`Action::prepare`] is worth sparing a repeat.
    fn prepares(&self) -> bool {
        false
    }

    /// Before the transaction.
    ///
    /// # Errors
    /// A failure of ours or of a foreign side.
    fn prepare(
        &self,
        context: &Context,
        steps: &Steps,
    ) -> impl Future<Output = Result<Self::Prepared, Failure>> + Send;

    /// The rows to decide from, in the order of locks: account, package, order, balances, settlement, earnings.
    fn load(&self, context: &Context, prepared: &Self::Prepared) -> Vec<Query>;

    /// What they say; one list for each query.
    ///
    /// # Errors
    /// A damaged row.
    fn read(&self, context: &Context, rows: &[Vec<Row>]) -> Result<Self::State, Error>;

    /// Whether only an active supplier may have it, which is asked behind all other rules ([`crate::standing`]).
    fn is_write_of_supplier(&self) -> bool {
        self.event().starts_with("supply.")
    }

    /// Decides. Pure.
    ///
    /// # Errors
    /// A refusal, or a damaged state.
    fn decide(
        &self,
        context: &Context,
        prepared: &Self::Prepared,
        state: &Self::State,
        at: Time,
    ) -> Result<Change, Stop>;

    /// What the audit says of what was prepared, whatever comes of it: no secret.
    fn noted(&self, context: &Context, prepared: &Self::Prepared) -> Json {
        let _ = (context, prepared);
        Json::Null
    }

    /// Whether every node tries it when its time has come. Who comes second finds it done: for the system that is no
    /// refusal, and nothing is put on record.
    fn comes_due(&self) -> bool {
        false
    }

    /// What becomes of a credential once it is done, for whoever watches what leaves.
    fn live(&self) -> Option<Live> {
        None
    }

    /// What it means when the write called `write` found another state than was read, although the state read
    /// since would allow it: somebody was faster. `None` when no rule of the domain stands behind that check.
    fn outrun(&self, write: &'static str, state: &Self::State) -> Option<Refusal> {
        let _ = (write, state);
        None
    }
}

/// Why a command changes nothing.
#[derive(Debug)]
pub enum Stop {
    /// A rule refuses it.
    Refused(Box<Refusal>),
    /// A row is damaged.
    Broken(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<ledger::Error> for Stop {
    /// What the ledger does not take is not the caller's doing: INV-SET-003, S0.
    fn from(error: ledger::Error) -> Self {
        tracing::error!(%error, "a posting does not balance; nothing was changed");
        Self::Refused(Box::new(Refusal::broken(Invariant::Set003)))
    }
}

impl From<kernel::money::Error> for Stop {
    fn from(error: kernel::money::Error) -> Self {
        ledger::Error::from(error).into()
    }
}

/// A refusal by a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// With which code.
    pub code: Code,
    /// The invariant behind it.
    pub rule: Option<Invariant>,
    /// About what, where something was found.
    pub object: Option<Object>,
    /// The state that was seen: `status` and `version`.
    pub before: Json,
    /// For the caller: fields, limits; no secret.
    pub details: Details,
    /// Rows that stay all the same: a burnt try of an SMS code.
    pub writes: Vec<Write>,
}

impl Refusal {
    /// With a code and nothing else.
    #[must_use]
    pub fn of(code: Code) -> Self {
        let before = Json::Object(Map::new());
        Self { code, rule: None, object: None, before, details: Details::none(), writes: Vec::new() }
    }

    /// Of a broken invariant.
    #[must_use]
    pub fn broken(rule: Invariant) -> Self {
        Self { rule: Some(rule), ..Self::of(rule.code()) }
    }

    /// About an object in a state.
    #[must_use]
    pub fn about(self, object: Object, before: Json) -> Self {
        Self { object: Some(object), before, ..self }
    }

    /// With one more detail.
    #[must_use]
    pub fn with(self, name: &'static str, value: impl Into<crate::exact::Detail>) -> Self {
        Self { details: self.details.with(name, value), ..self }
    }
}

/// What a command changes.
#[derive(Clone, Debug)]
pub struct Change {
    /// Name of its audit event, where it is another than [`Action::event`].
    pub audited_as: Option<&'static str>,
    /// What was changed.
    pub object: Object,
    /// State before; `{}` of a creation.
    pub before: Json,
    /// State after.
    pub after: Json,
    /// More for the audit, without secrets.
    pub metadata: Json,
    /// The rows, in order.
    pub writes: Vec<Write>,
    /// Audit rows beside the command's own.
    pub audit: Vec<AuditRow>,
    /// What the outbox tells.
    pub events: Vec<Event>,
    /// HTTP status of success.
    pub status: u16,
    /// JSON text of `data`.
    pub data: String,
}

impl Change {
    /// A change answered with 200 and `data`.
    ///
    /// # Errors
    /// When `data` can't be written as JSON, which none of this crate's forms is.
    pub fn of(object: Object, data: &impl Serialize) -> Result<Self, Stop> {
        let empty = || Json::Object(Map::new());
        Ok(Self {
            audited_as: None,
            object,
            before: empty(),
            after: empty(),
            metadata: empty(),
            writes: Vec::new(),
            audit: Vec::new(),
            events: Vec::new(),
            status: 200,
            data: text(data)?,
        })
    }
}

/// One fact for the outbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// `supply.{domain}.{action}.{result}`.
    pub name: &'static str,
    /// Of what.
    pub object: Object,
    /// Its version after the change.
    pub version: i64,
    /// State before.
    pub before: Json,
    /// State after.
    pub after: Json,
}

impl Event {
    /// The outbox row that tells it, for whoever has no command: the edge's alerts.
    #[must_use]
    pub fn told(self, context: &Context, at: Time) -> OutboxRow {
        self.row(context, at)
    }

    pub(crate) fn row(self, context: &Context, at: Time) -> OutboxRow {
        let Self { name, object, version, before, after } = self;
        let caller = &context.caller;
        OutboxRow {
            event_name: name,
            object_type: object.kind,
            aggregate_version: version,
            tenant_id: caller.tenant_id,
            operator_id: caller.operator_id,
            request_id: caller.request_id.clone(),
            payload: json!({
                "event_name": name, "object_type": object.kind, "object_id": object.id,
                "tenant_id": caller.tenant_id, "operator_id": caller.operator_id, "request_id": caller.request_id,
                "aggregate_version": version, "schema_version": SCHEMA_VERSION,
                "occurred_at": at.to_rfc3339_millis(),
                "before_state": before, "after_state": after,
            }),
            object_id: object.id,
            occurred_at: at,
            destinations: context.house.destinations(name),
        }
    }
}

/// JSON text of one of this crate's forms.
pub(crate) fn text(data: &impl Serialize) -> Result<String, Stop> {
    let damaged = |_| Error::Corrupt { table: "answer", column: "data".into() };
    serde_json::to_string(data).map_err(|error| Stop::Broken(damaged(error)))
}
