//! The codes of the protocol: status in each profile, fixed texts in both languages, never a value of the
//! request (sections 8, 9.1, 9.5). One table. Not here: codes of commands, which come out of the door as
//! stored answers.

use std::fmt;

use crate::answer::Profile;

/// One line of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// As it is sent.
    pub name: &'static str,
    /// HTTP status in the seed's profile.
    pub seed: u16,
    /// HTTP status in the draft's profile.
    pub draft: u16,
    /// `title` of a problem (RFC 9457); the IETF draft's own where it has one.
    pub title: &'static str,
    /// What happened and what to do next.
    pub message: &'static str,
    /// The same in Chinese.
    pub message_zh: &'static str,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Code {
    /// Its HTTP status.
    #[must_use]
    pub const fn status(&self, profile: Profile) -> u16 {
        match profile {
            Profile::Seed => self.seed,
            Profile::Draft => self.draft,
        }
    }
}

macro_rules! table {
    ($($constant:ident $name:literal $seed:literal $draft:literal $title:literal, $message:literal, $message_zh:literal;)*) => {
        $(
            #[doc = $title]
            pub const $constant: Code = Code {
                name: $name, seed: $seed, draft: $draft, title: $title, message: $message, message_zh: $message_zh,
            };
        )*
        /// All codes, in the order of the table.
        pub const ALL: &[Code] = &[$($constant),*];
    };
}

table! {
    // Section 7.2, and the titles of draft-ietf-httpapi-idempotency-key-header-07, section 2.7.
    REQUEST_ID_MISSING "REQUEST_ID_MISSING" 400 400 "X-Request-Id is missing",
        "send X-Request-Id with a new UUID for each attempt", "缺少 X-Request-Id，请为每次请求提供新的 UUID";
    REQUEST_ID_INVALID "REQUEST_ID_INVALID" 400 400 "X-Request-Id can't be used",
        "X-Request-Id is not one UUID of the form 8-4-4-4-12; send it once, and not the nil UUID",
        "X-Request-Id 不是 8-4-4-4-12 形式的 UUID，请只发送一次且不要使用全零 UUID";
    KEY_MISSING "IDEMPOTENCY_KEY_MISSING" 400 400 "Idempotency-Key is missing",
        "send Idempotency-Key, the same for every attempt of one operation",
        "缺少 Idempotency-Key，同一操作的每次重试须使用相同的值";
    KEY_INVALID "IDEMPOTENCY_KEY_INVALID" 400 400 "Idempotency-Key can't be used",
        "Idempotency-Key is not 16 to 128 visible ASCII characters; send it once",
        "Idempotency-Key 须为 16 至 128 个可见 ASCII 字符，且只发送一次";
    IN_PROGRESS "IDEMPOTENCY_IN_PROGRESS" 202 409 "A request is outstanding for this Idempotency-Key",
        "the first request with this key is still running; ask again after details.retry_after_ms",
        "该幂等键的首次请求仍在处理中，请在 details.retry_after_ms 之后重试";
    MISMATCH "IDEMPOTENCY_PAYLOAD_MISMATCH" 409 422 "Idempotency-Key is already used",
        "this key belongs to another request; send that one again, or use a new key",
        "该幂等键已用于不同的请求，请重发原请求或更换幂等键";
    UNAVAILABLE "IDEMPOTENCY_UNAVAILABLE" 503 503 "Idempotency keys can't be checked just now",
        "the store of idempotency keys can't be used just now; send the same request with the same key again",
        "幂等存储暂不可用，请使用相同的幂等键重发同一请求";
    // Section 9.5.
    BODY_UNREADABLE "SUP_COM_4000" 400 400 "The body can't be read",
        "the body is not one JSON object with known names, each once; details say more",
        "请求体不是合法的 JSON 对象，或含重复、未知字段，见 details";
    FIELD_INVALID "SUP_COM_4001" 400 400 "A field is not valid",
        "a field is not valid; details.fields names it and the rule", "字段校验失败，见 details.fields";
    UNKNOWN "SUP_COM_4041" 404 404 "No such object", "no such object", "对象不存在";
    BODY_LATE "SUP_COM_4081" 408 408 "The body did not arrive in time",
        "the body did not arrive in time; send the whole request again", "请求体未在时限内到达，请重发整个请求";
    BODY_LARGE "SUP_COM_4131" 413 413 "The body is larger than allowed",
        "the body is larger than allowed; send a smaller one", "请求体超过大小限制";
    BODY_TYPE "SUP_COM_4151" 415 415 "Bodies of this type are not taken",
        "send the body as application/json, without Content-Encoding",
        "请以 application/json 发送请求体，不要使用 Content-Encoding";
    INTERNAL "SUP_COM_5001" 500 500 "The server made a mistake",
        "the server made a mistake; give the operator the request id", "服务器内部错误，请向运营人员提供 request_id";
    DEPENDENCY "SUP_COM_5031" 503 503 "Something that is needed can't be used just now",
        "something that is needed can't be used just now; details tell whether to try again",
        "依赖的服务暂不可用，是否可重试见 details";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_of_a_code_are_its_status() {
        for code in ALL {
            let digits = code.name.rsplit('_').next().and_then(|last| last.get(..3)?.parse().ok());
            assert!(digits.is_none_or(|status: u16| (status, status) == (code.seed, code.draft)), "{code:?}");
            let same = code.seed == code.draft;
            assert!(same || [MISMATCH, IN_PROGRESS].contains(code), "{code:?}");
        }
    }

    #[test]
    fn no_two_codes_share_a_name_and_each_speaks_both_languages() {
        let mut names: Vec<_> = ALL.iter().map(|code| code.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        for code in ALL {
            assert!(code.message.is_ascii() && !code.message.ends_with('.'), "{code:?}");
            assert!(!code.message_zh.is_ascii() && !code.message_zh.ends_with('。'), "{code:?}");
        }
    }
}
