//! What an HTTP answer of the Bot API means for the message. Pure: status, one header and the body in, a
//! verdict out. `error_code` and `parameters` are what to act on; the description is for people, with one
//! exception: only it tells that markup could not be parsed.

use std::time::Duration;

use serde_json::Value as Json;

use crate::channel::{Outcome, Reach};

/// The wait after a 429 that doesn't tell one.
const UNTOLD: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stands in the chat.
    Sent { id: Option<i64> },
    /// Not sent: the group became a supergroup with this id.
    Moved { to: i64 },
    /// Not sent: the markup was refused.
    Unparsable { words: String },
    /// All other ends.
    Ended(Outcome),
}

/// `body` may be cut short or empty.
pub(super) fn judge(status: u16, retry_after: Option<&str>, body: &[u8]) -> Verdict {
    let answer: Json = serde_json::from_slice(body).unwrap_or(Json::Null);
    let words = answer.get("description").and_then(Json::as_str).unwrap_or("no explanation").to_owned();
    let parameter = |name: &str| answer.get("parameters").and_then(|parameters| parameters.get(name));
    match status {
        200 if answer.get("ok") == Some(&Json::Bool(true)) => {
            Verdict::Sent { id: answer.pointer("/result/message_id").and_then(Json::as_i64) }
        }
        200..=299 => uncertain("the answer could not be read; the message may have arrived".into()),
        400 => match parameter("migrate_to_chat_id").and_then(Json::as_i64) {
            Some(to) if to != 0 => Verdict::Moved { to },
            _ if words.to_lowercase().contains("can't parse entities") => Verdict::Unparsable { words },
            _ => refused(status, &words, Reach::Message),
        },
        // The whole bot: revoked, or this is not the Bot API.
        300..=399 | 401 | 404 | 407 | 421 => {
            let words = format!("{words}; check the bot token and the base address, then re-drive");
            refused(status, &words, Reach::Channel)
        }
        408 => uncertain(format!("HTTP 408: {words}; the message may have arrived")),
        // A self-hosted server that is being closed may answer so to a message it has sent; the public
        // service does not, and there nothing tells the two apart.
        429 => {
            let told = parameter("retry_after").and_then(Json::as_u64);
            let told = told.or_else(|| retry_after.and_then(|text| text.trim().parse().ok()));
            let after = told.map_or(UNTOLD, Duration::from_secs);
            Verdict::Ended(Outcome::Retry { cause: format!("HTTP 429: {words}"), after: Some(after) })
        }
        402..=499 => refused(status, &words, Reach::Message),
        _ => uncertain(format!("HTTP {status}: {words}; the message may have arrived")),
    }
}

fn refused(status: u16, words: &str, reach: Reach) -> Verdict {
    Verdict::Ended(Outcome::Refused { cause: format!("HTTP {status}: {words}"), reach })
}

const fn uncertain(cause: String) -> Verdict {
    Verdict::Ended(Outcome::Uncertain { cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(retry_after: Option<&str>, body: &str) -> Option<Duration> {
        match judge(429, retry_after, body.as_bytes()) {
            Verdict::Ended(Outcome::Retry { after, .. }) => after,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wait_is_read_from_the_body_then_the_header_then_assumed() {
        let body = r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 5","parameters":{"retry_after":5}}"#;
        assert_eq!(after(Some("9"), body), Some(Duration::from_secs(5)));
        assert_eq!(after(Some("9"), "{}"), Some(Duration::from_secs(9)));
        for odd in
            [r#"{"parameters":{"retry_after":"abc"}}"#, r#"{"parameters":{"retry_after":-1}}"#, "<html>"]
        {
            assert_eq!(after(Some("abc"), odd), Some(UNTOLD), "{odd}");
            assert_eq!(after(None, odd), Some(UNTOLD), "{odd}");
        }
    }

    #[test]
    fn only_a_readable_yes_is_a_yes() {
        let yes = br#"{"ok":true,"result":{"message_id":42}}"#;
        assert_eq!(judge(200, None, yes), Verdict::Sent { id: Some(42) });
        for odd in [&b"{\"ok\":true,\"resu"[..], b"", b"<html>", b"{\"ok\":false}", b"[]"] {
            assert!(matches!(judge(200, None, odd), Verdict::Ended(Outcome::Uncertain { .. })));
        }
    }

    #[test]
    fn each_status_has_its_class() {
        let class = |status| match judge(status, None, b"") {
            Verdict::Ended(Outcome::Refused { reach: Reach::Channel, .. }) => "channel",
            Verdict::Ended(outcome) => outcome.as_str(),
            _ => "other",
        };
        let cases = [
            ("channel", [301, 302, 401, 404, 407, 421].as_slice()),
            ("refused", &[400, 403, 409, 413, 422]),
            ("retry", &[429]),
            ("uncertain", &[204, 408, 500, 502, 503, 504, 520]),
        ];
        for (expected, statuses) in cases {
            assert!(statuses.iter().all(|status| class(*status) == expected), "{expected}");
        }
    }

    #[test]
    fn a_moved_chat_and_refused_markup_are_told_apart_from_other_refusals() {
        let moved = br#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890}}"#;
        assert_eq!(judge(400, None, moved), Verdict::Moved { to: -1_001_234_567_890 });
        let markup = br#"{"ok":false,"error_code":400,"description":"Bad Request: can't parse entities: Character '.' is reserved"}"#;
        assert!(matches!(judge(400, None, markup), Verdict::Unparsable { .. }));
        let gone = br#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#;
        assert!(matches!(judge(400, None, gone), Verdict::Ended(Outcome::Refused { .. })));
    }
}
