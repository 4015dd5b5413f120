//! Edits a draft (sections 6.2, 8.2): all of its fields at once, under the rules of a new one. What was published
//! is not edited; its prices are changed by the batch.

use door::{Failure, Steps};
use kernel::Time;
use serde_json::json;
use store::{Error, Query, Row, Value, Write, values};

use super::draft;
use super::fields::Fields;
use super::floor::Floor;
use super::found;
use super::view::{self, View};
use crate::action::{Action, Change, Context, Event, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::rows::{Account, Package, PackageStatus};

const EDIT: &str = "update supply_packages
set supply_account_id = $1, platform = $2, model = $3, total_quota = $4, available_quota = $5,
  price_per_1m_input = $6, price_per_1m_output = $7, min_purchase = $8, valid_days = $9, max_concurrent = $10,
  rate_limit_rpm = $11, quota_unit = $12, currency_code = $13, version = version + 1,
  request_id = $14, idempotency_key = $15, audit_trace_id = $16, updated_ip = $17, updated_at = $18
where id = $19 and tenant_id = $20 and status = 'draft' and version = $21";

/// `PUT /api/v1/supply/packages/{packageId}/draft`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditDraft {
    /// Which package.
    pub package_id: i64,
    /// The version that the caller has seen, if it says so; another one is a conflict.
    pub version: Option<i64>,
    /// What it offers from now on.
    pub fields: Fields,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    found: Option<(Package, Option<i64>)>,
    account: Option<Account>,
    floors: Vec<Floor>,
}

impl EditDraft {
    fn write(context: &Context, new: &Package, old: &Package, at: Time) -> Write {
        let money = Value::Money;
        let row = [
            values![new.supply_account_id, &new.platform, &new.model],
            vec![money(new.total.count()), money(new.available.count())],
            vec![money(new.price_input.count()), money(new.price_output.count())],
            vec![money(new.min_purchase.count())],
            values![new.valid_days, new.max_concurrent, new.rate_limit_rpm],
            values![new.unit.as_str(), new.currency.code()],
            found::bound(context, old, at),
        ];
        Write::one("package.edit", EDIT, row.concat())
    }
}

impl Action for EditDraft {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.package.draft.save"
    }

    fn object(&self) -> Object {
        found::object(self.package_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        let [account, floors] = draft::account_and_floors(context, &self.fields);
        vec![account, view::query(context.caller.tenant_id, self.package_id), floors]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [account, package, floors] = rows else { return Err(found::damaged()) };
        let (account, floors) = draft::read_account_and_floors(account, floors)?;
        Ok(State { found: package.first().map(view::read).transpose()?, account, floors })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let (old, cloned_from) = state.found.as_ref().ok_or_else(|| Refusal::of(Code::PkgMissing))?;
        let seen = self.version.is_none_or(|version| version == old.version);
        if old.status != PackageStatus::Draft || !seen {
            return Err(found::refused(Refusal::of(Code::PkgState), old).into());
        }
        let account = draft::fitting(&self.fields, state.account.as_ref(), &state.floors, at)
            .map_err(|refusal| found::about(refusal, old))?;
        let made = self.fields.draft(old.id, account, at)?;
        let frozen = old.platform_frozen;
        let (version, created_at) = (old.version + 1, old.created_at);
        let new = Package { version, created_at, platform_frozen: frozen, ..made };
        let (before, after, object) = (old.state(), new.state(), self.object());
        let event = Event {
            name: "supply.package.draft_save.succeeded",
            object: object.clone(),
            version,
            before: before.clone(),
            after: after.clone(),
        };
        let writes = vec![Self::write(context, &new, old, at)];
        let change = Change::of(object, &View::of(&new, *cloned_from))?;
        Ok(Change { before, after, writes, events: vec![event], metadata: json!({}), ..change })
    }

    fn outrun(&self, write: &'static str, state: &State) -> Option<Refusal> {
        let (package, _) = state.found.as_ref()?;
        (write == "package.edit").then(|| found::refused(Refusal::of(Code::PkgState), package))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, account};
    use crate::packages::fields::Texts;
    use crate::packages::fixture::{floors, in_state, operator, refusal};

    fn decided(version: Option<i64>, state: &State) -> Result<Change, Stop> {
        let texts = Texts {
            supply_account_id: Some("5"),
            model: Some("gpt-x"),
            total_quota: Some("70"),
            price_per_1m_input: Some("9"),
            price_per_1m_output: Some("33"),
            valid_days: Some("7"),
            ..Texts::default()
        };
        let fields = Fields::parse(&texts).unwrap();
        EditDraft { package_id: 17, version, fields }.decide(&operator(), &(), state, NOW)
    }

    fn good(status: PackageStatus) -> State {
        let found = Some((in_state(status), Some(3)));
        State { found, account: Some(account()), floors: floors("8", "32") }
    }

    #[test]
    fn a_draft_gets_all_fields_anew_and_keeps_what_is_its_own() {
        let change = decided(Some(3), &good(PackageStatus::Draft)).unwrap();
        assert_eq!((&change.before["version"], &change.after["version"]), (&json!(3), &json!(4)));
        for part in [r#""total_quota":70,"available_quota":70"#, r#""cloned_from_id":3,"version":4"#] {
            assert!(change.data.contains(part), "{part}: {}", change.data);
        }
    }

    #[test]
    fn every_refusal_comes_before_those_that_are_asked_later() {
        let nothing = State { found: None, account: None, floors: vec![] };
        assert_eq!(refusal(decided(None, &nothing)).0, "SUP_PKG_4041");
        for &status in PackageStatus::ALL.iter().filter(|status| **status != PackageStatus::Draft) {
            let state = State { account: None, floors: vec![], ..good(status) };
            assert_eq!(refusal(decided(None, &state)), ("SUP_PKG_4091", None), "{status:?}");
        }
        let other = State { account: None, floors: vec![], ..good(PackageStatus::Draft) };
        assert_eq!(refusal(decided(Some(2), &other)).0, "SUP_PKG_4091");
        assert_eq!(refusal(decided(Some(3), &other)).0, "SUP_ACC_4041");
        let unlisted = State { floors: vec![], ..good(PackageStatus::Draft) };
        assert_eq!(refusal(decided(None, &unlisted)).0, "SUP_PKG_4005");
    }
}
