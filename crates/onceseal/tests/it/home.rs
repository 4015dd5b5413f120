//! A folder set up by `onceseal init`, and ways to run the program in it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value as Json;
use testkit::canary::Folder;

pub(crate) const EVENT: &str = "evt_1SkQl3B7WZ01zgkWh3b8kqQe";

pub(crate) struct Home {
    folder: Folder,
}

/// A server; killed when dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) base: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self { folder: Folder::new().unwrap() };
        assert_eq!(home.run(&["init"]).code(), 0);
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Adds lines to the configuration.
    pub(crate) fn configure(&self, lines: &str) {
        let file = self.path("onceseal.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{text}\n{lines}\n")).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onceseal"));
        command.args(arguments).current_dir(self.folder.path());
        command.env_remove("RUST_LOG").env_remove("ONCESEAL_SERVER").env_remove("ONCESEAL_TOKEN");
        if let Some(database) = testkit::postgres::beside(self.folder.path()) {
            let (address, password) = database.address();
            command.env("ONCESEAL_STORAGE__DATABASE", address);
            if database.pooled {
                command.env("ONCESEAL_POSTGRES__MODE", "unnamed");
            }
            if let Some(password) = password {
                command.env("ONCESEAL_TEST_PASSWORD", password);
                command.env("ONCESEAL_POSTGRES__PASSWORD", "{ env = \"ONCESEAL_TEST_PASSWORD\" }");
            }
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.command(arguments).output().unwrap())
    }

    /// Runs a command that must do, and reads its JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Json {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.all());
        serde_json::from_str(&ran.out()).unwrap()
    }

    pub(crate) fn serve(&self) -> Running {
        self.serve_with(self.command(&["serve", "--listen", "127.0.0.1:0"]))
    }

    /// Starts a server and waits for its first line.
    pub(crate) fn serve_with(&self, mut command: Command) -> Running {
        let log = std::fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let base = line.trim().strip_prefix("listening on ").map(str::to_owned);
        let log = || std::fs::read_to_string(self.path("log")).unwrap_or_default();
        Running { base: base.unwrap_or_else(|| panic!("no server: {line}{}", log())), child }
    }

    pub(crate) fn send(&self, sample: &str, times: &str) -> Vec<Json> {
        let sample = format!("sample:{sample}");
        let sent = self.json(&["send", &sample, "--times", times, "--parallel", times]);
        sent.as_array().unwrap().clone()
    }

    /// The one served file with this ending.
    pub(crate) fn delivery(&self, extension: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.path("data/deliveries")).unwrap();
        let mut found = entries.map(|entry| entry.unwrap().path());
        found.find(|path| path.extension().is_some_and(|found| found == extension)).unwrap()
    }
}

impl Running {
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it gracefully; gives its exit code.
    pub(crate) fn stop(mut self) -> i32 {
        self.signal("TERM");
        self.child.wait().unwrap().code().unwrap()
    }

    /// Ends it as a power cut would end it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Ran(pub(crate) Output);

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().unwrap()
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn error(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    pub(crate) fn all(&self) -> String {
        self.out() + &self.error()
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
