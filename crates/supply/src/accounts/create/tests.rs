//! Every refusal, in its order: the form, the agreement, the provider, the terms, a credential that is there.

use super::*;
use crate::caller::Capacity;
use crate::code::Invariant;
use crate::fixtures::{NOW, TENANT, context};
use crate::rows::SupplierStatus;
use custody::{AccountType, Provider};
use kernel::money::Currency;

fn create() -> Create {
    Create {
        kind: Kind { provider: Provider::Openai, account_type: AccountType::ApiKey },
        secret: SecretString::from("not asked here"),
        alias: Some("spare-1".into()),
        min_quota_threshold: None,
        risk_ack: true,
    }
}

fn checked(status: &str, rejected: Option<&str>) -> Checked {
    serde_json::from_value(json!({
        "status": status, "items": [["tos", "pass", "fine"]], "quota": 5_000_000_000_000_i64, "unit": "token",
        "risk_score": 10, "tos": true, "rejected": rejected,
    }))
    .unwrap()
}

fn ready(status: &str) -> Prepared {
    let sealed = Sealed {
        envelope: "v1.1.envelope".into(),
        cipher_algo: "AES-256-GCM",
        kms_key_alias: "local".into(),
        key_version: 1,
    };
    let (key_id, fingerprints) = (format!("ck_{}", "a".repeat(22)), ["f".repeat(64), "0".repeat(64)]);
    Prepared::Ready(Box::new(Ready { checked: checked(status, None), key_id, sealed, fingerprints }))
}

fn state(taken: i64) -> State {
    let supplier = Supplier {
        id: 1,
        tenant_id: TENANT,
        user_id: 70,
        status: SupplierStatus::Active,
        open_risk_cases: 0,
        currency: Currency::CNY,
        phone_masked: "138****0000".into(),
    };
    State { id: 7, supplier: Some(supplier), taken }
}

fn decided(prepared: &Prepared, state: &State) -> Result<Change, Stop> {
    create().decide(&context(Capacity::User), prepared, state, NOW)
}

fn refused(prepared: &Prepared, taken: i64) -> (&'static str, Option<&'static str>) {
    match decided(prepared, &state(taken)) {
        Err(Stop::Refused(refusal)) => (refusal.code.as_str(), refusal.rule.map(Invariant::as_str)),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_mounted_account_is_pending_and_its_answer_has_no_part_of_the_credential() {
    let change = decided(&ready("pass"), &state(0)).unwrap();
    assert_eq!((change.status, &change.after), (201, &json!({ "status": "pending", "version": 0 })));
    let data: serde_json::Value = serde_json::from_str(&change.data).unwrap();
    assert_eq!(
        data,
        json!({ "account_id": 7, "provider": "openai", "account_type": "api_key", "account_alias": "spare-1",
            "key_id": format!("ck_{}", "a".repeat(22)), "status": "pending", "available_quota": 5_000_000,
            "quota_unit": "token", "risk_score": 10, "is_verified": true, "version": 0,
            "created_at": "2026-03-27T02:03:04.000Z" })
    );
}

#[test]
fn what_needs_a_review_is_mounted_without_being_verified() {
    let change = decided(&ready("review_required"), &state(0)).unwrap();
    assert!(change.data.contains(r#""is_verified":false"#));
}

#[test]
fn every_refusal_has_its_code() {
    let rejected = |code| Prepared::Rejected(checked("reject", Some(code)));
    assert_eq!(refused(&Prepared::NotAcknowledged, 1).0, "SUP_ACC_4004");
    assert_eq!(refused(&Prepared::Unreachable, 1).0, "SUP_ACC_5031");
    for code in ["SUP_ACC_4001", "SUP_ACC_4002", "SUP_ACC_4003"] {
        assert_eq!(refused(&rejected(code), 1), (code, None));
    }
    assert_eq!(refused(&ready("pass"), 1).0, "SUP_ACC_4094");
}

#[test]
fn key_ids_are_made_of_chance_only() {
    let context = context(Capacity::User);
    let (one, two) = (key_id(&context), key_id(&context));
    assert_ne!(one, two);
    for id in [one, two] {
        assert_eq!((id.len(), id.get(..3)), (25, Some("ck_")));
        assert!(id.chars().skip(3).all(|c| c.is_ascii_alphanumeric()), "{id}");
    }
}
