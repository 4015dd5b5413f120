//! Parts of live secrets: found wherever twelve bytes of one stand, and gone when the secret is.

use guard::{FRAGMENT, Fragments, TooShort, Verdict, WINDOW};
use proptest::prelude::{any, proptest};
use proptest::prop_assert_eq;

use crate::made_up::{BASE62, credentials, letters, new_guard};
use crate::shapes::encodings;

const KEY: [u8; 32] = [9; 32];

fn secret() -> String {
    format!("sk-proj-{}", letters(BASE62, 48, 77))
}

fn rule(verdict: &Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Clean => None,
        Verdict::Exposed(exposure) => Some(exposure.rule),
    }
}

#[test]
fn every_window_behind_the_public_prefix_is_known_and_shorter_ones_are_not() {
    let mut fragments = Fragments::new(&KEY);
    let secret = secret();
    fragments.remember("ck_1", &secret).unwrap();
    for start in "sk-proj-".len()..=secret.len() - WINDOW {
        let text = format!("ends in …{} it says", &secret[start..start + WINDOW]);
        let found = fragments.find(text.as_bytes(), 0).unwrap();
        assert_eq!(text[found], secret[start..start + WINDOW]);
        let short = format!("ends in …{} it says", &secret[start..start + WINDOW - 1]);
        assert_eq!(fragments.find(short.as_bytes(), 0), None);
    }
    assert_eq!(fragments.find(b"a key begins with sk-proj-, then 48 letters", 0), None);
}

#[test]
fn a_forgotten_secret_is_forgotten_and_one_that_shares_windows_stays() {
    let mut fragments = Fragments::new(&KEY);
    let (one, other) = (secret(), format!("{}{}", secret(), letters(BASE62, 20, 5)));
    fragments.remember("one", &one).unwrap();
    fragments.remember("other", &other).unwrap();
    fragments.forget("other");
    assert!(fragments.find(one.as_bytes(), 0).is_some());
    assert_eq!(fragments.find(&other.as_bytes()[one.len()..], 0), None);
    fragments.remember("one", &letters(BASE62, 40, 6)).unwrap();
    assert_eq!((fragments.find(one.as_bytes(), 0), fragments.len()), (None, 1));
    fragments.forget("one");
    fragments.forget("never known");
    assert!(fragments.is_empty());
}

#[test]
fn what_tells_nothing_is_not_a_part_of_a_secret() {
    let mut fragments = Fragments::new(&KEY);
    assert_eq!(fragments.remember("short", "elevenbytes"), Err(TooShort));
    assert_eq!(fragments.remember("zeros", &"0".repeat(40)), Err(TooShort));
    fragments.remember("mixed", &format!("{}{}", "0".repeat(30), letters(BASE62, 20, 1))).unwrap();
    assert_eq!(fragments.find(b"amount 00000000000000000000", 0), None);
    assert!(fragments.remember("prefixed", "sk-0123456789").is_ok(), "short behind its prefix");
    assert!(fragments.find(b"xx k-0123456789", 0).is_some());
}

#[test]
fn of_a_structured_credential_only_the_secret_parts_are_known() {
    let mut fragments = Fragments::new(&KEY);
    let (refresh, client) = (letters(BASE62, 60, 1), letters(BASE62, 30, 2));
    let pem =
        format!("-----BEGIN {}-----\n{}\n{}\n-----END KEY-----\n", "PRIVATE KEY", &refresh[..30], &client);
    let oauth = serde_json::json!({
        "type": "authorized_user", "token_uri": "https://oauth2.example.com/token",
        "refresh_token": format!("1//0{refresh}"), "nested": { "client_secret": client, "private_key": pem },
    });
    fragments.remember("oauth", &oauth.to_string()).unwrap();
    for known in [&refresh, &client, &format!("{}{}", &refresh[24..30], &client[..6])] {
        assert!(fragments.find(known.as_bytes(), 0).is_some(), "{known}");
    }
    for innocent in [
        r#"{"refresh_token":null,"type":"authorized_user"}"#,
        "https://oauth2.example.com/token",
        concat!("-----BEGIN ", "PRIVATE KEY-----"),
    ] {
        assert_eq!(fragments.find(innocent.as_bytes(), 0), None, "{innocent}");
    }
    let token =
        format!("eyJ{}.eyJ{}.{}", letters(BASE62, 30, 3), letters(BASE62, 30, 4), letters(BASE62, 43, 5));
    fragments.remember("token", &token).unwrap();
    assert_eq!(fragments.find(&token.as_bytes()[..60], 0), None, "other tokens begin like this");
    assert!(fragments.find(&token.as_bytes()[70..], 0).is_some());
}

#[test]
fn a_part_of_any_credential_is_found_behind_every_encoding() {
    for (index, (kind, secret)) in credentials().into_iter().enumerate() {
        let guard = new_guard();
        if kind == "private_key" || guard.remember("ck", &secret).is_err() {
            continue;
        }
        // Twelve bytes from the end have no shape; base64 is looked into from 24 letters up.
        let part = &secret[secret.len() - WINDOW..];
        for (name, encode) in encodings() {
            let text = format!("said {}.", encode(&format!("<<{part}>> is wrong")));
            let verdict = guard.text("answer", &text);
            assert_eq!(rule(&verdict), Some(FRAGMENT), "{index} {kind}, {name}: {text}");
            let clean = guard.redact(&text);
            assert!(
                !clean.contains(part) && rule(&guard.text("log", clean.as_ref())).is_none(),
                "{name}: {clean}"
            );
        }
    }
}

proptest! {
    #[test]
    fn random_text_is_never_a_part_of_a_secret(text in "[0-9A-Za-z]{0,200}", seed in any::<u32>()) {
        let mut fragments = Fragments::new(&KEY);
        fragments.remember("ck", &letters(BASE62, 90, seed)).unwrap();
        prop_assert_eq!(fragments.find(text.as_bytes(), 0), None);
    }
}
