//! How a certificate looks: one HTML page from one run, no script, no outside asset, the same bytes for
//! ever. A released template never changes; a new look is a new number.

use std::sync::LazyLock;

use askama::Template;
use base64::Engine as _;
use kernel::{Digest, Time};
use serde_json::Value;

use crate::money;

/// Number of the newest template.
pub const TEMPLATE: u32 = 1;

const STYLE_V1: &str = include_str!("../templates/certificate_v1.css");

static STYLE_HASH_V1: LazyLock<String> = LazyLock::new(|| {
    let hash = Digest::of(STYLE_V1.as_bytes());
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(hash.as_bytes()))
});

/// The content policy of certificate pages: one known style, nothing else.
#[must_use]
pub fn content_policy() -> String {
    format!(
        "default-src 'none'; style-src '{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        *STYLE_HASH_V1
    )
}

/// A run that can't be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The run names a template that this program doesn't have.
    #[error("template {0:?} is not known; use a newer program")]
    Template(Option<u64>),
    /// A member is missing or of another kind.
    #[error("the run's member {0:?} is missing or of another kind")]
    Member(&'static str),
    /// The template itself failed.
    #[error("the page could not be made: {0}")]
    Render(String),
}

/// Renders the page of a run with the template that the run names.
///
/// # Errors
/// [`Error`] when the run lacks a member or names an unknown template.
pub fn render(run: &Value, run_hash: &str) -> Result<Vec<u8>, Error> {
    match run.get("template").and_then(Value::as_u64) {
        Some(1) => render_v1(run, run_hash),
        other => Err(Error::Template(other)),
    }
}

/// One line of the page.
struct Line {
    zh: &'static str,
    en: &'static str,
    text: String,
    code: bool,
}

#[derive(Template)]
#[template(path = "certificate_v1.html")]
struct PageV1<'a> {
    style: &'static str,
    style_hash: &'static str,
    test: bool,
    issuer: &'a str,
    issuer_url: &'a str,
    amount: Option<String>,
    status: &'a str,
    event: Vec<Line>,
    subject: Vec<Line>,
    proof: Vec<Line>,
}

fn render_v1(run: &Value, run_hash: &str) -> Result<Vec<u8>, Error> {
    let text =
        |pointer: &'static str| run.pointer(pointer).and_then(Value::as_str).ok_or(Error::Member(pointer));
    let issued_at = run.get("issued_at").and_then(Value::as_i64).ok_or(Error::Member("issued_at"))?;
    let page = PageV1 {
        style: STYLE_V1,
        style_hash: &STYLE_HASH_V1,
        test: text("/mode")? == "test",
        issuer: text("/issuer/name")?,
        issuer_url: text("/issuer/url")?,
        amount: amount(run)?,
        status: run.pointer("/subject/status").and_then(Value::as_str).unwrap_or("-"),
        event: event_lines(run, issued_at)?,
        subject: subject_lines(run),
        proof: vec![
            line("运行哈希", "Run hash", run_hash.to_owned(), true),
            line("事件指纹", "Event fingerprint", text("/event/fingerprint")?.to_owned(), true),
            line(
                "策略",
                "Policy",
                format!("{} · {}", text("/policy/version")?, text("/policy/digest")?),
                true,
            ),
        ],
    };
    page.render().map(String::into_bytes).map_err(|cause| Error::Render(cause.to_string()))
}

const fn line(zh: &'static str, en: &'static str, text: String, code: bool) -> Line {
    Line { zh, en, text, code }
}

fn amount(run: &Value) -> Result<Option<String>, Error> {
    let Some(minor) = run.pointer("/subject/amount_minor").and_then(Value::as_str) else { return Ok(None) };
    let minor = minor.parse().map_err(|_| Error::Member("/subject/amount_minor"))?;
    let currency = run.pointer("/subject/currency").and_then(Value::as_str).unwrap_or("");
    Ok(Some(money::display(minor, currency)))
}

fn event_lines(run: &Value, issued_at: i64) -> Result<Vec<Line>, Error> {
    let text = |pointer: &'static str| {
        run.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned).ok_or(Error::Member(pointer))
    };
    let mut lines = vec![
        line("引用", "Reference", text("/ref")?, true),
        line("事件编号", "Event ID", text("/event/id")?, true),
        line("事件类型", "Event type", text("/event/type")?, true),
        line("来源", "Sender", format!("{} · {}", text("/event/sender")?, text("/event/account")?), false),
    ];
    if let Some(sub) = run.pointer("/event/sub_account").and_then(Value::as_str) {
        lines.push(line("子账号", "Connected account", sub.to_owned(), true));
    }
    lines.push(line("签发时间", "Issued at", Time::from_seconds(issued_at).to_rfc3339_seconds(), false));
    Ok(lines)
}

fn subject_lines(run: &Value) -> Vec<Line> {
    let members = [
        ("对象", "Object", "object_id", true),
        ("会话", "Session (SID)", "session_id", true),
        ("付款", "Payment", "payment_id", true),
        ("商户参考号", "Merchant reference", "reference", false),
        ("商品", "Product", "product", false),
        ("价格", "Price", "price", false),
        ("目标", "Target", "target", false),
        ("邮箱", "Mail", "email", false),
    ];
    let found = members.iter().filter_map(|(zh, en, member, code)| {
        let text = run.get("subject")?.get(member)?.as_str()?;
        Some(line(zh, en, text.to_owned(), *code))
    });
    found.collect()
}
