//! What one endpoint is built from, and what makes it refuse to start.
//! Not here: reading files, environment or TOML; that is the command line's.

use crate::{Kind, Secret};

/// Plain settings of one endpoint. Fill the fields that the kind needs; [`crate::Source::new`] checks them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name in the address `/webhooks/{name}`: lower-case letters, digits, `-`, `_`, at most 64.
    pub name: String,
    /// Scope of the event ids: endpoints of one account share it. 1 to 128 visible characters.
    pub account: String,
    /// Whose rules apply.
    pub kind: Kind,
    /// All live secrets; every one is tried. During a rotation there are two.
    pub secrets: Vec<Secret>,
    /// Accepted distance of the signed time from now, in seconds, both sides, limit included.
    pub tolerance_s: Option<i64>,
    /// For [`Kind::GenericHmac`]: how that sender signs and where its id is.
    pub generic: Option<GenericRule>,
    /// For [`Kind::WechatPay`]: the merchant's APIv3 key, 32 ASCII characters.
    pub api_v3_key: Option<Secret>,
    /// For WeChat Pay, Alipay and Standard Webhooks (`whpk_…`): keys that verify.
    pub public_keys: Vec<PublicKey>,
}

/// A public key that verifies a sender's signatures.
#[derive(Clone, Debug)]
pub struct PublicKey {
    /// WeChat Pay: certificate serial number (hex) or the id that starts with `PUB_KEY_ID_`, compared with
    /// `Wechatpay-Serial`. Elsewhere a label for error messages.
    pub id: String,
    /// PEM of a public key or of a certificate; Alipay: also the bare base64 text; Standard Webhooks: `whpk_…`.
    pub text: String,
}

/// How a [`Kind::GenericHmac`] sender signs (HMAC-SHA256) and where its fields are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenericRule {
    /// Header with the signature.
    pub signature_header: String,
    /// How the MAC is written.
    pub encoding: Encoding,
    /// Text in front of the MAC, for instance `sha256=`; required when set.
    pub prefix: Option<String>,
    /// When set, the signed bytes are time, separator, body, and the time is checked.
    pub timestamp: Option<TimestampRule>,
    /// Where the event id is. A kind without it can't be deduplicated, so there is no default.
    pub id: Option<IdRule>,
    /// JSON pointer (RFC 6901) to the sender's type.
    pub type_pointer: Option<String>,
    /// JSON pointer to the event's time: Unix seconds, or RFC 3339 text.
    pub time_pointer: Option<String>,
    /// JSON pointer to the amount: integer in the currency's smallest unit.
    pub amount_pointer: Option<String>,
    /// JSON pointer to the currency code.
    pub currency_pointer: Option<String>,
}

/// How a MAC is written in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// 64 lower-case hexadecimal digits.
    Hex,
    /// Standard base64 with padding.
    Base64,
}

/// A signed time in a header of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimestampRule {
    /// Header with Unix seconds in decimal.
    pub header: String,
    /// Bytes between time and body in the signed text, for instance `.`.
    pub separator: String,
}

/// Where the id of an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdRule {
    /// In a header. The MAC doesn't cover it: who can replay a body can give it a new id, so prefer a pointer.
    Header(String),
    /// In the body, by JSON pointer (RFC 6901).
    Pointer(String),
}

impl Settings {
    /// Settings with nothing but name and kind; the account is the name.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        let name = name.into();
        Self {
            account: name.clone(),
            name,
            kind,
            secrets: Vec::new(),
            tolerance_s: None,
            generic: None,
            api_v3_key: None,
            public_keys: Vec::new(),
        }
    }
}

/// Why an endpoint does not start. Names the source and the fault, never a value of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("source {source_name:?} can't start: {fault}")]
pub struct SettingsError {
    /// Which endpoint.
    pub source_name: String,
    /// What is wrong and what to do.
    pub fault: String,
}

/// Checks what all kinds share and returns the tolerance in seconds.
pub(crate) fn common(settings: &Settings) -> Result<i64, String> {
    let name = &settings.name;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err("its name must be 1 to 64 lower-case letters, digits, '-' or '_'".into());
    }
    let account = &settings.account;
    let visible = account.chars().all(|c| !c.is_control() && !c.is_whitespace());
    if account.is_empty() || account.chars().count() > 128 || !visible {
        return Err("its account must be 1 to 128 visible characters without spaces".into());
    }
    let tolerance = settings.tolerance_s.unwrap_or_else(|| settings.kind.default_tolerance_s());
    if !(1..=86_400).contains(&tolerance) {
        return Err(format!(
            "tolerance_s is {tolerance}; use 1 to 86400 seconds (a tolerance of 0 would switch the check of \
             the time off)"
        ));
    }
    Ok(tolerance)
}
