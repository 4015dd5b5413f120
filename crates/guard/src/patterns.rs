//! The shapes of credentials, as data: section 15.2 of the supply specification. Vendors change their formats;
//! a new shape is a new line here. Not here: how the table is searched (`scan`).

/// One shape. The syntax is RE2's, in ASCII: `\b`, `\d`, `\s` and `(?i)` know only ASCII.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Name of the rule, as it stands in `[REDACTED:<rule>]`, in audit rows and in alerts.
    pub rule: &'static str,
    /// The expression. If it has a group, the group is the secret and the rest the words around it.
    pub text: &'static str,
    /// Where a match can be, found cheaply before the expression is tried.
    pub start: Start,
}

/// What every match of an expression has, so that most texts never meet the expression.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// Each match begins with one of these, ASCII letters in any case.
    Head(&'static [&'static str]),
    /// Each match contains this and lies in one unbroken run of letters, digits, `_`, `-` and `.`. For
    /// expressions that look far ahead: each run is looked at once, however often it begins anew.
    Inside(&'static str),
    /// Each match begins this many ASCII letters or digits before the mark.
    Before(usize, u8),
    /// Nothing is known; the expression is tried on every text. Slow, for new shapes.
    Anywhere,
}

use Start::{Before, Head, Inside};

const fn at(rule: &'static str, heads: &'static [&'static str], text: &'static str) -> Pattern {
    Pattern { rule, text, start: Head(heads) }
}

/// The patterns of section 15.2. `openai_marker` and `jwt` are looked for by what stands inside of them:
/// they look far ahead, and text made of their first letters only would be read again for each of them.
/// `context` has its value as a group: only the value is redacted, the words before it stay readable.
/// `private_key` goes on over the lines of the key, for the same reason: they must go, too.
pub const PATTERNS: &[Pattern] = &[
    at("anthropic", &["sk-ant-"], r"\bsk-ant-[A-Za-z0-9]{2,12}-[A-Za-z0-9_-]{20,}"),
    at("openai_project", &["sk-"], r"\bsk-(?:proj|svcacct|admin|service|None)-[A-Za-z0-9_-]{20,}"),
    Pattern {
        rule: "openai_marker",
        text: r"\bsk-[A-Za-z0-9_-]*T3BlbkFJ[A-Za-z0-9_-]{10,}",
        start: Inside("T3BlbkFJ"),
    },
    at("sk_generic", &["sk-"], r"\bsk-[A-Za-z0-9]{20,}"),
    at("openai_session", &["sess-"], r"\bsess-[A-Za-z0-9]{30,}"),
    at("google_key", &["AIza"], r"\bAIza[0-9A-Za-z_-]{35}"),
    at("google_newkey", &["AQ."], r"\bAQ\.[0-9A-Za-z_-]{20,}"),
    at("google_access", &["ya29."], r"\bya29\.[0-9A-Za-z_-]{20,}"),
    at("google_refresh", &["1//0"], r"\b1//0[0-9A-Za-z_-]{20,}"),
    at("google_secret", &["GOCSPX-"], r"\bGOCSPX-[0-9A-Za-z_-]{20,}"),
    at("baidu_v3", &["bce-v3/"], r"\bbce-v3/ALTAK[A-Z]{0,4}-[A-Za-z0-9]{16,32}/[0-9a-f]{32,64}"),
    at("baidu_ak", &["ALTAK"], r"\bALTAK[A-Za-z0-9-]{16,40}"),
    at("baidu_token", &["24.", "25."], r"\b2[45]\.[0-9a-f]{32}\.\d{5,8}\.\d{9,11}(?:\.\d+-\d+)?"),
    Pattern { rule: "xfyun_pair", text: r"\b[0-9a-f]{32}:[A-Za-z0-9+/=]{32}", start: Before(32, b':') },
    Pattern { rule: "xfyun_password", text: r"\b[A-Za-z]{20}:[A-Za-z]{20}\b", start: Before(20, b':') },
    at("tencent_id", &["AKID"], r"\bAKID[A-Za-z0-9_-]{13,80}"),
    Pattern {
        rule: "jwt",
        text: r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        start: Inside(".eyJ"),
    },
    at("platform_key", &["lgw_"], r"\blgw_[A-Za-z0-9_-]{20,}"),
    at("private_key", &["-----BEGIN "], r"-----BEGIN (?:[A-Z0-9 ]+ )?PRIVATE KEY-----[A-Za-z0-9+/=\s\\:,-]*"),
    at(
        "context",
        &["api", "secret", "access", "refresh", "client", "credential", "x-api", "authorization"],
        concat!(
            r"(?i)(?:api[_-]?key|api[_-]?secret|secret[_-]?(?:key|id)?|access[_-]?token|refresh[_-]?token",
            r"|client[_-]?secret|credential(?:_input)?|x-api-key|authorization)",
            r#"["'\s]{0,3}[:=]["'\s]{0,3}(?:bearer\s+)?([A-Za-z0-9_\-./+=:]{16,})"#,
        ),
    ),
];
