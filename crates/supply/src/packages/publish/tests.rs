//! Every refusal, in its order of precedence: each case breaks one thing and everything that is asked later.

use serde_json::json;

use super::*;
use crate::fixtures::{NOW, account, package, price, tokens};
use crate::packages::fixture::{self, operator, refusal, writes};

fn good() -> State {
    State { found: Some((package(), account())), floors: fixture::floors("8", "32") }
}

fn decided(state: &State) -> Result<Change, Stop> {
    Publish { package_id: 17 }.decide(&operator(), &(), state, NOW)
}

fn refused(
    change: impl Fn(&mut Package, &mut Account, &mut Vec<Floor>),
) -> (&'static str, Option<&'static str>) {
    let mut state = good();
    let (package, account) = state.found.as_mut().unwrap();
    change(package, account, &mut state.floors);
    refusal(decided(&state))
}

#[test]
fn a_draft_becomes_active_for_its_days_and_commits_its_quota() {
    let change = decided(&good()).unwrap();
    assert_eq!(change.after, json!({ "status": "active", "version": 4 }));
    assert_eq!(writes(&change), ["package.quota", "package.publish"]);
    let data: serde_json::Value = serde_json::from_str(&change.data).unwrap();
    assert_eq!(
        (&data["start_at"], &data["end_at"]),
        (&json!("2026-03-27T02:03:04.000Z"), &json!("2026-04-26T02:03:04.000Z"))
    );
    assert_eq!(change.events[0].name, "supply.package.publish.succeeded");
}

#[test]
fn a_paused_package_goes_on_with_its_end_and_commits_nothing_again() {
    let mut state = good();
    let (package, account) = state.found.as_mut().unwrap();
    package.status = PackageStatus::Paused;
    (package.start_at, package.end_at) = (Some(NOW), Some(NOW.plus(Duration::from_secs(60))));
    account.available = tokens(0);
    let change = decided(&state).unwrap();
    assert_eq!(change.writes.len(), 1);
    assert!(change.data.contains(r#""end_at":"2026-03-27T02:04:04.000Z""#));
}

#[test]
fn a_price_equal_to_its_floor_is_allowed_and_floors_to_come_do_not_count() {
    let mut state = good();
    let later =
        Floor { direction: "input".into(), price: price("9"), from: NOW.plus(Duration::from_micros(1)) };
    state.floors.insert(0, later);
    assert!(decided(&state).is_ok());
}

#[test]
fn every_refusal_comes_before_those_that_are_asked_later() {
    use PackageStatus::{Active, Expired, Paused, SoldOut};
    let missing = State { found: None, floors: vec![] };
    assert!(matches!(decided(&missing), Err(Stop::Refused(refusal)) if refusal.code == Code::PkgMissing));
    let all_wrong = |package: &mut Package, account: &mut Account, floors: &mut Vec<Floor>| {
        account.status = AccountStatus::Suspended;
        account.available = tokens(999);
        package.platform_frozen = true;
        floors.clear();
    };
    let ended = |package: &mut Package| package.end_at = Some(NOW);
    for (status, wanted) in [
        (Active, ("SUP_PKG_4091", None)),
        (SoldOut, ("SUP_PKG_4092", Some("INV-PKG-001"))),
        (Expired, ("SUP_PKG_4093", Some("INV-PKG-002"))),
        (Paused, ("SUP_PKG_4093", Some("INV-PKG-002"))),
    ] {
        let got = refused(|package, account, floors| {
            all_wrong(package, account, floors);
            package.status = status;
            ended(package);
        });
        assert_eq!(got, wanted, "{status:?}");
    }
    assert_eq!(refused(all_wrong), ("SUP_PKG_4003", None));
    let guards = |step: usize| {
        refused(move |package, account, floors| {
            all_wrong(package, account, floors);
            if step > 0 {
                account.status = AccountStatus::Active;
            }
            if step > 1 {
                *floors = fixture::floors("8.000001", "32");
            }
            if step > 2 {
                *floors = fixture::floors("8", "32.000001");
            }
            if step > 3 {
                *floors = fixture::floors("8", "32");
            }
            if step > 4 {
                account.available = tokens(1000);
            }
        })
    };
    let below = ("SUP_PKG_4001", Some("INV-PKG-003"));
    assert_eq!(
        [1, 2, 3, 4, 5].map(guards),
        [("SUP_PKG_4005", None), below, below, ("SUP_PKG_4002", None), ("SUP_PKG_4094", None)]
    );
}

#[test]
fn a_price_of_zero_is_below_every_floor() {
    let got = refused(|package, _, floors| {
        package.price_output = price("0");
        *floors = fixture::floors("0.000001", "0.000001");
    });
    assert_eq!(got, ("SUP_PKG_4001", Some("INV-PKG-003")));
}

#[test]
fn one_floor_of_two_is_no_whitelist() {
    assert_eq!(refused(|_, _, floors| floors.truncate(1)).0, "SUP_PKG_4005");
}
