//! Every pattern finds what it is for, in every encoding, and lets the near misses go.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use guard::{BadPattern, PATTERNS, Pattern, Scanner, Start};
use proptest::prelude::{Strategy, any, prop, proptest};
use proptest::{prop_assert, prop_assert_eq};

use crate::made_up::{BASE62, HEX, credentials, letters, scanner};

#[test]
fn every_rule_has_a_credential_and_finds_it_alone_and_in_a_text() {
    for (rule, secret) in credentials() {
        assert_eq!(scanner().find(&secret).map(|hit| hit.rule), Some(rule), "{secret}");
        let text = format!("vendor said: \"{secret}\", and refused");
        let hit = scanner().find(&text).unwrap();
        assert_eq!(hit.rule, rule);
        assert!(
            secret.contains(text[hit.start..hit.end].trim_end()),
            "{rule}: {:?}",
            &text[hit.start..hit.end]
        );
    }
    for pattern in PATTERNS {
        assert!(credentials().iter().any(|(rule, _)| *rule == pattern.rule), "{}", pattern.rule);
    }
}

#[test]
fn one_letter_less_than_a_key_is_no_hit() {
    let short = letters(BASE62, 19, 1);
    for text in [
        format!("sk-{short}"),
        format!("sk-proj-{short}"),
        format!("sk-ant-api03-{short}"),
        format!("sess-{}", letters(BASE62, 29, 2)),
        format!("AIza{}", letters(BASE62, 34, 3)),
        format!("AQ.{short}"),
        format!("ya29.{short}"),
        format!("1//0{short}"),
        format!("GOCSPX-{short}"),
        format!("ALTAK{}", letters(BASE62, 15, 4)),
        format!("AKID{}", letters(BASE62, 12, 5)),
        format!("24.{}.2592000.1712345678", letters(HEX, 31, 6)),
        format!("{}:{}", letters(HEX, 31, 7), letters(BASE62, 32, 8)),
        format!("{}:{}", letters(HEX, 32, 9), letters(BASE62, 31, 10)),
        format!("{}:{}", "AbcdefghijAbcdefghij", "AbcdefghijAbcdefghi"),
        format!("{}:{}", "AbcdefghijAbcdefghij", "AbcdefghijAbcdefghijx"),
        format!("lgw_{short}"),
        format!("eyJ{}.eyJ{}.{}", letters(BASE62, 20, 11), letters(BASE62, 20, 12), letters(BASE62, 7, 13)),
        format!("api_key={}", letters(BASE62, 15, 14)),
        "-----BEGIN PUBLIC KEY-----".to_owned(),
        "-----BEGIN CERTIFICATE-----".to_owned(),
    ] {
        assert_eq!(scanner().find(&text), None, "{text}");
    }
}

#[test]
fn a_letter_of_another_script_before_a_key_hides_nothing() {
    let secret = format!("sk-{}", letters(BASE62, 30, 1));
    for before in ["密钥", "é", "\u{200b}", "《", "\u{0}"] {
        assert!(scanner().find(&format!("{before}{secret}")).is_some(), "{before}");
    }
    let mut bytes = vec![0xff, 0xfe, 0xe5];
    bytes.extend(secret.as_bytes());
    assert!(scanner().find(&bytes).is_some());
}

#[test]
fn redaction_names_the_rule_and_leaves_the_rest() {
    let secret = letters(BASE62, 40, 1);
    let text = format!("密 api_key=\"{secret}\" refused; sk-{secret} too");
    assert_eq!(
        scanner().redact(&text),
        "密 api_key=\"[REDACTED:context]\" refused; [REDACTED:sk_generic] too"
    );
    let run = STANDARD.encode(format!("the key is sk-{secret}"));
    assert_eq!(
        scanner().redact(&format!("body={run}")),
        format!("body=[REDACTED:sk_generic]{}", "=".repeat(run.len() - run.trim_end_matches('=').len()))
    );
    let pem = format!("-----BEGIN {}PRIVATE KEY-----\n{secret}\n{secret}=\n-----END PRIVATE KEY-----", "");
    assert!(!scanner().redact(&pem).contains(&secret[..8]));
    assert!(matches!(scanner().redact("nothing here"), std::borrow::Cow::Borrowed("nothing here")));
}

#[test]
fn a_pattern_that_cannot_work_stops_the_start() {
    let of = |text, start| Scanner::new(&[Pattern { rule: "new", text, start }]).err();
    assert!(matches!(of("(", Start::Anywhere), Some(BadPattern::Syntax { rule: "new", .. })));
    assert!(matches!(of("(?<=a)b", Start::Anywhere), Some(BadPattern::Syntax { .. })));
    assert!(matches!(of("a", Start::Head(&[])), Some(BadPattern::Table { .. })));
    assert!(matches!(of("a", Start::Head(&["a", ""])), Some(BadPattern::Table { .. })));
    assert!(matches!(of("a", Start::Inside("")), Some(BadPattern::Table { .. })));
    assert!(matches!(Scanner::new(&[]).err(), Some(BadPattern::Search(_))));
    let twice = [PATTERNS[0], PATTERNS[0]];
    assert!(matches!(Scanner::new(&twice).err(), Some(BadPattern::Table { .. })));
    let slow = Scanner::new(&[Pattern { rule: "new", text: r"\bX{4}\b", start: Start::Anywhere }]).unwrap();
    assert_eq!(slow.find("a XXXX b").map(|hit| (hit.rule, hit.start, hit.end)), Some(("new", 2, 6)));
}

