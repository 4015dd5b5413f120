//! Messages with a type and a length, in whatever pieces they come. What they mean: `dialogue`.

/// The message under way in one direction, in whatever pieces it comes.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Type and length (start-up: length and code).
    pub(super) head: Vec<u8>,
    /// Bytes of the body still to come.
    pub(super) left: usize,
    /// The beginning of the body.
    kept: Vec<u8>,
    /// Where in the chunk it began, 0 if before.
    pub(super) start: usize,
}

/// A length that no message can have.
#[derive(Debug)]
pub(super) struct Impossible;

impl Frames {
    /// Goes on reading `chunk` at `at`; where the message ends, or `None` when the chunk is used up.
    pub(super) fn next(
        &mut self,
        chunk: &[u8],
        at: usize,
        keep: impl Fn(u8) -> usize,
    ) -> Option<Result<usize, Impossible>> {
        let mut rest = chunk.get(at..).unwrap_or_default();
        let missing = self.head_missing(5);
        if missing > 0 {
            let (head, after) = rest.split_at(missing.min(rest.len()));
            self.head.extend(head);
            rest = after;
            if head.len() < missing {
                return None;
            }
            let Some(length) = self.word(1).and_then(|length| (length as usize).checked_sub(4)) else {
                return Some(Err(Impossible));
            };
            self.left = length;
        }
        let (body, after) = rest.split_at(self.left.min(rest.len()));
        let room = keep(self.kind()).saturating_sub(self.kept.len());
        self.kept.extend(body.iter().take(room));
        self.left -= body.len();
        (self.left == 0).then_some(Ok(chunk.len() - after.len()))
    }

    pub(super) fn head_missing(&self, length: usize) -> usize {
        length.saturating_sub(self.head.len())
    }

    pub(super) fn kind(&self) -> u8 {
        self.head.first().copied().unwrap_or_default()
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.kept
    }

    pub(super) fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(*self.head.get(at..)?.first_chunk()?))
    }

    pub(super) fn clear(&mut self, start: usize) {
        self.head.clear();
        self.kept.clear();
        self.left = 0;
        self.start = start;
    }
}
