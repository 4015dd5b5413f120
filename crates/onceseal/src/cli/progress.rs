//! Signs of life during long work, on a terminal only and never in what is piped on.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Between two pictures.
const TICK: Duration = Duration::from_millis(120);

/// A bar of `length` steps; hidden where standard error is no terminal.
#[must_use]
pub fn bar(title: &'static str, length: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length).with_message(title);
    // The template is a constant of ours; if it were wrong, the default would show.
    match ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A sign of life whose message changes; hidden where standard error is no terminal.
#[must_use]
pub fn spinner(title: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner().with_message(title);
    spinner.enable_steady_tick(TICK);
    spinner
}

/// Shows that something is going on while a future runs.
pub async fn during<F: Future>(title: &'static str, work: F) -> F::Output {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    let spinner = ProgressBar::new_spinner().with_message(title);
    spinner.enable_steady_tick(TICK);
    let done = work.await;
    spinner.finish_and_clear();
    done
}
