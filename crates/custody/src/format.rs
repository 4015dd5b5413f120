//! The shape a provider's credential has (supply specification, section 13.4), as a table.
//!
//! A credential that has a shape with a length out of the usual is a warning, not a refusal: vendors change
//! lengths. How far off a length may be stands in the table, too: behind a vendor's prefix any length does,
//! since the prefix says whose it is; without a prefix half to double, since otherwise any text would pass.
//!
//! The answer names the rule and never the text, its length, or a part of it. Not here: whether the provider
//! knows the credential ([`crate::provider`]).

use secrecy::{ExposeSecret, SecretString};

/// Bytes of a credential (section 8.1, operation 1).
pub const LENGTH: std::ops::RangeInclusive<usize> = 8..=4096;
/// Characters of an opaque OAuth token at least.
const OPAQUE_MIN: usize = 20;

/// Whose credential it is: the column `platform`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// OpenAI.
    Openai,
    /// Anthropic.
    Anthropic,
    /// Google Gemini.
    Gemini,
    /// Baidu Qianfan.
    Baidu,
    /// iFlytek Spark (讯飞星火).
    Xfyun,
    /// Tencent Hunyuan (腾讯混元).
    Tencent,
}

impl Provider {
    /// All, in the order of the specification.
    pub const ALL: [Self; 6] =
        [Self::Openai, Self::Anthropic, Self::Gemini, Self::Baidu, Self::Xfyun, Self::Tencent];

    /// Their words, in the same order.
    pub const WORDS: [&'static str; 6] = {
        let [first, second, third, fourth, fifth, sixth] = Self::ALL;
        [first.as_str(), second.as_str(), third.as_str(), fourth.as_str(), fifth.as_str(), sixth.as_str()]
    };

    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Baidu => "baidu",
            Self::Xfyun => "xfyun",
            Self::Tencent => "tencent",
        }
    }

    /// Reads the word of the API.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == word)
    }
}

/// Of which type a credential is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccountType {
    /// A key of the provider's console.
    ApiKey,
    /// Tokens of an OAuth client.
    Oauth,
}

impl AccountType {
    /// All, in the order of the specification.
    pub const ALL: [Self; 2] = [Self::ApiKey, Self::Oauth];

    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Oauth => "oauth",
        }
    }

    /// Reads the word of the API.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// Fine.
    Pass,
    /// A person should look: `verify_status` becomes `review_required`.
    Warn,
    /// Not usable.
    Fail,
}

impl Mark {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// A result and the sentence for `check_items[].message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The result.
    pub mark: Mark,
    /// A fixed sentence.
    pub message: &'static str,
}

const fn finding(mark: Mark, message: &'static str) -> Finding {
    Finding { mark, message }
}

/// Which characters a run consists of.
#[derive(Clone, Copy, Debug)]
enum Set {
    /// Letters, digits.
    Alnum,
    /// Letters, digits, `_`, `-`.
    Url,
    /// Letters, digits, `-`.
    Hyphen,
    /// Letters.
    Letter,
    /// Lower-case hex digits.
    Hex,
    /// Letters, digits, `+`, `/`, `=`.
    Base64,
}

impl Set {
    const fn has(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Hyphen => byte.is_ascii_alphanumeric() || byte == b'-',
            Self::Letter => byte.is_ascii_alphabetic(),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
        }
    }
}

/// A part of a shape.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// This text.
    Text(&'static str),
    /// As many characters of the set as there are; the usual numbers, and those that are only a warning.
    Run(Set, (usize, usize), (usize, usize)),
}

/// One shape of one provider.
#[derive(Debug)]
struct Shape {
    provider: Provider,
    /// A prefix that makes it another provider's: such a key is never sent to this one.
    not: Option<&'static str>,
    pieces: &'static [Piece],
}

use Piece::{Run, Text};

