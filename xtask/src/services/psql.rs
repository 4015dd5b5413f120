//! A question to a server through `psql`, PostgreSQL's own client: it speaks every way in that a given URL
//! may ask for. Not for anything measured: each question is a program start and a log-in.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::account::without_settings;
use super::binaries::Binaries;

/// Seconds that a log-in may take.
const LOGIN_WITHIN: &str = "10";

/// A server to be asked.
pub(crate) struct Psql {
    program: PathBuf,
    /// Without the password: command lines can be read by everybody on the machine.
    url: String,
    password: Option<String>,
}

impl Psql {
    /// Asks the server at `url`, "postgres://user:password@host:port/database".
    ///
    /// # Errors
    /// `psql` is not installed.
    pub(crate) fn at(url: &str) -> anyhow::Result<Self> {
        let (url, password) = without_password(url);
        Ok(Self { program: Binaries::find()?.program("psql"), url, password })
    }

    /// Runs statements one by one, each in a transaction of its own unless they say otherwise. Back come
    /// the rows, a line each, values parted by `|`, without the last newline.
    ///
    /// # Errors
    /// The first statement that fails, with the server's words; or no log-in.
    pub(crate) fn ask(&self, sql: &str) -> anyhow::Result<String> {
        let mut child = self.command().spawn().context("psql can't be started")?;
        // An end before all was read has its reason on standard error.
        let _ = child.stdin.take().context("psql's input")?.write_all(sql.as_bytes());
        let told = child.wait_with_output()?;
        if !told.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&told.stderr).trim().replace('\n', " | "));
        }
        Ok(String::from_utf8(told.stdout)?.trim_end_matches('\n').to_owned())
    }

    /// `psql` with all three of its streams open to us, for a session that stays open.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        without_settings(&mut command);
        command
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url])
            .env("PGCONNECT_TIMEOUT", LOGIN_WITHIN)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(password) = &self.password {
            command.env("PGPASSWORD", password);
        }
        command
    }
}

/// Takes the password out of a URL.
fn without_password(url: &str) -> (String, Option<String>) {
    let whole = || (url.to_owned(), None);
    let Some((scheme, rest)) = url.split_once("://") else { return whole() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let Some((login, host)) = authority.rsplit_once('@') else { return whole() };
    let Some((user, password)) = login.split_once(':') else { return whole() };
    (format!("{scheme}://{user}@{host}{tail}"), Some(decoded(password)))
}

/// Replaces `%41` by `A` and so on; what is no such escape stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| *first == b'%').and_then(|digits| hex::decode(digits).ok());
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
        bytes.extend(escaped.unwrap_or_else(|| vec![*first]));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_kept_off_the_command_line() {
        let told = |url: &str| {
            let (url, password) = without_password(url);
            (url, password.unwrap_or_default())
        };
        assert_eq!(
            told("postgres://u:p%40%2Fw%@h:5432/d?sslmode=require"),
            ("postgres://u@h:5432/d?sslmode=require".into(), "p@/w%".into())
        );
        for same in
            ["postgres://u@h/d", "postgres:///d?host=/run/pg", "host=h user=u", "postgres://h?a=b@c:d"]
        {
            assert_eq!(told(same), (same.into(), String::new()));
        }
    }
}