/// A way of writing a text, with its name.
type Encoding = (&'static str, fn(&str) -> String);

/// How a text may be written at an exit.
pub(crate) fn encodings() -> Vec<Encoding> {
    fn each(text: &str, write: impl Fn(u8) -> String) -> String {
        text.bytes().map(write).collect()
    }
    vec![
        ("raw", str::to_owned),
        ("JSON", |text| serde_json::to_string(text).unwrap()),
        ("JSON in JSON", |text| serde_json::to_string(&serde_json::to_string(text).unwrap()).unwrap()),
        ("JSON, all escaped", |text| each(text, |byte| format!("\\u{byte:04x}"))),
        ("HTML, decimal", |text| each(text, |byte| format!("&#{byte};"))),
        ("HTML, hex", |text| each(text, |byte| format!("&#x{byte:02X};"))),
        ("percent", |text| each(text, |byte| format!("%{byte:02X}"))),
        ("percent, twice", |text| each(text, |byte| format!("%25{byte:02x}"))),
        ("percent in JSON", |text| each(text, |byte| format!("\\u0025{byte:02x}"))),
        ("base64", |text| STANDARD.encode(text)),
        ("base64url", |text| URL_SAFE_NO_PAD.encode(text)),
        ("base64 in lines", |text| {
            let whole = STANDARD.encode(text);
            whole.as_bytes().chunks(16).map(|line| String::from_utf8_lossy(line) + "\r\n").collect()
        }),
        ("lines", |text| {
            text.as_bytes().chunks(7).map(|line| String::from_utf8_lossy(line) + "\n").collect()
        }),
        ("lines in JSON", |text| {
            text.as_bytes().chunks(9).map(|line| String::from_utf8_lossy(line) + "\\n").collect()
        }),
    ]
}

#[test]
fn every_credential_is_found_and_redacted_behind_every_encoding() {
    for (rule, secret) in credentials() {
        for (name, encode) in encodings() {
            if secret.contains('\n') && name.contains("lines") {
                continue;
            }
            let text = format!("{{\"message\":\"vendor: {} .\"}}", encode(&secret));
            assert!(scanner().find(&text).is_some(), "{rule}, {name}: {text}");
            let redacted = scanner().redact(&text);
            assert!(redacted.contains("[REDACTED:"), "{rule}, {name}: {redacted}");
            assert_eq!(scanner().find(redacted.as_ref()), None, "{rule}, {name}: {redacted}");
        }
    }
}

/// A text that each pattern matches, made from the pattern itself.
fn matching() -> impl Strategy<Value = (&'static str, String)> {
    let each: Vec<_> = PATTERNS
        .iter()
        .map(|pattern| {
            // The generator knows no borders; the text around has them.
            let text = format!("(?-u){}", pattern.text.replace(r"\b", ""));
            prop::string::string_regex(&text).unwrap().prop_map(|text| (pattern.rule, text)).boxed()
        })
        .collect();
    prop::strategy::Union::new(each)
}

proptest! {
    #[test]
    fn the_cheap_search_finds_what_the_expressions_find(
        (rule, secret) in matching(), before in "[ -~]{0,30}", after in "[ -~]{0,30}",
    ) {
        let text = format!("{before} {secret} {after}");
        prop_assert!(scanner().find(&text).is_some(), "{} {}", rule, text);
        prop_assert!(scanner().find_by_expressions_only(&text).is_some(), "{} {}", rule, text);
    }

    #[test]
    fn on_any_text_both_searches_agree(text in "(?:sk-|eyJ|\\.eyJ|24\\.|:|AKID|api_key=|T3BlbkFJ|[a-z0-9A-Z]{1,25}|[-_.%\\\\&; \"\n]){0,24}") {
        let quick = scanner().find(&text).is_some();
        prop_assert_eq!(quick, scanner().find_by_expressions_only(&text).is_some(), "{}", text);
    }

    #[test]
    fn what_was_redacted_is_clean(
        texts in prop::collection::vec((matching(), 0..encodings().len(), ".{0,10}"), 1..4),
    ) {
        let text: String = texts.iter().map(|((_, secret), how, after)| encodings()[*how].1(secret) + after).collect();
        let redacted = scanner().redact(&text);
        prop_assert_eq!(scanner().find(redacted.as_ref()), None, "{}", redacted);
    }

    #[test]
    fn base64_behind_a_word_of_a_path_is_found(word in "[A-Za-z0-9]{0,9}[/_-]", seed in any::<u32>()) {
        let text = format!("{word}{}", STANDARD.encode(format!("sk-{}", letters(BASE62, 30, seed))));
        prop_assert!(scanner().find(&text).is_some(), "{}", text);
    }

    #[test]
    fn base64_is_found_at_any_shift(shift in "[A-Za-z0-9/_-]{0,9}", seed in any::<u32>()) {
        let text = format!("{shift}{}", STANDARD.encode(format!("\"sk-{}\"", letters(BASE62, 30, seed))));
        prop_assert!(scanner().find(&text).is_some(), "{}", text);
    }
}
