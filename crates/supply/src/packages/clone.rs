//! Clones a package of any state into a new draft (sections 6.2, 8.2): account, model, quota, prices, validity and
//! limits; nothing sold, no dates. A platform's freeze goes along: it stops an offer, and a clone is the same offer.

use door::{Failure, Steps};
use kernel::Time;
use kernel::money::Quota;
use serde_json::json;
use store::{Error, Query, Row};

use super::{draft, found};
use crate::action::{Action, Change, Context, Refusal, Stop};
use crate::caller::Object;
use crate::code::Code;
use crate::rows::{Package, PackageStatus};

/// `POST /api/v1/supply/packages/{packageId}/clone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloneDraft {
    /// Of which package.
    pub package_id: i64,
}

/// What it decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    id: i64,
    found: Option<Package>,
}

impl Action for CloneDraft {
    type Prepared = ();
    type State = State;

    fn event(&self) -> &'static str {
        "supply.package.clone"
    }

    fn object(&self) -> Object {
        found::object(self.package_id)
    }

    async fn prepare(&self, _: &Context, _: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn load(&self, context: &Context, (): &()) -> Vec<Query> {
        vec![draft::next_id(), found::package(context, self.package_id)]
    }

    fn read(&self, _: &Context, rows: &[Vec<Row>]) -> Result<State, Error> {
        let [id, package] = rows else { return Err(found::damaged()) };
        Ok(State { id: draft::read_id(id)?, found: found::read(package)? })
    }

    fn decide(&self, context: &Context, (): &(), state: &State, at: Time) -> Result<Change, Stop> {
        let origin = state.found.as_ref().ok_or_else(|| Refusal::of(Code::PkgMissing))?;
        let none = Quota::from_count(0, origin.unit)?;
        let clone = Package {
            id: state.id,
            status: PackageStatus::Draft,
            version: 0,
            available: origin.total,
            reserved: none,
            sold: none,
            start_at: None,
            end_at: None,
            close_reason: None,
            created_at: at,
            updated_at: at,
            ..origin.clone()
        };
        let change = draft::made(context, &clone, Some(origin.id), "supply.package.clone.succeeded")?;
        Ok(Change { metadata: json!({ "cloned_from": origin.id }), ..change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, tokens};
    use crate::packages::fixture::{in_state, operator, refusal};

    fn decided(found: Option<Package>) -> Result<Change, Stop> {
        CloneDraft { package_id: 17 }.decide(&operator(), &(), &State { id: 18, found }, NOW)
    }

    #[test]
    fn a_package_of_any_state_is_cloned_as_if_nothing_was_ever_sold() {
        for &status in PackageStatus::ALL {
            let sold = Package {
                available: tokens(1),
                reserved: tokens(2),
                sold: tokens(997),
                platform_frozen: true,
                close_reason: Some("unlisted".into()),
                ..in_state(status)
            };
            let change = decided(Some(sold)).unwrap();
            assert_eq!((change.status, change.object.id.as_str()), (201, "18"), "{status:?}");
            for part in [
                r#""total_quota":1000,"available_quota":1000,"sold_quota":0,"reserved_quota":0"#,
                r#""start_at":null,"end_at":null,"status":"draft","close_reason":null,"platform_frozen":true"#,
                r#""cloned_from_id":17,"version":0"#,
            ] {
                assert!(change.data.contains(part), "{status:?} {part}: {}", change.data);
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_cloned() {
        assert_eq!(refusal(decided(None)).0, "SUP_PKG_4041");
    }
}
