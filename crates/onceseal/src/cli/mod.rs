//! The command line: one file a command. Commands for operators speak the operator API, over HTTP where a
//! server runs and in this process where none does ([`api`]).

pub mod announcements;
pub mod api;
pub mod backup;
pub mod check;
pub mod completions;
pub mod config;
pub mod copy;
pub mod demo;
mod demo_market;
pub mod erase;
pub mod export;
pub mod fetch;
pub mod gate;
pub mod import;
pub mod init;
pub mod inspect;
pub mod keys;
pub mod ledger;
pub mod list;
pub mod migrate;
pub mod out;
pub mod progress;
pub mod reconcile;
pub mod restore;
pub mod retry;
pub mod send;
pub mod serve;
pub mod show;
pub mod slo;
pub mod status;
pub mod supply;
pub mod token;
pub mod verify;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::load::Environment;
use crate::config::{Loaded, Places};
use crate::core_dump;
use out::{Ended, Exit, Out, Stop};

/// Threads that wait for files. More would only queue at the same disk and keep memory of their own.
const BLOCKING_MAX: usize = 8;
const ABOUT: &str =
    "One event, one formal result: certificates for payment webhooks that arrive more than once";
const EXAMPLES: &str = "Examples:
  onceseal demo                          see it work, in a temporary folder
  onceseal init && onceseal serve        set up and start a server here
  onceseal send event.json --times 5     play the sender
  onceseal verify certificate.zip --keys keys.json

Exit codes: 0 fine, 1 failed, 2 wrong command line or configuration, 3 not valid or problems found,
4 intact but signer unknown, 5 valid but date only claimed, 6 nothing found, 7 a server is in the way or
can't be reached";

/// One event, one formal result: certificates for payment webhooks that arrive more than once.
#[derive(Debug, Parser)]
#[command(name = "onceseal", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// For every command.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Args, Clone, Debug, Default)]
pub struct Globals {
    /// Configuration file [default: ./onceseal.toml, then /etc/onceseal/onceseal.toml]
    #[arg(long, global = true, value_name = "FILE", env = "ONCESEAL_CONFIG", hide_env = true)]
    pub config: Option<PathBuf>,
    /// Data folder: short for --set storage.folder=FOLDER
    #[arg(long, global = true, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Change a setting for this call; may be given several times
    #[arg(long, global = true, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// Address of the server to speak to [default: the one that runs on the data folder]
    #[arg(long, global = true, value_name = "URL", env = "ONCESEAL_SERVER", hide_env = true)]
    pub server: Option<String>,
    /// File with the operator's token for --server; the variable ONCESEAL_TOKEN does, too
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Operator's token; others on this machine can read a command line, so prefer --token-file
    #[arg(long, global = true, value_name = "TOKEN", env = "ONCESEAL_TOKEN", hide_env = true)]
    pub token: Option<String>,
}

impl Globals {
    /// Loads the configuration.
    ///
    /// # Errors
    /// A setting is wrong.
    pub fn load(&self) -> Result<Loaded, Stop> {
        Ok(self.places(Vec::new()).load()?)
    }

