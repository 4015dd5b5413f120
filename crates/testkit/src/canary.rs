//! The credential that tests mount: a canary. Where any eight characters of it in a row stand in what a test leaves
//! behind, the test fails. Not here: credentials that a test plants to be found (it makes its own).

use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;
use tempfile::TempDir;

/// Bytes in a row that count as an exposure (FI-008).
const RUN: usize = 8;
/// What all mounted credentials have in common.
const MOUNTED: &str = "CaNaRy7xQ2mV9sK4tH8wB3nL6pR1";
/// As long and as random, never mounted: to show that a search finds.
pub const PLANTED: &str = "PlAnTd5zJ8cF1gY6dW0kS7vN3qX9";

/// An `OpenAI` key; another one for each letter.
#[must_use]
pub fn credential(letter: &str) -> String {
    format!("sk-{letter}{MOUNTED}{}", letter.repeat(8))
}

/// Looks for parts of a credential.
pub struct Search(AhoCorasick);

impl Search {
    /// For what tests mount.
    ///
    /// # Panics
    /// Never: the patterns are few and short.
    #[must_use]
    pub fn mounted() -> Self {
        Self::of(MOUNTED)
    }

    /// For [`PLANTED`].
    #[must_use]
    pub fn planted() -> Self {
        Self::of(PLANTED)
    }

    #[expect(clippy::expect_used, reason = "some twenty patterns of eight bytes always make an automaton")]
    fn of(text: &str) -> Self {
        Self(AhoCorasick::new(text.as_bytes().windows(RUN)).expect("an automaton"))
    }

    /// Whether any eight characters in a row are there.
    #[must_use]
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }

    fn is_in_file(&self, path: &Path) -> bool {
        std::fs::read(path).is_ok_and(|bytes| self.is_in(&bytes))
    }

    /// All files below a folder in which they are; files that go away meanwhile hold nothing.
    ///
    /// # Errors
    /// A folder can't be read.
    pub fn below(&self, folder: &Path) -> std::io::Result<Vec<PathBuf>> {
        let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(next)?.flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(path),
                    Ok(kind) if kind.is_file() && self.is_in_file(&path) => found.push(path),
                    _ => {}
                }
            }
        }
        Ok(found)
    }
}

/// A temporary folder of a test. When it goes, nothing of a mounted credential may be in it.
#[derive(Debug)]
pub struct Folder(TempDir);

impl Folder {
    /// Makes one.
    ///
    /// # Errors
    /// As [`tempfile::tempdir`].
    pub fn new() -> std::io::Result<Self> {
        tempfile::tempdir().map(Self)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A second panic would hide the first.
        if !std::thread::panicking() {
            let found = Search::mounted().below(self.path()).unwrap_or_default();
            assert!(found.is_empty(), "a mounted credential, or a part of it, is in {found:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_characters_in_a_row_are_found_and_seven_are_not() {
        let search = Search::mounted();
        assert!(search.is_in(credential("a").as_bytes()) && search.is_in(b"xx Ry7xQ2mV xx"));
        assert!(!search.is_in(b"xx Ry7xQ2m xx") && !search.is_in(PLANTED.as_bytes()));
    }

    #[test]
    #[should_panic(expected = "a mounted credential")]
    fn a_folder_with_a_credential_does_not_go_unnoticed() {
        let folder = Folder::new().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("data/state.db"), format!("..{}..", credential("q"))).unwrap();
    }
}
