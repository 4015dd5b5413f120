//! Every public code: its status, its title in both languages, and what to do. One table; `docs/errors` has
//! a page for each line, and a test compares the two.
//!
//! Not here: texts with values; those are the [`crate::problem::Problem`]'s.

use std::fmt;

/// One line of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// Stable name, also the name of its page in `docs/errors`.
    pub name: &'static str,
    /// HTTP status that it comes with.
    pub status: u16,
    /// Short title, the same for every occurrence (RFC 9457, section 3.1.3).
    pub title: &'static str,
    /// The title in Chinese.
    pub title_zh: &'static str,
    /// What the one who asked does next.
    pub next: &'static str,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Where the pages of the codes stand; `type` of a problem is this and the code.
pub const TYPE_BASE: &str = "https://onceseal.dev/errors/";

macro_rules! table {
    ($($name:ident $status:literal $title:literal $title_zh:literal $next:literal;)*) => {
        $(
            #[doc = $title]
            pub const $name: Code = Code {
                name: stringify!($name), status: $status, title: $title, title_zh: $title_zh, next: $next,
            };
        )*
        /// All codes, in the order of the table.
        pub const ALL: &[Code] = &[$($name),*];
    };
}

table! {
    // The way to an endpoint.
    ROUTE_UNKNOWN 404 "There is nothing at this address" "该地址不存在"
        "compare the address; paths are lower case and have no slash at the end";
    SOURCE_UNKNOWN 404 "No source has this name" "未配置该来源"
        "send to /webhooks/ and the name of a configured source, in lower case, without a slash at the end";
    METHOD_NOT_ALLOWED 405 "This address does not take that method" "该地址不支持此请求方法"
        "use a method that the Allow header names";
    BODY_TOO_LARGE 413 "The body is larger than allowed" "请求体超过大小限制"
        "send a smaller body, or raise the limit in the server's configuration";
    BODY_TIMEOUT 408 "The body did not arrive in time" "请求体未在时限内到达"
        "send the whole request again, without pauses";
    BODY_UNREADABLE 400 "The body can't be read from the connection" "无法读取请求体"
        "send the request again with a right length or right chunks";
    ENCODING_UNSUPPORTED 415 "Encoded bodies are not taken" "不支持压缩或编码的请求体"
        "send the body as it was signed, without Content-Encoding";
    CONTENT_TYPE_UNSUPPORTED 415 "Bodies of this type are not taken" "不支持该内容类型"
        "send the event as JSON (or as the form that the sender uses)";
    // Deliveries that allow no identity (crate `source`).
    SIG_MISSING 401 "The signature is missing" "缺少签名"
        "set the signing secret at the sender, and let proxies pass the header";
    SIG_MALFORMED 400 "The signature can't be read" "签名格式错误"
        "send the signature header as the sender made it, once and unchanged";
    SIG_MISMATCH 401 "No signature matches the body" "签名不匹配"
        "compare the secret of this endpoint and mode; nothing between may change the body";
    SIG_STALE 400 "The signature is too old" "签名已过期"
        "compare the clocks, and look for a replay or a slow queue in between";
    SIG_FUTURE 400 "The signature is dated in the future" "签名时间超前"
        "compare the clocks of the server and of the sender";
    SIG_KEY_UNKNOWN 401 "The key that the delivery names is not configured" "未配置通知所指明的公钥"
        "add the platform's current certificate or public key to this source";
    TOKEN_INVALID 401 "The source's bearer token is missing or wrong" "来源的访问令牌缺失或无效"
        "send `Authorization: Bearer` with a live token of this source";
    BODY_EMPTY 400 "The body is empty" "请求体为空"
        "send the body of the event as the sender made it";
    BODY_NOT_UTF8 400 "The body is not UTF-8" "请求体不是 UTF-8"
        "send the body of the event as the sender made it";
    BODY_NOT_JSON 400 "The body is not JSON" "请求体不是 JSON"
        "send the body of the event as the sender made it";
    BODY_NOT_OBJECT 400 "The body is not a JSON object" "请求体不是 JSON 对象"
        "send the body of the event as the sender made it";
    BODY_NOT_FORM 400 "The body is not a form" "请求体不是表单"
        "send the body of the event as the sender made it";
    BODY_TOO_DEEP 400 "The body is nested too deep" "请求体嵌套过深"
        "send the body of the event as the sender made it";
    BODY_DUPLICATE_NAME 400 "The body has a name twice" "请求体含重复字段名"
        "send the body of the event as the sender made it";
    ID_MISSING 400 "The event has no id" "事件缺少标识"
        "send the event with its id; without one a repeat can't be told from a new event";
    ID_INVALID 400 "The event's id can't be used" "事件标识无效"
        "send the id as the sender made it";
    FIELD_INVALID 400 "A field has an impossible value" "字段值无效"
        "send the field as the sender's documentation states it";
    RESOURCE_UNREADABLE 400 "The encrypted resource can't be opened" "无法解密通知内容"
        "compare the APIv3 key of this source with the merchant platform";
    // Deliveries that can't be acknowledged yet (crate `certify`).
    EVENT_IN_PROGRESS 503 "The first delivery is still being worked on" "首次投递仍在处理中"
        "send the same delivery again after the time in Retry-After; nothing was acknowledged";
    EVENT_ORPHANED 503 "The event's record and files disagree" "事件的记录与产物不一致"
        "send the same delivery again later; an operator runs `onceseal inspect` and `onceseal reconcile`";
    STORE_UNAVAILABLE 503 "The store can't be used just now" "存储暂不可用"
        "try again after the time in Retry-After; nothing was acknowledged";
    STORE_FENCED 503 "This installation moves to another database" "该实例正在迁移到另一数据库"
        "send the same delivery again after the time in Retry-After; nothing was acknowledged";
    ANSWER_TIMEOUT 503 "The answer took too long" "处理超时"
        "send the same delivery again after the time in Retry-After; what was begun is finished and then found";
    INTERNAL_ERROR 500 "The server made a mistake" "服务器内部错误"
        "try again; if it stays, give the operator the request id";
    // Certificates.
    CERTIFICATE_UNKNOWN 404 "There is no certificate at this address" "该地址没有证书"
        "compare the link with the one in the answer or the announcement";
    CERTIFICATE_ERASED 410 "The certificate's content was erased on request" "证书内容已应请求删除"
        "nothing; its hashes and its audit are kept";
    CERTIFICATE_DAMAGED 503 "The certificate's file is damaged" "证书文件已损坏"
        "an operator runs `onceseal inspect` and restores the database or the keys from a backup";
    CERTIFICATE_UNAVAILABLE 503 "The certificate can't be read just now" "暂时无法读取证书"
        "try again after the time in Retry-After";
    KEYS_UNUSABLE 503 "The signing keys can't be used" "签名密钥不可用"
        "an operator runs `onceseal keys` and restores the keys from a backup";
    KEYS_STATE 409 "The keys' state does not allow this" "密钥的当前状态不允许该操作"
        "look at keys and servers with `onceseal keys status`";
    // Operators.
    AUTH_MISSING_BEARER 401 "An operator token is needed" "需要操作员令牌"
        "send `Authorization: Bearer` with a token from `onceseal token issue`";
    AUTH_INVALID_FORMAT 401 "The Authorization header can't be read" "Authorization 请求头格式错误"
        "send one header `Authorization: Bearer` followed by the token";
    AUTH_INVALID_TOKEN 401 "The token is not known" "令牌无效"
        "send a token from `onceseal token issue`, whole and unchanged";
    AUTH_TOKEN_INACTIVE 401 "The token was revoked or has expired" "令牌已吊销或过期"
        "issue a new one with `onceseal token issue`";
    AUTH_TOKEN_STATUS_UNAVAILABLE 503 "The token can't be checked just now" "暂时无法核验令牌"
        "try again after the time in Retry-After";
    QUERY_KEY_NOT_ALLOWED 401 "Credentials in the address are refused" "地址中不得携带凭据"
        "take the credential out of the query, treat it as leaked, and send it in the Authorization header";
    QUERY_INVALID 400 "A query parameter can't be used" "查询参数无效"
        "correct the parameter that the detail names; docs/api.md lists them";
    INPUT_INVALID 400 "The input can't be used" "输入无法使用"
        "correct what the detail names";
    EVENT_UNKNOWN 404 "The event is not known" "没有这个事件"
        "compare the id; `onceseal list` shows what is known";
    EVENT_AMBIGUOUS 409 "Several sources know this event id" "多个来源有这个事件编号"
        "give `?source=` or one of the references that the detail names";
    EVENT_STATE 409 "The event's state does not allow this" "事件的当前状态不允许该操作"
        "look at the event with `onceseal inspect`";
    ANNOUNCEMENT_UNKNOWN 404 "The announcement is not known" "没有这个通知"
        "compare the number; `onceseal announcements` shows the held ones";
    ANNOUNCEMENT_STATE 409 "The announcement's state does not allow this" "通知的当前状态不允许该操作"
        "look at the held announcements again; somebody may have acted before you";
    OPERATOR_TOKEN_TAKEN 409 "An active token has this name" "已有同名的有效令牌"
        "choose another name, or revoke the other token first";
    OPERATOR_TOKEN_UNKNOWN 404 "No active token has this name" "没有该名称的有效令牌"
        "compare the name with the list of tokens";
}

/// The line of a code that a lower crate names. One that is missing here keeps its name; a test compares the
/// table with what the lower crates name.
#[must_use]
pub fn named(name: &'static str) -> Code {
    ALL.iter().find(|code| code.name == name).copied().unwrap_or(Code { name, ..INTERNAL_ERROR })
}
