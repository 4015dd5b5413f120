//! Staff of the platform: users of its own tenant, who get tokens with the role `admin`. The first one is added by
//! whoever has the server's own operator token. Not here: tokens ([`crate::tokens::Issue`]).

use door::{Failure, Steps};
use kernel::Time;
use serde::Serialize;
use serde_json::json;
use store::{Error, Query, Row, values};

use super::fields::{self, is_text};
use super::people::{self, PRINCIPAL};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::{Object, PLATFORM};
use crate::code::Code;
use crate::rows::Reader;

const FOUND: &str = "select id, status from iam_users where tenant_id = $1 and name = $2";
const NEXT: &str = "select {next_id iam_users} as next";
/// The platform's own user, as whom the scheduler acts: nobody's login.
const SYSTEM: &str = "system";

/// Kind in audit and outbox.
const KIND: &str = "operator";

/// Adds a user to the platform's tenant; one of that name who is there stays as they are, so that whoever lost
/// their token gets a new one by the same call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddStaff {
    /// Unique in the tenant, `1..=64` characters.
    pub name: String,
}

/// What it decides from: the user of that name with whether they are active, and the next id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    found: Option<(i64, bool)>,
    next: i64,
}

#[derive(Debug, Serialize)]
struct Added {
    user_id: i64,
    tenant_id: i64,
    added: bool,
}

impl Action for AddStaff {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "platform.staff.add"
    }

    fn object(&self) -> Object {
        Object::new_of(KIND)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, _: &Context, (): &()) -> Vec<Query> {
        vec![
            Query::new("staff.found", FOUND, values![PLATFORM, &self.name]),
            Query::new("staff.next", NEXT, vec![]),
        ]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let damaged = || Error::Corrupt { table: "iam_users", column: "answers".into() };
        let [found, next] = rows else { return Err(damaged()) };
        let user = |row: &Row| {
            let mut reader = Reader::new(row);
            Ok::<_, Error>((reader.int()?, reader.text()? == "active"))
        };
        let next = next.first().ok_or_else(damaged)?.int(0)?;
        Ok(State { found: found.first().map(user).transpose()?, next })
    }

    fn decide(&self, _: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let free = !matches!(self.name.as_str(), SYSTEM | PRINCIPAL);
        fields::checked(&[("name", "text", is_text(&self.name, 64)), ("name", "reserved", free)])?;
        let (id, writes) = match state.found {
            Some((_, false)) => return Err(Refusal::of(Code::ComState).with("field", "name").into()),
            Some((id, true)) => (id, Vec::new()),
            None => (state.next, vec![people::user(state.next, PLATFORM, &self.name, at)]),
        };
        let data = Added { user_id: id, tenant_id: PLATFORM, added: state.found.is_none() };
        let after = json!({ "status": "active", "version": 0, "name": self.name });
        Ok(Change { after, writes, status: 201, ..Change::of(Object::row(KIND, id), &data)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, NOW};

    fn decided(name: &str, found: Option<(i64, bool)>) -> Result<Change, Stop> {
        let context = fixtures::context(crate::caller::Capacity::System);
        AddStaff { name: name.into() }.decide(&context, &(), &State { found, next: 7 }, NOW)
    }

    #[test]
    fn a_user_is_added_once_and_the_platforms_own_names_are_not_given_away() {
        let change = decided("ann", None).unwrap();
        assert!(change.writes.len() == 1 && change.data.contains("\"user_id\":7"), "{}", change.data);
        let change = decided("ann", Some((3, true))).unwrap();
        assert!(change.writes.is_empty() && change.data.contains("\"user_id\":3"), "{}", change.data);
        for (name, found) in [("system", None), ("principal", None), ("", None), ("ann", Some((3, false)))] {
            assert!(decided(name, found).is_err(), "{name}");
        }
    }
}
