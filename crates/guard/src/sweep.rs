//! The guard over what is stored: logs, exports, audit rows, the repository (section 15.1, layer 3). A gate, so
//! it fails when it was given nothing or could not read what it was given. Not here: where the texts are.

use serde_json::Value;

use crate::exit::{Exposure, Verdict};
use crate::judge::Guard;

/// How a stored text is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Any bytes.
    Text,
    /// One JSON value.
    Json,
    /// A JSON value a line; blank lines are passed over.
    JsonLines,
}

/// A search under way.
pub struct Sweep<'g> {
    guard: &'g Guard,
    texts: u64,
    bytes: u64,
    exposures: Vec<Exposure>,
    unreadable: Vec<String>,
}

/// What was searched, and what was found.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// Texts given.
    pub texts: u64,
    /// Their bytes.
    pub bytes: u64,
    /// One for each text or line with a credential, the first in it. None in a sound house.
    pub exposures: Vec<Exposure>,
}

/// Why a search proves nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepFault {
    /// No text, or only empty ones.
    #[error("nothing was searched ({texts} texts, 0 bytes); point the scan at the stored logs and exports")]
    NoInput {
        /// Texts given.
        texts: u64,
    },
    /// Texts that aren't what they should be.
    #[error("{} texts can't be read as JSON, the first is {first}; give them in their true form", count)]
    Unreadable {
        /// The first of them, with the line for lines.
        first: String,
        /// How many.
        count: usize,
    },
}

impl<'g> Sweep<'g> {
    /// A search with nothing searched yet.
    #[must_use]
    pub const fn new(guard: &'g Guard) -> Self {
        Self { guard, texts: 0, bytes: 0, exposures: Vec::new(), unreadable: Vec::new() }
    }

    /// Searches one text. `name` says where it is stored.
    pub fn read(&mut self, name: &str, form: Form, text: &[u8]) {
        self.texts += 1;
        self.bytes += text.len() as u64;
        let lines = match form {
            Form::Text | Form::Json => vec![text],
            Form::JsonLines => text.split(|byte| *byte == b'\n').collect(),
        };
        for (index, line) in lines.into_iter().enumerate() {
            let name =
                if form == Form::JsonLines { format!("{name}:{}", index + 1) } else { name.to_owned() };
            if let Verdict::Exposed(exposure) = self.guard.text(&name, line) {
                self.exposures.push(exposure);
            }
            let blank = form == Form::JsonLines && line.trim_ascii().is_empty();
            if form != Form::Text && !blank && serde_json::from_slice::<Value>(line).is_err() {
                self.unreadable.push(name);
            }
        }
    }

    /// What came of it.
    ///
    /// # Errors
    /// Nothing was searched, or a text was not of its form.
    pub fn finish(self) -> Result<Report, SweepFault> {
        if self.bytes == 0 {
            return Err(SweepFault::NoInput { texts: self.texts });
        }
        match self.unreadable.first() {
            Some(first) => Err(SweepFault::Unreadable { first: first.clone(), count: self.unreadable.len() }),
            None => Ok(Report { texts: self.texts, bytes: self.bytes, exposures: self.exposures }),
        }
    }
}
