//! `onceseal import`: takes over the list of an existing installation, so that its events are not certified
//! again.

use clap::Args;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, Stop};
use super::progress;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal import processed.jsonl --source shop
  onceseal export --server https://old.example.com | onceseal import - --source shop

All lines are checked before the first is kept; a file that was cut in the middle of a line is refused as a
whole. Events that are known already stay as they are, so a second import changes nothing")]
pub struct Import {
    /// The list, one JSON object a line; - for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Source whose events these are
    #[arg(long, value_name = "NAME")]
    source: String,
}

impl Import {
    /// Runs it.
    ///
    /// # Errors
    /// A line can't be used; nothing was kept then.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        use std::io::Read as _;
        let mut bytes = Vec::new();
        let read = if self.file == "-" {
            std::io::stdin().lock().read_to_end(&mut bytes)
        } else {
            std::fs::File::open(&self.file).and_then(|mut file| file.read_to_end(&mut bytes))
        };
        read.map_err(|cause| Stop::failed(format!("{}: {cause}", self.file)))?;
        if bytes.last().is_some_and(|last| *last != b'\n') {
            let text =
                "the last line has no end, so the file may be cut; end it with a line feed if it is whole";
            return Err(Stop::new(Exit::Problems, format!("{}: {text}; nothing was imported", self.file)));
        }
        let api = Api::open(globals, Folder::Made).await?;
        let order = Order::post(path(&["import"], &[("source", self.source)])).lines(bytes);
        out.answer(&progress::during("importing", api.call(order)).await?);
        Ok(Exit::Fine)
    }
}
