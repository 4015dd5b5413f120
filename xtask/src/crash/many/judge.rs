//! What must hold after a death: the sender delivers again, to the other server; then the dead one comes back.
//! Each rule that does not hold is a sentence; nothing stops at the first.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::ground::{Ground, OTHER};
use super::traced::Traced;
use crate::canary;
use crate::crash::telegram::Telegram;
use crate::lab::house::PUBLIC_URL;
use crate::lab::record::{Certificate, Recorded, Records};
use crate::lab::wire::Answer;
use crate::lab::{self, House, Server, event, wire};

/// How long the database may keep a dead server's sessions: it sees the end of their connections, at the
/// latest when its statement is done (`postgres.statement_timeout`, 5 s).
const GONE_WITHIN: Duration = Duration::from_secs(6);
/// How long a redelivery may take until it is told 2xx, its sender coming again meanwhile.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(15);
/// How long an announcement may take to come to an end: the lease of the dead server (60 s) and the relay's
/// look (5 s), with some time to send.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(75);
/// A sender's pause before it comes again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// How often a wait looks again.
const LOOK: Duration = Duration::from_millis(50);
/// Ends of the files of a certificate, in the order of the record's hashes.
const FORMS: [&str; 3] = ["html", "zip", "json"];
/// Members of an answer that name the formal result.
const RESULT: [&str; 7] = ["ref", "html_url", "zip_url", "json_url", "run_hash", "signature", "key_id"];

/// What a death turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The certificate's record was durable.
    pub(super) committed: bool,
    /// The sender had its 2xx.
    pub(super) told: bool,
    /// The announcement had arrived.
    pub(super) announced: bool,
    /// The announcement is held as uncertain.
    pub(super) uncertain: bool,
    /// The longest time until the redelivery was told 2xx.
    pub(super) acknowledged: Duration,
    /// The longest time until the dead server's sessions were gone.
    pub(super) gone: Duration,
}

/// One death under judgement.
struct Case<'a> {
    ground: &'a Ground,
    name: &'a str,
    traced: &'a Traced,
    before: Option<Kept>,
    found: Found,
    wrong: Vec<String>,
}

/// What the database says of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    event: Recorded,
    certificate: Option<Certificate>,
}

/// Delivers again and lists what is wrong.
///
/// # Errors
/// A server does not start, answer or stop: as wrong as anything listed.
pub(super) fn judge(ground: &Ground, name: &str, traced: &Traced) -> Result<(Found, Vec<String>)> {
    let found = Found { told: !traced.told.is_empty(), ..Found::default() };
    let mut case = Case { ground, name, traced, before: None, found, wrong: Vec::new() };
    case.found.gone = case.gone()?;
    case.before = case.kept()?;
    case.promises();
    let telegram = Telegram::start()?;
    let house = ground.house(name, OTHER)?;
    let other = house.start_with(ground.command(&house, &telegram))?;
    let answer = case.delivered(&other)?;
    case.result(&answer)?;
    let again = traced.house.start_with(ground.command(&traced.house, &telegram))?;
    let answer = case.delivered(&again)?;
    case.result(&answer)?;
    case.must(answer.header("idempotent-replayed") == Some("true"), || {
        "the dead server's answer is no replay".into()
    });
    case.announcement(&other)?;
    for server in [&other, &again] {
        case.served(server)?;
        case.audit(server)?;
    }
    other.stop()?;
    again.stop()?;
    case.heard(&telegram.settle()?);
    case.remains(&house)?;
    Ok((case.found, case.wrong))
}

