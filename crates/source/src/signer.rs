//! Plays the sender: makes the headers (for Alipay also the body) of a right delivery. For `onceseal send`, the
//! demo and tests. Not here: sending.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use crate::mac::MacKeys;
use crate::rsa::RsaSigner;
use crate::senders::{alipay, github, internal, lemon, paddle, standard, stripe, wechat};
use crate::{Encoding, GenericRule, IdRule, Kind, Secret, SettingsError};

/// Signs as one kind of sender.
pub struct Signer {
    kind: Kind,
    key: Key,
    event_type: String,
    serial: String,
    generic: Option<GenericRule>,
}

enum Key {
    Mac(MacKeys),
    Ed25519(Box<SigningKey>),
    Rsa(Box<RsaSigner>),
    Token(Secret),
}

impl Signer {
    /// A signer with the secret of that kind: the endpoint's secret (Stripe, GitHub, Paddle, Lemon Squeezy, generic),
    /// `whsec_…` or `whsk_…` (Standard Webhooks), a PKCS#8 PEM private key ([`Secret::pem`]; WeChat Pay, Alipay), or the
    /// token (internal).
    ///
    /// # Errors
    /// The secret does not have the form that the kind needs.
    pub fn new(kind: Kind, secret: &Secret) -> Result<Self, SettingsError> {
        let key = key(kind, secret.expose())
            .map_err(|fault| SettingsError { source_name: format!("signer for {kind}"), fault })?;
        Ok(Self { kind, key, event_type: "ping".into(), serial: String::new(), generic: None })
    }

    /// The event's name for senders that put it in a header (GitHub, Lemon Squeezy).
    #[must_use]
    pub fn with_type(mut self, event_type: impl Into<String>) -> Self {
        self.event_type = event_type.into();
        self
    }

    /// The key's name for WeChat Pay (`Wechatpay-Serial`).
    #[must_use]
    pub fn with_serial(mut self, serial: impl Into<String>) -> Self {
        self.serial = serial.into();
        self
    }

    /// The rule of a generic sender. Without one nothing is signed for [`Kind::GenericHmac`].
    #[must_use]
    pub fn with_rule(mut self, rule: GenericRule) -> Self {
        self.generic = Some(rule);
        self
    }

    /// The body to post. Alipay's signature is part of the form, so a form without `sign` comes back with it;
    /// every other body is unchanged.
    #[must_use]
    pub fn body(&self, body: &[u8]) -> Vec<u8> {
        let mut sent = body.to_vec();
        if let (Kind::Alipay, Key::Rsa(key)) = (self.kind, &self.key)
            && let Some(sign) = alipay::signed_form(body).and_then(|signed| key.sign(&signed))
        {
            let encoded = utf8_percent_encode(&sign, NON_ALPHANUMERIC);
            sent.extend_from_slice(format!("&sign_type=RSA2&sign={encoded}").as_bytes());
        }
        sent
    }

    /// The headers for that body at that time (Unix seconds) with that event id, where headers carry one.
    /// Should the RSA library fail, the signature is left out, and a receiver refuses the delivery.
    #[must_use]
    pub fn sign(&self, body: &[u8], now: i64, id: &str) -> Vec<(String, String)> {
        let form = self.kind == Kind::Alipay || (self.kind == Kind::Github && body.first() == Some(&b'p'));
        let content =
            if form { "application/x-www-form-urlencoded; charset=utf-8" } else { "application/json" };
        let mut headers = vec![("Content-Type", content.to_owned())];
        let time = now.to_string();
        match (&self.key, self.kind) {
            (Key::Mac(keys), Kind::Stripe) => {
                let mac = keys.sign(&[time.as_bytes(), b".", body]);
                headers.push((stripe::HEADER, format!("t={time},v1={}", hex::encode(mac))));
            }
            (Key::Mac(keys), Kind::Paddle) => {
                let mac = keys.sign(&[time.as_bytes(), b":", body]);
                headers.push((paddle::HEADER, format!("ts={time};h1={}", hex::encode(mac))));
            }
            (Key::Mac(keys), Kind::Github) => {
                headers.push((github::DELIVERY, id.to_owned()));
                headers.push((github::EVENT, self.event_type.clone()));
                headers.push((github::SIGNATURE, format!("sha256={}", hex::encode(keys.sign(&[body])))));
            }
            (Key::Mac(keys), Kind::LemonSqueezy) => {
                headers.push((lemon::EVENT, self.event_type.clone()));
                headers.push((lemon::SIGNATURE, hex::encode(keys.sign(&[body]))));
            }
            (Key::Mac(_) | Key::Ed25519(_), Kind::StandardWebhooks) => {
                headers.extend(self.standard(body, &time, id));
            }
            (Key::Rsa(key), Kind::WechatPay) => headers.extend(self.wechat(key, body, &time)),
            (Key::Token(token), _) => headers.push((internal::HEADER, format!("Bearer {}", token.expose()))),
            _ => {}
        }
        let mut headers: Vec<(String, String)> =
            headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        if let (Key::Mac(keys), Some(rule)) = (&self.key, &self.generic) {
            headers.extend(generic(keys, rule, body, &time, id));
        }
        headers
    }

