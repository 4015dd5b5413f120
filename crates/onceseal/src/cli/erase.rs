//! `onceseal erase`: what is personal goes, what proves stays.

use clap::Args;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, Stop};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal erase evt_1T5pdGGRtItDCjuJ7AJcYMdb --yes

Removes the event's content, the certificate's content and files, the raw payload and the search words.
Reference, hashes, states and arrivals stay; the links answer 410. There is no way back but a backup")]
pub struct Erase {
    /// The sender's event id, or the reference
    #[arg(value_name = "EVENT")]
    event: String,
    /// Source, when several have this id
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Really
    #[arg(long)]
    yes: bool,
}

impl Erase {
    /// Runs it.
    ///
    /// # Errors
    /// There is no such event, or `--yes` is missing.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        if !self.yes {
            return Err(Stop::new(Exit::Usage, "erasing can't be undone; add --yes if you mean it"));
        }
        let query: Vec<_> = self.source.into_iter().map(|source| ("source", source)).collect();
        let order = Order::post(path(&["events", &self.event, "erase"], &query));
        out.answer(&Api::open(globals, Folder::Expected).await?.call(order).await?);
        Ok(Exit::Fine)
    }
}