impl Case<'_> {
    fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(otherwise());
        }
    }

    /// No session and so no lock of servers that are not there any more; how long that took.
    fn gone(&mut self) -> Result<Duration> {
        let since = Instant::now();
        let mut left = self.ground.sessions(self.name)?;
        while !left.is_empty() && since.elapsed() < GONE_WITHIN {
            std::thread::park_timeout(LOOK);
            left = self.ground.sessions(self.name)?;
        }
        self.must(left.is_empty(), || {
            format!("sessions {GONE_WITHIN:?} after the end: {}", left.replace('\n', "; "))
        });
        Ok(since.elapsed())
    }

    fn kept(&self) -> Result<Option<Kept>> {
        let mut records = Records::at(&self.ground.psql(self.name)?)?;
        let Some(event) = records.events.remove(&self.ground.event.id) else { return Ok(None) };
        records.certificates.retain(|certificate| certificate.event == event.id);
        Ok(Some(Kept { event, certificate: records.certificates.pop() }))
    }

    /// Whoever was told something before the death was told the truth.
    fn promises(&mut self) {
        let certificate = self.before.as_ref().and_then(|kept| kept.certificate.clone());
        self.found.committed = certificate.is_some();
        for told in &self.traced.told {
            let same = certificate.as_ref().is_some_and(|it| text(told, "run_hash") == it.run_hash);
            self.must(same, || "the sender was told 2xx for what is not on record after the death".into());
        }
        let announced = self.about(&self.traced.announced);
        self.found.announced = announced > 0;
        self.must(announced <= 1, || format!("announced {announced} times before the death"));
        let durable = announced == 0 || certificate.is_some();
        self.must(durable, || "announced what is not on record after the death".into());
    }

    fn about(&self, texts: &[String]) -> usize {
        texts.iter().filter(|text| text.contains(&self.ground.event.id)).count()
    }

    /// Delivers as the sender does: again while it is told to come again.
    fn delivered(&mut self, server: &Server) -> Result<Answer> {
        let since = Instant::now();
        loop {
            let request = event::delivery(&self.ground.event, lab::now())?;
            let answer = wire::exchange(server.address, &request)?;
            let took = since.elapsed();
            if answer.status == 200 || took > ACKNOWLEDGED_WITHIN {
                self.found.acknowledged = self.found.acknowledged.max(took);
                self.must(answer.status == 200, || {
                    format!("{took:?} after the first redelivery: {} {}", answer.status, answer.text())
                });
                return Ok(answer);
            }
            std::thread::park_timeout(AGAIN_AFTER);
        }
    }

    /// The answer names the one result, the old one where there was one.
    fn result(&mut self, answer: &Answer) -> Result<()> {
        let json = answer.json();
        let Some(Kept { event, certificate: Some(certificate) }) = self.kept()? else {
            self.wrong.push("no certificate on record after the redelivery".into());
            return Ok(());
        };
        if self.found.committed {
            let replayed = answer.header("idempotent-replayed") == Some("true");
            self.must(replayed, || "the record stood, and the redelivery was no replay".into());
            let before = self.before.as_ref().and_then(|kept| kept.certificate.clone());
            self.must(before.as_ref() == Some(&certificate), || {
                "the certificate is another one than before".into()
            });
        }
        for told in &self.traced.told {
            for name in RESULT {
                let (old, new) = (told.get(name), json.get(name));
                let same = old.is_some() && old == new;
                self.must(same, || format!("{name} was told as {old:?} and is now {new:?}"));
            }
        }
        let same = text(&json, "run_hash") == certificate.run_hash;
        self.must(same, || "the answer names another run hash than the record".into());
        for (name, form) in ["html_url", "zip_url", "json_url"].iter().zip(FORMS) {
            let link = format!("{PUBLIC_URL}/d/{}.{form}", certificate.slug);
            self.must(text(&json, name) == link, || format!("{name} is not {link}"));
        }
        self.must(event.status == "processed", || format!("the event is {}", event.status));
        Ok(())
    }

    /// The recorded bytes, from either server.
    fn served(&mut self, server: &Server) -> Result<()> {
        let Some(Kept { certificate: Some(certificate), .. }) = self.kept()? else { return Ok(()) };
        for (form, hash) in FORMS.iter().zip(&certificate.hashes) {
            let answer = server.get(&format!("/d/{}.{form}", certificate.slug))?;
            let same = answer.status == 200 && hex::encode(Sha256::digest(&answer.body)) == *hash;
            self.must(same, || format!("the {form} ({}) is not the record's", answer.status));
        }
        Ok(())
    }

    /// Every acknowledged arrival and every state is on record, and the store agrees with itself.
    fn audit(&mut self, server: &Server) -> Result<()> {
        let checked = server.order("POST", "check")?;
        let sound = checked.get("problems").and_then(Json::as_u64) == Some(0);
        self.must(sound, || format!("check: {}", checked.get("list").unwrap_or(&checked)));
        let arrivals = self.kept()?.map_or(0, |kept| kept.event.arrivals);
        let acknowledged = u64::try_from(self.traced.told.len())? + 2;
        self.must(arrivals >= acknowledged, || {
            format!("{acknowledged} arrivals acknowledged, {arrivals} on record")
        });
        Ok(())
    }

    /// It went out, or it is listed for a person.
    fn announcement(&mut self, server: &Server) -> Result<()> {
        let since = Instant::now();
        let mut states;
        loop {
            let shown = server.order("GET", &format!("events/{}", self.ground.event.id))?;
            let list =
                shown.get("announcements").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
            states = list
                .iter()
                .map(|it| (text(it, "destination").to_owned(), text(it, "status").to_owned()))
                .collect::<Vec<_>>();
            states.sort();
            let open = states.iter().any(|(_, state)| matches!(state.as_str(), "pending" | "sending"));
            if !open || since.elapsed() > ANNOUNCED_WITHIN {
                break;
            }
            std::thread::park_timeout(LOOK);
        }
        let to: Vec<&str> = states.iter().map(|(to, _)| to.as_str()).collect();
        self.must(to == ["log", "telegram"], || format!("announcements on record: {states:?}"));
        let ended = states.iter().all(|(_, state)| matches!(state.as_str(), "delivered" | "uncertain"));
        self.must(ended, || format!("announcements {ANNOUNCED_WITHIN:?} after the redelivery: {states:?}"));
        self.found.uncertain = states.contains(&("telegram".into(), "uncertain".into()));
        Ok(())
    }

    /// Over all lives of both servers it arrived once, or its end is said to be unknown.
    fn heard(&mut self, heard: &[String]) {
        let ours = self.about(heard);
        let others = heard.len() - ours;
        self.must(others == 0, || format!("{others} announcements of other events after the death"));
        let (total, uncertain) = (ours + usize::from(self.found.announced), self.found.uncertain);
        let fine = total == 1 || (total == 0 && uncertain);
        self.must(fine, || format!("announced {total} times in all, uncertain: {uncertain}"));
    }

    /// What the database and the folders hold at the end.
    fn remains(&mut self, other: &House) -> Result<()> {
        let records = Records::at(&self.ground.psql(self.name)?)?;
        let counted = (records.events.len(), records.certificates.len(), records.announcements.len());
        self.must(counted == (2, 2, 4), || {
            format!(
                "{} events, {} certificates, {} announcements, not 2, 2, 4",
                counted.0, counted.1, counted.2
            )
        });
        self.gone()?;
        let mails = [&self.ground.earlier, &self.ground.event].map(|event| event.mail.as_str());
        for house in [&self.traced.house, other] {
            for (name, bytes) in crate::crash::tree(&house.data()).context("the data folder")? {
                let temporary =
                    name.contains(['#', '~']) || name.ends_with(".new") || name.contains(".part/");
                let empty = bytes.is_empty() && name.starts_with("deliveries/");
                self.must(!temporary && !empty, || format!("{name} was left behind"));
            }
            self.wrong.extend(canary::leaks(house, &mails)?);
        }
        Ok(())
    }
}

fn text<'a>(json: &'a Json, name: &str) -> &'a str {
    json.get(name).and_then(Json::as_str).unwrap_or_default()
}
