//! Credentials in the address: every name in every spelling, every value, and what must pass.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use guard::query::{BY_VALUE, FORBIDDEN, Judgement, PATH, TARGET_MAX, USERINFO, is_forbidden_name, judge};
use proptest::prelude::{any, prop, proptest};
use proptest::{prop_assert_eq, prop_assert_ne};

use crate::made_up::{BASE62, credentials, letters, scanner};

fn judged(target: &str) -> Judgement {
    judge(target.as_bytes(), scanner())
}

fn key_in(canonical_name: &'static str) -> Judgement {
    Judgement::KeyIn { canonical_name }
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// The spellings of one name that section 14 lists, and some more.
fn spellings(name: &str) -> Vec<String> {
    let wide: String = name.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect();
    let (first, rest) = name.split_at(1);
    let mixed: String = name
        .chars()
        .enumerate()
        .map(|(at, c)| if at % 2 == 0 { c.to_ascii_uppercase() } else { c })
        .collect();
    vec![
        name.to_owned(),
        name.to_uppercase(),
        mixed,
        format!("{first}_{rest}"),
        format!("{first}-{rest}_"),
        format!("{first}.{rest}"),
        format!("{first}+{rest}"),
        format!("{first}%20{rest}%09"),
        format!("{first}%5F{rest}"),
        format!("{first}%255F{rest}"),
        format!("{first}%25255F{rest}"),
        percent(name),
        percent(&percent(name)),
        percent(&percent(&percent(name))),
        format!("{name}[]"),
        format!("{name}%5B0%5D"),
        format!("{name}[a][b]"),
        percent(&wide),
        wide,
        format!("{first}\u{200b}{rest}"),
        format!("{first}%E2%80%8B{rest}%EF%BB%BF"),
        format!("{first}%C2%AD{rest}"),
        format!("{name}%00"),
        name.replace('s', "%C5%BF").replace('k', "%E2%84%AA"),
        name.replace("ss", "%C3%9F"),
    ]
}

#[test]
fn every_forbidden_name_is_seen_in_every_spelling_at_every_place() {
    for name in FORBIDDEN {
        for spelled in spellings(name) {
            for target in [
                format!("/api/v1/supply/accounts?{spelled}=x"),
                format!("/v1/models?{spelled}"),
                format!("/v1beta/x?page=1&{spelled}=&{spelled}=1"),
                format!("/unknown?a=1;{spelled}=x"),
                format!("/healthz;{spelled}=x/y?page=1"),
                format!("/x?bad=%zz&{spelled}=x"),
                format!("https://host.example/x?{spelled}=x"),
                format!("/x#{spelled}=x"),
            ] {
                assert_eq!(judged(&target), key_in(name), "{target}");
            }
        }
        assert!(is_forbidden_name(name));
    }
}

#[test]
fn similar_names_and_usual_values_pass() {
    for name in [
        "page",
        "page_size",
        "start_date",
        "end_date",
        "status",
        "provider",
        "model",
        "monkey",
        "keyword",
        "tokenizer",
        "key_id",
        "keys",
        "tokens",
        "token_id",
        "token_type",
        "author",
        "signature_version",
        "asks",
        "tasks",
        "akey",
        "passport",
        "secretary",
        "bearing",
        "sort",
        "limit",
        "api",
        "idempotency_key",
        "ref",
        "source",
    ] {
        for query in
            [format!("{name}=1"), name.to_owned(), format!("{name}[]=a%20b+c"), format!("a=1&{name}=")]
        {
            assert_eq!(judged(&format!("/x?{query}")), Judgement::Clean, "{query}");
        }
    }
    for target in [
        "/",
        "/x?",
        "*",
        "host.example:443",
        "http://host.example/x?page=1",
        "/x/y;v=2/z",
        "/x?q=a=b=c",
        "/@user/x",
        "/d/av_evt_1AbCdEf.html",
        "/x?&&",
        "/x?q=%E4%BD%A0%E5%A5%BD",
        "/x?q=gpt-4o-2024-08-06&from=2026-03-27T02:03:04Z",
        "/x?q=sk-short&r=bearer&s=AKID",
        "/api/v1/supply/settlements/STL20260327ABCDEFGHJKLM",
    ] {
        assert_eq!(judged(target), Judgement::Clean, "{target}");
    }
}

#[test]
fn a_credential_is_seen_by_its_value_under_any_name() {
    for (rule, secret) in credentials() {
        let secret = secret.trim_end();
        for value in [
            percent(secret),
            percent(&percent(secret)),
            percent(&percent(&percent(secret))),
            STANDARD.encode(secret).replace('+', "%2B"),
            percent(&STANDARD.encode(secret)),
            URL_SAFE_NO_PAD.encode(secret),
        ] {
            assert_eq!(judged(&format!("/x?q={value}")), key_in(BY_VALUE), "{rule} {value}");
            assert_eq!(judged(&format!("/x;v={value}/y")), key_in(BY_VALUE), "{rule} {value}");
        }
        let as_name = judged(&format!("/x?{}", percent(secret)));
        assert!(as_name == key_in(BY_VALUE) || rule == "context", "{rule} as a name: {as_name:?}");
    }
    for value in
        ["lgw_x", "Bearer+abc", "bearer%20x", "%4cgw_x%6cgw_".replace("%4c", "%6c").as_str(), "bGd3X3h4"]
    {
        assert_eq!(judged(&format!("/x?q={value}")), key_in(BY_VALUE), "{value}");
    }
    let secret = format!("sk-{}", letters(BASE62, 40, 1));
    assert_eq!(judged(&format!("/v1/{secret}/models")), key_in(PATH));
    assert_eq!(judged("https://user:password@host.example/x"), key_in(USERINFO));
    assert_eq!(judged("user@host.example:443"), key_in(USERINFO));
}

#[test]
fn a_query_that_parsers_would_read_differently_is_malformed() {
    for query in ["q=%", "q=%4", "q=%zz", "a=1;b=2", ";", "q=%ff%fe", "%=1", "q=1#frag"] {
        assert_eq!(judged(&format!("/x?{query}")), Judgement::Malformed, "{query}");
    }
    let long = format!("/x?q={}", "a".repeat(TARGET_MAX));
    assert_eq!(judged(&long), Judgement::Malformed);
    assert_eq!(judged(&format!("/x?key=1&q={}", "a".repeat(TARGET_MAX))), key_in("key"));
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(target in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = judge(&target, scanner());
    }

    #[test]
    fn a_forbidden_name_is_not_hidden_by_what_stands_around_it(
        before in "[ -~&&[^#]]{0,40}", after in "[ -~]{0,40}", index in 0..FORBIDDEN.len(),
    ) {
        let judgement = judged(&format!("/x?{before}&{}={after}", FORBIDDEN[index]));
        prop_assert_ne!(judgement, Judgement::Clean);
        prop_assert_ne!(judgement, Judgement::Malformed);
    }

    #[test]
    fn other_short_words_pass(name in "[b-z]{1,4}x[0-9]", value in "[a-z0-9]{0,12}") {
        prop_assert_eq!(judged(&format!("/x?{name}={value}")), Judgement::Clean);
    }
}
