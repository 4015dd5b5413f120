//! What the hourly reconciliation finds is put on record and told at once (section 11.5): an `invariant_violation`
//! and an alert. Nothing is corrected by itself: a correction is a journal that a person decides on.

use door::{Failure, Steps};
use kernel::Time;
use ledger::check::{Object as Found, Violation};
use serde_json::json;
use store::{Error, Query, Row};

use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::Invariant;
use crate::rows::{Settlement, Supplier};

/// The scheduler's, for each finding of [`super::reconcile()`]; without a key, or with one that names hour and
/// object. It is always refused, with `SUP_SET_5002`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbalanced {
    /// What was found.
    pub violation: Violation,
}

impl Action for Unbalanced {
    type Prepared = ();
    type State = ();

    fn event(&self) -> &'static str {
        "supply.ledger.reconcile"
    }

    fn object(&self) -> Object {
        match self.violation.object {
            Found::Journal(id) => Object::row("billing_journal", id),
            Found::Settlement(id) => Object::row(Settlement::KIND, id.0),
            Found::Supplier(id) => Object::row(Supplier::KIND, id.0),
            Found::Account(account) => Object { kind: "billing_account", id: account.to_string() },
            Found::Ledger(currency) => Object { kind: "ledger", id: currency.code().to_owned() },
        }
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, _: &Context, (): &()) -> Vec<Query> {
        Vec::new()
    }

    fn read(&self, _: &Context, _: &[Vec<Row>]) -> Result<(), Error> {
        Ok(())
    }

    fn decide(&self, _: &Context, (): &(), (): &(), _: Time) -> Result<Change, Stop> {
        let Violation { rule, expected, found, .. } = self.violation;
        let refusal = Refusal::broken(Invariant::Set003).about(self.object(), json!({}));
        let refusal = refusal.with("rule", format!("{rule:?}")).with("expected", expected.to_string());
        Err(refusal.with("found", found.to_string()).into())
    }
}
