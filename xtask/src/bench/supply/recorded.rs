//! From the server's log of statements to a script for pgbench: what one request sent to the database, for any copy
//! of the supplier. An id becomes the variable of the copy's id, a random name one that is made of the copy's
//! number; all other values stay as they were, since the copies are alike.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};

use super::seed::{RANGE, STEP};

/// A statement with its values, in the order in which the server got it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    process: String,
    text: String,
    values: Vec<Option<String>>,
}

/// What every request reads before its transactions: the state of its token, and the record of its key.
const ENTRY: [&str; 2] = ["from auth_tokens", "from supply_idempotency_record"];

/// The statements of one request as two round trips a transaction: reads, then writes.
///
/// # Errors
/// The log has no transaction with one of these marks.
pub(super) fn script(log: &str, marks: &[&str], copy: i64) -> Result<String> {
    let statements = read(log);
    let mut script = Script { copy, record: record(&statements), ..Script::default() };
    let mut found = false;
    for transaction in transactions(&statements) {
        let has =
            |marks: &[&str]| transaction.iter().any(|one| marks.iter().any(|mark| one.text.contains(mark)));
        let own = has(marks);
        if own || has(&ENTRY) {
            script.add(&transaction);
        }
        found |= own;
    }
    ensure!(found, "the server's log has no transaction of the request");
    Ok(script.finished())
}

/// The id that the database gave the key's record, where later statements name it.
fn record(statements: &[Statement]) -> Option<String> {
    let of = |one: &Statement| {
        let (_, place) =
            one.text.split_once("update supply_idempotency_record")?.1.split_once("where id = $")?;
        let digits: String = place.chars().take_while(char::is_ascii_digit).collect();
        one.values.get(digits.parse::<usize>().ok()?.checked_sub(1)?)?.clone()
    };
    statements.iter().find_map(of)
}

/// In the order of their ends; a statement outside of `begin` and `commit` is one of its own.
fn transactions(statements: &[Statement]) -> Vec<Vec<&Statement>> {
    let mut open: BTreeMap<&str, Vec<&Statement>> = BTreeMap::new();
    let mut done = Vec::new();
    for one in statements {
        let word = one.text.trim_start().to_ascii_lowercase();
        let running = open.entry(&one.process).or_default();
        if word.starts_with("begin") {
            running.clear();
        }
        running.push(one);
        if word.starts_with("commit") || running.len() == 1 && !word.starts_with("begin") {
            done.push(std::mem::take(running));
        }
    }
    done
}

/// Lines of the log: `time [process] user message`; a message goes on in lines that begin with a tab.
fn read(log: &str) -> Vec<Statement> {
    let mut entries: Vec<(String, String)> = Vec::new();
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix('\t') {
            if let Some((_, text)) = entries.last_mut() {
                text.push('\n');
                text.push_str(rest);
            }
        } else if let Some((process, text)) = entry(line) {
            entries.push((process, text));
        }
    }
    let mut statements: Vec<Statement> = Vec::new();
    for (process, text) in entries {
        if let Some(text) = text.split_once("LOG:  execute ").and_then(|(_, rest)| rest.split_once(": ")) {
            statements.push(Statement { process, text: text.1.to_owned(), values: Vec::new() });
        } else if let Some((_, text)) = text.split_once("LOG:  statement: ") {
            statements.push(Statement { process, text: text.to_owned(), values: Vec::new() });
        } else if let Some((_, text)) = text.split_once("DETAIL:  parameters: ") {
            let last = statements.iter_mut().rev().find(|one| one.process == process);
            last.into_iter().for_each(|one| one.values = values(text));
        }
    }
    statements
}

fn entry(line: &str) -> Option<(String, String)> {
    let (head, text) = line.split_once("] ")?;
    let (_, process) = head.split_once('[')?;
    process.bytes().all(|byte| byte.is_ascii_digit()).then(|| (process.to_owned(), text.to_owned()))
}

/// `$1 = 'text', $2 = NULL, …`, a quote in a text doubled.
fn values(text: &str) -> Vec<Option<String>> {
    let mut values = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(" = ") {
        let Some(quoted) = after.strip_prefix('\'') else {
            values.push(None);
            rest = after.split_once(", $").map_or("", |(_, rest)| rest);
            continue;
        };
        let (value, end) = unquoted(quoted);
        values.push(Some(value));
        rest = quoted.get(end..).unwrap_or_default();
    }
    values
}

/// A text up to its closing quote, and how many bytes it took.
fn unquoted(quoted: &str) -> (String, usize) {
    let mut value = String::new();
    let mut letters = quoted.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '\'' {
            if letters.peek().is_none_or(|(_, next)| *next != '\'') {
                return (value, at + 1);
            }
            letters.next();
        }
        value.push(letter);
    }
    (value, quoted.len())
}

/// How the statement begins that puts a key's record.
const CLAIM: &str = "insert into supply_idempotency_record (";

/// What pgbench runs.
#[derive(Default)]
struct Script {
    copy: i64,
    /// The id of the key's record: told to the database, since pgbench can't take it from there to the next trip.
    record: Option<String>,
    /// Ids of the original by the variable that holds the copy's.
    ids: BTreeMap<i64, String>,
    body: String,
}

