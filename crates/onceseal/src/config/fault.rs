//! How a refusal is worded: which setting, what is wrong, what was probably meant. A value is repeated only
//! where it can't be a secret.

use std::fmt;

/// Largest number of changed letters at which a known name is still suggested.
const NEAR: usize = 3;

/// A configuration that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(String);

impl Fault {
    /// With this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// From what serde said of the merged settings: `message`, and the keys where it was.
    #[must_use]
    pub fn of(cause: &toml::de::Error) -> Self {
        // The full text quotes the line, which may hold a secret that was put in the wrong place.
        let shown = cause.to_string();
        let place = shown.rsplit_once("in `").and_then(|(_, rest)| rest.split_once('`')).map(|(at, _)| at);
        let message = reworded(cause.message());
        match place {
            Some(at) => Self(format!("{at}: {message}")),
            None => Self(message),
        }
    }

    /// From a file that is no TOML.
    #[must_use]
    pub fn syntax(text: &str, cause: &toml::de::Error) -> Self {
        let line =
            cause.span().map_or(0, |span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
        Self(format!("line {line}: {}", cause.message()))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// An unknown name gets the nearest known one.
fn reworded(message: &str) -> String {
    // A text where none belongs may be a secret in the wrong place.
    if let Some((_, expected)) =
        message.strip_prefix("invalid type: string").and_then(|rest| rest.rsplit_once("expected "))
    {
        return format!("it is a text; expected {expected}");
    }
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.to_owned() };
    let Some((unknown, expected)) = rest.split_once('`') else { return message.to_owned() };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let near = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(unknown, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= NEAR.min(name.len() / 2 + 1));
    match near {
        Some((_, name)) => format!("unknown setting {unknown:?}; did you mean {name:?}?"),
        None => format!("unknown setting {unknown:?}; known here: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_known_name_is_suggested() {
        let message = "unknown field `lisen`, expected one of `listen`, `wait`";
        assert_eq!(reworded(message), "unknown setting \"lisen\"; did you mean \"listen\"?");
        let message = "unknown field `colour`, expected `listen` or `wait`";
        assert_eq!(reworded(message), "unknown setting \"colour\"; known here: listen, wait");
    }

    #[test]
    fn a_text_in_the_wrong_place_is_not_repeated() {
        let message = "invalid type: string \"CANARY, expected x\", expected a sequence";
        assert_eq!(reworded(message), "it is a text; expected a sequence");
    }
}