    fn standard(&self, body: &[u8], time: &str, id: &str) -> [(&'static str, String); 3] {
        let parts: [&[u8]; 5] = [id.as_bytes(), b".", time.as_bytes(), b".", body];
        let signature = match &self.key {
            Key::Mac(keys) => format!("v1,{}", STANDARD.encode(keys.sign(&parts))),
            Key::Ed25519(key) => format!("v1a,{}", STANDARD.encode(key.sign(&parts.concat()).to_bytes())),
            Key::Rsa(_) | Key::Token(_) => String::new(),
        };
        [(standard::ID, id.to_owned()), (standard::TIME, time.to_owned()), (standard::SIGNATURE, signature)]
    }

    fn wechat(&self, key: &RsaSigner, body: &[u8], time: &str) -> Vec<(&'static str, String)> {
        // The nonce only has to differ between deliveries; taken from them, no randomness is needed.
        let digest = Sha256::new().chain_update(time).chain_update(body).finalize();
        let nonce: String = hex::encode_upper(digest).chars().take(32).collect();
        let signed = [time.as_bytes(), b"\n", nonce.as_bytes(), b"\n", body, b"\n"].concat();
        let mut headers = vec![
            (wechat::SERIAL, self.serial.clone()),
            (wechat::TIME, time.to_owned()),
            (wechat::NONCE, nonce),
        ];
        headers.extend(key.sign(&signed).map(|signature| (wechat::SIGNATURE, signature)));
        headers
    }
}

fn generic(keys: &MacKeys, rule: &GenericRule, body: &[u8], time: &str, id: &str) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let mac = match &rule.timestamp {
        None => keys.sign(&[body]),
        Some(stamp) => {
            headers.push((stamp.header.clone(), time.to_owned()));
            keys.sign(&[time.as_bytes(), stamp.separator.as_bytes(), body])
        }
    };
    let written = match rule.encoding {
        Encoding::Hex => hex::encode(mac),
        Encoding::Base64 => STANDARD.encode(mac),
    };
    let prefix = rule.prefix.as_deref().unwrap_or_default();
    headers.push((rule.signature_header.clone(), format!("{prefix}{written}")));
    if let Some(IdRule::Header(name)) = &rule.id {
        headers.push((name.clone(), id.to_owned()));
    }
    headers
}

fn key(kind: Kind, secret: &str) -> Result<Key, String> {
    Ok(match kind {
        Kind::Stripe => {
            stripe::form(secret)?;
            Key::Mac(MacKeys::new([secret.as_bytes()])?)
        }
        Kind::StandardWebhooks => match secret.strip_prefix("whsk_") {
            Some(text) => Key::Ed25519(Box::new(private_key(text)?)),
            None => Key::Mac(MacKeys::new([standard::shared_key(secret)?.as_slice()])?),
        },
        Kind::Github | Kind::Paddle | Kind::LemonSqueezy | Kind::GenericHmac => {
            Key::Mac(MacKeys::new([secret.as_bytes()])?)
        }
        Kind::WechatPay | Kind::Alipay => Key::Rsa(Box::new(RsaSigner::read(secret)?)),
        Kind::Internal => Key::Token(Secret::exact(secret).map_err(|error| error.to_string())?),
    })
}

/// `whsk_`: base64 of the 32-byte seed, or of the seed followed by the public key.
fn private_key(base64: &str) -> Result<SigningKey, String> {
    let fault = || "the private key is not whsk_ and base64 of 32 or 64 bytes".to_owned();
    let bytes = zeroize::Zeroizing::new(STANDARD.decode(base64).map_err(|_| fault())?);
    match bytes.len() {
        32 => Ok(SigningKey::from_bytes(bytes.first_chunk().ok_or_else(fault)?)),
        64 => SigningKey::from_keypair_bytes(bytes.first_chunk().ok_or_else(fault)?).map_err(|_| fault()),
        _ => Err(fault()),
    }
}