/// Behind a vendor's prefix any length is at most a warning.
const ANY: (usize, usize) = (1, 4096);
/// "20 or more".
const LONG: (usize, usize) = (20, 4096);

const fn exactly(count: usize) -> (usize, usize) {
    (count, count)
}

const SK: &[Piece] = &[Text("sk-"), Run(Set::Url, LONG, ANY)];
const PAIR: [Piece; 3] =
    [Run(Set::Hex, exactly(32), (16, 64)), Text(":"), Run(Set::Base64, exactly(32), (16, 64))];
const PASSWORD: [Piece; 3] =
    [Run(Set::Letter, exactly(20), (10, 40)), Text(":"), Run(Set::Letter, exactly(20), (10, 40))];
/// `APPID:`, 8 hex digits, is no secret.
const APPID: [Piece; 2] = [Run(Set::Hex, exactly(8), exactly(8)), Text(":")];

const fn behind_appid(rest: [Piece; 3]) -> [Piece; 5] {
    let [id, colon] = APPID;
    let [left, between, right] = rest;
    [id, colon, left, between, right]
}

const APPID_PAIR: [Piece; 5] = behind_appid(PAIR);
const APPID_PASSWORD: [Piece; 5] = behind_appid(PASSWORD);

/// The table of section 13.4. Figures that vendors don't publish are from the specification; see there.
const SHAPES: [Shape; 12] = [
    Shape { provider: Provider::Openai, not: Some("sk-ant-"), pieces: SK },
    Shape { provider: Provider::Anthropic, not: None, pieces: &[Text("sk-ant-"), Run(Set::Url, LONG, ANY)] },
    Shape { provider: Provider::Gemini, not: None, pieces: &[Text("AIza"), Run(Set::Url, exactly(35), ANY)] },
    Shape { provider: Provider::Gemini, not: None, pieces: &[Text("AQ."), Run(Set::Url, LONG, ANY)] },
    Shape {
        provider: Provider::Baidu,
        not: None,
        pieces: &[
            Text("bce-v3/ALTAK"),
            Run(Set::Hyphen, (17, 37), ANY),
            Text("/"),
            Run(Set::Alnum, (32, 64), ANY),
        ],
    },
    Shape {
        provider: Provider::Baidu,
        not: None,
        pieces: &[Run(Set::Alnum, (24, 40), (12, 80)), Text(":"), Run(Set::Alnum, (24, 40), (12, 80))],
    },
    Shape { provider: Provider::Xfyun, not: None, pieces: &PAIR },
    Shape { provider: Provider::Xfyun, not: None, pieces: &PASSWORD },
    Shape { provider: Provider::Xfyun, not: None, pieces: &APPID_PAIR },
    Shape { provider: Provider::Xfyun, not: None, pieces: &APPID_PASSWORD },
    Shape {
        provider: Provider::Tencent,
        not: None,
        pieces: &[Text("AKID"), Run(Set::Url, (13, 80), ANY), Text(":"), Run(Set::Alnum, exactly(32), ANY)],
    },
    Shape { provider: Provider::Tencent, not: Some("sk-ant-"), pieces: SK },
];

const PASS: Finding = finding(Mark::Pass, "the credential has a known shape of this provider");
const UNUSUAL: Finding =
    finding(Mark::Warn, "the credential has a known shape of this provider with an unusual length");
const CHARACTERS: Finding =
    finding(Mark::Fail, "a credential has 8 to 4096 printable ASCII characters without spaces");
const UNKNOWN: Finding = finding(Mark::Fail, "the credential has no known shape of this provider");
const OAUTH: Finding = finding(
    Mark::Fail,
    "an oauth credential is a JSON object with refresh_token, or an opaque text of at least 20 characters",
);
const OAUTH_PASS: Finding = finding(Mark::Pass, "the credential has the shape of an oauth credential");

