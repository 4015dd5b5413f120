//! Where in a PostgreSQL conversation a COMMIT stands: follows both directions of the protocol, version 3
//! (PostgreSQL documentation, chapters "Message Flow" and "Message Formats"), without ever changing,
//! holding or refusing a byte. Whatever isn't that protocol, TLS above all, it stops reading.

use std::collections::HashSet;
use std::ops::Range;

use super::frames::Frames;
use super::sql;

/// Start-up messages are at most this long, as in the server (`MAX_STARTUP_PACKET_LENGTH`).
const STARTUP_MAX: usize = 10_000;
/// How much of a query's text is read: a script whose COMMIT stands later is not understood.
const TEXT_MAX: usize = 1 << 20;
/// How much of any other message is read: names and a COMMIT are shorter.
const SHORT_MAX: usize = 4_096;
/// Requests for TLS and for GSSAPI encryption, each answered by one byte.
const ENCRYPTION: [u32; 2] = [80_877_103, 80_877_104];
/// The major version in a start-up message's first half.
const VERSION: u32 = 3;

/// One connection's conversation.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    stage: Stage,
    front: Frames,
    back: Frames,
    /// Requests for encryption whose one-byte answer is still to come.
    unanswered: usize,
    /// Prepared statements that are a COMMIT.
    statements: HashSet<Vec<u8>>,
    /// Portals of such statements.
    portals: HashSet<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Before the start-up message has ended.
    #[default]
    Starting,
    /// Every message has a type and a length.
    Talking,
    /// Encrypted, or another protocol: not read.
    Opaque,
}

impl Dialogue {
    /// Reads what the client sent; the places of its COMMITs in `chunk`. A message that began in an earlier
    /// chunk begins at 0; a range ends where the message is complete, before that it does nothing.
    pub(super) fn asked(&mut self, chunk: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut at = 0;
        while self.stage == Stage::Starting && at < chunk.len() {
            at += self.start(chunk.get(at..).unwrap_or_default());
        }
        let mut front = std::mem::take(&mut self.front);
        if front.head.is_empty() {
            front.start = at;
        }
        while self.stage == Stage::Talking {
            let Some(next) = front.next(chunk, at, front_keep) else { break };
            let Ok(end) = next else {
                self.stage = Stage::Opaque;
                break;
            };
            if self.commits(front.kind(), front.body()) {
                places.push(front.start..end);
            }
            front.clear(end);
            at = end;
        }
        front.start = 0;
        self.front = front;
        places
    }

    /// Reads what the server said; the places of its `COMMIT` answers in `chunk`, as in [`Self::asked`].
    pub(super) fn answered(&mut self, chunk: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut at = 0;
        while self.stage == Stage::Starting && at < chunk.len() {
            match (chunk.get(at), self.unanswered.checked_sub(1)) {
                (Some(b'N'), Some(left)) => self.unanswered = left,
                // Yes to encryption; an error; or no PostgreSQL at all.
                _ => self.stage = Stage::Opaque,
            }
            at += 1;
        }
        let mut back = std::mem::take(&mut self.back);
        if back.head.is_empty() {
            back.start = at;
        }
        while self.stage == Stage::Talking {
            let Some(next) = back.next(chunk, at, |kind| if kind == b'C' { SHORT_MAX } else { 0 }) else {
                break;
            };
            let Ok(end) = next else {
                self.stage = Stage::Opaque;
                break;
            };
            if back.kind() == b'C' && back.body() == b"COMMIT\0" {
                places.push(back.start..end);
            }
            back.clear(end);
            at = end;
        }
        back.start = 0;
        self.back = back;
        places
    }

