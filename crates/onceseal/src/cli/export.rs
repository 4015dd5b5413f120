//! `onceseal export`: all processed events as lines of the specification's section 8.1.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, Stop};
use super::progress;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal export > processed.jsonl
  onceseal export --to processed.jsonl
  onceseal export --after 1200 >> processed.jsonl

The server keeps such a file itself (processed.jsonl in the data folder); this writes it anew. The last line
on standard error is the number to go on after")]
pub struct Export {
    /// Only what was processed after this number
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    after: i64,
    /// File to write, whole or not at all [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Export {
    /// Runs it.
    ///
    /// # Errors
    /// The store can't be read, or the file not be written.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let api = Api::open(globals, Folder::Expected).await?;
        let mut aside = match &self.to {
            Some(file) => {
                let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
                Some(tempfile::NamedTempFile::new_in(folder.unwrap_or(std::path::Path::new(".")))?)
            }
            None => None,
        };
        let (mut after, mut lines) = (self.after, 0_u64);
        let bar = progress::bar("exporting", 0);
        loop {
            let order = Order::get(path(&["export"], &[("after", after.to_string())]));
            let answer = api.send(order).await?;
            let count = answer.body.iter().filter(|byte| **byte == b'\n').count() as u64;
            lines += count;
            bar.inc_length(count);
            bar.inc(count);
            match &mut aside {
                Some(file) => file.write_all(&answer.body)?,
                None => std::io::stdout().lock().write_all(&answer.body)?,
            }
            let next = answer.headers.get(web::NEXT_AFTER).and_then(|next| next.to_str().ok()?.parse().ok());
            match next {
                Some(next) if next > after => after = next,
                _ => break,
            }
        }
        bar.finish_and_clear();
        if let (Some(aside), Some(file)) = (aside, &self.to) {
            aside.as_file().sync_all()?;
            aside
                .persist(file)
                .map_err(|cause| Stop::failed(format!("{}: {}", file.display(), cause.error)))?;
        }
        if out.json {
            eprintln!("{}", serde_json::json!({ "lines": lines, "after": after }));
        } else {
            eprintln!("{lines} lines; go on with --after {after}");
        }
        Ok(Exit::Fine)
    }
}
