//! Secret texts: checked when they are read, wiped when dropped, never shown.
//! Not here: which form of secret a kind of sender wants (`senders`).

use std::fmt;

use zeroize::Zeroizing;

/// A secret text. `Debug` shows none of it; the memory is wiped on drop.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// What is wrong with a secret text; never the text itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Empty, or only white space.
    #[error("the secret is blank; set it, or remove the source")]
    Blank,
    /// A line break inside, or more than one at the end.
    #[error("the secret contains a line break; put one secret on one line")]
    LineBreak,
    /// A space or tab at the start or at the end.
    #[error("the secret starts or ends with white space; remove it")]
    OuterSpace,
    /// A control character or a byte order mark.
    #[error("the secret contains a control character or a byte order mark; copy it again as plain text")]
    Control,
}

impl Secret {
    /// Takes a text from a file or a variable. One line end (LF or CR LF) at the end is dropped, since
    /// editors and `echo` add it.
    ///
    /// # Errors
    /// The text is blank, has a line break inside, white space at either end, or a control character.
    pub fn new(text: impl Into<String>) -> Result<Self, SecretError> {
        let mut text = Zeroizing::new(text.into());
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Self::checked(text)
    }

    /// Takes a literal, for instance from a configuration file: a line end at the end is refused, too.
    ///
    /// # Errors
    /// As [`Secret::new`].
    pub fn exact(text: impl Into<String>) -> Result<Self, SecretError> {
        Self::checked(Zeroizing::new(text.into()))
    }

    fn checked(text: Zeroizing<String>) -> Result<Self, SecretError> {
        if text.trim().is_empty() {
            return Err(SecretError::Blank);
        }
        if text.contains(['\n', '\r']) {
            return Err(SecretError::LineBreak);
        }
        if text.trim().len() != text.len() {
            return Err(SecretError::OuterSpace);
        }
        if text.chars().any(|c| c.is_control() || c == '\u{feff}') {
            return Err(SecretError::Control);
        }
        Ok(Self(text))
    }

    /// A text of several lines (a PEM file), which [`Secret::new`] would refuse.
    ///
    /// # Errors
    /// The text is blank.
    pub fn pem(text: impl Into<String>) -> Result<Self, SecretError> {
        let text = Zeroizing::new(text.into());
        if text.trim().is_empty() { Err(SecretError::Blank) } else { Ok(Self(text)) }
    }

    /// The text, for the place that computes with it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}