    /// Reads a piece of the start-up; how many bytes it took.
    fn start(&mut self, chunk: &[u8]) -> usize {
        let missing = self.front.head_missing(8);
        let taken = missing.min(chunk.len());
        self.front.head.extend(chunk.iter().take(taken));
        if taken < missing {
            // A TLS record begins with 0x16: don't wait for more of it.
            if self.front.head.first().is_some_and(|first| *first != 0) {
                self.stage = Stage::Opaque;
            }
            return taken;
        }
        if self.front.left == 0 {
            let (Some(length), Some(code)) = (self.front.word(0), self.front.word(4)) else { return taken };
            match (length as usize, code) {
                (8, code) if ENCRYPTION.contains(&code) => {
                    self.unanswered += 1;
                    self.front.clear(0);
                    return taken;
                }
                (9..=STARTUP_MAX, code) if code >> 16 == VERSION => self.front.left = length as usize - 8,
                _ => {
                    self.stage = Stage::Opaque;
                    return taken;
                }
            }
        }
        let rest = self.front.left.min(chunk.len() - taken);
        self.front.left -= rest;
        if self.front.left == 0 {
            self.stage = Stage::Talking;
            self.front.clear(taken + rest);
        }
        taken + rest
    }

    /// Whether this message makes the server commit; remembers what later ones refer to.
    fn commits(&mut self, kind: u8, body: &[u8]) -> bool {
        let (first, rest) = cut_text(body);
        match kind {
            b'Q' => return sql::commits(first),
            b'P' => {
                // A new statement of that name replaces what the name meant.
                remember(&mut self.statements, first, sql::commits(cut_text(rest).0));
            }
            b'B' => {
                let commits = self.statements.contains(cut_text(rest).0);
                remember(&mut self.portals, first, commits);
            }
            b'E' => return self.portals.contains(first),
            b'C' => match body.split_first() {
                Some((b'S', name)) => remember(&mut self.statements, cut_text(name).0, false),
                Some((b'P', name)) => remember(&mut self.portals, cut_text(name).0, false),
                _ => {}
            },
            _ => {}
        }
        false
    }
}

const fn front_keep(kind: u8) -> usize {
    match kind {
        b'Q' => TEXT_MAX,
        b'P' | b'B' | b'E' | b'C' => SHORT_MAX,
        _ => 0,
    }
}

fn remember(names: &mut HashSet<Vec<u8>>, name: &[u8], commits: bool) {
    if commits {
        names.insert(name.to_vec());
    } else {
        names.remove(name);
    }
}

