//! What must hold after a crash. Each rule that does not is a sentence; nothing stops at the first.
//!
//! Not here: making the crash, restarting.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use seal::jwks::Jwks;
use seal::verify::{Trust, Verdict, verify};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::lab::House;
use crate::lab::house::PUBLIC_URL;
use crate::lab::record::{self, Certificate};
use crate::lab::wire::Answer;

use super::after::{self, Again, Kept};
use super::stage::Stage;
use super::traced::Traced;

/// How long an announcement may take that is still to go out; the relay looks every 5 s.
const PATIENCE: Duration = Duration::from_secs(20);
/// Ends of the files of a certificate, in the order of the record's hashes.
const FORMS: [&str; 3] = ["html", "zip", "json"];
/// Members of an answer that name the formal result.
const RESULT: [&str; 7] = ["ref", "html_url", "zip_url", "json_url", "run_hash", "signature", "key_id"];

/// What a crash turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The certificate's record was durable.
    pub(super) committed: bool,
    /// The sender had its 2xx.
    pub(super) told: bool,
    /// The announcement had arrived.
    pub(super) announced: bool,
    /// Files without a record were taken up at the restart.
    pub(super) adopted: bool,
    /// The announcement is held as uncertain.
    pub(super) uncertain: bool,
}

/// One crash under judgement.
struct Trial<'a> {
    stage: &'a Stage,
    house: &'a House,
    traced: &'a Traced,
    before: Option<Kept>,
    found: Found,
    wrong: Vec<String>,
}

/// Restarts in a house as a crash left it, delivers again, and lists what is wrong.
///
/// # Errors
/// The program does not start, answer or stop: as wrong as anything listed.
pub(super) fn judge(stage: &Stage, house: &House, traced: &Traced) -> anyhow::Result<(Found, Vec<String>)> {
    let before = after::kept(stage, house).context("the store can't be read after the crash")?;
    let found = Found { told: !traced.told.is_empty(), ..Found::default() };
    let mut trial = Trial { stage, house, traced, before, found, wrong: Vec::new() };
    trial.promises();
    let again = Again::start(stage, house)?;
    trial.health(&again)?;
    let answer = again.deliver(stage)?;
    let kept = trial.result(&answer)?;
    if let Some(kept) = kept {
        trial.files(&again, &kept)?;
        trial.audit(&again, &kept)?;
        trial.announcement(&again)?;
        trial.damage(&again, &kept)?;
    }
    let heard = again.stop()?;
    trial.heard(&heard);
    trial.remains()?;
    Ok((trial.found, trial.wrong))
}

