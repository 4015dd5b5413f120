//! Whatever arrives, signed or not, is an event or a refusal.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};
use serde_json::Value;
use source::{Delivery, Kind};

use crate::support::{NOW, open, source};

const NAMES: [&str; 12] = [
    "Stripe-Signature",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "X-Hub-Signature-256",
    "Paddle-Signature",
    "X-Signature",
    "Wechatpay-Signature",
    "Wechatpay-Timestamp",
    "Wechatpay-Serial",
    "Authorization",
    "X-Shop-Signature",
];

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        "id|type|object|created|livemode|data|amount|currency|status|metadata|meta|attributes|resource",
        ".{0,6}",
    ];
    leaf.prop_recursive(4, 40, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn signed_json_of_any_shape_is_an_event_or_a_refusal(value in json(), kind in 0..Kind::ALL.len()) {
        // RSA in a debug build is slow; these two have the same reader behind them.
        let kind = if matches!(Kind::ALL[kind], Kind::WechatPay | Kind::Alipay) { Kind::Stripe } else { Kind::ALL[kind] };
        if let Ok(event) = open(kind, value.to_string()) {
            assert!(!event.id.is_empty() && event.id.chars().count() <= 255);
        }
    }

    #[test]
    fn signed_bytes_are_an_event_or_a_refusal(body in prop::collection::vec(any::<u8>(), 0..200)) {
        for kind in [Kind::Stripe, Kind::Github, Kind::LemonSqueezy, Kind::Internal] {
            let _ = open(kind, &body);
        }
    }

    #[test]
    fn any_headers_are_refused(
        headers in prop::collection::vec((0..NAMES.len(), prop::collection::vec(any::<u8>(), 0..120)), 0..6),
        body in prop::collection::vec(any::<u8>(), 0..60),
        now in any::<i64>(),
    ) {
        let lines: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (NAMES[*n], v.as_slice())).collect();
        for kind in Kind::ALL {
            assert!(source(kind).open(&Delivery { headers: &lines, body: &body, now }).is_err());
        }
    }

    #[test]
    fn signature_like_headers_are_refused(value in "(t=|v1=|ts=|h1=|sha256=|v1,|v1a,|[0-9a-f]{64}|1767225600|[,; ])*") {
        let lines: Vec<(&str, &[u8])> = NAMES.iter().map(|name| (*name, value.as_bytes())).collect();
        for kind in Kind::ALL {
            assert!(source(kind).open(&Delivery { headers: &lines, body: b"{}", now: NOW }).is_err());
        }
    }
}
