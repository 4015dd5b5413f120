//! Reading bodies strictly, their canonical text, and their digests: spelling never counts, values always do.

use onceseal_http::canonical::{Bounds, Unreadable, read};
use onceseal_http::number::Exponents;
use onceseal_http::path::{Aliases, ApiPath};
use onceseal_http::{Fingerprints, Payload};
use proptest::prelude::*;
use secrecy::SecretSlice;
use testkit::Seeded;

fn canonical(text: &str) -> Result<String, &'static str> {
    read(text.as_bytes(), &Bounds::default()).map(|node| node.canonical()).map_err(|e| e.reason())
}

fn secret(byte: u8, length: usize) -> SecretSlice<u8> {
    SecretSlice::from(vec![byte; length])
}

fn payload(text: &str) -> Payload {
    let fingerprints = Fingerprints::new(&secret(1, 32), &[secret(2, 32)]).unwrap();
    let path = ApiPath::of("/pay", &Aliases::default()).unwrap();
    fingerprints.of("POST", &path, &read(text.as_bytes(), &Bounds::default()).unwrap())
}

#[test]
fn the_canonical_text_is_the_specifications() {
    for (sent, expected) in [
        ("", "{}"),
        (" { } ", "{}"),
        (
            r#"{"b":1,"a":{"d":[true , null,false],"c":"x"}}"#,
            r#"{"a":{"c":"x","d":[true,null,false]},"b":1}"#,
        ),
        // By code point: U+FF61 comes before U+1F600, in UTF-16 it would not.
        (r#"{"\ud83d\ude00":1,"｡":2,"é":3,"Z":4,"a":5,"":6}"#, r#"{"":6,"Z":4,"a":5,"é":3,"｡":2,"😀":1}"#),
        (r#""\u0041\/\u00e9\u0001\u0009\"\\\u007f""#, "\"A/é\\u0001\\t\\\"\\\\\u{7f}\""),
        (
            "[10.0,10,1e1,-0,-0.0,0.10,12345678901234567890.123456789]",
            "[10,10,10,0,0,0.1,12345678901234567890.123456789]",
        ),
        (r#""10""#, r#""10""#),
    ] {
        assert_eq!(canonical(sent).as_deref(), Ok(expected), "{sent}");
    }
}

#[test]
fn what_is_not_one_plain_json_value_is_refused() {
    for (sent, reason) in [
        (" ", "not_json"),
        ("{", "not_json"),
        ("{}{}", "not_json"),
        ("{} x", "not_json"),
        ("[1,]", "not_json"),
        ("{'a':1}", "not_json"),
        ("NaN", "not_json"),
        ("01", "not_json"),
        ("+1", "not_json"),
        ("1.", "not_json"),
        (".5", "not_json"),
        ("\"a\tb\"", "not_json"),
        (r#""\ud800""#, "not_json"),
        (r#"{"\udc00":1}"#, "not_json"),
        (r#"{"a":["b\u0000"]}"#, "null_character"),
        ("\u{feff}{}", "byte_order_mark"),
        (r#"{"a":1,"a":1}"#, "duplicate_name"),
        (r#"{"a":1,"\u0061":1}"#, "duplicate_name"),
        (r#"{"x":[{"a":1,"b":2,"a":3}]}"#, "duplicate_name"),
        ("[1e513]", "number_too_long"),
        ("[1e-99999999999999999999]", "number_too_long"),
    ] {
        assert_eq!(canonical(sent), Err(reason), "{sent}");
    }
    let not_utf8 = read(b"{\"a\":\"\xff\"}", &Bounds::default());
    assert_eq!(not_utf8, Err(Unreadable::NotUtf8 { offset: 6 }));
}

#[test]
fn size_depth_and_exponents_have_bounds() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(canonical(&nested(16)).is_ok());
    assert_eq!(canonical(&nested(17)), Err("too_deep"));
    assert_eq!(canonical(&format!("{}1{}", r#"{"a":"#.repeat(17), "}".repeat(17))), Err("too_deep"));
    assert_eq!(canonical(&nested(30_000)), Err("too_deep"), "no recursion before the bound");
    let full = format!("\"{}\"", "x".repeat(64 * 1024 - 2));
    assert!(canonical(&full).is_ok());
    assert_eq!(canonical(&format!("{full} ")), Err("too_large"));
    let unbounded = Bounds { depth: usize::MAX, ..Bounds::default() };
    assert_eq!(read(nested(65).as_bytes(), &unbounded), Err(Unreadable::TooDeep { limit: 64 }));
    let strict = Bounds { exponents: Exponents::Refused, ..Bounds::default() };
    assert_eq!(read(b"[1e1]", &strict).map_err(|e| e.reason()), Err("exponent"));
    assert!(read(b"[10.0]", &strict).is_ok());
}

/// Expected values: Python 3 `hmac.new(key, text, "sha256")` and `hashlib.sha256(text)` over the 69 bytes
/// `POST\n/api/v1/supply/settlements/withdraw\n{"amount":50,"b":"é"}`.
#[test]
fn the_payload_hash_is_the_specifications() {
    let current = SecretSlice::from((0..32).collect::<Vec<u8>>());
    let fingerprints = Fingerprints::new(&current, &[secret(b'k', 40)]).unwrap();
    let path = ApiPath::of("/api/v1/supply/settlements/withdraw/", &Aliases::default()).unwrap();
    let body = read(r#"{"b":"\u00e9", "amount":50.00}"#.as_bytes(), &Bounds::default()).unwrap();
    let Payload { fingerprint, former, unkeyed } = fingerprints.of("POST", &path, &body);
    assert_eq!(fingerprint.to_hex(), "f4a5a64ddd8ecffb96ea8e9c66910086d7198c879240345e7364adcae188bf14");
    assert_eq!(former[0].to_hex(), "cfcac2d5b681bcc92b990d35eff7f84468d8714ccc3b596cc6cf0921ffc4dc9d");
    assert_eq!(unkeyed.to_hex(), "4c45ae0cc7c33e81a597923631ba3db3366fb36478524c875dee253a776957a4");
    let other = fingerprints.of("PUT", &path, &body);
    assert_ne!((other.fingerprint, other.unkeyed), (fingerprint, unkeyed), "the method counts");
}

#[test]
fn secrets_are_long_distinct_few_and_hidden() {
    let refused = |current, former: &[SecretSlice<u8>]| {
        Fingerprints::new(&current, former).err().map(|unfit| unfit.to_string())
    };
    assert!(refused(secret(1, 31), &[]).unwrap().contains("31 bytes"));
    assert!(refused(secret(1, 32), &[secret(2, 31)]).unwrap().contains("31 bytes"));
    assert!(refused(secret(1, 32), &[secret(2, 32), secret(1, 32)]).unwrap().contains("the same"));
    let many: Vec<_> = (2..7).map(|byte| secret(byte, 32)).collect();
    assert!(refused(secret(1, 32), &many).unwrap().contains("5 former"));
    let fingerprints = Fingerprints::new(&secret(b'Q', 32), &many[..4]).unwrap();
    assert_eq!(format!("{fingerprints:?}"), "Fingerprints { former: 4, .. }");
    let node = read(br#"{"credential_input":"CANARY"}"#, &Bounds::default()).unwrap();
    assert_eq!(format!("{node:?}"), "object");
}

/// A JSON value as it is meant; a number is `mantissa / 10^scale`.
#[derive(Clone, Debug, PartialEq)]
enum Meant {
    Null,
    Flag(bool),
    Number(i64, u8),
    Text(String),
    List(Vec<Meant>),
    Object(Vec<(String, Meant)>),
}

fn meant() -> impl Strategy<Value = Meant> {
    let leaf = prop_oneof![
        Just(Meant::Null),
        any::<bool>().prop_map(Meant::Flag),
        (any::<i64>(), 0..7_u8).prop_map(|(mantissa, scale)| Meant::Number(mantissa, scale)),
        (-3..4_i64, 0..3_u8).prop_map(|(mantissa, scale)| Meant::Number(mantissa * 10, scale)),
        any::<String>().prop_map(Meant::Text),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Meant::List),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|members| Meant::Object(members.into_iter().collect())),
        ]
    })
}

/// Writes a value in one of its many spellings.
struct Scribe(Seeded);

impl Scribe {
    fn space(&mut self) -> &'static str {
        ["", "", " ", "\n", "\t \r\n"][usize::try_from(self.0.below(5)).unwrap()]
    }

    fn text(&mut self, text: &str) -> String {
        let mut out = String::from("\"");
        for c in text.chars() {
            match c {
                _ if self.0.chance(20) => {
                    let mut units = [0; 2];
                    out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
                }
                '/' if self.0.chance(50) => out.push_str("\\/"),
                '"' | '\\' => out.extend(['\\', c]),
                c if c < ' ' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
                c => out.push(c),
            }
        }
        out + "\""
    }

    fn number(&mut self, mantissa: i64, scale: u8) -> String {
        let sign = if mantissa < 0 || (mantissa == 0 && self.0.chance(50)) { "-" } else { "" };
        let width = usize::from(scale) + 1;
        let digits = format!("{:0width$}", mantissa.unsigned_abs());
        let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
        let point = if fraction.is_empty() { "" } else { "." };
        let unsigned = mantissa.unsigned_abs();
        match self.0.below(5) {
            0 if scale == 0 => format!("{sign}{whole}.000"),
            1 if scale > 0 => format!("{sign}{whole}.{fraction}00"),
            2 => format!("{sign}{unsigned}e-{scale}"),
            3 => format!("{sign}{unsigned}.00E-0{scale}"),
            _ => format!("{sign}{whole}{point}{fraction}"),
        }
    }

    fn write(&mut self, meant: &Meant) -> String {
        let (before, after) = (self.space(), self.space());
        let inner = match meant {
            Meant::Null => "null".into(),
            Meant::Flag(flag) => flag.to_string(),
            Meant::Number(mantissa, scale) => self.number(*mantissa, *scale),
            Meant::Text(text) => self.text(text),
            Meant::List(list) => {
                format!(
                    "[{}{}]",
                    self.space(),
                    list.iter().map(|item| self.write(item)).collect::<Vec<_>>().join(",")
                )
            }
            Meant::Object(members) => {
                let mut members = members.clone();
                for place in (1..members.len()).rev() {
                    members.swap(place, usize::try_from(self.0.below(place as u64 + 1)).unwrap());
                }
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, item)| {
                        format!("{}{}{}:{}", self.space(), self.text(name), self.space(), self.write(item))
                    })
                    .collect();
                format!("{{{}{}}}", members.join(","), self.space())
            }
        };
        format!("{before}{inner}{after}")
    }
}

/// Changes the value at `place`, counted through all values; gives what is left of `place`.
fn change(meant: &mut Meant, place: usize) -> Option<usize> {
    if place == 0 {
        *meant = match meant {
            Meant::Null => Meant::Flag(false),
            Meant::Flag(flag) => Meant::Flag(!*flag),
            Meant::Number(mantissa, scale) => Meant::Number(mantissa.wrapping_add(1), *scale),
            Meant::Text(text) => Meant::Text(format!("{text} ")),
            Meant::List(list) => Meant::List([list.as_slice(), &[Meant::Null]].concat()),
            Meant::Object(members) if members.is_empty() => Meant::List(Vec::new()),
            Meant::Object(members) => Meant::Object(members[1..].to_vec()),
        };
        return None;
    }
    let children: Vec<&mut Meant> = match meant {
        Meant::List(list) => list.iter_mut().collect(),
        Meant::Object(members) => members.iter_mut().map(|(_, item)| item).collect(),
        _ => Vec::new(),
    };
    children.into_iter().try_fold(place - 1, |place, child| change(child, place))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn spelling_never_changes_the_digest(meant in meant(), seeds in any::<(u64, u64)>()) {
        let one = Scribe(Seeded::new(seeds.0)).write(&meant);
        let other = Scribe(Seeded::new(seeds.1)).write(&meant);
        prop_assert_eq!(canonical(&one), canonical(&other), "{} {}", one, other);
        prop_assert_eq!(payload(&one), payload(&other));
    }

    #[test]
    fn any_change_of_a_value_changes_the_digest(meant in meant(), place in 0..40_usize, seed in any::<u64>()) {
        let mut changed = meant.clone();
        // More places than there are values: what is left over is counted from the front again.
        let mut left = Some(place);
        while let Some(place) = left {
            left = change(&mut changed, place);
        }
        let before = payload(&Scribe(Seeded::new(seed)).write(&meant));
        let after = payload(&Scribe(Seeded::new(seed)).write(&changed));
        prop_assert_ne!(before.fingerprint, after.fingerprint);
        prop_assert_ne!(before.unkeyed, after.unkeyed);
        prop_assert_ne!(before.former, after.former);
    }

    #[test]
    fn the_canonical_text_is_its_own(meant in meant(), seed in any::<u64>()) {
        let text = canonical(&Scribe(Seeded::new(seed)).write(&meant)).unwrap();
        prop_assert_eq!(canonical(&text), Ok(text.clone()));
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn any_bytes_are_answered_and_what_is_taken_is_json(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[{}\\[\\]:,\"0-9eE.\\-+a\\\\u ]{0,40}") {
        let _ = read(&bytes, &Bounds::default());
        if read(text.as_bytes(), &Bounds::default()).is_ok() && !text.is_empty() {
            prop_assert!(serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok(), "{}", text);
        }
    }
}
