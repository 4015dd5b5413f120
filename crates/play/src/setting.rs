//! The configuration under which a play needs no patience: nothing is held, reviewed or cooled down, limits are far
//! away, provider and SMS service are on loopback.

use std::fmt::Write as _;

use axum::Router;
use tokio::net::TcpListener;

use crate::provider::QUOTA_HEADER;

/// The sections `[supply]` of `onceseal.toml`; `provider` and `phone` are addresses, `token_file` holds any bearer
/// token for the SMS service. `more` are further lines of `[supply]` itself. A payout begins at once.
#[must_use]
pub fn supply(provider: &str, phone: &str, token_file: &str, more: &str) -> String {
    written(provider, (phone, token_file), (0, more))
}

/// The same, but payouts begin after so many seconds.
#[must_use]
pub fn reviewed(provider: &str, phone: &str, token_file: &str, seconds: u32) -> String {
    written(provider, (phone, token_file), (seconds, ""))
}

fn written(provider: &str, (phone, token_file): (&str, &str), (review, more): (u32, &str)) -> String {
    let mut text = format!(
        "[supply]\nenabled = true\nwithdraw_enabled = true\nearnings_hold_days = 0\nwithdraw_cooldown_seconds = 0\n\
         withdraw_review_seconds = {review}\nwithdraw_daily_max = \"100000000.00\"\nwithdraw_sms_per_minute = 60000\n\
         withdraw_sms_per_day = 1000000\nverify_per_minute = 100000\nscheduler_interval = \"200ms\"\n{more}\n\
         [supply.sms]\nsender = \"http\"\nurl = {phone:?}\ntoken = {{ file = {token_file:?} }}\nremoves_repeats = true\n\n\
         [supply.providers]\nquota_header = {QUOTA_HEADER:?}\n"
    );
    for name in ["openai", "anthropic", "gemini", "baidu", "xfyun", "tencent", "tencent_signed"] {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{name} = {provider:?}");
    }
    text
}

/// Serves until the runtime ends; the base address.
pub(crate) fn serve(listener: TcpListener, router: Router) -> std::io::Result<String> {
    let address = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}
