//! Platform tokens (section 3.3).

use supply::Code;

use super::form::{Answer, Body, Field, Kind, Operation, READ, Shape, WRITE, may, must, or_null};

const STAFF: &[&str] = &["platform:token:write"];
const TTL: Field =
    may("ttl_seconds", Kind::Whole(60, 259_200), "Life of the token; 900 where nothing is said.");
const ROLE: Field = must("role", Kind::Word(&["owner", "viewer", "admin"]), "What its bearer is.");
const USER_TYPE: Field =
    must("user_type", Kind::Word(&["supply", "consumer", "platform"]), "Which scopes count.");
const SCOPE: Field = must("scope", Kind::Scopes, "What it opens.");

const GRANT: Shape = Shape {
    name: "IssueToken",
    fields: &[
        must("tenant_id", Kind::Id, "For a user of this tenant."),
        must("user_id", Kind::Id, "The user."),
        ROLE,
        USER_TYPE,
        SCOPE,
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
        must("refresh_until", Kind::Instant, "Until when it may be renewed."),
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
const SAID: Shape = Shape {
    name: "TokenClaims",
    fields: &[
        must("active", Kind::Flag, "Whether it is good."),
        must("tenant_id", Kind::Id, "Whose."),
        must("user_id", Kind::Id, "The user."),
        ROLE,
        USER_TYPE,
        SCOPE,
        must("jti", Kind::Said, "Its own id."),
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
        about: "Only where the built-in issuer is on.",
        scopes: STAFF,
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
        summary: "What the calling token says",
        summary_zh: "查看当前令牌",
        scopes: STAFF,
        answer: Answer::Data(200, SAID),
        ..READ
    },
];