/// Checks a credential's shape. Outer white space is taken off first, as it is for the fingerprint.
#[must_use]
pub fn check(provider: Provider, account_type: AccountType, credential: &SecretString) -> Finding {
    let text = credential.expose_secret().trim();
    if !LENGTH.contains(&text.len()) {
        return CHARACTERS;
    }
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    match account_type {
        // JSON may be laid out with white space between its tokens.
        AccountType::Oauth if text.starts_with('{') => oauth_object(text),
        _ if !plain => CHARACTERS,
        AccountType::Oauth if text.len() < OPAQUE_MIN => OAUTH,
        AccountType::Oauth => OAUTH_PASS,
        AccountType::ApiKey => api_key(provider, text),
    }
}

fn oauth_object(text: &str) -> Finding {
    #[derive(serde::Deserialize)]
    struct Tokens {
        refresh_token: SecretString,
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        return CHARACTERS;
    }
    match serde_json::from_str::<Tokens>(text) {
        Ok(tokens) if !tokens.refresh_token.expose_secret().trim().is_empty() => OAUTH_PASS,
        _ => OAUTH,
    }
}

fn api_key(provider: Provider, text: &str) -> Finding {
    let own = SHAPES.iter().filter(|shape| shape.provider == provider);
    let marks = own.filter_map(|shape| matched(shape, text));
    match marks.min() {
        Some(Mark::Pass) => PASS,
        Some(_) => UNUSUAL,
        None => UNKNOWN,
    }
}

