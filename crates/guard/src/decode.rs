//! Undoing the encodings under which a text travels: JSON and HTML escapes, percent signs, wrapped lines,
//! base64. Lenient: what isn't an escape stays as it is. Every step shortens, so nothing here can grow.
//! Not here: in which order the steps are taken (`views`).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// One way back from an encoded text to a plainer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `\n`, `\/`, `\u0073` (RFC 8259 section 7).
    Json,
    /// `&amp;`, `&#115;`, `&#x73;`.
    Html,
    /// `%73`.
    Percent,
    /// Line breaks taken out.
    Lines,
}

/// What an escape stands for: its bytes, and how many of the text's bytes it took.
struct Escape {
    bytes: [u8; 4],
    written: usize,
    taken: usize,
}

impl Escape {
    fn byte(byte: u8, taken: usize) -> Self {
        Self { bytes: [byte, 0, 0, 0], written: 1, taken }
    }

    fn char(character: char, taken: usize) -> Self {
        let mut bytes = [0; 4];
        let written = character.encode_utf8(&mut bytes).len();
        Self { bytes, written, taken }
    }
}

/// A decoded text; `from` has the place in the encoded one for each byte, and for the end.
pub(crate) struct Traced {
    pub(crate) text: Vec<u8>,
    pub(crate) from: Vec<usize>,
}

impl Step {
    /// The text after this step; `None` if there is nothing to undo.
    pub(crate) fn undo(self, text: &[u8]) -> Option<Vec<u8>> {
        let (first, _) = self.next(text, 0)?;
        let mut plain = Vec::with_capacity(text.len());
        plain.extend_from_slice(text.get(..first)?);
        let mut at = first;
        while let Some((place, escape)) = self.next(text, at) {
            plain.extend_from_slice(text.get(at..place)?);
            plain.extend_from_slice(escape.bytes.get(..escape.written)?);
            at = place + escape.taken;
        }
        plain.extend_from_slice(text.get(at..)?);
        Some(plain)
    }

    /// As [`Step::undo`], with the way back. Costs eight bytes a byte; only for a text with a hit.
    pub(crate) fn traced(self, text: &[u8]) -> Traced {
        let mut traced = Traced { text: Vec::new(), from: Vec::new() };
        let mut at = 0;
        while let Some((place, escape)) = self.next(text, at) {
            traced.text.extend_from_slice(text.get(at..place).unwrap_or_default());
            traced.from.extend(at..place);
            traced.text.extend_from_slice(escape.bytes.get(..escape.written).unwrap_or_default());
            traced.from.extend(std::iter::repeat_n(place, escape.written));
            at = place + escape.taken;
        }
        traced.text.extend_from_slice(text.get(at..).unwrap_or_default());
        traced.from.extend(at..=text.len());
        traced
    }

    /// The next real escape from `at` on.
    fn next(self, text: &[u8], at: usize) -> Option<(usize, Escape)> {
        let mut from = at;
        loop {
            let rest = text.get(from..)?;
            let place = from + self.mark(rest)?;
            if let Some(escape) = self.escape(text.get(place..)?) {
                return Some((place, escape));
            }
            from = place + 1;
        }
    }

    fn mark(self, rest: &[u8]) -> Option<usize> {
        match self {
            Self::Json => memchr::memchr(b'\\', rest),
            Self::Html => memchr::memchr(b'&', rest),
            Self::Percent => memchr::memchr(b'%', rest),
            Self::Lines => memchr::memchr2(b'\n', b'\r', rest),
        }
    }

    /// The escape at the start of `rest`, if it is one.
    fn escape(self, rest: &[u8]) -> Option<Escape> {
        match self {
            Self::Json => json(rest),
            Self::Html => html(rest),
            Self::Percent => {
                let byte = u8::try_from(number(rest.get(1..3)?, 16)?).ok()?;
                Some(Escape::byte(byte, 3))
            }
            Self::Lines => Some(Escape { bytes: [0; 4], written: 0, taken: 1 }),
        }
    }
}

fn json(rest: &[u8]) -> Option<Escape> {
    let plain = match *rest.get(1)? {
        same @ (b'"' | b'\\' | b'/') => same,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'f' => 0x0c,
        b'u' => return unicode(rest),
        _ => return None,
    };
    Some(Escape::byte(plain, 2))
}

