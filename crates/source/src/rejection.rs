//! Why a delivery is refused: code, status, the sentence in both languages and what to do.
//! A refusal never shows a secret, and never more of the delivery than a header's or field's name.

use std::fmt;

/// A refused delivery. Nothing of it is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Stable code, listed in `docs/errors`.
    pub code: &'static str,
    /// HTTP status: 400 (malformed, stale) or 401 (not proven to come from the sender).
    pub status: u16,
    /// What happened, in English.
    pub message: String,
    /// The same in Chinese.
    pub message_zh: String,
    /// What to do next, in English.
    pub next: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.code, self.message, self.next)
    }
}

impl std::error::Error for Rejection {}

impl Rejection {
    fn new(code: &'static str, status: u16, texts: (String, String), next: &str) -> Self {
        Self { code, status, message: texts.0, message_zh: texts.1, next: next.into() }
    }

    pub(crate) fn missing(header: &str) -> Self {
        Self::new(
            "SIG_MISSING",
            401,
            (format!("the signature ({header}) is missing or empty"), format!("缺少签名（{header}）")),
            "set the signing secret at the sender, and let proxies pass the header",
        )
    }

    pub(crate) fn malformed(what: &str, what_zh: &str) -> Self {
        Self::new(
            "SIG_MALFORMED",
            400,
            (format!("the signature can't be read: {what}"), format!("签名格式错误：{what_zh}")),
            "send the signature header as the sender made it, once and unchanged",
        )
    }

    pub(crate) fn mismatch() -> Self {
        Self::new(
            "SIG_MISMATCH",
            401,
            (
                "no signature matches the body under any live secret of this source".into(),
                "签名与此来源的任何有效密钥均不匹配".into(),
            ),
            "compare the secret of this endpoint and mode; nothing between may change the body",
        )
    }

    pub(crate) fn stale(age: i64, tolerance: i64) -> Self {
        Self::new(
            "SIG_STALE",
            400,
            (
                format!("the signature is right but {age} s old; {tolerance} s are allowed"),
                format!("签名已过期 {age} 秒，允许 {tolerance} 秒"),
            ),
            "compare the clocks, and look for a replay or a slow queue in between",
        )
    }

    pub(crate) fn future(ahead: i64, tolerance: i64) -> Self {
        Self::new(
            "SIG_FUTURE",
            400,
            (
                format!("the signature is right but dated {ahead} s ahead; {tolerance} s are allowed"),
                format!("签名时间超前 {ahead} 秒，允许 {tolerance} 秒"),
            ),
            "compare the clocks of this machine and of the sender",
        )
    }

    pub(crate) fn key_unknown() -> Self {
        Self::new(
            "SIG_KEY_UNKNOWN",
            401,
            ("the key that the delivery names is not configured".into(), "未配置此通知所指明的公钥".into()),
            "add the platform's current certificate or public key to this source",
        )
    }

    pub(crate) fn token(present: Present) -> Self {
        let texts = match present {
            Present::No => ("the bearer token is missing", "缺少访问令牌"),
            Present::Yes => ("the bearer token is not one of this source", "访问令牌无效"),
        };
        Self::new(
            "TOKEN_INVALID",
            401,
            (texts.0.into(), texts.1.into()),
            "send `Authorization: Bearer` with a live token of this source",
        )
    }

    pub(crate) fn body(code: &'static str, message: &str, message_zh: &str) -> Self {
        Self::new(
            code,
            400,
            (message.into(), message_zh.into()),
            "send the body of the event as the sender made it",
        )
    }

    pub(crate) fn id_missing(place: &str) -> Self {
        Self::new(
            "ID_MISSING",
            400,
            (format!("the event has no id ({place})"), format!("事件缺少标识（{place}）")),
            "send the event with its id; without one a repeat can't be told from a new event",
        )
    }

    pub(crate) fn id_invalid(place: &str) -> Self {
        Self::new(
            "ID_INVALID",
            400,
            (
                format!(
                    "the event's id ({place}) is not a text of 1 to 255 characters without control \
                     characters and outer spaces"
                ),
                format!("事件标识（{place}）无效：须为 1 至 255 个字符，不含控制字符与首尾空白"),
            ),
            "send the id as the sender made it",
        )
    }

    pub(crate) fn field(field: &str, wanted: &str) -> Self {
        Self::new(
            "FIELD_INVALID",
            400,
            (format!("the field {field} is not {wanted}"), format!("字段 {field} 无效")),
            "send the field as the sender's documentation states it",
        )
    }

    pub(crate) fn decrypt() -> Self {
        Self::new(
            "RESOURCE_UNREADABLE",
            400,
            (
                "the signature is right but the encrypted resource can't be opened".into(),
                "签名有效，但无法解密通知内容".into(),
            ),
            "compare the APIv3 key of this source with the merchant platform",
        )
    }
}

/// Whether a token was sent at all.
#[derive(Clone, Copy)]
pub(crate) enum Present {
    Yes,
    No,
}
