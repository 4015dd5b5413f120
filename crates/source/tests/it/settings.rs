//! What makes an endpoint refuse to start, and that the fault is named.

use source::{IdRule, Kind, PublicKey, Secret, SecretError, Settings, Source};

use crate::support::{API_V3, pem, rule, secret, settings};

fn fault(settings: Settings) -> String {
    Source::new(settings)
        .map_or_else(|error| error.to_string(), |source| format!("{} started", source.name()))
}

fn with_secret(kind: Kind, text: &str) -> String {
    let mut wrong = settings(kind);
    wrong.secrets = vec![secret(text)];
    fault(wrong)
}

#[test]
fn without_a_secret_nothing_starts() {
    for kind in Kind::ALL {
        let mut empty = settings(kind);
        empty.secrets.clear();
        empty.public_keys.clear();
        let text = fault(empty);
        assert!(text.contains("has no"), "{kind}: {text}");
    }
    for blank in ["", " ", "\n", "\r\n", "\t"] {
        assert_eq!(Secret::new(blank).err(), Some(SecretError::Blank), "{blank:?}");
    }
    assert!(with_secret(Kind::Stripe, "whsec_").contains("almost nothing"));
}

#[test]
fn one_line_end_is_dropped_and_every_other_odd_character_named() {
    for text in ["whsec_abc\n", "whsec_abc\r\n", "whsec_abc"] {
        assert_eq!(Secret::new(text).unwrap().expose(), "whsec_abc");
    }
    for (text, error) in [
        ("a\n\n", SecretError::LineBreak),
        ("a\nb", SecretError::LineBreak),
        (" a", SecretError::OuterSpace),
        ("a ", SecretError::OuterSpace),
        ("\u{feff}a", SecretError::Control),
        ("a\0", SecretError::Control),
    ] {
        assert_eq!(Secret::new(text).err(), Some(error), "{text:?}");
    }
    assert_eq!(Secret::exact("a\n").err(), Some(SecretError::LineBreak));
}

#[test]
fn a_secret_of_another_sender_is_named() {
    assert!(with_secret(Kind::Stripe, "MDEyMzQ1Njc4OWFiY2RlZg==").contains("whsec_"));
    assert!(with_secret(Kind::Stripe, "v1,whsec_abcdefgh").contains("version in front"));
    assert!(with_secret(Kind::Stripe, "sk_live_abcdefgh").contains("API key"));
    for text in [
        "whsec_a-b",
        "v1,whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
        "whsec_MDEy",
        "whsk_MDEy",
        "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3OA",
        "whpk_AAAA",
    ] {
        let text = with_secret(Kind::StandardWebhooks, text);
        assert!(text.contains("can't start") && !text.contains("MDEy"), "{text}");
    }
    assert!(with_secret(Kind::StandardWebhooks, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3").contains("started"));
    assert!(with_secret(Kind::Paddle, "pdl_live_apikey_01_abc").contains("API key"));
    assert!(with_secret(Kind::Internal, "short").contains("16 characters"));
}

#[test]
fn an_ed25519_key_of_small_order_is_refused() {
    assert!(
        with_secret(Kind::StandardWebhooks, "whpk_AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
            .contains("valid")
    );
}

#[test]
fn a_generic_sender_needs_an_id_rule_and_real_pointers() {
    let mut without = settings(Kind::GenericHmac);
    without.generic.as_mut().unwrap().id = None;
    assert!(fault(without).contains("no id rule"));
    let mut pointer = settings(Kind::GenericHmac);
    pointer.generic.as_mut().unwrap().id = Some(IdRule::Pointer("id".into()));
    assert!(fault(pointer).contains("start with '/'"));
    let mut header = settings(Kind::GenericHmac);
    header.generic = Some(source::GenericRule { signature_header: "X Sig".into(), ..rule() });
    assert!(fault(header).contains("not a header name"));
}

#[test]
fn a_tolerance_that_would_switch_the_check_off_is_refused() {
    for tolerance in [0, -1, 86_401, i64::MAX] {
        let mut odd = settings(Kind::Stripe);
        odd.tolerance_s = Some(tolerance);
        assert!(fault(odd).contains("tolerance_s"), "{tolerance}");
    }
}

#[test]
fn names_and_accounts_that_can_not_stand_in_an_address_are_refused() {
    for name in ["", "Stripe", "a/b", "a b", "é"] {
        assert!(fault(Settings { name: name.into(), ..settings(Kind::Stripe) }).contains("name"), "{name}");
    }
    for account in ["", "a b", "a\n"] {
        assert!(fault(Settings { account: account.into(), ..settings(Kind::Stripe) }).contains("account"));
    }
}

#[test]
fn wrong_wechat_and_alipay_keys_are_named() {
    let mut short = settings(Kind::WechatPay);
    short.api_v3_key = Some(secret("testMchAPIv3Key0"));
    assert!(fault(short).contains("32 characters"));
    let mut serial = settings(Kind::WechatPay);
    let certificate = crate::support::VECTORS["wechat_pay_v3"]["cases"].as_array().unwrap();
    let certificate = certificate.iter().find_map(|case| case["certificate_pem"].as_str()).unwrap();
    serial.public_keys = vec![PublicKey { id: "0123".into(), text: certificate.into() }];
    assert!(fault(serial).contains("serial number is D7CE59D1F522D701"));
    let mut junk = settings(Kind::Alipay);
    junk.public_keys[0].text = API_V3.into();
    assert!(fault(junk).contains("not PEM"));
    let mut bare = settings(Kind::Alipay);
    bare.public_keys[0].text =
        pem("alipay").lines().filter(|line| !line.starts_with('-')).collect::<Vec<_>>().concat();
    assert!(fault(bare).contains("started"));
}

#[test]
fn kinds_have_one_name_both_ways() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    assert!("Stripe".parse::<Kind>().unwrap_err().to_string().contains("wechat-pay"));
}
