//! The public codes of authentication and authorisation: status, fixed texts, the hint for the client
//! (domain specification, section 9.5).
//!
//! Not here: why in detail a request was refused. That is the [`Refusal`](crate::Refusal), for logs and audit
//! only: a client that learns which check failed learns how to pass it.

use std::fmt;

/// A public code. Its texts are the same for every occurrence and hold nothing of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// No credential came with the request.
    MissingBearer,
    /// The `Authorization` header has another form than `Bearer <token>`, or stands there twice.
    InvalidFormat,
    /// The token is not one of ours, or not for us.
    InvalidToken,
    /// The token was ours and is revoked or over.
    TokenInactive,
    /// The credential of an upstream vendor was sent to us.
    UpstreamCredential,
    /// The scopes or the kind of user don't cover the request.
    ScopeDenied,
    /// The role doesn't cover the request.
    RoleDenied,
    /// It can't be told now whether the token is good; so it is not (fail closed).
    TokenStatusUnavailable,
}

/// All codes.
pub const ALL: [Code; 8] = [
    Code::MissingBearer,
    Code::InvalidFormat,
    Code::InvalidToken,
    Code::TokenInactive,
    Code::UpstreamCredential,
    Code::ScopeDenied,
    Code::RoleDenied,
    Code::TokenStatusUnavailable,
];

impl Code {
    /// The stable name, as in the domain specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MissingBearer => "AUTH_MISSING_BEARER",
            Self::InvalidFormat => "AUTH_INVALID_FORMAT",
            Self::InvalidToken => "AUTH_INVALID_TOKEN",
            Self::TokenInactive => "AUTH_TOKEN_INACTIVE",
            Self::UpstreamCredential => "AUTH_UPSTREAM_CREDENTIAL",
            Self::ScopeDenied => "AUTH_SCOPE_DENIED",
            Self::RoleDenied => "AUTH_ROLE_DENIED",
            Self::TokenStatusUnavailable => "AUTH_TOKEN_STATUS_UNAVAILABLE",
        }
    }

    /// The HTTP status: 401, 403 or 503.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::MissingBearer
            | Self::InvalidFormat
            | Self::InvalidToken
            | Self::TokenInactive
            | Self::UpstreamCredential => 401,
            Self::ScopeDenied | Self::RoleDenied => 403,
            Self::TokenStatusUnavailable => 503,
        }
    }

    /// The message in English.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::MissingBearer => "the request has no bearer token; send Authorization: Bearer with one",
            Self::InvalidFormat => {
                "the Authorization header can't be read; send it once, as Bearer and one token"
            }
            Self::InvalidToken => "the token is not valid here; get a new one from the token service",
            Self::TokenInactive => "the token is revoked or has expired; get a new one",
            Self::UpstreamCredential => {
                "a vendor's key was sent as bearer token; send a token of the platform, and replace that key if it came over an open line"
            }
            Self::ScopeDenied => {
                "the token's scopes don't cover this request; ask for one that has the scope"
            }
            Self::RoleDenied => "the token's role doesn't cover this request; ask someone who has the role",
            Self::TokenStatusUnavailable => "the token can't be checked just now; try again in a moment",
        }
    }

    /// The message in Chinese.
    #[must_use]
    pub const fn message_zh(self) -> &'static str {
        match self {
            Self::MissingBearer => "请求缺少访问令牌，请通过 Authorization: Bearer 发送",
            Self::InvalidFormat => "Authorization 请求头格式错误，须仅出现一次，形如 Bearer 加一个令牌",
            Self::InvalidToken => "访问令牌在此无效，请向令牌服务重新获取",
            Self::TokenInactive => "访问令牌已吊销或已过期，请重新获取",
            Self::UpstreamCredential => {
                "误将上游厂商凭证作为访问令牌发送，请改用平台令牌；若经明文线路发送，请更换该凭证"
            }
            Self::ScopeDenied => "访问令牌的权限范围不足以执行此请求",
            Self::RoleDenied => "当前角色无权执行此请求",
            Self::TokenStatusUnavailable => "暂时无法校验访问令牌，请稍后重试",
        }
    }

    /// Value of `WWW-Authenticate`, which every 401 carries. The same for all: which of them it was stands in
    /// the code, and RFC 6750's own error words would say less.
    #[must_use]
    pub const fn www_authenticate(self) -> Option<&'static str> {
        if self.status() == 401 { Some("Bearer") } else { None }
    }

    /// Seconds for `Retry-After`, where trying again is of use.
    #[must_use]
    pub const fn retry_after(self) -> Option<u32> {
        match self {
            Self::TokenStatusUnavailable => Some(2),
            _ => None,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
