//! A server of the gate's own: this very program, started with `serve` in a process of its own, with its log in a
//! file. Not here: its configuration ([`super::stage`]).

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long an ended server may take.
const ENDED_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The line that says where it listens begins with this.
const LISTENING: &str = "listening on ";

/// A running server; killed when dropped.
pub struct Node {
    child: Child,
    /// Its address for clients on this machine.
    pub base: String,
}

/// How this program is run in a folder: nothing of the caller's environment comes along.
///
/// # Errors
/// The program does not know where it is.
pub fn command(config: &Path, arguments: &[&str]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|cause| format!("this program can't be found: {cause}"))?;
    let mut command = Command::new(program);
    command.args(arguments).arg("--config").arg(config).env_clear().stdin(Stdio::null());
    if let Some(folder) = config.parent() {
        command.current_dir(folder);
    }
    Ok(command)
}

impl Node {
    /// Starts it and waits until it answers; what it logs is added to `log`.
    ///
    /// # Errors
    /// It ends early; the message has its last words.
    pub async fn start(config: PathBuf, log: PathBuf, settings: Vec<String>) -> Result<Self, String> {
        let started = tokio::task::spawn_blocking(move || start(&config, &log, &settings));
        started.await.map_err(|cause| cause.to_string())?
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// It does not end, or not well.
    pub async fn stop(mut self) -> Result<(), String> {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        told.map_err(|cause| format!("the server can't be told to end: {cause}"))?;
        let since = Instant::now();
        while since.elapsed() < ENDED_WITHIN {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("the server ended with {status}")),
                Ok(None) => tokio::time::sleep(LOOK_EVERY).await,
                Err(cause) => return Err(cause.to_string()),
            }
        }
        Err("the server does not end".into())
    }

    /// Ends it as a power cut would.
    ///
    /// # Errors
    /// It is gone already.
    pub fn kill(mut self) -> Result<(), String> {
        self.child.kill().map_err(|cause| cause.to_string())?;
        self.child.wait().map(drop).map_err(|cause| cause.to_string())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(config: &Path, log: &Path, settings: &[String]) -> Result<Node, String> {
    let fail = |cause: std::io::Error| format!("the gate's server can't be started: {cause}");
    let lines = File::options().create(true).append(true).open(log).map_err(fail)?;
    let mut command = command(config, &["serve"])?;
    for setting in settings {
        command.args(["--set", setting]);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(lines).spawn().map_err(fail)?;
    let mut first = String::new();
    if let Some(told) = child.stdout.take() {
        BufReader::new(told).read_line(&mut first).map_err(fail)?;
    }
    let mut node = Node { child, base: String::new() };
    match first.trim().strip_prefix(LISTENING) {
        Some(base) => base.clone_into(&mut node.base),
        None => {
            let words = std::fs::read_to_string(log).unwrap_or_default();
            let last = words.lines().last().unwrap_or_default();
            return Err(format!("the gate's server does not start; its last words: {last}"));
        }
    }
    Ok(node)
}
