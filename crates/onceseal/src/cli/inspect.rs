//! `onceseal inspect`: looks at an event's record and files closely and changes nothing.

use clap::Args;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal inspect evt_1T5pdGGRtItDCjuJ7AJcYMdb
  onceseal inspect av_evt_shop~42 --json

Says whether files are whole, whether their hashes are those of the record, and what to do")]
pub struct Inspect {
    /// The sender's event id, or the reference
    #[arg(value_name = "EVENT")]
    event: String,
    /// Source, when several have this id
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

impl Inspect {
    /// Runs it.
    ///
    /// # Errors
    /// There is no such event.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let query: Vec<_> = self.source.into_iter().map(|source| ("source", source)).collect();
        let order = Order::get(path(&["events", &self.event, "inspect"], &query));
        let done = Api::open(globals, Folder::Expected).await?.call(order).await?;
        out.answer(&done);
        Ok(Exit::Fine)
    }
}
