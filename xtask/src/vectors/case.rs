//! A sender's vector: the endpoint it needs, the delivery, and what a strict receiver says.

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use source::{Kind, PublicKey, Secret, Settings, Source};

const FILE: &str = include_str!("../../../crates/source/tests/vectors/webhooks-vectors.json");

const SENDERS: [(&str, Kind); 7] = [
    ("stripe", Kind::Stripe),
    ("standard_webhooks", Kind::StandardWebhooks),
    ("github", Kind::Github),
    ("paddle", Kind::Paddle),
    ("lemon_squeezy", Kind::LemonSqueezy),
    ("wechat_pay_v3", Kind::WechatPay),
    ("alipay", Kind::Alipay),
];

/// The time of cases that have none: nothing in them is dated.
const UNDATED: i64 = 1_767_225_600;
/// The merchant's key and the platform's key name, in every `WeChat` Pay case that doesn't bring its own.
const API_V3: &str = "0123456789abcdefghijklmnopqrstuv";
const SERIAL: &str = "PUB_KEY_ID_0116000000012026010100000000000001";

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Accept,
    Reject,
}

/// One vector.
#[derive(Clone)]
pub(crate) struct Case {
    /// `stripe/ok-compact`
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) expected: Expected,
    /// Unix seconds on the receiver's clock.
    pub(crate) now: i64,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    settings: Option<Settings>,
    /// Whether only the signature counts: the published `WeChat` vector's key is no real one.
    pub(crate) signature_only: bool,
}

impl Case {
    /// The endpoint of the case; `None` where it refuses to start, which is its answer to a secret that
    /// can't be one.
    pub(crate) fn source(&self) -> Option<Source> {
        Source::new(self.settings.clone()?).ok()
    }

    /// The case with each byte of the body, then each byte of its signature headers, changed by one bit.
    pub(crate) fn flips(&self) -> impl Iterator<Item = Case> + '_ {
        let body = (0..self.body.len()).map(|at| {
            let mut flipped = self.clone();
            flip(&mut flipped.body, at);
            flipped.name = format!("{}, body byte {at} flipped", self.name);
            flipped
        });
        let signed = (0..self.headers.len()).filter(|line| self.is_signature(*line));
        let headers = signed.flat_map(move |line| {
            let length = self.headers.get(line).map_or(0, |(_, value)| value.len());
            (0..length).map(move |at| {
                let mut flipped = self.clone();
                flipped.name = format!("{}, header {line} byte {at} flipped", self.name);
                if let Some((_, value)) = flipped.headers.get_mut(line) {
                    flip(value, at);
                }
                flipped
            })
        });
        body.chain(headers)
    }

    /// Whether every byte of a header matters: it is about the signature, and holds only one.
    fn is_signature(&self, line: usize) -> bool {
        let Some((name, value)) = self.headers.get(line) else { return false };
        let name = name.to_ascii_lowercase();
        let parts = ["signature", "timestamp", "nonce", "serial", "webhook-id"];
        let several = value.iter().filter(|byte| matches!(byte, b',' | b' ' | b';')).count() > 1;
        parts.iter().any(|part| name.contains(part)) && name != "x-hub-signature" && !several
    }
}

fn flip(bytes: &mut [u8], at: usize) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1;
    }
}

/// All senders' vectors.
///
/// # Errors
/// The file has another form than it is read with.
pub(crate) fn all() -> anyhow::Result<Vec<Case>> {
    let file: Json = serde_json::from_str(FILE)?;
    let mut all = Vec::new();
    for (sender, kind) in SENDERS {
        let group = file.get(sender).with_context(|| format!("no vectors of {sender}"))?;
        for case in group.get("cases").and_then(Json::as_array).context("cases")? {
            let read = read(sender, kind, group, case);
            all.push(read.with_context(|| format!("a case of {sender}: {}", case["id"]))?);
        }
    }
    Ok(all)
}

fn read(sender: &str, kind: Kind, group: &Json, case: &Json) -> anyhow::Result<Case> {
    let name = format!("{sender}/{}", text(case, "id")?);
    let mut headers = Vec::new();
    for pair in case.get("headers").and_then(Json::as_array).context("headers")? {
        match pair.as_array().map(Vec::as_slice) {
            Some([Json::String(name), Json::String(value)]) => {
                headers.push((name.clone(), value.clone().into_bytes()));
            }
            _ => bail!("a header that is no pair of texts"),
        }
    }
    Ok(Case {
        kind,
        expected: expected(case)?,
        now: case.get("now").and_then(Json::as_i64).unwrap_or(UNDATED),
        headers,
        body: STANDARD.decode(text(case, "body_b64")?)?,
        settings: settings(&name, kind, group, case)?,
        signature_only: name == "wechat_pay_v3/ok-sdk-vector",
        name,
    })
}

/// What a strict receiver does; what is recommended where libraries disagree.
fn expected(case: &Json) -> anyhow::Result<Expected> {
    Ok(match (text(case, "expect")?, text(case, "id")?) {
        ("accept", _) => Expected::Accept,
        ("reject", _) | ("policy", "space-after-comma" | "hex-upper-case" | "sign-type-kept") => {
            Expected::Reject
        }
        // The signature is accepted, the JSON then is not.
        ("policy", "mac-ok-but-not-utf8" | "rotation-valid-first") => Expected::Accept,
        ("policy", _) if text(case, "recommended")?.starts_with("reject") => Expected::Reject,
        (other, _) => bail!("unknown verdict {other}"),
    })
}

/// `None`: one of its secrets is none.
fn settings(name: &str, kind: Kind, group: &Json, case: &Json) -> anyhow::Result<Option<Settings>> {
    let mut settings = Settings::new("vectors", kind);
    // Each case has its own account, so that none is a repeat of another.
    settings.account = name.to_owned();
    settings.tolerance_s = case.get("tolerance_s").and_then(Json::as_i64);
    for secret in list(case, "secrets") {
        // Exact: some vectors are about a line end after the secret.
        let Ok(secret) = Secret::exact(secret) else { return Ok(None) };
        settings.secrets.push(secret);
    }
    let key = |id: &str, text: &str| PublicKey { id: id.into(), text: text.into() };
    settings.public_keys.extend(list(case, "public_keys").map(|text| key("", text)));
    match kind {
        Kind::WechatPay => {
            settings.api_v3_key = Some(Secret::exact(API_V3).context("the APIv3 key")?);
            settings.public_keys.push(match case.get("certificate_pem").and_then(Json::as_str) {
                Some(certificate) => key(text(case, "serial")?, certificate),
                None => key(SERIAL, text(group, "public_key_pem")?),
            });
        }
        Kind::Alipay => settings.public_keys.push(key("", text(group, "public_key_pem")?)),
        _ => {}
    }
    Ok(Some(settings))
}

fn list<'a>(case: &'a Json, name: &str) -> impl Iterator<Item = &'a str> {
    case.get(name).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
}

fn text<'a>(json: &'a Json, name: &str) -> anyhow::Result<&'a str> {
    json.get(name).and_then(Json::as_str).with_context(|| format!("{name} is no text"))
}
