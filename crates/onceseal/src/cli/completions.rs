//! `onceseal completions`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::out::{Ended, Exit};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal completions bash > /etc/bash_completion.d/onceseal
  onceseal completions fish > ~/.config/fish/completions/onceseal.fish")]
pub struct Completions {
    /// For which shell
    shell: Shell,
}

impl Completions {
    /// Prints them.
    ///
    /// # Errors
    /// None.
    pub fn run(self) -> Ended {
        clap_complete::generate(self.shell, &mut super::Cli::command(), "onceseal", &mut std::io::stdout());
        Ok(Exit::Fine)
    }
}
