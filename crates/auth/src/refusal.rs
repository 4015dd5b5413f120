//! Why a request was refused, for logs, metrics and audit: one variant a check, so that tests can tell
//! whether the right check caught it. Nothing of the token is in it.
//!
//! Not for clients: they get the [`Code`] with its fixed texts.

use crate::code::Code;

/// The check that a request did not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No `Authorization` header, or an empty one.
    #[error("no Authorization header came; send one with a bearer token")]
    NoBearer,
    /// More than one `Authorization` header.
    #[error("the Authorization header stands in the request more than once; send it once")]
    Repeated,
    /// Another scheme than `Bearer`.
    #[error("the Authorization header has another scheme than Bearer; use that one")]
    Scheme,
    /// Nothing, several words or characters beyond RFC 6750's after the scheme.
    #[error("the Authorization header has no single token behind Bearer; send exactly one")]
    Malformed,
    /// Shaped like the key of an upstream vendor.
    #[error("the bearer token looks like a vendor's key; send a platform token")]
    Upstream,
    /// A buyer's key (`lgw_`), which opens the gateway and not this interface.
    #[error("the bearer token is a buyer's key, which is not accepted here; send a platform token")]
    BuyerKey,

    /// Longer than [`TOKEN_MAX`](crate::token::TOKEN_MAX).
    #[error("the token is longer than {} bytes; ask for one with fewer scopes", crate::token::TOKEN_MAX)]
    TooLong,
    /// Not three parts between two dots (RFC 7515, section 7.1).
    #[error("the token does not have three parts; send a signed JWT in compact form")]
    Parts,
    /// A part is not base64url without padding, or has loose bits at its end.
    #[error("a part of the token is not base64url as RFC 7515 has it; send the token unchanged")]
    Encoding,
    /// The header is no JSON object, or has a name twice.
    #[error("the token's header is not one JSON object with each name once; look at the issuer")]
    Header,
    /// The header has a member that would let the token choose its own key, algorithm or rules.
    #[error("the token's header may hold only alg, kid, typ, x5t and x5t#S256; look at the issuer")]
    HeaderMember,
    /// `typ` names another kind of token (RFC 8725, section 3.11).
    #[error("the token's typ is neither JWT nor at+jwt; send an access token")]
    Kind,
    /// Neither RS256 nor ES256, or not the algorithm of the key.
    #[error("the token is not signed with its key's algorithm, RS256 or ES256; look at the issuer")]
    Algorithm,
    /// No usable `kid`.
    #[error("the token names no key (kid); look at the issuer")]
    KeyId,
    /// The issuer has no such key.
    #[error("the token names a key that its issuer does not publish; get a new token")]
    KeyUnknown,
    /// The signature is not the key's.
    #[error("the token's signature is not right; get a new token")]
    Signature,

    /// The payload is no JSON object, or has a name twice.
    #[error("the token's payload is not one JSON object with each name once; look at the issuer")]
    Payload,
    /// A claim is missing or has another form than section 3.3 wants.
    #[error("the token's claim {0} is missing or has another form than section 3.3; look at the issuer")]
    Claim(&'static str),
    /// Of another issuer.
    #[error("the token is another issuer's; get one from the configured issuer")]
    Issuer,
    /// For another service.
    #[error("the token is for another service; get one for this audience")]
    Audience,
    /// `nbf` lies ahead.
    #[error("the token is not valid yet; compare the clocks")]
    NotYet,
    /// `iat` lies ahead.
    #[error("the token was issued in the future; compare the clocks")]
    IssuedAhead,
    /// Between `iat` and `exp` lies more than any token may live.
    #[error("the token lives longer than {} s; ask for a shorter life", crate::claims::LIFE_MAX.as_secs())]
    Life,
    /// `exp` is over.
    #[error("the token has expired; get a new one")]
    Expired,

    /// The token service has revoked it.
    #[error("the token was revoked; get a new one")]
    Revoked,
    /// The token service says that it is over.
    #[error("the token service calls the token expired; get a new one")]
    Over,
    /// The token service doesn't know it.
    #[error("the token service does not know the token; get a new one")]
    Unknown,
    /// The token service did not answer in time, or with a fault.
    #[error("the token's status can't be had; look at the token store, and try again")]
    StatusUnavailable,
    /// The issuer's keys can't be had, and none are held that are young enough.
    #[error("the issuer's keys can't be had; look at its JWKS address, and try again")]
    KeysUnavailable,

    /// The role forbids it.
    #[error("the role does not cover the request; ask someone who has the role")]
    Role,
    /// The scope isn't among the token's.
    #[error("the needed scope is not among the token's; ask for a token that has it")]
    Scope,
    /// The scope's family is not for this kind of user.
    #[error("the needed scope is not for this kind of user; use a token of the right kind")]
    UserType,
}

impl Refusal {
    /// What the client is told.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::NoBearer => Code::MissingBearer,
            Self::Repeated | Self::Scheme | Self::Malformed => Code::InvalidFormat,
            Self::Upstream => Code::UpstreamCredential,
            Self::BuyerKey
            | Self::TooLong
            | Self::Parts
            | Self::Encoding
            | Self::Header
            | Self::HeaderMember
            | Self::Kind
            | Self::Algorithm
            | Self::KeyId
            | Self::KeyUnknown
            | Self::Signature
            | Self::Payload
            | Self::Claim(_)
            | Self::Issuer
            | Self::Audience
            | Self::NotYet
            | Self::IssuedAhead
            | Self::Life => Code::InvalidToken,
            // Section 3.3: `active -> revoked` and `active -> expired` are states of a token that was good.
            Self::Expired | Self::Revoked | Self::Over | Self::Unknown => Code::TokenInactive,
            Self::StatusUnavailable | Self::KeysUnavailable => Code::TokenStatusUnavailable,
            Self::Role => Code::RoleDenied,
            Self::Scope | Self::UserType => Code::ScopeDenied,
        }
    }
}
