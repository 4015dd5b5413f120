//! Whether a text commits: enough of PostgreSQL's lexical rules to find the statements `COMMIT` and `END`
//! among others, in any spelling, and not inside quotes, dollar quotes or comments.
//!
//! `COMMIT PREPARED` is not counted: it ends no transaction of its own. The `END` of an unquoted
//! `BEGIN ATOMIC` body is counted by mistake.

/// Whether one of the statements is `COMMIT` or `END`.
pub(super) fn commits(text: &[u8]) -> bool {
    let mut rest = text;
    let mut at_start = true;
    while let Some((token, after)) = token(rest) {
        rest = after;
        match token {
            Token::Semicolon => at_start = true,
            Token::Word(word) if at_start && is_end(word) => {
                let prepared = self::token(rest)
                    .is_some_and(|(next, _)| matches!(next, Token::Word(word) if is(word, b"PREPARED")));
                if !prepared {
                    return true;
                }
                at_start = false;
            }
            Token::Word(_) | Token::Other => at_start = false,
        }
    }
    false
}

enum Token<'a> {
    Word(&'a [u8]),
    Semicolon,
    Other,
}

fn is(word: &[u8], name: &[u8]) -> bool {
    word.eq_ignore_ascii_case(name)
}

fn is_end(word: &[u8]) -> bool {
    is(word, b"COMMIT") || is(word, b"END")
}

/// The next token and what follows it; blanks and comments are none.
fn token(text: &[u8]) -> Option<(Token<'_>, &[u8])> {
    let text = skip_blank(text);
    let (first, after) = text.split_first()?;
    Some(match first {
        b';' => (Token::Semicolon, after),
        b'\'' => (Token::Other, after_quote(after, b'\'', Escape::None)),
        b'"' => (Token::Other, after_quote(after, b'"', Escape::None)),
        b'$' => (Token::Other, after_dollar(after)),
        first if is_word(*first) => {
            let length = text.iter().position(|byte| !is_word(*byte)).unwrap_or(text.len());
            let (word, after) = text.split_at(length);
            match after.split_first() {
                Some((b'\'', quoted)) if is(word, b"E") => {
                    (Token::Other, after_quote(quoted, b'\'', Escape::Backslash))
                }
                _ => (Token::Word(word), after),
            }
        }
        _ => (Token::Other, after),
    })
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn skip_blank(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        if let Some(comment) = text.strip_prefix(b"--") {
            let length = comment.iter().position(|byte| *byte == b'\n').unwrap_or(comment.len());
            text = comment.split_at(length).1;
        } else if let Some(comment) = text.strip_prefix(b"/*") {
            text = after_comment(comment);
        } else {
            return text;
        }
    }
}

/// Comments nest.
fn after_comment(mut text: &[u8]) -> &[u8] {
    let mut depth = 1;
    while depth > 0 {
        if let Some(after) = text.strip_prefix(b"/*") {
            depth += 1;
            text = after;
        } else if let Some(after) = text.strip_prefix(b"*/") {
            depth -= 1;
            text = after;
        } else if let Some((_, after)) = text.split_first() {
            text = after;
        } else {
            break;
        }
    }
    text
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Backslash,
}

/// A doubled quote ends one string and begins the next: for this purpose the same as going on.
fn after_quote(mut text: &[u8], quote: u8, escape: Escape) -> &[u8] {
    while let Some((byte, after)) = text.split_first() {
        text = after;
        if *byte == quote {
            break;
        }
        if *byte == b'\\' && escape == Escape::Backslash {
            text = text.split_first().map_or(text, |(_, after)| after);
        }
    }
    text
}

/// After `$`: a parameter (`$1`), or a text between `$tag$` and `$tag$`.
fn after_dollar(text: &[u8]) -> &[u8] {
    let length = text.iter().position(|byte| !is_word(*byte)).unwrap_or(text.len());
    let (tag, after) = text.split_at(length);
    let Some(mut body) = after.strip_prefix(b"$") else { return after };
    if tag.first().is_some_and(u8::is_ascii_digit) {
        return after;
    }
    while let Some((byte, after)) = body.split_first() {
        if *byte == b'$'
            && let Some(end) = after.strip_prefix(tag).and_then(|rest| rest.strip_prefix(b"$"))
        {
            return end;
        }
        body = after;
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_found_in_every_spelling() {
        let texts = [
            "COMMIT",
            "commit",
            " \n\tCommit ;",
            "COMMIT WORK",
            "COMMIT TRANSACTION AND CHAIN",
            "END",
            "end transaction;",
            "-- why\ncommit",
            "/* a /* nested */ one */ commit",
            "update t set a = 'x;y' where b = $1; commit",
            "select guard(); COMMIT; select 1",
            "select E'it\\'s'; commit",
            "select 'it''s'; commit",
            "select $a$ ; $b$ ; $a$; commit",
            "commit/* now */",
        ];
        for text in texts {
            assert!(commits(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_not() {
        let texts = [
            "",
            "ROLLBACK",
            "begin",
            "COMMIT PREPARED 'x'",
            "select 'a; commit'",
            "select \"; commit\"",
            "select E'\\'; commit'",
            "do $$ begin; commit; end; $$",
            "do $x$ begin $$ ; commit $$; end; $x$",
            "-- commit",
            "-- ; commit\nselect 1",
            "/* ; commit */ select 1",
            "select commit",
            "select case when true then 1 end",
            "commits",
            "committed",
            "select $1; select $2",
            "/* ; commit",
            "select '; commit",
        ];
        for text in texts {
            assert!(!commits(text.as_bytes()), "{text}");
        }
    }
}
