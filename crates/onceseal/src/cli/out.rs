//! What is printed, and how a command ends. Colour only on a terminal; a closed pipe is no error.

use std::io::{IsTerminal as _, Write as _};

use serde_json::Value as Json;

/// How the program ends; `docs/command-line.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// All is well.
    Fine = 0,
    /// It could not be done.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The file is not valid, or the check found problems.
    Problems = 3,
    /// The file is intact, its signer unknown.
    SignerUnknown = 4,
    /// The file is valid, its date only claimed.
    DateClaimed = 5,
    /// There is no such thing.
    NothingFound = 6,
    /// A server uses the folder, or none can be reached.
    Server = 7,
}

/// Why a command stopped.
#[derive(Debug)]
pub struct Stop {
    /// How the program ends.
    pub exit: Exit,
    /// For the person: what, with which value, what now.
    pub text: String,
}

impl Stop {
    /// With this end and text.
    #[must_use]
    pub fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into() }
    }

    /// A plain failure.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(Exit::Failed, text)
    }
}

impl From<crate::config::Fault> for Stop {
    fn from(fault: crate::config::Fault) -> Self {
        Self::new(Exit::Usage, fault.to_string())
    }
}

impl From<std::io::Error> for Stop {
    fn from(cause: std::io::Error) -> Self {
        Self::failed(cause.to_string())
    }
}

impl From<store::Error> for Stop {
    fn from(cause: store::Error) -> Self {
        let text = cause.to_string();
        let in_use = text.contains("another server uses this data folder");
        Self::new(if in_use { Exit::Server } else { Exit::Failed }, text)
    }
}

/// What a command gives.
pub type Ended = Result<Exit, Stop>;

/// Where output goes.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    /// Whether machines read it.
    pub json: bool,
    color: bool,
}

/// How a word is set off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// Controlled, worth a look.
    Calm,
    /// Not as it should be.
    Bad,
    /// Less important.
    Faint,
    /// A heading.
    Strong,
}

impl Out {
    /// For this program's standard output.
    #[must_use]
    pub fn new(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { json, color: !json && !plain && std::io::stdout().is_terminal() }
    }

    /// Prints a line.
    pub fn line(self, text: impl std::fmt::Display) {
        if writeln!(std::io::stdout().lock(), "{text}").is_err() {
            // Whoever read has gone (`| head`); there is nobody to tell.
            std::process::exit(Exit::Fine as i32);
        }
    }

    /// Prints JSON, indented for people, in one line for machines.
    pub fn value(self, value: &Json) {
        if self.json { self.line(value) } else { self.line(format_args!("{value:#}")) }
    }

    /// Prints an answer: JSON for machines, its plain members line by line for people.
    pub fn answer(self, value: &Json) {
        let Some(members) = value.as_object().filter(|_| !self.json) else { return self.value(value) };
        let wide = members.keys().map(|name| name.chars().count()).max().unwrap_or_default();
        for (name, member) in members {
            match member {
                Json::Null => {}
                Json::Array(_) | Json::Object(_) => self.line(format_args!("{name:<wide$}  {member:#}")),
                _ => self.line(format_args!("{name:<wide$}  {}", text(value, name))),
            }
        }
    }

    /// A word in a tone.
    #[must_use]
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Calm => "36",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Prints rows under headings, columns as wide as their widest cell.
    pub fn table(self, headings: &[&str], rows: &[Vec<String>]) {
        let mut widths: Vec<usize> = headings.iter().map(|text| width(text)).collect();
        for row in rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = (*widest).max(width(cell));
            }
        }
        let headings: Vec<String> = headings.iter().map(|text| (*text).to_owned()).collect();
        self.line(self.paint(Tone::Strong, &padded(&headings, &widths)));
        for row in rows {
            self.line(padded(row, &widths));
        }
    }
}

fn padded(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, wide) in cells.iter().zip(widths) {
        line.push_str(cell);
        line.push_str(&" ".repeat(wide.saturating_sub(width(cell)) + 2));
    }
    line.truncate(line.trim_end().len());
    line
}

/// A text from outside without what would command a terminal.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A member's text for people: `-` where there is none.
#[must_use]
pub fn text(value: &Json, name: &str) -> String {
    match value.get(name) {
        None | Some(Json::Null) => "-".into(),
        Some(Json::String(text)) => clean(text),
        Some(other) => clean(&other.to_string()),
    }
}

/// Places on the screen: colour codes take none, wide characters two.
fn width(text: &str) -> usize {
    let mut places = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                chars.by_ref().find(|end| *end == 'm');
            }
            '\u{1100}'..='\u{115f}'
            | '\u{2e80}'..='\u{a4cf}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{ff00}'..='\u{ff60}' => places += 2,
            _ => places += 1,
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_with_colour_and_wide_characters() {
        let widths = [4, 2];
        assert_eq!(padded(&["\x1b[32mok\x1b[0m".into(), "x".into()], &widths), "\x1b[32mok\x1b[0m    x");
        assert_eq!(padded(&["重复".into(), "x".into()], &widths), "重复  x");
    }
}
