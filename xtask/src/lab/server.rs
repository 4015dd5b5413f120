//! A started program: where it listens, its operator's token, its end by signal.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value as Json;

use super::house::House;
use super::wire::{self, Answer};

/// How long the program may take until it listens, and until it has ended after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(60);
/// The line that says where it listens begins with this.
const LISTENING: &str = "listening on http://";

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    house: House,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its standard error: the log.
    pub(crate) log: PathBuf,
}

impl House {
    /// Starts `onceseal serve` and waits until it answers.
    ///
    /// # Errors
    /// It ends early; the message has its last words.
    pub(crate) fn start(&self, program: &Path) -> anyhow::Result<Server> {
        self.start_with(self.command(program, &["serve"]))
    }

    /// As [`House::start`], with a command that was changed: another environment, another folder.
    ///
    /// # Errors
    /// As [`House::start`].
    pub(crate) fn start_with(&self, mut command: Command) -> anyhow::Result<Server> {
        let log = self.next_log()?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut child = command.spawn().context("onceseal can't be started; build it first")?;
        let stdout = child.stdout.take().context("its standard output")?;
        // From here on the drop of `server` ends the child, whatever happens.
        let mut server =
            Server { child, house: self.clone(), address: SocketAddr::from(([127, 0, 0, 1], 0)), log };
        match listening(stdout) {
            Some(address) => server.address = address,
            None => bail!("onceseal doesn't say where it listens; its last words: {}", server.last_words()),
        }
        Ok(server)
    }

    /// A new file in `logs/`, numbered so that sorting by name is sorting by start.
    pub(crate) fn next_log(&self) -> anyhow::Result<PathBuf> {
        let count = std::fs::read_dir(self.logs())?.count();
        Ok(self.logs().join(format!("serve-{count:04}.log")))
    }

    /// The token for operators that the running server left in its folder.
    ///
    /// # Errors
    /// No server runs there.
    pub(crate) fn token(&self) -> anyhow::Result<String> {
        let text = std::fs::read(self.data().join("run/server.json")).context("reading run/server.json")?;
        let json: Json = serde_json::from_slice(&text)?;
        json.get("token")
            .and_then(Json::as_str)
            .map(ToOwned::to_owned)
            .context("run/server.json has no token")
    }
}

impl Server {
    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `GET path`.
    ///
    /// # Errors
    /// No answer.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Answer> {
        wire::exchange(self.address, &wire::request("GET", path, &[], b""))
    }

    /// An order of the operator API below `/api/v1/certify/`, with an empty body; JSON back.
    ///
    /// # Errors
    /// No answer, or not 200.
    pub(crate) fn order(&self, method: &str, path: &str) -> anyhow::Result<Json> {
        let answer = self.order_raw(method, path)?;
        ensure!(answer.status == 200, "{method} {path}: {} {}", answer.status, answer.text());
        Ok(serde_json::from_slice(&answer.body)?)
    }

    /// As [`Server::order`], whatever the answer is.
    ///
    /// # Errors
    /// No answer.
    pub(crate) fn order_raw(&self, method: &str, path: &str) -> anyhow::Result<Answer> {
        let bearer = format!("Bearer {}", self.house.token()?);
        let path = format!("/api/v1/certify/{path}");
        wire::exchange(self.address, &wire::request(method, &path, &[("authorization", &bearer)], b""))
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// We may not, or it is gone.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill(Pid::from_raw(i32::try_from(self.child.id())?), signal)?)
    }

    /// SIGTERM, then waits for the end.
    ///
    /// # Errors
    /// It does not end, or not in order.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGTERM)?;
        let status = self.ended()?;
        ensure!(status.success(), "onceseal ended with {status:?}; its last words: {}", self.last_words());
        Ok(())
    }

    fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.signal().is_none(), "onceseal was ended by signal {:?}", status.signal());
                return Ok(status);
            }
            // There is no wait with a limit in std; the loop ends with the child or the patience.
            std::thread::park_timeout(Duration::from_millis(10));
        }
        bail!("onceseal did not end within {PATIENCE:?} after SIGTERM")
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address that the program prints on its standard output, which is read to its end so that the
/// program never waits for a reader. `None`: it ended, or says nothing for a minute.
pub(crate) fn listening(stdout: impl Read + Send + 'static) -> Option<SocketAddr> {
    let (found, address) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let address = line.strip_prefix(LISTENING).and_then(|rest| rest.split_whitespace().next());
            if let Some(address) = address.and_then(|address| address.parse().ok()) {
                // Nobody waits any more when a second line says it again.
                let _ = found.send(address);
            }
        }
    });
    address.recv_timeout(PATIENCE).ok()
}