impl Script {
    fn add(&mut self, transaction: &[&Statement]) {
        let writes = |one: &&Statement| {
            let word = one.text.trim_start().to_ascii_lowercase();
            ["insert", "update", "delete", "with hit as"].iter().any(|verb| word.starts_with(verb))
        };
        let first = transaction.iter().position(writes).unwrap_or(transaction.len());
        for trip in [transaction.get(..first), transaction.get(first..)].into_iter().flatten() {
            if trip.is_empty() {
                continue;
            }
            self.body.push_str("\\startpipeline\n");
            for one in trip {
                let text = self.filled(one);
                // Writing to a string can't fail.
                let _ = writeln!(self.body, "{};", text.trim().trim_end_matches(';').replace('\n', " "));
            }
            self.body.push_str("\\endpipeline\n");
        }
    }

    /// The statement with its values in their places.
    fn filled(&mut self, one: &Statement) -> String {
        let text = self.with_values(one);
        let Some(record) = self.record.clone().filter(|_| text.starts_with(CLAIM)) else { return text };
        let id = self.value(&record);
        text.replacen(CLAIM, &format!("{CLAIM}id, "), 1).replacen("values (", &format!("values ({id}, "), 1)
    }

    fn with_values(&mut self, one: &Statement) -> String {
        let mut pieces = one.text.split('$');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = piece.split_at(digits);
            let value =
                number.parse::<usize>().ok().and_then(|number| one.values.get(number.checked_sub(1)?));
            match value {
                Some(Some(value)) => text.push_str(&self.value(value)),
                Some(None) => text.push_str("null"),
                None => text.push_str(&format!("${number}")),
            }
            text.push_str(rest);
        }
        text
    }

    fn value(&mut self, value: &str) -> String {
        if let Some(id) = value.parse::<i64>().ok().filter(|id| id.unsigned_abs() >= RANGE.unsigned_abs()) {
            let count = self.ids.len();
            let name = self.ids.entry(id).or_insert_with(|| format!("id{count}"));
            return format!(":{name}");
        }
        if is_uuid(value) {
            return format!("md5('{value}' || :copy::text)::uuid");
        }
        if value.len() == 34 && value.starts_with("\\x") {
            return format!("decode(md5('{}' || :copy::text), 'hex')", value.trim_start_matches('\\'));
        }
        if let Some(kind) = ["STL", "ORD"].iter().find(|kind| value.starts_with(**kind) && value.len() == 23)
        {
            return format!("'{kind}' || lpad(:copy::text, 20, '0')");
        }
        // What follows a colon would be a variable of pgbench's, in a text too.
        let text = value.replace('\\', "\\\\").replace('\'', "''").replace(':', "\\u003a");
        format!("E'{text}'")
    }

    fn finished(self) -> String {
        let mut script = format!(
            "\\set n :n + 1\n\\set copy :first + :client_id * :each + :n\n\\set moved (:copy - {}) * {STEP}\n",
            self.copy
        );
        for (id, name) in self.ids {
            let _ = writeln!(script, "\\set {name} {id} + :moved");
        }
        script + &self.body
    }
}

fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The part of the log that was written after `from` bytes.
///
/// # Errors
/// The log can't be read.
pub(super) fn since(log: &std::path::Path, from: u64) -> Result<String> {
    let bytes = std::fs::read(log).context("the server's log")?;
    let from = usize::try_from(from)?;
    Ok(String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "2026-03-27 02:03:04.123 UTC [41] onceseal LOG:  statement: begin
2026-03-27 02:03:04.124 UTC [77] onceseal LOG:  execute s9: select 1
2026-03-27 02:03:04.124 UTC [77] onceseal LOG:  execute s8: select state from auth_tokens where user_id = $1
2026-03-27 02:03:04.124 UTC [77] onceseal DETAIL:  parameters: $1 = '20000007'
2026-03-27 02:03:04.125 UTC [41] onceseal LOG:  execute s1: select balance
\tfrom accounts where id = $1 for update
2026-03-27 02:03:04.125 UTC [41] onceseal DETAIL:  parameters: $1 = '20000007'
2026-03-27 02:03:04.126 UTC [41] onceseal LOG:  execute s2: insert into t values ($1, $2, $3, $10)
2026-03-27 02:03:04.126 UTC [41] onceseal DETAIL:  parameters: $1 = '20000007', $2 = NULL, $3 = '{\"it''s\":1}'
2026-03-27 02:03:04.127 UTC [41] onceseal LOG:  execute s3: commit
";

    #[test]
    fn a_transaction_becomes_two_trips_with_ids_of_the_copy() {
        let script = script(LOG, &["insert into t"], 1).unwrap();
        assert_eq!(script.matches("\\startpipeline").count(), 3, "{script}");
        assert!(
            script.contains("\\startpipeline\nselect state from auth_tokens where user_id = :id0;\n\\end")
        );
        assert!(script.contains("\\set id0 20000007 + :moved"), "{script}");
        assert!(script.contains("select balance from accounts where id = :id0 for update;"), "{script}");
        assert!(
            script.contains(r#"insert into t values (:id0, null, E'{"it''s"\u003a1}', $10);"#),
            "{script}"
        );
        assert!(!script.contains("select 1"), "{script}");
    }

    #[test]
    fn a_log_without_the_request_is_told() {
        assert!(script(LOG, &["delete from"], 1).is_err());
    }

    #[test]
    fn random_names_are_made_of_the_copy() {
        let mut script = Script { copy: 1, ..Script::default() };
        assert!(script.value("6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b").starts_with("md5("));
        assert!(script.value("STL20261130FRFWP14EEKTT").starts_with("'STL'"));
        assert_eq!(script.value("17"), "E'17'");
    }
}
