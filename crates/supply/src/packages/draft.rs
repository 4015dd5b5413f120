//! Saves a new draft (sections 6.2, 8.2): of an account of the tenant, in any state, and of a model on the list of
//! its provider. A draft may be below the floor; it can't be published then.

use door::{Failure, Steps};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

use super::fields::{self, Fields};
use super::floor::{self, Floor};
use super::found;
use super::view::View;
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::rows::{Account, Package};

const NEXT_ID: &str = "select {next_id supply_packages}";

const INSERT: &str = "insert into supply_packages (id, tenant_id, supply_account_id, user_id, platform, model, total_quota, available_quota, price_per_1m_input, price_per_1m_output, min_purchase, valid_days, max_concurrent, rate_limit_rpm, quota_unit, currency_code, cloned_from_id, platform_frozen, created_at, created_ip, request_id, idempotency_key, audit_trace_id, updated_ip, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)";

/// `POST /api/v1/supply/packages/draft`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveDraft {
    /// What it offers.
    pub fields: Fields,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    id: i64,
    account: Option<Account>,
    floors: Vec<Floor>,
}

/// The row id of a package that is still to be written.
pub(super) fn next_id() -> Query {
    Query::new("package.next_id", NEXT_ID, vec![])
}

/// Reads what [`next_id`] found.
pub(super) fn read_id(rows: &[Row]) -> Result<i64, Error> {
    rows.first().ok_or_else(found::damaged)?.int(0)
}

/// The account of the tenant that a draft names, and the floors of its model.
pub(super) fn account_and_floors(context: &Context, fields: &Fields) -> [Query; 2] {
    let account = format!(
        "select {} from supply_accounts a where a.id = $1 and a.tenant_id = $2 and a.deleted_at is null",
        Account::COLUMNS
    );
    let by = values![fields.account_id, context.caller.tenant_id];
    let of_model = [by.clone(), values![&fields.model]].concat();
    [
        Query::new("package.account", account, by),
        Query::new("package.account_floors", floor::select(floor::OF_ACCOUNT), of_model),
    ]
}

/// Reads what [`account_and_floors`] found.
pub(super) fn read_account_and_floors(
    account: &[Row],
    floors: &[Row],
) -> Result<(Option<Account>, Vec<Floor>), Error> {
    let floors = floors.iter().map(Floor::read).collect::<Result<_, _>>()?;
    Ok((account.first().map(Account::read).transpose()?, floors))
}

/// The account that the fields fit to.
pub(super) fn fitting<'a>(
    fields: &Fields,
    account: Option<&'a Account>,
    floors: &[Floor],
    at: Time,
) -> Result<&'a Account, Refusal> {
    let account = account.ok_or_else(|| Refusal::of(Code::AccMissing))?;
    if account.unit != fields.unit {
        // It could never be published: its quota is taken from the account's.
        return Err(fields::field("quota_unit", "unit_of_account"));
    }
    floor::listed(floors, at)?;
    Ok(account)
}

/// A new draft as a row.
pub(super) fn insert(context: &Context, draft: &Package, cloned_from: Option<i64>, at: Time) -> Write {
    let money = Value::Money;
    let [request, key, trace, ip, stamped] = context.stamp(at);
    let row = [
        values![draft.id, draft.tenant_id, draft.supply_account_id, draft.user_id, &draft.platform],
        values![&draft.model],
        vec![money(draft.total.count()), money(draft.available.count())],
        vec![money(draft.price_input.count()), money(draft.price_output.count())],
        vec![money(draft.min_purchase.count())],
        values![draft.valid_days, draft.max_concurrent, draft.rate_limit_rpm],
        values![draft.unit.as_str(), draft.currency.code(), cloned_from],
        values![draft.platform_frozen, at],
        vec![ip.clone(), request, key, trace, ip, stamped],
    ];
    Write::one("package.draft", INSERT, row.concat())
}

