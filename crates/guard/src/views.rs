//! The texts behind a text: as it is, after each step of decoding, with lines joined, and what its runs of
//! base64 say. Not here: what is looked for in them (`scan`, `fragments`).
//!
//! A usual answer has neither an escape nor a wrapped line, so a usual text has one view and its runs.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use crate::decode::{Step, base64, is_base64};

/// Rounds of decoding. Each exit escapes once or twice (a stored JSON text in a JSON answer in a log line is
/// three); more rounds would let a hostile text buy work.
const ROUNDS: usize = 3;

/// Shortest run of base64 that is decoded, in letters: 18 bytes, less than any credential has.
const RUN_MIN: usize = 24;

/// One text to look at.
pub(crate) struct View<'t> {
    /// The text.
    pub(crate) text: &'t [u8],
    /// How it came out of the original.
    pub(crate) steps: &'t [Step],
    /// For decoded base64: where the run stands in the text after `steps`.
    pub(crate) run: Option<Range<usize>>,
}

/// Calls `look` with every view until it breaks.
pub(crate) fn each<B>(text: &[u8], look: &mut impl FnMut(&View<'_>) -> ControlFlow<B>) -> ControlFlow<B> {
    let mut steps = Vec::new();
    let mut plain = Cow::Borrowed(text);
    with_joined(&plain, &mut steps, look)?;
    for _ in 0..ROUNDS {
        let before = steps.len();
        for step in [Step::Json, Step::Html, Step::Percent] {
            let Some(next) = step.undo(&plain) else { continue };
            plain = Cow::Owned(next);
            steps.push(step);
            with_joined(&plain, &mut steps, look)?;
        }
        if steps.len() == before {
            break;
        }
    }
    ControlFlow::Continue(())
}

fn with_joined<B>(
    text: &[u8],
    steps: &mut Vec<Step>,
    look: &mut impl FnMut(&View<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    with_runs(text, steps, look)?;
    if let Some(joined) = Step::Lines.undo(text) {
        steps.push(Step::Lines);
        with_runs(&joined, steps, look)?;
        steps.pop();
    }
    ControlFlow::Continue(())
}

fn with_runs<B>(
    text: &[u8],
    steps: &[Step],
    look: &mut impl FnMut(&View<'_>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    look(&View { text, steps, run: None })?;
    let mut from = 0;
    while let Some(run) = next_run(text, from) {
        from = run.end;
        let letters = text.get(run.clone()).unwrap_or_default();
        // A word before the run (`/`, `token_`) may be made of the same letters and shift it.
        for shift in 0..4 {
            if let Some(decoded) = letters.get(shift..).and_then(base64) {
                look(&View { text: &decoded, steps, run: Some(run.clone()) })?;
            }
        }
        // What such a word decodes to would stand right before the text, and hide its first border.
        for piece in letters.split(|letter| !letter.is_ascii_alphanumeric()) {
            if let Some(decoded) = Some(piece).filter(|piece| has_length(piece, letters)).and_then(base64) {
                look(&View { text: &decoded, steps, run: Some(run.clone()) })?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// Whether a piece of a run is worth decoding by itself.
const fn has_length(piece: &[u8], run: &[u8]) -> bool {
    piece.len() >= RUN_MIN && piece.len() < run.len()
}

/// The next run of at least [`RUN_MIN`] letters. Looks at the last byte of a possible run first, so that most
/// bytes of a text without runs are never read.
fn next_run(text: &[u8], from: usize) -> Option<Range<usize>> {
    let mut start = from;
    loop {
        let shortest = text.get(start..start + RUN_MIN)?;
        match shortest.iter().rposition(|byte| !is_base64(*byte)) {
            Some(other) => start += other + 1,
            None => {
                let rest = text.get(start..)?;
                let length = rest.iter().position(|byte| !is_base64(*byte)).unwrap_or(rest.len());
                return Some(start..start + length);
            }
        }
    }
}

/// Where a range of a view stands in the original text. A run of base64 stands there as a whole.
pub(crate) fn place(original: &[u8], view: &View<'_>, range: Range<usize>) -> Range<usize> {
    if view.steps.is_empty() {
        return view.run.clone().unwrap_or(range);
    }
    places(original, view, vec![range]).pop().unwrap_or(0..original.len())
}

/// As [`place`], for many ranges of one view. The text is decoded once more, with the way back.
pub(crate) fn places(original: &[u8], view: &View<'_>, mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    if ranges.is_empty() {
        return ranges;
    }
    if let Some(run) = &view.run {
        ranges = vec![run.clone()];
    }
    let mut ways = Vec::with_capacity(view.steps.len());
    let mut text = Cow::Borrowed(original);
    for step in view.steps {
        let traced = step.traced(&text);
        text = Cow::Owned(traced.text);
        ways.push(traced.from);
    }
    for from in ways.iter().rev() {
        let back = |at: usize| from.get(at).copied().unwrap_or(original.len());
        for range in &mut ranges {
            *range = back(range.start)..back(range.end);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        let flow: ControlFlow<()> = each(text.as_bytes(), &mut |view: &View<'_>| {
            seen.push(String::from_utf8_lossy(view.text).into_owned());
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        seen
    }

    #[test]
    fn a_plain_text_is_looked_at_once() {
        assert_eq!(texts(r#"{"status":"active","page":1}"#), [r#"{"status":"active","page":1}"#]);
    }

    #[test]
    fn each_layer_of_escapes_is_a_view() {
        assert_eq!(texts(r"\u0026#37;41"), [r"\u0026#37;41", "&#37;41", "%41", "A"]);
        assert_eq!(texts("a\nb"), ["a\nb", "ab"]);
    }

    #[test]
    fn runs_are_found_wherever_they_stand() {
        let run = "A".repeat(RUN_MIN);
        for text in [run.clone(), format!("x.{run}"), format!("{run}=="), format!("..{run}BCD, and")] {
            let found = next_run(text.as_bytes(), 0).unwrap();
            assert!(text[found].starts_with(&run), "{text}");
        }
        assert_eq!(next_run("A".repeat(RUN_MIN - 1).as_bytes(), 0), None);
    }

    #[test]
    fn decoding_is_bounded_in_rounds() {
        let deep = format!("%{}41", "25".repeat(9));
        assert_eq!(texts(&deep).len(), 1 + ROUNDS);
    }
}
