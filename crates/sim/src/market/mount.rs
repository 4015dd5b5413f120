//! Mounting without the network: the foreign step is taken by the simulation, under the name and in the form that
//! the command itself keeps it in; the command then finds it on record, as after a take-over.

use std::sync::Arc;

use custody::{AccountType, Provider};
use door::{Failure, Form, Steps};
use kernel::Time;
use secrecy::SecretString;
use store::{Error, Query, Row};
use supply::accounts::{Create, Kind};
use supply::action::{Change, Stop};
use supply::{Action, Context, Object, Refusal};

use crate::foreign::Foreign;
use crate::process::Process;

/// Name of the foreign step.
const VERIFY: &str = "verify";
/// A verification that all went well in, as it is kept.
const PASSED: &str = r#"{"status":"pass","items":[["tos","pass","the terms allow it"]],"quota":10000000000000,"unit":"token","risk_score":10,"tos":true,"rejected":null}"#;

type Prepared = <Create as Action>::Prepared;

/// The command with its provider.
pub(super) struct Mount {
    create: Create,
    foreign: Arc<Foreign>,
    process: Arc<Process>,
}

impl Mount {
    /// Credential number `which` under an alias.
    pub(super) fn new(which: u64, alias: String, (foreign, process): (&Arc<Foreign>, &Arc<Process>)) -> Self {
        let letter = if which == 0 { "a" } else { "b" };
        let secret = SecretString::from(format!("sk-{}", letter.repeat(40)));
        let kind = Kind { provider: Provider::Openai, account_type: AccountType::ApiKey };
        let create = Create { kind, secret, alias: Some(alias), min_quota_threshold: None, risk_ack: true };
        Self { create, foreign: Arc::clone(foreign), process: Arc::clone(process) }
    }
}

impl Action for Mount {
    type Prepared = Prepared;
    type State = <Create as Action>::State;

    fn event(&self) -> &'static str {
        self.create.event()
    }

    fn object(&self) -> Object {
        self.create.object()
    }

    fn form(&self, context: &Context) -> Form {
        self.create.form(context)
    }

    fn prepares(&self) -> bool {
        self.create.prepares()
    }

    async fn prepare(&self, context: &Context, steps: &Steps) -> Result<Prepared, Failure> {
        let asked = steps.once(VERIFY, async {
            self.foreign.build(&self.process).await.map(|()| PASSED.as_bytes().to_vec())
        });
        match asked.await {
            Ok(_) => self.create.prepare(context, steps).await,
            Err(Failure::Step { .. }) => Ok(Prepared::Unreachable),
            Err(failure) => Err(failure),
        }
    }

    fn load(&self, context: &Context, prepared: &Prepared) -> Vec<Query> {
        self.create.load(context, prepared)
    }

    fn read(&self, context: &Context, rows: &[Vec<Row>]) -> Result<Self::State, Error> {
        self.create.read(context, rows)
    }

    fn decide(
        &self,
        context: &Context,
        prepared: &Prepared,
        state: &Self::State,
        at: Time,
    ) -> Result<Change, Stop> {
        self.create.decide(context, prepared, state, at)
    }

    fn outrun(&self, write: &'static str, state: &Self::State) -> Option<Refusal> {
        self.create.outrun(write, state)
    }
}
