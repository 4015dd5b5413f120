//! The guard of a stream: nothing is let go before it was looked at together with what follows it. Not here:
//! the stream; the caller sends what comes out and cuts the stream on an error.

use crate::exit::Exposure;
use crate::judge::Guard;

/// Bytes that are held back until more has come (section 15.1).
pub const OVERLAP: usize = 512;

/// An unbroken run of a credential's letters at the end is held back as a whole up to this many bytes: a JWT
/// is longer than [`OVERLAP`], and its shape shows only near its end. Longer runs are files, not credentials.
const RUN_MAX: usize = 8 * 1024;

/// One stream. A chunk costs the search of itself and of what is held back.
///
/// A shape that asks for a border at its end (`xfyun_password`) counts as complete where a chunk ends, so a
/// longer word that is cut right there is withheld: on this side of the error nothing leaks.
#[derive(Default)]
pub struct Window {
    /// Bytes not let go, behind one that was: what stands before a match decides whether it is one.
    held: Vec<u8>,
    /// Whether the first byte of `held` has been let go.
    started: bool,
    cut: Option<Exposure>,
}

impl Window {
    /// The start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a chunk and gives the bytes that may leave now, in order.
    ///
    /// # Errors
    /// A credential: no byte of it has left, the stream must be cut. So says every later call.
    pub fn push(&mut self, guard: &Guard, location: &str, chunk: &[u8]) -> Result<Vec<u8>, Exposure> {
        if let Some(exposure) = &self.cut {
            return Err(exposure.clone());
        }
        self.held.extend_from_slice(chunk);
        if let Some(found) = guard.first_from(&self.held, usize::from(self.started), &[]) {
            self.held = Vec::new();
            let exposure = Exposure { rule: found.rule, location: location.to_owned(), mac: found.mac };
            self.cut = Some(exposure.clone());
            return Err(exposure);
        }
        // The last byte that goes stays here, too, to be looked at from behind.
        let end = self.held.len().saturating_sub(self.tail());
        let start = usize::from(self.started);
        if end <= start {
            return Ok(Vec::new());
        }
        let free = self.held.get(start..end).unwrap_or_default().to_vec();
        self.held.drain(..end - 1);
        self.started = true;
        Ok(free)
    }

    /// The end of the stream: the bytes that were held back, all of them looked at.
    ///
    /// # Errors
    /// As [`Window::push`], when the stream has been cut.
    pub fn finish(self) -> Result<Vec<u8>, Exposure> {
        match self.cut {
            Some(exposure) => Err(exposure),
            None => Ok(self.held.get(usize::from(self.started)..).unwrap_or_default().to_vec()),
        }
    }

    /// How many bytes to hold back.
    fn tail(&self) -> usize {
        let in_run = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./+=:%\\".contains(byte);
        let run = self.held.iter().rev().take(RUN_MAX).take_while(|byte| in_run(byte)).count();
        run.max(OVERLAP)
    }
}
