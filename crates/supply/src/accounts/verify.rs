//! Asks a provider about a credential and keeps nothing but the audit row (section 8.1, operation 1).

use door::{Failure, Steps};
use kernel::Time;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::Value as Json;
use store::{Error, Query, Row};

use super::checked::{Checked, Kind, noted, unreachable};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::exact::Exact;
use crate::rows::Account;

/// `POST /api/v1/supply/accounts/verify`.
#[derive(Clone, Debug)]
pub struct Verify {
    /// Whose credential, of which type.
    pub kind: Kind,
    /// The credential.
    pub secret: SecretString,
}

/// `data` of the answer.
#[derive(Debug, Serialize)]
struct Found<'a> {
    verify_status: &'a str,
    available_quota: Exact,
    risk_score: i64,
    check_items: Vec<Item<'a>>,
}

#[derive(Debug, Serialize)]
struct Item<'a> {
    item: &'a str,
    result: &'a str,
    message: &'a str,
}

impl Action for Verify {
    type Prepared = Option<Checked>;
    type State = ();

    fn event(&self) -> &'static str {
        "supply.account.verify"
    }

    fn object(&self) -> Object {
        Object::new_of(Account::KIND)
    }

    fn prepares(&self) -> bool {
        true
    }

    async fn prepare(&self, context: &Context, steps: &Steps) -> Result<Option<Checked>, Failure> {
        Checked::ask(context, steps, self.kind, &self.secret).await
    }

    fn load(&self, _: &Context, _: &Option<Checked>) -> Vec<Query> {
        Vec::new()
    }

    fn read(&self, _: &Context, _: &[Vec<Row>]) -> Result<(), Error> {
        Ok(())
    }

    fn decide(&self, _: &Context, checked: &Option<Checked>, (): &(), _: Time) -> Result<Change, Stop> {
        let checked = checked.as_ref().ok_or_else(unreachable)?;
        match checked.accepted() {
            // A score that is too high is an answer here; a form or a credential that is wrong is none.
            Err(refusal) if refusal.code != Code::AccTos => return Err(refusal.into()),
            Err(_) if checked.tos_result() == "fail" => return Err(Refusal::of(Code::AccTos).into()),
            _ => {}
        }
        let item = |(item, result, message)| Item { item, result, message };
        let items = checked.items.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str()));
        let data = Found {
            verify_status: &checked.status,
            available_quota: checked.quota()?.into(),
            risk_score: checked.risk_score,
            check_items: items.map(item).collect(),
        };
        Change::of(self.object(), &data)
    }

    fn noted(&self, context: &Context, checked: &Option<Checked>) -> Json {
        noted(context, self.kind, &self.secret, checked.as_ref())
    }
}
