//! The words of the announcements (AuditVisa specification, section 9), Chinese first, English second.
//! Pure: from a message to lines, and from lines to a text of limited length, plain or in the HTML that
//! Telegram knows.
//!
//! A repeat is worded as what it is, ordinary and handled (section 9.3). Values come from outside: each
//! stays on its own line, so that none can pose as another line. Not here: sending.

use serde_json::Value as Json;

use crate::message::Message;

/// Code points of one free value; a longer one is cut. Ids and amounts are far shorter.
const VALUE_MAX: usize = 300;
/// Event ids listed in a digest; the count says how many there are.
const LISTED_MAX: usize = 20;

/// An announcement as lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    text: String,
    /// A link: cut, it would lead elsewhere, so it stands whole or not at all.
    whole: bool,
}

impl Announcement {
    /// The announcement of a message, by the `kind` of its payload; a kind that has no words of its own is
    /// told by its event name and states.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        let mut text = Self { lines: Vec::new() };
        match message.field("kind") {
            Some("issued") => text.issued(message),
            Some("duplicate") => text.duplicate(message),
            Some("digest") => text.digest(message),
            _ => text.other(message),
        }
        text
    }

    /// As plain text of at most `limit` code points, the title in the first line.
    #[must_use]
    pub fn plain(&self, limit: usize) -> String {
        self.fitted(limit).join("\n")
    }

    /// In Telegram's HTML: the title bold, all else escaped. `limit` counts the code points that are
    /// shown, as Telegram does; a cut comes before the escaping, so that no escape is cut in two.
    #[must_use]
    pub fn html(&self, limit: usize) -> String {
        let mut lines = self.fitted(limit).into_iter().map(|line| escaped(&line));
        let title = lines.next().map(|title| format!("<b>{title}</b>"));
        title.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
    }

    /// On one line, for logs.
    #[must_use]
    pub fn one_line(&self) -> String {
        self.fitted(usize::MAX).join(" | ")
    }

    fn issued(&mut self, message: &Message) {
        let test = mark(message);
        self.say(&format!("{test}处理成功 / processed"));
        self.say("首次处理已完成，正式结果已生成。");
        self.say("First processing is complete; this is the formal result.");
        self.identity(message);
        self.links(message);
    }

    fn duplicate(&mut self, message: &Message) {
        let test = mark(message);
        self.say(&format!("{test}已处理，复用既有结果 / already processed (duplicate reused)"));
        self.say("检测到重复事件，已复用既有 AuditVisa 结果。未重新出证，当前链接为既有正式结果。");
        self.say("Duplicate event detected. Existing AuditVisa reused. No new certificate was issued; the links are the existing formal result.");
        self.calm();
        self.identity(message);
        self.links(message);
    }

    fn digest(&mut self, message: &Message) {
        let count = message.payload.get("count").and_then(value).unwrap_or_else(|| "0".into());
        let test = mark(message);
        self.say(&format!("{test}重复事件汇总：{count} / duplicates reused: {count}"));
        let (from, until) = (message.field("from"), message.field("until"));
        if let (Some(from), Some(until)) = (from, until) {
            self.value("时段 / Period", Some(format!("{from} – {until}")));
        }
        self.say("未重新出证，均已复用既有正式结果。");
        self.say("No new certificate was issued; each repeat was given the existing formal result.");
        self.calm();
        let events = message.payload.get("events").and_then(Json::as_array);
        for event in events.into_iter().flatten().take(LISTED_MAX) {
            let id = event.get("event_id").or_else(|| event.get("ref")).unwrap_or(event);
            self.value("Event ID", value(id));
        }
    }

    fn other(&mut self, message: &Message) {
        self.say(&format!("事件 / event: {}", message.event_name));
        self.value("对象 / Object", Some(format!("{} {}", message.object_type, message.object_id)));
        let state = |name| message.payload.get(name).filter(|state| !state.is_null()).map(Json::to_string);
        self.value("之前 / Before", state("before_state"));
        self.value("之后 / After", state("after_state"));
        self.value("Event ID", Some(message.event_id.to_string()));
    }

    fn calm(&mut self) {
        self.say("这是正常的重复投递，由幂等机制受控处理，无需任何操作。");
        self.say("An ordinary repeat delivery, handled as designed; there is nothing to do.");
    }

    fn identity(&mut self, message: &Message) {
        for (label, field) in
            [("Event ID", "event_id"), ("Ref", "ref"), ("SID", "sid"), ("金额 / Amount", "amount")]
        {
            self.value(label, message.payload.get(field).and_then(value));
        }
    }

    fn links(&mut self, message: &Message) {
        for (label, field) in [("HTML", "html_url"), ("ZIP", "zip_url"), ("JSON", "json_url")] {
            if let Some(link) = message.field(field) {
                self.lines.push(Line { text: format!("{label}: {}", tame(link)), whole: true });
            }
        }
    }

    fn say(&mut self, text: &str) {
        self.lines.push(Line { text: cut(&tame(text), VALUE_MAX), whole: false });
    }

    fn value(&mut self, label: &str, value: Option<String>) {
        if let Some(value) = value.map(|value| tame(&value)).filter(|value| !value.trim().is_empty()) {
            let text = format!("{label}: {}", cut(&value, VALUE_MAX));
            self.lines.push(Line { text, whole: false });
        }
    }

    /// The lines that fit into `limit` code points. Links come first: what they need is set aside before
    /// the other lines are cut; a link that doesn't fit even so is left out.
    fn fitted(&self, limit: usize) -> Vec<String> {
        let mut links = 0_usize;
        let kept: Vec<bool> = self
            .lines
            .iter()
            .map(|line| {
                let size = line.text.chars().count() + 1;
                // One code point is left for the title at least.
                let fits = !line.whole || links + size < limit;
                links += if line.whole && fits { size } else { 0 };
                fits
            })
            .collect();
        let mut free = limit - links.min(limit);
        let mut fitted = Vec::new();
        for (line, _) in self.lines.iter().zip(kept).filter(|(_, kept)| *kept) {
            if line.whole {
                fitted.push(line.text.clone());
            } else if free > 0 {
                let text = cut(&line.text, free);
                // The line break counts.
                free -= (text.chars().count() + 1).min(free);
                fitted.push(text);
            }
        }
        fitted
    }
}

fn mark(message: &Message) -> &'static str {
    match message.field("mode") {
        Some("test") => "【测试 TEST】",
        _ => "",
    }
}

/// Text and numbers of the payload; anything else has no place in a line.
fn value(json: &Json) -> Option<String> {
    match json {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// One line of it: line breaks and other controls become spaces, and marks that turn the direction of
/// what follows them are dropped (right-to-left letters themselves, and their plain marks, stay).
fn tame(text: &str) -> String {
    let turning = |c: char| matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let breaking = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    text.chars().filter(|c| !turning(*c)).map(|c| if breaking(c) { ' ' } else { c }).collect()
}

/// At most `limit` code points, an ellipsis in place of what was cut.
fn cut(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
