//! Platform tokens (section 3.3).

use auth::scope;
use supply::Code;

use super::form::{Answer, Body, Field, Kind, Operation, Shape, WRITE, may, must, or_null};

const STAFF: &[&str] = &["platform:token:write"];
const TTL: Field =
    may("ttl_seconds", Kind::Whole(60, 259_200), "Life of the token; 900 where nothing is said.");
const ROLES: &[&str] = &["owner", "viewer", "admin"];
const USER_TYPES: &[&str] = &["supply", "consumer", "platform"];

const GRANT: Shape = Shape {
    name: "IssueToken",
    fields: &[
        must("tenant_id", Kind::Id, "For a user of this tenant."),
        must("user_id", Kind::Id, "The user."),
        must("role", Kind::Word(ROLES), "What its bearer is."),
        must("user_type", Kind::Word(USER_TYPES), "Which scopes count; that of the user's tenant."),
        must(
            "scope",
            Kind::Scopes,
            "What it opens: nothing that the caller does not hold. To suppliers' and buyers' people holders of `platform:*` give any scope, but no wildcard.",
        ),
        TTL,
    ],
};
const RENEW: Shape = Shape { name: "RefreshToken", fields: &[TTL] };
const GRANTED: Shape = Shape {
    name: "Token",
    fields: &[
        must("token_id", Kind::Id, "Its id."),
        or_null("access_token", Kind::Said, "The token, shown once; a repeat of the call has null."),
        must("token_type", Kind::Word(&["Bearer"]), "How it is sent."),
        must("expires_at", Kind::Instant, "When it ends."),
        must(
            "refresh_until",
            Kind::Instant,
            "Until when it may be renewed: seven days from its issue, whatever is renewed.",
        ),
    ],
};
const REVOKED: Shape = Shape {
    name: "RevokedToken",
    fields: &[
        must("token_id", Kind::Id, "Its id."),
        must("status", Kind::Word(&["revoked"]), "For good."),
        must("updated_at", Kind::Instant, "When."),
    ],
};
const ABOUT: Shape = Shape {
    name: "IntrospectToken",
    fields: &[
        may(
            "token",
            Kind::Secret(1, 8192),
            "The token, which is neither logged nor kept; exactly one of the two.",
        ),
        may("token_id", Kind::Id, "Its id."),
    ],
};
const SAID: Shape = Shape {
    name: "TokenClaims",
    fields: &[
        must(
            "active",
            Kind::Flag,
            "False of one that is revoked, over or unknown, or another tenant's; then nothing more is said.",
        ),
        may("token_id", Kind::Id, "Its id."),
        may("jti", Kind::Said, "Its own id."),
        may("tenant_id", Kind::Id, "Whose."),
        may("user_id", Kind::Id, "The user."),
        may("role", Kind::Word(ROLES), "What its bearer is."),
        may("user_type", Kind::Word(USER_TYPES), "Which scopes count."),
        may("scope", Kind::Scopes, "What it opens."),
        may("expires_at", Kind::Instant, "When it ends."),
    ],
};

/// Section 3.3. The built-in issuer may be off; then the first two paths are not there.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "issueToken",
        path: "/api/v1/platform/tokens/issue",
        summary: "Issue a token for a user",
        summary_zh: "签发令牌",
        about: "Only where the built-in issuer is on.",
        scopes: STAFF,
        body: Body::Fields(GRANT),
        answer: Answer::Data(201, GRANTED),
        codes: &[Code::ComMissing],
        ..WRITE
    },
    Operation {
        id: "refreshToken",
        path: "/api/v1/platform/tokens/{tokenId}/refresh",
        summary: "Renew the very token that calls",
        summary_zh: "续期令牌",
        about: "Only where the built-in issuer is on. No scope is needed: every token may renew itself until its `refresh_until`, which stays that of its issue; the old one is over at once.",
        body: Body::Fields(RENEW),
        answer: Answer::Data(200, GRANTED),
        codes: &[Code::ComMissing, Code::ComState],
        ..WRITE
    },
    Operation {
        id: "revokeToken",
        path: "/api/v1/platform/tokens/{tokenId}/revoke",
        summary: "Revoke a token for good",
        summary_zh: "吊销令牌",
        scopes: STAFF,
        answer: Answer::Data(200, REVOKED),
        codes: &[Code::ComMissing, Code::ComState],
        ..WRITE
    },
    Operation {
        id: "introspectToken",
        path: "/api/v1/platform/tokens/introspect",
        summary: "What a token says, while it is good",
        summary_zh: "查验令牌",
        about: "Of the caller's own tenant, for the platform's administrators of any.",
        scopes: &[scope::SUPPLY_AUDIT_READ, "platform:token:write"],
        body: Body::Fields(ABOUT),
        answer: Answer::Data(200, SAID),
        ..WRITE
    },
];