/// A draft that was made: 201, with all of it.
pub(super) fn made(
    context: &Context,
    draft: &Package,
    cloned_from: Option<i64>,
    name: &'static str,
) -> Result<Change, Stop> {
    let (object, after) = (found::object(draft.id), draft.state());
    let told = object.clone();
    let event = Event { name, object: told, version: 0, before: json!({}), after: after.clone() };
    let writes = vec![insert(context, draft, cloned_from, draft.created_at)];
    let change = Change::of(object, &View::of(draft, cloned_from))?;
    Ok(Change { after, writes, events: vec![event], status: 201, ..change })
}

impl Action for SaveDraft {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.package.draft.save"
    }

    fn object(&self) -> Object {
        Object::new_of(Package::KIND)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let [account, floors] = account_and_floors(context, &self.fields);
        vec![next_id(), account, floors]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [id, account, floors] = rows else { return Err(found::damaged()) };
        let (account, floors) = read_account_and_floors(account, floors)?;
        Ok(State { id: read_id(id)?, account, floors })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let account = fitting(&self.fields, state.account.as_ref(), &state.floors, at)?;
        let draft = self.fields.draft(state.id, account, at)?;
        made(context, &draft, None, "supply.package.draft_save.succeeded")
    }
}

#[cfg(test)]
mod tests {
    use kernel::money::QuotaUnit;

    use super::*;
    use crate::fixtures::{NOW, account};
    use crate::packages::fields::Texts;
    use crate::packages::fixture::{floors, operator, refusal};

    pub(super) fn fields() -> Fields {
        let texts = Texts {
            supply_account_id: Some("5"),
            model: Some("gpt-x"),
            total_quota: Some("1000"),
            price_per_1m_input: Some("0"),
            price_per_1m_output: Some("0.01"),
            valid_days: Some("30"),
            ..Texts::default()
        };
        Fields::parse(&texts).unwrap()
    }

    fn good() -> State {
        State { id: 18, account: Some(account()), floors: floors("8", "32") }
    }

    fn decided(state: &State) -> Result<Change, Stop> {
        SaveDraft { fields: fields() }.decide(&operator(), &(), state, NOW)
    }

    #[test]
    fn a_draft_below_the_floor_is_saved_with_all_of_its_quota() {
        let change = decided(&good()).unwrap();
        assert_eq!((change.status, change.object.id.as_str()), (201, "18"));
        assert_eq!(
            (&change.before, &change.after),
            (&json!({}), &json!({ "status": "draft", "version": 0 }))
        );
        for part in [
            r#""package_id":18,"supply_account_id":5,"user_id":70,"platform":"openai""#,
            r#""total_quota":1000,"available_quota":1000,"sold_quota":0,"reserved_quota":0"#,
            r#""price_per_1m_input":0,"price_per_1m_output":0.01"#,
            r#""start_at":null,"end_at":null,"status":"draft","close_reason":null"#,
        ] {
            assert!(change.data.contains(part), "{part}: {}", change.data);
        }
        assert!(!change.data.contains("rating") && !change.data.contains("total_orders"));
    }

    #[test]
    fn a_draft_of_a_pending_account_is_saved() {
        let mut state = good();
        state.account.as_mut().unwrap().status = crate::rows::AccountStatus::Pending;
        assert!(decided(&state).is_ok());
    }

    #[test]
    fn every_refusal_comes_before_those_that_are_asked_later() {
        let missing = State { account: None, floors: vec![], ..good() };
        assert_eq!(refusal(decided(&missing)).0, "SUP_ACC_4041");
        let mut other_unit = State { floors: vec![], ..good() };
        other_unit.account.as_mut().unwrap().unit = QuotaUnit::Request;
        assert_eq!(refusal(decided(&other_unit)).0, "SUP_COM_4001");
        assert_eq!(refusal(decided(&State { floors: vec![], ..good() })).0, "SUP_PKG_4005");
    }
}
