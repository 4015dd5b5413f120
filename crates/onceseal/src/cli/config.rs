//! `onceseal config`: what is in effect, and where it came from.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Globals;
use super::out::{Ended, Exit, Out, Stop, Tone};
use crate::config::settings::LogFormat;
use crate::config::{endpoint, show};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal config show                            every setting and where it came from
  ONCESEAL_SERVER__WAIT=1s onceseal config show
  onceseal config check --config /etc/onceseal/onceseal.toml")]
pub struct Config {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print every effective setting with its origin; secrets are shown by their place only
    Show,
    /// Check settings and secrets as `serve` would, without starting
    Check,
}

impl Config {
    /// Runs it.
    ///
    /// # Errors
    /// The configuration can't be used.
    pub fn run(self, globals: &Globals, out: Out) -> Ended {
        let loaded = globals.load()?;
        match self.what {
            What::Show => {
                let lines = show::lines(&loaded);
                if out.json {
                    out.value(&lines.iter().map(show::Line::json).collect());
                    return Ok(Exit::Fine);
                }
                let file = loaded.file.as_ref().map(|file| file.display().to_string());
                out.line(out.paint(Tone::Faint, &format!("# file: {}", file.as_deref().unwrap_or("none"))));
                for line in lines {
                    let secret = match line.secret {
                        Some(true) => ", secret hidden",
                        Some(false) => ", secret not found",
                        None => "",
                    };
                    let origin = out.paint(Tone::Faint, &format!("# {}{secret}", line.origin));
                    out.line(format_args!("{} = {}  {origin}", line.setting, line.value));
                }
                Ok(Exit::Fine)
            }
            What::Check => {
                let endpoints = endpoint::all(&loaded).map_err(|cause| Stop::new(Exit::Usage, cause))?;
                crate::logging::check(&loaded.config.log).map_err(|cause| Stop::new(Exit::Usage, cause))?;
                let plain = endpoint::plain_account(&loaded);
                let names: Vec<&str> = endpoints.iter().map(|one| one.source.name()).collect();
                let format = match loaded.config.log.format {
                    LogFormat::Json => "json",
                    LogFormat::Text => "text",
                };
                if out.json {
                    out.value(&json!({ "ok": true, "sources": names, "plain_refs": plain, "log": format }));
                } else {
                    out.line(format_args!("fine: {} sources ({})", names.len(), names.join(", ")));
                    out.line(match plain {
                        Some(account) => format!("plain references (av_evt_...): account {account}"),
                        None => "plain references: none".to_owned(),
                    });
                }
                Ok(Exit::Fine)
            }
        }
    }
}