    /// Where settings come from, with more flags on top.
    #[must_use]
    pub fn places(&self, more: Vec<(&'static str, String)>) -> Places {
        let mut flags: Vec<_> = self.set.iter().map(|text| ("--set", text.clone())).collect();
        if let Some(folder) = &self.data {
            flags.push(("--data", format!("storage.folder={}", folder.display())));
        }
        flags.extend(more);
        Places { file: self.config.clone(), flags, environment: Environment::Read }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// See it work: a server of its own in a temporary folder, and a story told to it
    Demo(demo::Demo),
    /// Write a commented onceseal.toml and make its folders
    Init(init::Init),
    /// Run the server
    Serve(serve::Serve),
    /// Play the sender: sign a body with a source's secret and post it
    Send(send::Send),
    /// List events, newest first
    List(list::List),
    /// Everything about an event, with the seven questions answered
    Show(show::Show),
    /// Look closely at an event's record and files
    Inspect(inspect::Inspect),
    /// Bring records and files together again
    Reconcile(reconcile::Reconcile),
    /// Try a failed or recorded event again
    Retry(retry::Retry),
    /// Erase what is personal of an event; proof and audit stay
    Erase(erase::Erase),
    /// Check a certificate offline: ZIP, JSON or HTML
    Verify(verify::Verify),
    /// Check the whole store against itself and its files
    Check(check::Check),
    /// Write processed events as JSON lines
    Export(export::Export),
    /// Take over the processed events of another installation
    Import(import::Import),
    /// Copy the whole state while the server goes on
    Backup(backup::Backup),
    /// Put a backup in the database's place
    Restore(restore::Restore),
    /// Move a living installation to a PostgreSQL database
    Copy(copy::Copy),
    /// How the database's schema stands, and bringing it up: status, up
    Migrate(migrate::Migrate),
    /// Anchor keys: list, rotate, backup, restore
    Keys(keys::Keys),
    /// The effective configuration: show, check
    Config(config::Config),
    /// Tokens of operators, and of users of the supply API: issue, list, revoke
    Token(token::Token),
    /// The supply side's first administrator, and its wrapping key: admin, keys
    Supply(supply::Supply),
    /// Whether the supply side's money adds up: verify
    Ledger(ledger::Ledger),
    /// Hold the supply side's acceptance gate; a sealed report
    Gate(gate::Gate),
    /// Whether the supply side's promises are kept: report, files
    Slo(slo::Slo),
    /// Announcements that wait for a person: list, redrive, settle
    Announcements(announcements::Announcements),
    /// Counts, and whether a server runs
    Status(status::Status),
    /// Print completions for a shell
    Completions(completions::Completions),
}

/// Runs the program.
#[must_use]
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(cause) => {
            // What can't be printed can't be reported either.
            let _ = cause.print();
            return if cause.use_stderr() { Exit::Usage } else { Exit::Fine };
        }
    };
    let out = Out::new(cli.globals.json);
    if let Err(cause) = core_dump::forbid() {
        eprintln!("core dumps can't be forbidden, and would hold keys: {cause}");
    }
    // The choice of the provider is process-wide; a second one would be an embedding program's.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = match builder.enable_all().max_blocking_threads(BLOCKING_MAX).build() {
        Ok(runtime) => runtime,
        Err(cause) => return stopped(out, &Stop::failed(format!("no threads can be started: {cause}"))),
    };
    match runtime.block_on(run(cli, out)) {
        Ok(exit) => exit,
        Err(stop) => stopped(out, &stop),
    }
}

async fn run(cli: Cli, out: Out) -> Ended {
    let globals = &cli.globals;
    match cli.command {
        Command::Demo(args) => args.run(out).await,
        Command::Init(args) => args.run(out),
        Command::Serve(args) => args.run(globals, out).await,
        Command::Send(args) => args.run(globals, out).await,
        Command::List(args) => args.run(globals, out).await,
        Command::Show(args) => args.run(globals, out).await,
        Command::Inspect(args) => args.run(globals, out).await,
        Command::Reconcile(args) => args.run(globals, out).await,
        Command::Retry(args) => args.run(globals, out).await,
        Command::Erase(args) => args.run(globals, out).await,
        Command::Verify(args) => args.run(out).await,
        Command::Check(args) => args.run(globals, out).await,
        Command::Export(args) => args.run(globals, out).await,
        Command::Import(args) => args.run(globals, out).await,
        Command::Backup(args) => args.run(globals, out).await,
        Command::Restore(args) => args.run(globals, out).await,
        Command::Copy(args) => args.run(globals, out).await,
        Command::Migrate(args) => args.run(globals, out).await,
        Command::Keys(args) => args.run(globals, out).await,
        Command::Config(args) => args.run(globals, out),
        Command::Token(args) => args.run(globals, out).await,
        Command::Supply(args) => args.run(globals, out).await,
        Command::Ledger(args) => args.run(globals, out).await,
        Command::Gate(args) => args.run(out).await,
        Command::Slo(args) => args.run(globals, out).await,
        Command::Announcements(args) => args.run(globals, out).await,
        Command::Status(args) => args.run(globals, out).await,
        Command::Completions(args) => args.run(),
    }
}

fn stopped(out: Out, stop: &Stop) -> Exit {
    if out.json {
        let exit = stop.exit as u8;
        eprintln!("{}", serde_json::json!({ "error": stop.text, "exit": exit }));
    } else {
        eprintln!("onceseal: {}", stop.text);
    }
    stop.exit
}
