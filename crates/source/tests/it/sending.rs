//! The signer plays every sender: what it makes is accepted, and equal to the published signatures.

use source::{Delivery, Kind, PublicKey, Secret, Settings, Signer, Source};

use crate::support::{NOW, VECTORS, base64, private_pem, secret, settings, signer, source};

fn case(sender: &str, id: &str) -> serde_json::Value {
    let cases = VECTORS[sender]["cases"].as_array().unwrap();
    cases.iter().find(|case| case["id"] == id).unwrap().clone()
}

/// The value that the vector has for a header that the signer made.
fn same_header(made: &[(String, String)], case: &serde_json::Value, name: &str) {
    let made = made.iter().find(|(made, _)| made == name).unwrap();
    let wanted = case["headers"].as_array().unwrap().iter().find(|pair| pair[0] == name).unwrap();
    assert_eq!(made.1, wanted[1].as_str().unwrap());
}

#[test]
fn what_the_signer_makes_is_verified_for_every_kind() {
    for kind in Kind::ALL {
        let body: &[u8] = if kind == Kind::Alipay { b"notify_id=1&charset=utf-8&a=%2B+x" } else { b"{}" };
        let signer = signer(kind);
        let sent = signer.body(body);
        let headers = signer.sign(&sent, NOW, "msg_1");
        let lines: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
        let verdict = source(kind).verify(&Delivery { headers: &lines, body: &sent, now: NOW });
        assert_eq!(verdict, Ok(()), "{kind}");
    }
}

#[test]
fn signatures_equal_the_published_ones() {
    let stripe = case("stripe", "ok-compact");
    let key = Signer::new(Kind::Stripe, &secret(stripe["secrets"][0].as_str().unwrap())).unwrap();
    same_header(&key.sign(&base64(&stripe["body_b64"]), 1_767_225_595, ""), &stripe, "Stripe-Signature");

    let asymmetric = case("standard_webhooks", "ok-v1a");
    let private = secret(asymmetric["private_key"].as_str().unwrap());
    let made = Signer::new(Kind::StandardWebhooks, &private).unwrap().sign(
        &base64(&asymmetric["body_b64"]),
        1_767_225_598,
        "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
    );
    same_header(&made, &asymmetric, "webhook-signature");

    let paddle = case("paddle", "ok-one");
    let key = Signer::new(Kind::Paddle, &secret(paddle["secrets"][0].as_str().unwrap())).unwrap();
    same_header(&key.sign(&base64(&paddle["body_b64"]), 1_767_225_599, ""), &paddle, "Paddle-Signature");

    let alipay = case("alipay", "ok-special-characters");
    let body = String::from_utf8(base64(&alipay["body_b64"])).unwrap();
    let unsigned: Vec<&str> = body.split('&').filter(|pair| !pair.starts_with("sign")).collect();
    let key = Signer::new(Kind::Alipay, &private_pem("alipay")).unwrap();
    let sent = String::from_utf8(key.body(unsigned.join("&").as_bytes())).unwrap();
    let sign = |form: &str| form.split('&').find(|pair| pair.starts_with("sign=")).unwrap().to_owned();
    assert_eq!(sign(&sent), sign(&body));
}

#[test]
fn a_signer_refuses_the_secret_of_another_kind() {
    for (kind, text) in [
        (Kind::Stripe, "nothing"),
        (Kind::StandardWebhooks, "whsk_AAAA"),
        (Kind::StandardWebhooks, "whsec_!"),
        (Kind::Alipay, "nothing"),
        (Kind::WechatPay, "-----BEGIN PUBLIC KEY-----"),
    ] {
        let fault = Signer::new(kind, &secret(text)).err().unwrap().to_string();
        assert!(fault.contains("signer for") && !fault.contains("nothing"), "{fault}");
    }
    assert!(Secret::pem("  \n").is_err());
}

#[test]
fn more_public_key_signatures_than_a_rotation_needs_are_refused() {
    let mut both = settings(Kind::StandardWebhooks);
    both.public_keys.push(PublicKey {
        id: String::new(),
        text: "whpk_MrU+iC49qsGA16X2Ik1htkAbQ/kB2wnw5NhM5OSicYs=".into(),
    });
    let both: Source = Source::new(Settings { secrets: Vec::new(), ..both }).unwrap();
    let entry = case("standard_webhooks", "ok-v1a")["headers"][2][1].as_str().unwrap().to_owned();
    for (count, wanted) in [(16, "SIG_MISMATCH"), (17, "SIG_MALFORMED")] {
        let list = vec![entry.clone(); count].join(" ");
        let headers: [(&str, &[u8]); 3] = [
            ("webhook-id", b"other"),
            ("webhook-timestamp", b"1767225598"),
            ("webhook-signature", list.as_bytes()),
        ];
        let verdict = both.verify(&Delivery { headers: &headers, body: b"{}", now: NOW });
        assert_eq!(verdict.unwrap_err().code, wanted);
    }
}
