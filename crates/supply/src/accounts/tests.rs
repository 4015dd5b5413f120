//! Every edge of section 6.1, and every refusal in its order.

use super::*;
use crate::action::{Action, Change, Stop};
use crate::caller::Capacity;
use crate::code::Invariant;
use crate::fixtures::{NOW, context};
use crate::rows::{Account, AccountStatus};

use AccountStatus::{Active, Disabled, Pending, Suspended};

fn account(status: AccountStatus) -> Account {
    Account { status, ..crate::fixtures::account() }
}

/// The new status, or the code with its rule.
fn ended(change: Result<Change, Stop>) -> Result<String, (&'static str, Option<&'static str>)> {
    match change {
        Ok(change) => Ok(change.after.to_string()),
        Err(Stop::Refused(refusal)) => {
            assert_eq!(refusal.object.is_some(), refusal.code.status() != 404);
            Err((refusal.code.as_str(), refusal.rule.map(Invariant::as_str)))
        }
        Err(Stop::Broken(error)) => panic!("{error}"),
    }
}

fn moved(status: &str) -> Result<String, (&'static str, Option<&'static str>)> {
    Ok(format!(r#"{{"status":"{status}","version":2}}"#))
}

fn refused(code: &'static str) -> Result<String, (&'static str, Option<&'static str>)> {
    Err((code, None))
}

#[test]
fn activation_by_status_and_capacity() {
    let activate = |status, capacity| {
        ended(Activate { account_id: 5 }.decide(&context(capacity), &(), &Some(account(status)), NOW))
    };
    let table = [
        (Pending, Capacity::User, moved("active")),
        (Suspended, Capacity::User, moved("active")),
        (Active, Capacity::User, refused("SUP_ACC_4091")),
        (Disabled, Capacity::User, Err(("SUP_ACC_4031", Some("INV-ACC-002")))),
        (Disabled, Capacity::Admin, moved("active")),
        (Active, Capacity::Admin, refused("SUP_ACC_4091")),
        (Pending, Capacity::Admin, refused("SUP_ACC_4091")),
    ];
    for (status, capacity, wanted) in table {
        assert_eq!(activate(status, capacity), wanted, "{status:?} {capacity:?}");
    }
    let missing = Activate { account_id: 5 }.decide(&context(Capacity::User), &(), &None, NOW);
    assert_eq!(ended(missing), refused("SUP_ACC_4041"));
}

#[test]
fn all_conditions_that_are_not_met_are_named_and_the_state_comes_first() {
    let mut poor = account(Pending);
    (poor.is_verified, poor.tos_compliant, poor.risk_score, poor.is_frozen) = (false, false, 81, true);
    let decide = |account: &Account| {
        Activate { account_id: 5 }.decide(&context(Capacity::User), &(), &Some(account.clone()), NOW)
    };
    match decide(&poor) {
        Err(Stop::Refused(refusal)) => {
            assert_eq!(
                refusal.details.plain()["unmet"],
                serde_json::json!(["verified", "tos", "risk", "frozen"])
            );
        }
        other => panic!("{other:?}"),
    }
    poor.status = Active;
    assert_eq!(ended(decide(&poor)), refused("SUP_ACC_4091"));
    let risky = Account { risk_score: 80, ..account(Pending) };
    assert_eq!(ended(decide(&risky)), moved("active"), "80 is not above the limit");
}

#[test]
fn suspension_by_status_and_risk_cases() {
    let suspend = |status, open_risk_cases| {
        let state = suspend::State { account: Some(account(status)), open_risk_cases };
        ended(Suspend { account_id: 5 }.decide(&context(Capacity::User), &(), &state, NOW))
    };
    assert_eq!(suspend(Active, 0), moved("suspended"));
    assert_eq!(suspend(Active, 1), refused("SUP_ACC_4095"));
    for status in [Pending, Suspended, Disabled] {
        assert_eq!(suspend(status, 1), refused("SUP_ACC_4091"), "{status:?}");
    }
}

#[test]
fn disabling_by_status() {
    use Credential::{Compromised, Kept};
    let disable = |status, credential, is_revoked| {
        let action = Disable { account_id: 5, reason: "leaked".into(), credential };
        let state = disable::State { account: Some(account(status)), is_revoked };
        ended(action.decide(&context(Capacity::Admin), &(), &state, NOW))
    };
    for status in [Pending, Active, Suspended] {
        assert_eq!(disable(status, Kept, false), moved("disabled"), "{status:?}");
        assert_eq!(disable(status, Compromised, false), moved("disabled"), "{status:?}");
    }
    assert_eq!(disable(Disabled, Kept, false), refused("SUP_ACC_4091"));
    assert_eq!(disable(Disabled, Compromised, false), moved("disabled"), "it is known later");
    assert_eq!(disable(Disabled, Compromised, true), refused("SUP_ACC_4091"), "once");
}

#[test]
fn deletion_by_status_and_what_depends_on_it() {
    let delete = |status, packages, orders| {
        let state = delete::State { account: Some(account(status)), packages, orders };
        ended(Delete { account_id: 5 }.decide(&context(Capacity::User), &(), &state, NOW))
    };
    for status in [Pending, Suspended, Disabled] {
        assert_eq!(delete(status, 0, 0), Ok(r#"{"deleted":true}"#.into()), "{status:?}");
        assert_eq!(delete(status, 1, 0), refused("SUP_ACC_4093"), "{status:?}");
        assert_eq!(delete(status, 0, 1), refused("SUP_ACC_4093"), "{status:?}");
    }
    assert_eq!(delete(Active, 1, 1), Err(("SUP_ACC_4092", Some("INV-ACC-001"))));
}