/// `\uXXXX`, with a second one behind it when the first is a high surrogate.
fn unicode(rest: &[u8]) -> Option<Escape> {
    let high = number(rest.get(2..6)?, 16)?;
    if let Some(character) = char::from_u32(high) {
        return Some(Escape::char(character, 6));
    }
    let low = rest.get(6..12).filter(|second| second.starts_with(b"\\u"));
    let low = low.and_then(|second| number(second.get(2..)?, 16));
    let pair = low.filter(|low| high < 0xdc00 && (0xdc00..0xe000).contains(low));
    match pair.and_then(|low| char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))) {
        Some(character) => Some(Escape::char(character, 12)),
        None => Some(Escape::char(char::REPLACEMENT_CHARACTER, 6)),
    }
}

/// Names of characters that stand in credentials or around them; every other character comes as a number.
const NAMED: [(&[u8], u8); 16] = [
    (b"amp", b'&'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"quot", b'"'),
    (b"apos", b'\''),
    (b"nbsp", b' '),
    (b"hyphen", b'-'),
    (b"dash", b'-'),
    (b"lowbar", b'_'),
    (b"period", b'.'),
    (b"colon", b':'),
    (b"sol", b'/'),
    (b"plus", b'+'),
    (b"equals", b'='),
    (b"NewLine", b'\n'),
    (b"Tab", b'\t'),
];

/// Longest entity that is read, in bytes with `&` and `;`: leading zeros have no natural end.
const ENTITY_MAX: usize = 16;

fn html(rest: &[u8]) -> Option<Escape> {
    let end = rest.iter().take(ENTITY_MAX).position(|byte| *byte == b';')?;
    let body = rest.get(1..end)?;
    let character = match body {
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        name => char::from(NAMED.iter().find(|(known, _)| *known == name)?.1),
    };
    Some(Escape::char(character, end + 1))
}

fn number(digits: &[u8], base: u32) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, base).ok()
}

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes a run of base64 or base64url letters without padding. A last letter that alone gives no byte is
/// dropped. `None` for other letters.
pub(crate) fn base64(run: &[u8]) -> Option<Vec<u8>> {
    let whole = if run.len() % 4 == 1 { run.get(..run.len() - 1)? } else { run };
    if memchr::memchr2(b'-', b'_', whole).is_none() {
        return LENIENT.decode(whole).ok();
    }
    let mut standard = whole.to_vec();
    for letter in &mut standard {
        match letter {
            b'-' => *letter = b'+',
            b'_' => *letter = b'/',
            _ => {}
        }
    }
    LENIENT.decode(standard).ok()
}

/// Whether a byte is a letter of base64 or base64url.
pub(crate) const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(step: Step, text: &str) -> Option<String> {
        step.undo(text.as_bytes()).map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    #[test]
    fn escapes_are_undone_and_look_alikes_stay() {
        let of = |step, text, wanted: &str| assert_eq!(plain(step, text).as_deref(), Some(wanted), "{text}");
        of(Step::Json, r#"a\n\u0073k\/\"\\"#, "a\nsk/\"\\");
        of(Step::Json, r"\ud83d\ude00 \ud83d \u00e4 \q \u12", "\u{1f600} \u{fffd} \u{e4} \\q \\u12");
        of(Step::Html, "&amp;&#115;&#x6B;&#X2d;&lowbar;&nothing;&", "&sk-_&nothing;&");
        of(Step::Percent, "%73k%2D%zz%2", "sk-%zz%2");
        of(Step::Lines, "a\r\nb\n", "ab");
        for step in [Step::Json, Step::Html, Step::Percent, Step::Lines] {
            assert_eq!(plain(step, "plain % text & so \\"), None);
        }
    }

    #[test]
    fn a_place_in_the_plain_text_leads_back_to_the_encoded_one() {
        let traced = Step::Json.traced(br"ab\u0073cd\n");
        assert_eq!(traced.text, b"abscd\n");
        assert_eq!(traced.from, [0, 1, 2, 8, 9, 10, 12]);
    }

    #[test]
    fn base64_of_both_alphabets_is_read_without_padding() {
        assert_eq!(base64(b"c2st-_+/").unwrap(), [b's', b'k', b'-', 0xfb, 0xff, 0xbf]);
        assert_eq!(base64(b"c2sta").unwrap(), b"sk-");
        assert_eq!(base64(b"c2s t"), None);
    }
}
