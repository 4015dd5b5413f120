//! What verification says of genuine certificates, by whom they are trusted.

use crate::shared::{check, draft, key, sealed, trusted, verdict};
use seal::bundle::{Draft, seal};
use seal::jwks::{Entry, Jwks, Status};
use seal::run::Mode;
use seal::verify::{Form, Outcome, Trust, Verdict, verify};
use serde_json::json;

const ISSUED: i64 = 1_767_225_600;

fn entry(seed: u8, status: Status) -> Entry {
    Entry { key: key(seed).public_key(), status, not_before: Some(ISSUED + 60) }
}

fn retired(at: i64) -> Trust {
    Trust::none().with(entry(7, Status::Retired { at }))
}

#[test]
fn all_three_forms_of_a_certificate_are_valid_and_say_the_same() {
    let sealed = sealed();
    for (file, form) in [(&sealed.html, Form::Html), (&sealed.zip, Form::Zip), (&sealed.json, Form::Json)] {
        let report = check(file);
        assert_eq!(report.verdict, Verdict::Valid);
        assert_eq!(report.form, Some(form));
        assert_eq!(report.reference.as_deref(), Some("av_evt_1"));
        assert_eq!(report.run_hash, Some(sealed.run_hash));
        assert_eq!(report.key_id, Some(key(7).id()));
        assert_eq!((report.issued_at, report.mode), (Some(ISSUED), Some(Mode::Live)));
    }
}

#[test]
fn the_checks_are_listed_in_order() {
    let names: Vec<_> = check(&sealed().json).checks.iter().map(|c| (c.name, c.outcome)).collect();
    let expected = [
        ("file", Outcome::Passed),
        ("manifest", Outcome::Passed),
        ("signature", Outcome::Passed),
        ("page", Outcome::NotInFile),
        ("metadata", Outcome::Passed),
        ("run", Outcome::Passed),
        ("signer", Outcome::Passed),
    ];
    assert_eq!(names, expected);
}

#[test]
fn without_trust_a_certificate_is_intact_but_not_valid() {
    for trust in [Trust::none(), Trust::pinned(key(8).public_key())] {
        let report = verify(&sealed().zip, &trust);
        assert_eq!(report.verdict, Verdict::IntactSignerUnknown);
        assert_eq!(report.signer, None);
        assert_eq!(report.checks.last().unwrap().outcome, Outcome::Failed);
    }
}

#[test]
fn a_self_made_certificate_is_never_valid() {
    let forged = seal(&draft(), &key(66)).unwrap();
    for file in [&forged.html, &forged.zip, &forged.json] {
        assert_eq!(verdict(file), "intact_signer_unknown");
    }
}

#[test]
fn a_retired_key_leaves_the_date_a_claim() {
    let report = verify(&sealed().html, &retired(ISSUED + 86_400));
    assert_eq!(report.verdict, Verdict::ValidDateClaimed);
    assert_eq!(report.signer.unwrap().status, Status::Retired { at: ISSUED + 86_400 });
    // The same for a new message under the old key, dated before the retirement: it can't be told apart.
    let dated_back = Draft { run: json!({"v": 1, "issued_at": 1, "mode": "live"}), ..draft() };
    let forged = seal(&dated_back, &key(7)).unwrap();
    assert_eq!(verify(&forged.json, &retired(ISSUED)).verdict, Verdict::ValidDateClaimed);
}

#[test]
fn a_certificate_younger_than_its_keys_retirement_is_invalid() {
    for file in [&sealed().html, &sealed().zip, &sealed().json] {
        assert_eq!(verify(file, &retired(ISSUED - 301)).verdict.code(), "issued_after_retirement");
        assert_eq!(verify(file, &retired(ISSUED - 300)).verdict.code(), "valid_date_claimed");
    }
}

#[test]
fn old_certificates_stay_verifiable_over_rotations() {
    let set = Jwks::new(vec![
        entry(7, Status::Retired { at: ISSUED + 10 }),
        entry(8, Status::Retired { at: ISSUED + 20 }),
        entry(9, Status::Active),
    ])
    .unwrap();
    let trust = Trust::from(&Jwks::parse(&set.to_json().unwrap()).unwrap());
    for (seed, expected) in [(7, "valid_date_claimed"), (8, "valid_date_claimed"), (9, "valid")] {
        let report = verify(&seal(&draft(), &key(seed)).unwrap().zip, &trust);
        assert_eq!(report.verdict.code(), expected);
        assert_eq!(report.key_id, Some(key(seed).id()));
        assert_eq!(report.signer.unwrap().key, key(seed).public_key());
    }
}

#[test]
fn of_two_words_about_a_key_retired_counts() {
    let both = trusted().with(entry(7, Status::Retired { at: ISSUED + 1 }));
    assert_eq!(verify(&sealed().json, &both).verdict, Verdict::ValidDateClaimed);
}

#[test]
fn an_event_older_than_its_key_is_valid() {
    let late = Trust::none().with(entry(7, Status::Active));
    assert_eq!(verify(&sealed().json, &late).verdict, Verdict::Valid);
}

#[test]
fn a_test_certificate_says_so_in_every_form() {
    let test = Draft { run: json!({"v": 1, "issued_at": ISSUED, "mode": "test"}), ..draft() };
    let sealed = seal(&test, &key(7)).unwrap();
    for file in [&sealed.html, &sealed.zip, &sealed.json] {
        assert_eq!(check(file).mode, Some(Mode::Test));
    }
}
