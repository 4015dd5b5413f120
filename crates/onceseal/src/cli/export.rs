//! `onceseal export`: all processed events as lines of the specification's section 8.1; or the server's own
//! list of them made anew.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, Stop};
use super::progress;
use crate::wiring::processed_file;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal export > processed.jsonl
  onceseal export --to copy.jsonl
  onceseal export --after 1200 >> copy.jsonl
  onceseal export --rebuild                  processed.jsonl in the data folder, with every event

The server keeps a list itself (processed.jsonl in the data folder), and only the server writes it: --rebuild
asks it to make that file anew, or does so where none runs. Without it this writes a copy; the last line on
standard error is the number to go on after")]
pub struct Export {
    /// Only what was processed after this number
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    after: i64,
    /// File to write, whole or not at all [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Make the server's own processed.jsonl anew
    #[arg(long, conflicts_with_all = ["after", "to"])]
    rebuild: bool,
}

impl Export {
    /// Runs it.
    ///
    /// # Errors
    /// The store can't be read, or the file not be written.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        if self.rebuild {
            return rebuild(globals, out).await;
        }
        if let Some(to) = &self.to {
            not_the_servers(globals, to)?;
        }
        let api = Api::open(globals, Folder::Expected).await?;
        let mut aside = match &self.to {
            Some(file) => {
                let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
                Some(tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?)
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

async fn rebuild(globals: &Globals, out: Out) -> Ended {
    let api = Api::open(globals, Folder::Expected).await?;
    out.answer(&progress::during("rebuilding", api.call(Order::post("/export/rebuild"))).await?);
    Ok(Exit::Fine)
}

/// A copy in the live list's place would have two writers.
fn not_the_servers(globals: &Globals, to: &Path) -> Result<(), Stop> {
    let loaded = match globals.load() {
        Ok(loaded) => loaded,
        // A server elsewhere needs no configuration here.
        Err(_) if globals.server.is_some() => return Ok(()),
        Err(stop) => return Err(stop),
    };
    if place(to) != place(&processed_file(&loaded.config.storage.folder)) {
        return Ok(());
    }
    let text = format!(
        "{} is the server's own list, which only the server writes; `onceseal export --rebuild` makes it anew",
        to.display()
    );
    Err(Stop::new(Exit::Usage, text))
}

/// Where a file is or would be, links followed.
fn place(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let in_folder = || Some(folder.canonicalize().ok()?.join(file.file_name()?));
    file.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| file.to_owned())
}
