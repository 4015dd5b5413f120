//! Answers, store, operator API, log and folder against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::drive::{Links, Told};
use super::plan::{Change, Plan, SENDS};
use crate::lab::Server;
use crate::lab::house::PUBLIC_URL;
use crate::lab::record::{Certificate, Recorded, Records};
use crate::lab::wire::Cut;

/// Forms of a certificate, in the order of their hashes.
pub(crate) const FORMS: [&str; 3] = ["html", "zip", "json"];

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    certificates: usize,
    doubled: usize,
    lost: usize,
    /// What did not come to an end; `None` where nobody looked.
    stuck: Option<usize>,
    lines: Vec<String>,
    /// What is wrong, one line each.
    pub(crate) findings: Vec<String>,
}

impl Verdict {
    /// Says that something is wrong.
    pub(crate) fn find(&mut self, what: String) {
        self.findings.push(what);
    }

    /// Says what was looked at.
    pub(crate) fn line(&mut self, what: String) {
        self.lines.push(what);
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// The last line.
    pub(crate) fn sum(&self) -> String {
        let stuck = self.stuck.map_or_else(String::new, |stuck| format!(", {stuck} stuck"));
        format!("{} certificates, {} doubled, {} lost{stuck}", self.certificates, self.doubled, self.lost)
    }

    /// Counts what did not come to an end, each with its sentence.
    pub(crate) fn stuck(&mut self, what: Vec<String>) {
        *self.stuck.get_or_insert_default() += what.len();
        self.findings.extend(what);
    }

    /// What the senders were told; of a hundred uncut sends `wanted` have to be answered with links.
    pub(crate) fn answers(&mut self, plan: &Plan, told: &[Told], wanted: usize) {
        let uncut: Vec<_> = told.iter().filter(|one| one.cut == Cut::Never).collect();
        let linked = || uncut.iter().filter(|one| one.acknowledged() && one.links.is_some());
        let (all, at_once) = (linked().count(), linked().filter(|one| one.tries == 1).count());
        if all * 100 < uncut.len() * wanted {
            self.find(format!("only {all} of {} uncut sends were answered with links", uncut.len()));
        }
        let later = if all > at_once {
            format!(", {} more when they came again", all - at_once)
        } else {
            String::new()
        };
        self.line(format!(
            "{at_once} of {} uncut sends were answered 2xx with links at once{later}",
            uncut.len()
        ));
        for one in &uncut {
            match (one.status, &one.broken) {
                (Some(200..=299 | 503), _) => {}
                (status, cause) => {
                    self.find(format!("{}: an uncut send ended with {status:?} {cause:?}", one.event));
                }
            }
        }
        let mut by_event: BTreeMap<&str, Vec<&Told>> = BTreeMap::new();
        told.iter().for_each(|one| by_event.entry(&one.event).or_default().push(one));
        for change in &plan.changes {
            self.change(change, &by_event);
        }
    }

    fn change(&mut self, change: &Change, by_event: &BTreeMap<&str, Vec<&Told>>) {
        let mut named: BTreeSet<&Links> = BTreeSet::new();
        for event in &change.events {
            let told = by_event.get(event.id.as_str()).map(Vec::as_slice).unwrap_or_default();
            if told.len() != SENDS {
                self.find(format!("{}: sent {} times, not {SENDS}", event.id, told.len()));
            }
            if !told.iter().any(|one| one.links.is_some()) {
                self.find(format!("{}: no send of it was answered with links", event.id));
            }
            named.extend(told.iter().filter_map(|one| one.links.as_ref()));
        }
        if named.len() > 1 {
            let ids: Vec<_> = change.events.iter().map(|event| event.id.as_str()).collect();
            self.find(format!("{}: its answers name {} different results", ids.join(" and "), named.len()));
        }
    }

    /// What operators are told.
    ///
    /// # Errors
    /// The operator API doesn't answer.
    pub(crate) fn operator(&mut self, server: &Server, plan: &Plan) -> anyhow::Result<()> {
        let check = server.order("POST", "check")?;
        let problems = check.get("problems").and_then(Json::as_u64).context("problems")?;
        if problems > 0 {
            let list = check.get("list").map(Json::to_string).unwrap_or_default();
            self.find(format!(
                "check finds {problems} problems: {}",
                list.chars().take(500).collect::<String>()
            ));
        }
        let number = |name: &str| check.get(name).and_then(Json::as_u64).unwrap_or_default();
        self.line(format!(
            "check: {} events, {} certificates, {} arrivals, {problems} problems",
            number("events"),
            number("certificates"),
            number("arrivals")
        ));
        for event in plan.events() {
            let shown = server.order("GET", &format!("events/{}", event.id))?;
            let text = |name: &str| shown.get(name).and_then(Json::as_str);
            if text("status") != Some("processed") || text("html_url").is_none() {
                self.find(format!("{}: operators are shown {:?}", event.id, text("status")));
            }
        }
        Ok(())
    }

    /// What `onceseal check` says, beside the running server.
    ///
    /// # Errors
    /// It can't be run.
    pub(crate) fn checked(&mut self, command: &mut Command) -> anyhow::Result<()> {
        let ran = command.output().context("onceseal check")?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stdout).chars().take(500).collect::<String>();
            self.find(format!("onceseal check ends with {}: {said}", ran.status));
        }
        Ok(())
    }

    /// What the store holds.
    pub(crate) fn record(
        &mut self,
        Records { events, certificates, .. }: &Records,
        plan: &Plan,
        told: &[Told],
    ) {
        self.certificates = certificates.len();
        let mut sent: BTreeMap<&str, u64> = BTreeMap::new();
        for one in told {
            *sent.entry(&one.event).or_default() += u64::try_from(one.tries).unwrap_or(u64::MAX);
        }
        let mut acknowledged: BTreeMap<&str, u64> = BTreeMap::new();
        for one in told.iter().filter(|one| one.acknowledged()) {
            *acknowledged.entry(&one.event).or_default() += 1;
        }
        for change in &plan.changes {
            self.recorded(change, events, certificates);
            for event in &change.events {
                let told = acknowledged.get(event.id.as_str()).copied().unwrap_or_default();
                let arrivals = events.get(&event.id).map_or(0, |event| event.arrivals);
                let sent = sent.get(event.id.as_str()).copied().unwrap_or_default();
                if !(told <= arrivals && arrivals <= sent) {
                    self.find(format!("{}: {told} acknowledged, {arrivals} arrivals, {sent} sent", event.id));
                }
            }
        }
        let known: BTreeSet<_> = plan.events().map(|event| event.id.as_str()).collect();
        for stranger in events.keys().filter(|id| !known.contains(id.as_str())) {
            self.find(format!("{stranger}: on record, but nobody sent it"));
        }
        let arrivals: u64 = events.values().map(|event| event.arrivals).sum();
        let sum: u64 = acknowledged.values().sum();
        let sent: u64 = sent.values().sum();
        self.line(format!("{sum} acknowledged <= {arrivals} arrivals on record <= {sent} sent"));
    }

    /// One certificate, and every report of the change points at it.
    fn recorded(
        &mut self,
        change: &Change,
        events: &BTreeMap<String, Recorded>,
        certificates: &[Certificate],
    ) {
        let reports: Vec<_> = change.events.iter().filter_map(|event| events.get(&event.id)).collect();
        let of_change: BTreeSet<i64> =
            reports.iter().map(|event| event.certificate_event.unwrap_or(event.id)).collect();
        let issued = certificates
            .iter()
            .filter(|certificate| reports.iter().any(|event| event.id == certificate.event))
            .count();
        let ids: Vec<_> = change.events.iter().map(|event| event.id.as_str()).collect();
        if issued == 0 || reports.len() < change.events.len() {
            self.lost += 1;
            self.find(format!("{}: {issued} certificates, {} records", ids.join(" and "), reports.len()));
        } else if issued > 1 || of_change.len() > 1 {
            self.doubled += 1;
            self.find(format!("{}: {issued} certificates for one change", ids.join(" and ")));
        }
        for event in reports.iter().filter(|event| event.status != "processed") {
            self.find(format!("{}: its state is {}", event.reference, event.status));
        }
    }

    /// All files of the certificates, each with its hash, and no link to another. Gives the names of files
    /// that no record knows.
    ///
    /// # Errors
    /// The folder can't be read.
    pub(crate) fn folder(
        &mut self,
        folder: &Path,
        Records { certificates, .. }: &Records,
        told: &[Told],
    ) -> anyhow::Result<Vec<String>> {
        let mut expected = BTreeMap::new();
        for certificate in certificates {
            for (form, hash) in FORMS.iter().zip(&certificate.hashes) {
                expected.insert(format!("{}.{form}", certificate.slug), hash.as_str());
            }
        }
        let (mut found, mut strangers) = (0, Vec::new());
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let hash = hex::encode(Sha256::digest(std::fs::read(entry.path())?));
            match expected.get(&name) {
                Some(kept) if *kept == hash => found += 1,
                Some(_) => self.find(format!("{name}: its hash is not the record's")),
                None => strangers.push(name),
            }
        }
        if found != expected.len() {
            self.find(format!("{found} of {} files stand in the folder", expected.len()));
        }
        for url in told.iter().filter_map(|one| one.links.as_ref()).flat_map(|links| &links.urls) {
            let name =
                url.strip_prefix(PUBLIC_URL).and_then(|path| path.strip_prefix("/d/")).unwrap_or_default();
            if !expected.contains_key(name) {
                self.find(format!("{url}: told to a sender, but no certificate has it"));
            }
        }
        let besides = if strangers.is_empty() { "none".into() } else { strangers.len().to_string() };
        self.line(format!(
            "{found} files in the delivery folder, each with its recorded hash, {besides} besides"
        ));
        Ok(strangers)
    }

    /// One announcement a certificate, sent once: a line written again is the same announcement.
    ///
    /// # Errors
    /// A log can't be read.
    pub(crate) fn announced(&mut self, records: &Records, logs: &[PathBuf]) -> anyhow::Result<()> {
        let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
        for one in &records.announcements {
            *rows.entry(&one.reference).or_default() += 1;
        }
        let (lines, repeated) = logged(logs)?;
        let issued: BTreeSet<i64> = records.certificates.iter().map(|one| one.event).collect();
        for event in records.events.values() {
            let wanted = usize::from(issued.contains(&event.id));
            let row = rows.get(event.reference.as_str()).copied().unwrap_or_default();
            let line = lines.get(&event.reference).map_or(0, BTreeSet::len);
            if [row, line] != [wanted; 2] {
                self.find(format!(
                    "{}: {row} announcements on record, {line} in the logs, not {wanted}",
                    event.reference
                ));
            }
        }
        let again = if repeated > 0 { format!(", {repeated} lines written again") } else { String::new() };
        self.line(format!("{} announcements, one a certificate, each sent once{again}", rows.len()));
        Ok(())
    }
}

/// Ids of the announcements in the logs by the reference they are about, and how many lines are repeats.
fn logged(logs: &[PathBuf]) -> anyhow::Result<(BTreeMap<String, BTreeSet<String>>, usize)> {
    let (mut ids, mut repeated): (BTreeMap<String, BTreeSet<String>>, usize) = (BTreeMap::new(), 0);
    for log in logs {
        // A killed server may leave half a line at the end.
        let text = std::fs::read(log)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(text.get(..whole).unwrap_or_default()).into_owned();
        for line in text.lines().filter(|line| line.contains("relay::announcement")) {
            let line: Json = serde_json::from_str(line).with_context(|| format!("a log line: {line}"))?;
            let name = |name: &str| line.get(name).and_then(Json::as_str).map(ToOwned::to_owned);
            let reference = name("ref").context("an announcement without a ref")?;
            let id = name("outbox_id").context("an announcement without its id")?;
            repeated += usize::from(!ids.entry(reference).or_default().insert(id));
        }
    }
    Ok((ids, repeated))
}