/// A text up to its zero, and what follows.
fn cut_text(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at(end);
    (text, rest.get(1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn startup() -> Vec<u8> {
        let body = b"\0\x03\0\0user\0ann\0database\0shop\0\0";
        [&u32::try_from(body.len() + 4).unwrap().to_be_bytes()[..], body].concat()
    }

    fn encryption() -> Vec<u8> {
        [8_u32.to_be_bytes(), 80_877_103_u32.to_be_bytes()].concat()
    }

    fn query(text: &str) -> Vec<u8> {
        message(b'Q', &[text.as_bytes(), b"\0"].concat())
    }

    fn parse(name: &str, text: &str) -> Vec<u8> {
        message(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat())
    }

    fn bind(portal: &str, name: &str) -> Vec<u8> {
        message(b'B', &[portal.as_bytes(), b"\0", name.as_bytes(), b"\0\0\0\0\0\0\0"].concat())
    }

    fn execute(portal: &str) -> Vec<u8> {
        message(b'E', &[portal.as_bytes(), b"\0\0\0\0\0"].concat())
    }

    fn close(kind: u8, name: &str) -> Vec<u8> {
        message(b'C', &[&[kind], name.as_bytes(), b"\0"].concat())
    }

    fn sync() -> Vec<u8> {
        message(b'S', b"")
    }

    /// Which of the messages commit, read in chunks of every size.
    fn committing(messages: &[Vec<u8>]) -> Vec<usize> {
        let bytes = [startup(), messages.concat()].concat();
        let mut end = startup().len();
        let ends: Vec<usize> = messages
            .iter()
            .map(|message| {
                end += message.len();
                end
            })
            .collect();
        let seen = |size: usize| {
            let mut dialogue = Dialogue::default();
            let mut places = Vec::new();
            for (index, chunk) in bytes.chunks(size).enumerate() {
                for place in dialogue.asked(chunk) {
                    let start = ends.iter().position(|end| *end == index * size + place.end).unwrap();
                    let begun = ends[start] - messages[start].len();
                    assert_eq!(index * size + place.start, begun.max(index * size), "chunks of {size}");
                    places.push(start);
                }
            }
            assert_eq!(dialogue.stage, Stage::Talking);
            places
        };
        let whole = seen(bytes.len());
        for size in 1..bytes.len() {
            assert_eq!(seen(size), whole, "chunks of {size}");
        }
        whole
    }

    #[test]
    fn a_simple_query_that_commits_is_found_in_any_pieces() {
        let password = message(b'p', b"secret\0");
        let messages = [password, query("begin"), query("select 1; COMMIT"), query("rollback"), query("end")];
        assert_eq!(committing(&messages), [2, 4]);
    }

    #[test]
    fn the_execution_of_a_prepared_commit_is_found_and_not_its_preparation() {
        let messages = [
            parse("s1", "commit"),
            parse("s2", "select 1"),
            sync(),
            bind("", "s2"),
            execute(""),
            bind("", "s1"),
            execute(""),
            sync(),
            bind("p", "s1"),
            execute("p"),
        ];
        assert_eq!(committing(&messages), [6, 9]);
    }

    #[test]
    fn an_unnamed_statement_means_what_it_meant_last() {
        let run = |text| [parse("", text), bind("", ""), execute("")];
        let again = [bind("", ""), execute(""), sync()];
        let messages = [&run("select 1")[..], &run("COMMIT"), &again, &run("select 2")].concat();
        assert_eq!(committing(&messages), [5, 7]);
    }

    #[test]
    fn a_closed_name_means_nothing() {
        let messages = [
            parse("s", "commit"),
            bind("p", "s"),
            close(b'P', "p"),
            execute("p"),
            close(b'S', "s"),
            bind("", "s"),
            execute(""),
        ];
        assert_eq!(committing(&messages), [0_usize; 0]);
    }

    #[test]
    fn the_answer_to_a_commit_is_found_and_that_of_an_aborted_transaction_is_not() {
        let tag = |tag: &str| message(b'C', &[tag.as_bytes(), b"\0"].concat());
        let bytes = [tag("INSERT 0 1"), tag("COMMIT"), message(b'Z', b"I"), tag("ROLLBACK")].concat();
        let end = [tag("INSERT 0 1"), tag("COMMIT")].concat().len();
        for size in 1..=bytes.len() {
            let mut dialogue = Dialogue::default();
            dialogue.asked(&startup());
            let ends: Vec<usize> = (bytes.chunks(size).enumerate())
                .flat_map(|(index, chunk)| {
                    dialogue.answered(chunk).into_iter().map(move |place| index * size + place.end)
                })
                .collect();
            assert_eq!(ends, [end], "chunks of {size}");
        }
    }

    #[test]
    fn refused_encryption_is_read_on_and_granted_encryption_is_not() {
        for (answer, stage) in [(b"N", Stage::Talking), (b"S", Stage::Opaque)] {
            let mut dialogue = Dialogue::default();
            assert!(dialogue.asked(&encryption()).is_empty());
            assert!(dialogue.answered(answer).is_empty());
            let places = dialogue.asked(&[startup(), query("commit")].concat());
            assert_eq!(places.len(), usize::from(stage == Stage::Talking));
            assert_eq!(dialogue.stage, stage);
        }
    }

    #[test]
    fn other_protocols_are_not_read() {
        let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        let cancel = [&16_u32.to_be_bytes()[..], &80_877_102_u32.to_be_bytes(), &[0; 8]].concat();
        let odd = [startup(), vec![b'Q', 0, 0, 0, 3, b'x']].concat();
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"x", &hello, &cancel, &odd] {
            let mut dialogue = Dialogue::default();
            assert!(dialogue.asked(bytes).is_empty());
            assert_eq!(dialogue.stage, Stage::Opaque, "{bytes:?}");
        }
    }
}