fn matched(shape: &Shape, text: &str) -> Option<Mark> {
    if shape.not.is_some_and(|prefix| text.starts_with(prefix)) {
        return None;
    }
    let mut rest = text.as_bytes();
    let mut mark = Mark::Pass;
    for piece in shape.pieces {
        match piece {
            Text(text) => rest = rest.strip_prefix(text.as_bytes())?,
            Run(set, usual, tolerated) => {
                let count = rest.iter().take_while(|byte| set.has(**byte)).count();
                let within = |(least, most): (usize, usize)| (least..=most).contains(&count);
                if !within(*tolerated) {
                    return None;
                }
                if !within(*usual) {
                    mark = Mark::Warn;
                }
                rest = rest.get(count..)?;
            }
        }
    }
    rest.is_empty().then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(provider: Provider, text: &str) -> Mark {
        check(provider, AccountType::ApiKey, &SecretString::from(text)).mark
    }

    /// `count` characters that are lower-case hex digits.
    fn hex(count: usize) -> String {
        "0123456789abcdef".chars().cycle().take(count).collect()
    }

    /// `count` letters.
    fn letters(count: usize) -> String {
        "AbCdEfGhIj".chars().cycle().take(count).collect()
    }

    #[test]
    fn every_shape_of_the_specification_passes() {
        let altak = format!("bce-v3/ALTAK-{}/{}", letters(21), hex(40));
        let cases = [
            (Provider::Openai, format!("sk-{}", letters(20))),
            (Provider::Openai, format!("sk-proj-{}_-x", letters(48))),
            (Provider::Anthropic, format!("sk-ant-api03-{}", letters(95))),
            (Provider::Gemini, format!("AIza{}", letters(35))),
            (Provider::Gemini, format!("AQ.{}", letters(20))),
            (Provider::Baidu, altak.replace("ALTAK-", "ALTAKSP-")),
            (Provider::Baidu, altak),
            (Provider::Baidu, format!("{}:{}", letters(24), letters(40))),
            (Provider::Xfyun, format!("{}:{}", hex(32), "Ab+/".repeat(8))),
            (Provider::Xfyun, format!("{}:{}", letters(20), letters(20))),
            (Provider::Xfyun, format!("{}:{}:{}", hex(8), hex(32), letters(32))),
            (Provider::Xfyun, format!("{}:{}:{}", hex(8), letters(20), letters(20))),
            (Provider::Tencent, format!("AKID{}:{}", letters(32), letters(32))),
            (Provider::Tencent, format!("sk-{}", letters(48))),
        ];
        for (provider, text) in cases {
            assert_eq!(mark(provider, &text), Mark::Pass, "{provider:?} {text}");
            assert_eq!(mark(provider, &format!(" {text}\n")), Mark::Pass, "{provider:?}");
            assert_eq!(mark(provider, &format!("{text} x")), Mark::Fail, "{provider:?}");
        }
    }

    #[test]
    fn an_unusual_length_is_a_warning() {
        let cases = [
            (Provider::Openai, format!("sk-{}", letters(19))),
            (Provider::Anthropic, format!("sk-ant-{}", letters(19))),
            (Provider::Gemini, format!("AIza{}", letters(36))),
            (Provider::Baidu, format!("bce-v3/ALTAK-{}/{}", letters(21), hex(31))),
            (Provider::Baidu, format!("{}:{}", letters(23), letters(24))),
            (Provider::Xfyun, format!("{}:{}", hex(30), letters(32))),
            (Provider::Tencent, format!("AKID{}:{}", letters(32), letters(31))),
        ];
        for (provider, text) in cases {
            assert_eq!(mark(provider, &text), Mark::Warn, "{provider:?} {text}");
        }
    }

    #[test]
    fn what_is_another_provider_s_or_nobody_s_fails() {
        let openai = format!("sk-{}", letters(48));
        let anthropic = format!("sk-ant-api03-{}", letters(95));
        let cases = [
            (Provider::Openai, anthropic.clone()),
            (Provider::Tencent, anthropic),
            (Provider::Anthropic, openai.clone()),
            (Provider::Gemini, openai),
            (Provider::Gemini, format!("AIza{}.", letters(35))),
            (Provider::Baidu, format!("{}:{}", letters(11), letters(24))),
            (Provider::Xfyun, format!("{}:{}", hex(7), hex(32))),
            (Provider::Tencent, format!("{}:{}", letters(36), letters(32))),
            (Provider::Openai, format!("SK-{}", letters(48))),
        ];
        for (provider, text) in cases {
            assert_eq!(mark(provider, &text), Mark::Fail, "{provider:?} {text}");
        }
    }

    #[test]
    fn lengths_and_characters_are_bounded_for_every_provider() {
        for provider in Provider::ALL {
            let long = format!("sk-{}", letters(4094));
            for text in ["", "sk-abcd", "sk-\u{e4}bcdefghijklmnopqrst", "sk-abc\tdefghijklmnopqrst", &long] {
                assert_eq!(mark(provider, text), Mark::Fail, "{provider:?} {text:.30}");
            }
            assert_eq!(Provider::parse(provider.as_str()), Some(provider));
            assert!(Provider::WORDS.contains(&provider.as_str()));
        }
        assert_eq!(Provider::parse("OpenAI"), None);
        assert_eq!(AccountType::parse("api_key"), Some(AccountType::ApiKey));
    }

    #[test]
    fn an_oauth_credential_is_an_object_with_a_refresh_token_or_opaque() {
        let mark = |text: &str| check(Provider::Gemini, AccountType::Oauth, &SecretString::from(text)).mark;
        for text in [
            r#"{"refresh_token":"1//0abc"}"#,
            "{\n  \"client_id\": \"x\",\n  \"refresh_token\": \"1//0abc\"\n}",
            "1//0abcdefghijklmnop",
        ] {
            assert_eq!(mark(text), Mark::Pass, "{text}");
        }
        for text in [
            r#"{"refresh_token":" "}"#,
            r#"{"refresh_token":7}"#,
            r#"{"access_token":"ya29.abcdefghijkl"}"#,
            r#"{"refresh_token":"a","refresh_token":"b"}"#,
            r#"{"refresh_token":"ä"}"#,
            "{not json but long enough}",
            "1//0abcdefghijklmno",
            "1//0abcdefghij klmnopqrs",
        ] {
            assert_eq!(mark(text), Mark::Fail, "{text}");
        }
    }
}
