//! The one shape of answers (section 8): `{"request_id","data"}`, lists with `pagination`, errors with fixed texts.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::Response;
use onceseal_http::headers::REQUEST_ID;
use serde::Serialize;
use serde_json::{Map, Value as Json};

/// An error's fixed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) name: &'static str,
    pub(crate) status: u16,
    pub(crate) message: &'static str,
    pub(crate) message_zh: &'static str,
}

pub(crate) const QUERY_KEY: Fixed = Fixed {
    name: "QUERY_KEY_NOT_ALLOWED",
    status: 401,
    message: "a credential in the URL is not accepted; send Authorization: Bearer, and replace that credential",
    message_zh: "URL 中不允许携带凭证，请使用 Authorization: Bearer，并更换该凭证",
};
pub(crate) const QUERY_MALFORMED: Fixed = Fixed {
    name: "SUP_COM_4002",
    status: 400,
    message: "the query string can't be read; check its percent-encoding, names and values",
    message_zh: "查询字符串格式错误，请检查编码、参数名与取值",
};
pub(crate) const KEY_INVALID: Fixed = Fixed {
    name: "IDEMPOTENCY_KEY_INVALID",
    status: 400,
    message: "Idempotency-Key looks like a credential; send a random one, and replace that credential",
    message_zh: "Idempotency-Key 疑似凭证，请改用随机值，并更换该凭证",
};
pub(crate) const LINK_ENDED: Fixed = Fixed {
    name: "SUP_SET_4101",
    status: 410,
    message: "this link has ended; ask for the statement again",
    message_zh: "下载链接已过期，请重新获取对账单",
};
pub(crate) const ROUTE_UNKNOWN: Fixed = Fixed {
    name: "SUP_COM_4041",
    status: 404,
    message: "there is no such route; the API reference lists all",
    message_zh: "路径不存在，请查阅 API 文档",
};
pub(crate) const METHOD: Fixed = Fixed {
    name: "SUP_COM_4051",
    status: 405,
    message: "this route does not take this method; Allow lists those that it takes",
    message_zh: "该路径不支持此方法，可用方法见 Allow",
};
pub(crate) const TOO_MANY: Fixed = Fixed {
    name: "SUP_COM_4291",
    status: 429,
    message: "too many requests; come again after Retry-After",
    message_zh: "请求过于频繁，请在 Retry-After 之后重试",
};
pub(crate) const WITHHELD: Fixed = Fixed {
    name: "SUP_COM_5002",
    status: 500,
    message: "the answer was withheld because it looked like it held a credential; the platform was alerted",
    message_zh: "响应疑似包含凭证，已拦截并告警",
};
pub(crate) const INTERNAL: Fixed = Fixed {
    name: "SUP_COM_5001",
    status: 500,
    message: "the server made a mistake; give the operator the request id",
    message_zh: "服务器内部错误，请向运营人员提供 request_id",
};
pub(crate) const DEPENDENCY: Fixed = Fixed {
    name: "SUP_COM_5031",
    status: 503,
    message: "something that is needed can't be used just now; try again in a moment",
    message_zh: "依赖的服务暂不可用，请稍后重试",
};

impl From<auth::Code> for Fixed {
    fn from(code: auth::Code) -> Self {
        Self {
            name: code.name(),
            status: code.status(),
            message: code.message(),
            message_zh: code.message_zh(),
        }
    }
}

impl From<supply::Code> for Fixed {
    fn from(code: supply::Code) -> Self {
        Self {
            name: code.as_str(),
            status: code.status(),
            message: code.message(),
            message_zh: code.message_zh(),
        }
    }
}

#[derive(Serialize)]
struct Failed<'a> {
    request_id: &'a str,
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'a str,
    message: &'a str,
    message_zh: &'a str,
    details: &'a Map<String, Json>,
}

#[derive(Serialize)]
struct Good<'a, T> {
    request_id: &'a str,
    data: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    pagination: Option<Pagination>,
}

/// Which page of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Pagination {
    pub(crate) page: u32,
    pub(crate) page_size: u32,
    pub(crate) total: i64,
}

fn response(status: u16, request_id: &str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    // All statuses here are constants of this crate and of `auth`.
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("cache-control"), HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::try_from(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

/// An error with details.
pub(crate) fn error(request_id: &str, fixed: Fixed, details: &Map<String, Json>) -> Response {
    let Fixed { name, status, message, message_zh } = fixed;
    let failed = Failed { request_id, error: Error { code: name, message, message_zh, details } };
    // Strings and a map always have a JSON form.
    let mut answer = response(status, request_id, serde_json::to_string(&failed).unwrap_or_default());
    if status == 401 {
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

/// An error without.
pub(crate) fn plain(request_id: &str, fixed: Fixed) -> Response {
    error(request_id, fixed, &Map::new())
}

/// An error that may be gone after so many seconds.
pub(crate) fn later(request_id: &str, fixed: Fixed, seconds: u64) -> Response {
    let mut details = Map::new();
    details.insert("retryable".into(), true.into());
    details.insert("retry_after_seconds".into(), seconds.into());
    let mut answer = error(request_id, fixed, &details);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

/// Data that was read.
pub(crate) fn data<T: Serialize>(request_id: &str, data: &T) -> Response {
    good(request_id, data, None)
}

/// A page of data that was read.
pub(crate) fn page<T: Serialize>(request_id: &str, data: &T, pagination: Pagination) -> Response {
    good(request_id, data, Some(pagination))
}

fn good<T: Serialize>(request_id: &str, data: &T, pagination: Option<Pagination>) -> Response {
    match serde_json::to_string(&Good { request_id, data, pagination }) {
        Ok(body) => response(200, request_id, body),
        Err(error) => {
            tracing::error!(%error, "an answer has no JSON form");
            plain(request_id, INTERNAL)
        }
    }
}
