//! Standard error behind the guard (supply specification, section 8): a line that holds what looks like a credential is
//! written with `[REDACTED:<rule>]` in its place, and whoever watches hears of it. Not here: what is done then
//! (`wiring::withheld`), and lines before there is a guard: none of them is about a request.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use guard::{Exposure, Guard, Verdict};
use tokio::sync::mpsc;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait to be told of. More of them say nothing new.
const WAITING: usize = 32;

static GUARD: OnceLock<Arc<Guard>> = OnceLock::new();
static TOLD: OnceLock<mpsc::Sender<Exposure>> = OnceLock::new();

/// From now on every line of this program passes this guard. The first one counts: there is one log.
pub fn pass(guard: &Arc<Guard>) {
    // A second server in this program has the same log.
    let _ = GUARD.set(Arc::clone(guard));
}

/// Hears of each line that something was taken out of; `None` when somebody hears already.
#[must_use]
pub fn watch() -> Option<mpsc::Receiver<Exposure>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    TOLD.set(sender).is_ok().then_some(receiver)
}

/// Makes the writer of each line.
#[derive(Clone, Copy, Debug)]
pub struct Guarded;

/// Writes one line.
#[derive(Debug)]
pub struct Line(io::Stderr);

impl MakeWriter<'_> for Guarded {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line(io::stderr())
    }
}

impl Write for Line {
    /// One event is one call, so that nothing is cut in the middle of a credential.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match GUARD.get() {
            None => self.0.write_all(line)?,
            Some(guard) => {
                let (text, exposure) = clean(guard, line);
                self.0.write_all(text.as_bytes())?;
                if let (Some(exposure), Some(told)) = (exposure, TOLD.get()) {
                    // What waits already says the same.
                    let _ = told.try_send(exposure);
                }
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn clean<'l>(guard: &Guard, line: &'l [u8]) -> (Cow<'l, str>, Option<Exposure>) {
    let text = String::from_utf8_lossy(line);
    match guard.text("log", line) {
        Verdict::Clean => (text, None),
        Verdict::Exposed(exposure) => {
            let redacted = guard.redact(&text).into_owned();
            // What could only be seen behind an encoding has no place that could be marked.
            let line = match guard.text("log", &redacted) {
                Verdict::Clean => redacted,
                Verdict::Exposed(_) => format!("[REDACTED:{}]\n", exposure.rule),
            };
            (line.into(), Some(exposure))
        }
    }
}

#[cfg(test)]
mod tests {
    use guard::Scanner;
    use guard::canary::contains_run;

    use super::*;

    #[test]
    fn a_credential_in_a_line_is_put_out_of_it_in_every_encoding_and_others_pass() {
        let guard = Guard::new(Scanner::standard().unwrap(), Vec::new(), &[7; 32]);
        guard.remember("account", "zx81-Quick4Brown7Foxes9Jump").unwrap();
        let secret = format!("sk-{}", "Q7xZ".repeat(12));
        let line = format!("{{\"level\":\"INFO\",\"ref\":\"{secret}\",\"n\":1}}\n");
        let (text, exposure) = clean(&guard, line.as_bytes());
        assert!(text.contains("[REDACTED:") && text.contains("\"n\":1"), "{text}");
        assert!(!contains_run(text.as_bytes(), &secret, 8), "{text}");
        assert_eq!(exposure.unwrap().location, "log");
        let (text, exposure) = clean(&guard, b"see Quick4Brown7 here\n");
        assert!(!text.contains("Quick4Brown7") && text.ends_with('\n') && exposure.is_some(), "{text}");
        let (text, exposure) = clean(&guard, b"{\"message\":\"server_stopped\",\"cut\":0}\n");
        assert_eq!((&*text, exposure), ("{\"message\":\"server_stopped\",\"cut\":0}\n", None));
    }
}