impl Trial<'_> {
    fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(otherwise());
        }
    }

    /// Whoever was told something before the crash was told the truth.
    fn promises(&mut self) {
        let certificate = self.before.as_ref().and_then(|kept| kept.certificate.clone());
        self.found.committed = certificate.is_some();
        for told in &self.traced.told {
            let same = certificate.as_ref().is_some_and(|it| text(told, "run_hash") == it.run_hash);
            self.must(same, || "the sender was told 2xx for what is not on record after the crash".into());
        }
        let announced =
            self.traced.announced.iter().filter(|text| text.contains(&self.stage.event.id)).count();
        self.found.announced = announced > 0;
        self.must(announced <= 1, || format!("announced {announced} times before the crash"));
        let durable = announced == 0 || certificate.is_some();
        self.must(durable, || "announced what is not on record after the crash".into());
    }

    fn health(&mut self, again: &Again) -> anyhow::Result<()> {
        for path in ["/healthz", "/readyz"] {
            let answer = again.server().get(path)?;
            self.must(answer.status == 200, || format!("{path}: {} {}", answer.status, answer.text()));
        }
        Ok(())
    }

    /// The redelivery's answer names the one result, the old one where there was one.
    fn result(&mut self, answer: &Answer) -> anyhow::Result<Option<Kept>> {
        let json = answer.json();
        self.must(answer.status == 200, || format!("redelivery: {} {}", answer.status, answer.text()));
        let kept = after::look(self.stage, self.house)?;
        let Some(kept) = kept.filter(|kept| kept.certificate.is_some()) else {
            self.wrong.push("no certificate on record after the redelivery".into());
            return Ok(None);
        };
        if self.found.committed {
            let replayed = answer.header("idempotent-replayed") == Some("true");
            self.must(replayed, || "the record stood, and the redelivery was no replay".into());
            let same = self.before.as_ref().map(|before| &before.certificate) == Some(&kept.certificate);
            self.must(same, || "the certificate's record is another one than before".into());
        }
        for told in &self.traced.told {
            for name in RESULT {
                let (old, new) = (told.get(name), json.get(name));
                let same = old.is_some() && old == new;
                self.must(same, || format!("{name} was told as {old:?} and is now {new:?}"));
            }
        }
        if let Some(certificate) = &kept.certificate {
            let same = text(&json, "run_hash") == certificate.run_hash;
            self.must(same, || "the redelivery's answer names another run hash than the record".into());
            for (name, form) in ["html_url", "zip_url", "json_url"].iter().zip(FORMS) {
                let link = format!("{PUBLIC_URL}/d/{}.{form}", certificate.slug);
                self.must(text(&json, name) == link, || format!("{name} is not {link}"));
            }
        }
        Ok(Some(kept))
    }

    /// Three files, as the record says, served, and genuine to whoever has the anchor's keys.
    fn files(&mut self, again: &Again, kept: &Kept) -> anyhow::Result<()> {
        let Some(certificate) = &kept.certificate else { return Ok(()) };
        if self.found.committed {
            // The start looks after what was on record.
            self.on_disk(certificate, "after the start");
        }
        self.served(again, certificate, "served")?;
        self.on_disk(certificate, "after they were served");
        let keys = again.server().get("/.well-known/onceseal/keys.json")?;
        let set = Jwks::parse(&keys.body).context("the anchor's keys")?;
        self.must(set.entries().len() == 2, || format!("the anchor has {} keys", set.entries().len()));
        let trust = Trust::from(&set);
        for form in FORMS {
            let file = std::fs::read(self.house.deliveries().join(format!("{}.{form}", certificate.slug)));
            let verdict = verify(&file.unwrap_or_default(), &trust).verdict;
            let genuine = matches!(verdict, Verdict::Valid | Verdict::ValidDateClaimed);
            self.must(genuine, || format!("the {form} is {}", verdict.code()));
        }
        let names = names(&self.house.deliveries())?;
        self.must(names.len() == 2 * FORMS.len(), || format!("deliveries holds {}", names.join(", ")));
        Ok(())
    }

    fn on_disk(&mut self, certificate: &Certificate, when: &str) {
        for (form, hash) in FORMS.iter().zip(&certificate.hashes) {
            let path = self.house.deliveries().join(format!("{}.{form}", certificate.slug));
            let found = std::fs::read(path).map(|bytes| digest(&bytes)).unwrap_or_default();
            self.must(found == *hash, || format!("the {form} on disk is not the record's {when}"));
        }
    }

    fn served(&mut self, again: &Again, certificate: &Certificate, how: &str) -> anyhow::Result<()> {
        for (form, hash) in FORMS.iter().zip(&certificate.hashes) {
            let answer = again.server().get(&format!("/d/{}.{form}", certificate.slug))?;
            let same = answer.status == 200 && digest(&answer.body) == *hash;
            self.must(same, || format!("{how}: the {form} ({}) is not the record's", answer.status));
        }
        Ok(())
    }

    /// Every arrival and state is on record, and the store agrees with itself.
    fn audit(&mut self, again: &Again, kept: &Kept) -> anyhow::Result<()> {
        let checked = again.server().order("POST", "check")?;
        let sound = checked.get("problems").and_then(Json::as_u64) == Some(0);
        self.must(sound, || format!("check: {}", checked.get("list").unwrap_or(&checked)));
        let shown = again.server().order("GET", &format!("events/{}", self.stage.event.id))?;
        self.found.adopted = text(&shown, "mark") == "adopted";
        let acknowledged = self.traced.told.len() as u64 + 1;
        let arrivals = kept.event.arrivals;
        let enough = arrivals >= acknowledged;
        self.must(enough, || format!("{acknowledged} arrivals were acknowledged, {arrivals} are on record"));
        let states: Vec<&str> = list(&shown, "transitions").iter().map(|it| text(it, "status")).collect();
        let ended = states.last() == Some(&"processed") && kept.event.status == "processed";
        let whole = self.found.adopted || states.starts_with(&["received", "processing"]);
        self.must(ended && whole, || format!("its states are {states:?}, its record {}", kept.event.status));
        Ok(())
    }

    /// The announcement comes to an end: it went out, or it is listed for a person.
    fn announcement(&mut self, again: &Again) -> anyhow::Result<()> {
        let since = Instant::now();
        let mut states;
        loop {
            let shown = again.server().order("GET", &format!("events/{}", self.stage.event.id))?;
            states = list(&shown, "announcements")
                .iter()
                .map(|it| (text(it, "destination").to_owned(), text(it, "status").to_owned()))
                .collect::<Vec<_>>();
            let open = states.iter().any(|(_, state)| matches!(state.as_str(), "pending" | "sending"));
            if !open || since.elapsed() > PATIENCE {
                break;
            }
            again.telegram.wait(usize::MAX, Duration::from_millis(200));
        }
        states.sort();
        let to: Vec<&str> = states.iter().map(|(to, _)| to.as_str()).collect();
        self.must(to == ["log", "telegram"], || format!("announcements on record: {states:?}"));
        let ended = states.iter().all(|(_, state)| matches!(state.as_str(), "delivered" | "uncertain"));
        self.must(ended, || format!("announcements did not come to an end: {states:?}"));
        self.found.uncertain = states.contains(&("telegram".into(), "uncertain".into()));
        let held = again.server().order("GET", "announcements?status=uncertain")?;
        let object = format!("certify_event:av_{}", self.stage.event.id);
        let listed = list(&held, "announcements")
            .iter()
            .any(|it| text(it, "object") == object && text(it, "destination") == "telegram");
        let uncertain = self.found.uncertain;
        self.must(listed == uncertain, || format!("uncertain: {uncertain}, listed so: {listed}"));
        Ok(())
    }

    /// A file that is damaged, short or gone is made again before it is served.
    fn damage(&mut self, again: &Again, kept: &Kept) -> anyhow::Result<()> {
        let Some(certificate) = &kept.certificate else { return Ok(()) };
        let path = |form: &str| self.house.deliveries().join(format!("{}.{form}", certificate.slug));
        let mut page = std::fs::read(path("html")).unwrap_or_default();
        if let Some(byte) = page.last_mut() {
            *byte ^= 1;
        }
        std::fs::write(path("html"), page)?;
        std::fs::File::options().write(true).open(path("zip"))?.set_len(100)?;
        std::fs::remove_file(path("json"))?;
        self.served(again, certificate, "served after damage")
    }

    /// Over all lives of the program the announcement arrived once, or its end is said to be unknown.
    fn heard(&mut self, heard: &[String]) {
        let ours = heard.iter().filter(|text| text.contains(&self.stage.event.id)).count();
        let others = heard.len() - ours;
        self.must(others == 0, || format!("{others} announcements of other events after the restart"));
        let total = ours + usize::from(self.found.announced);
        let uncertain = self.found.uncertain;
        let fine = total == 1 || (total == 0 && uncertain);
        self.must(fine, || format!("announced {total} times in all, uncertain: {uncertain}"));
    }

    /// What lies in the folder at the end.
    fn remains(&mut self) -> anyhow::Result<()> {
        let store = self.house.store()?;
        let (events, certificates) = (record::events(&store)?.len(), record::certificates(&store)?.len());
        let counted = (events, certificates) == (2, 2);
        self.must(counted, || format!("{events} events and {certificates} certificates, not 2 and 2"));
        for (name, bytes) in super::tree(&self.house.data())? {
            let temporary = name.contains(['#', '~']) || name.ends_with(".new") || name.contains("tmp");
            let empty = bytes.is_empty() && name.starts_with("deliveries/");
            self.must(!temporary && !empty, || format!("{name} was left behind"));
        }
        let lines = exported(self.house).context("processed.jsonl")?;
        let mut expected = [self.stage.earlier.id.clone(), self.stage.event.id.clone()];
        expected.sort();
        self.must(lines == expected, || format!("processed.jsonl tells of {lines:?}"));
        Ok(())
    }
}

/// Event ids in the export, sorted.
fn exported(house: &House) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(house.data().join("processed.jsonl"))?;
    ensure!(text.ends_with('\n'), "its last line is torn");
    let mut ids = Vec::new();
    for line in text.lines() {
        let json: Json = serde_json::from_str(line).with_context(|| format!("the line {line:?}"))?;
        ids.push(self::text(&json, "event_id").to_owned());
    }
    ids.sort();
    Ok(ids)
}

fn names(folder: &std::path::Path) -> anyhow::Result<Vec<String>> {
    let names = std::fs::read_dir(folder)?.map(|it| Ok(it?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn text<'a>(json: &'a Json, name: &str) -> &'a str {
    json.get(name).and_then(Json::as_str).unwrap_or_default()
}

fn list<'a>(json: &'a Json, name: &str) -> &'a [Json] {
    json.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}
