//! The tracer on real programs: this test binary runs itself as the tracee, in a role named by
//! the environment. Not here: the server's own crash runs.

mod kill;
mod power;
mod served;
mod sqlite;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Plan, Recording};

const ROLE: &str = "ONCESEAL_TRACEE_ROLE";
const PORT: &str = "ONCESEAL_TRACEE_PORT";

/// The tracee. Run as a test it has no role and ends at once.
#[test]
fn tracee() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let known = [power::play, kill::play, served::play, sqlite::play];
    assert!(known.into_iter().any(|play| play(&role)), "no role {role}");
}

/// This binary in a role, its working directory in `folder`.
fn tracee_in(folder: &Path, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "trace::tests::tracee", "--nocapture"]);
    command.current_dir(folder).env(ROLE, role).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A folder to be traced and the copy of it that a replay starts from.
struct Stage {
    root: TempDir,
}

impl Stage {
    fn new(files: &[(&str, &str)]) -> Self {
        let stage = Self { root: tempfile::tempdir().unwrap() };
        for folder in [stage.live(), stage.base()] {
            fs::create_dir(&folder).unwrap();
            for (name, content) in files {
                let path = folder.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
        }
        stage
    }

    fn live(&self) -> PathBuf {
        self.root.path().join("live")
    }

    fn base(&self) -> PathBuf {
        self.root.path().join("base")
    }

    fn plan(&self, role: &str) -> Plan {
        Plan::new(tracee_in(&self.live(), role), self.live())
    }

    fn run(&self, role: &str) -> Recording {
        let recording = super::run(self.plan(role)).unwrap();
        assert!(recording.exit.unwrap().success(), "{role} failed: {:?}", recording.exit);
        recording
    }

    /// A path that does not exist yet.
    fn fresh(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }
}

/// Every file under a folder, by path; directories end in a slash.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                found.insert(format!("{name}/"), String::new());
                open.push(path);
            } else {
                found.insert(name, String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned());
            }
        }
    }
    found
}

fn expected(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
}

/// Opens for appending, creating what is missing.
fn append(path: &str, text: &str) -> File {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn sync_directory(path: &str) {
    File::open(path).unwrap().sync_all().unwrap();
}
