//! One folder, served from its own file and from a database.

use std::process::Command;

use serde_json::Value as Json;
use testkit::postgres::{self, Database};

use crate::home::{Home, Ran, Running};

/// An installation that moves.
pub(super) struct Moving {
    pub(super) home: Home,
    pub(super) database: Database,
}

impl Moving {
    pub(super) fn new() -> Self {
        let home = Home::new();
        // The sample is one change; each of its ids gets a certificate here.
        let file = home.path("onceseal.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        home.write("onceseal.toml", &format!("policy.second_report = \"certify\"\n{text}"));
        let database = postgres::beside(&home.path("")).unwrap_or_else(postgres::required);
        Self { home, database }
    }

    /// A command that sees the file.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(arguments);
        command.env_remove("ONCESEAL_STORAGE__DATABASE");
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.command(arguments).output().unwrap())
    }

    pub(super) fn json(&self, arguments: &[&str]) -> Json {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.all());
        serde_json::from_str(&ran.out()).unwrap()
    }

    /// The server on the file.
    pub(super) fn serve(&self) -> Running {
        self.home.serve_with(self.command(&["serve", "--listen", "127.0.0.1:0"]))
    }

    /// The command that moves it to `database`, with its password in a file.
    pub(super) fn copy(&self, database: &Database, more: &[&str]) -> Command {
        let (address, password) = database.address();
        self.home.write("secrets/database", &password.unwrap_or_default());
        let to = ["copy", "--to", &address, "--to-password-file", "secrets/database", "--json"];
        self.command(&[&to, more].concat())
    }

    pub(super) fn copied(&self, more: &[&str]) -> Ran {
        Ran(self.copy(&self.database, more).output().unwrap())
    }

    /// Sends one event; gives its result's code and hash.
    pub(super) fn sent(&self, id: &str) -> (String, Option<String>) {
        let ran = self.run(&["send", "sample:checkout-paid", "--id", id, "--json"]);
        let sent: Json = serde_json::from_str(&ran.out()).unwrap_or_default();
        let text = |name: &str| sent[0]["answer"][name].as_str().map(str::to_owned);
        (text("code").or_else(|| text("status")).unwrap_or_else(|| ran.all()), text("run_hash"))
    }
}
