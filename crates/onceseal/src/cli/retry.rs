//! `onceseal retry`.

use clap::Args;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal retry evt_1T5pdGGRtItDCjuJ7AJcYMdb

For failed and merely recorded events; they are judged by the policy of today")]
pub struct Retry {
    /// The sender's event id, or the reference
    #[arg(value_name = "EVENT")]
    event: String,
    /// Source, when several have this id
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

impl Retry {
    /// Runs it.
    ///
    /// # Errors
    /// There is no such event, or it has its formal result.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let query: Vec<_> = self.source.into_iter().map(|source| ("source", source)).collect();
        let order = Order::post(path(&["events", &self.event, "retry"], &query));
        let done = Api::open(globals, Folder::Expected).await?.call(order).await?;
        out.answer(&done);
        Ok(Exit::Fine)
    }
}
