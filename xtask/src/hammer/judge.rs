//! Answers, audit, rows, keys and sums against each other when all is over.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value as Json;

use super::deed::{Deed, Step};
use super::field::Intention;
use super::ground::Ground;
use super::history::{self, Line};
use crate::services::psql::Psql;

/// All that succeeded on the supplier's settlements, in the order of commits; `$1` is its tenant.
const HISTORY: &str = "select a.event_name, a.object_id,
  case when a.operator_type = 'system' then '' else coalesce(a.idempotency_key, '') end
from audit_events a
where a.tenant_id = $1 and a.result_code = 'OK' and a.event_name like 'supply.settlement.%'
order by pg_xact_commit_timestamp(a.xmin), a.id";

/// The settlements.
const SETTLEMENTS: &str =
    "select t.id, t.status, coalesce(t.fail_reason, ''), trunc(t.total_amount), t.version,
  (select count(*) from outbox o where o.object_type = 'supply_settlement' and o.object_id = cast(t.id as text))
from supply_settlements t where t.tenant_id = $1 order by t.id";

/// The records of keys.
const RECORDS: &str = "select r.idempotency_key, r.status, r.response_code from supply_idempotency_record r";

/// Sums that differ, a line each: settlements by their state, and the journals that say the same.
const SUMS: &str = "select 'settlements ' || x.name || ' ' || x.settled || ', journals ' || x.posted
from (select k.name,
    (select coalesce(sum(t.total_amount), 0) from supply_settlements t where t.tenant_id = $1
      and (k.status = '' or t.status = k.status) and (k.reason = '' or t.fail_reason = k.reason)) as settled,
    (select coalesce(sum(e.amount), 0) from billing_journals j
      join billing_ledger_entries e on e.journal_id = j.id
      join billing_accounts b on b.id = e.billing_account_id and b.account_code = 'supplier_frozen'
      where j.tenant_id = $1 and j.journal_type = k.journal) as posted
  from (values ('asked for', '', '', 'J-WITHDRAW'), ('cancelled', 'failed', 'cancelled', 'J-CANCEL'),
    ('refused by the bank', 'failed', 'payout_failed', 'J-PAYOUT-FAIL'), ('paid', 'completed', '', 'J-PAYOUT-OK'))
    as k (name, status, reason, journal)) x
where x.settled <> x.posted";

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) withdrawn: u64,
    pub(super) paid: u64,
    pub(super) refused: u64,
    /// What was looked at.
    pub(super) lines: Vec<String>,
    /// What is wrong.
    pub(super) findings: Vec<String>,
}

/// A settlement's row.
struct Row {
    state: (String, String),
    cents: String,
    version: usize,
    told: usize,
}

impl Verdict {
    /// Judges a run.
    ///
    /// # Errors
    /// The database can't be asked.
    pub(super) fn of(ground: &Ground, intentions: &[Intention]) -> Result<Self> {
        let psql = Psql::at(&ground.url)?;
        let tenant = ground.supplier.tenant_id.to_string();
        let ask = |sql: &str| psql.ask(&sql.replace("$1", &tenant));
        let lines = ask(HISTORY)?.lines().map(line).collect::<Result<Vec<_>>>()?;
        let mut verdict = Self::default();
        verdict.counted(intentions);
        verdict.keys(intentions, &lines);
        verdict.records(intentions, &ask(RECORDS)?)?;
        verdict.rows(intentions, &lines, &ask(SETTLEMENTS)?)?;
        verdict.findings.extend(ask(SUMS)?.lines().map(ToOwned::to_owned));
        Ok(verdict)
    }

    /// Nothing is wrong.
    ///
    /// # Errors
    /// Names what is.
    pub(super) fn sound(&self) -> Result<()> {
        let shown: Vec<_> = self.findings.iter().take(20).map(String::as_str).collect();
        ensure!(shown.is_empty(), "{} findings:\n  {}", self.findings.len(), shown.join("\n  "));
        Ok(())
    }

    /// The last line.
    pub(super) fn sum(&self) -> String {
        let [withdrawn, paid, refused] = [self.withdrawn, self.paid, self.refused].map(grouped);
        format!(
            "hammer: {withdrawn} withdrawn, {paid} paid, {refused} refused, {} wrong",
            self.findings.len()
        )
    }

    fn counted(&mut self, intentions: &[Intention]) {
        for intention in intentions {
            match (&intention.deed, intention.end()) {
                (Deed::Withdraw { .. }, Some(said)) if said.is_done() => self.withdrawn += 1,
                (Deed::Step(Step::Complete, _), Some(said)) if said.is_done() => self.paid += 1,
                (_, Some(said)) if !said.is_done() => self.refused += 1,
                _ => {}
            }
        }
    }

    /// Every answer has its one effect, every repeat is the same, and nothing else happened.
    fn keys(&mut self, intentions: &[Intention], lines: &[Line]) {
        let mut effects: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
        for line in lines.iter().filter(|line| !line.key.is_empty()) {
            effects.entry(&line.key).or_default().push(line);
        }
        let mut repeats = 0_usize;
        for intention in intentions {
            let Intention { key, deed, said, .. } = intention;
            let effect = effects.remove(key.as_str()).unwrap_or_default();
            let Some(end) = intention.end() else {
                self.findings.push(format!("{key}: {deed:?} was never told an end"));
                continue;
            };
            repeats += said.len() - 1;
            for other in said.iter().filter(|other| (other.code, &other.result) != (end.code, &end.result)) {
                self.findings.push(format!("{key}: {deed:?} was told {end:?} and then {other:?}"));
            }
            let firsts = said.iter().filter(|one| !one.is_replay).count();
            if firsts > 1 {
                self.findings.push(format!("{key}: {deed:?}: {firsts} answers are no replays"));
            }
            let about = match deed {
                Deed::Code => None,
                Deed::Withdraw { .. } => end.result.get("settlement_id").and_then(Json::as_i64),
                Deed::Step(_, id) => Some(*id),
            };
            let right = |line: &&Line| line.event == deed.event() && about.is_none_or(|id| line.id == id);
            let expected = usize::from(intention.is_done());
            if effect.len() != expected || !effect.iter().all(right) {
                self.findings.push(format!("{key}: {deed:?} was told {end:?}, and the audit has {effect:?}"));
            }
        }
        for (key, lines) in effects {
            self.findings.push(format!("{key}: nobody sent this, and the audit has {lines:?}"));
        }
        self.lines.push(format!("{repeats} repeats were told what their first was told"));
    }

    /// Every key has one record, with the answer that was given.
    fn records(&mut self, intentions: &[Intention], told: &str) -> Result<()> {
        let mut records: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for line in told.lines() {
            let (key, rest) = line.split_once('|').context("a record")?;
            records.entry(key).or_default().push(rest.split_once('|').context("a record")?);
        }
        for Intention { key, deed, said, .. } in intentions {
            let Some(end) = said.first() else { continue };
            let status = if end.is_done() { "succeeded" } else { "failed" };
            let found = records.get(key.as_str()).map(Vec::as_slice).unwrap_or_default();
            if found != [(status, &*end.code.to_string())] {
                self.findings.push(format!("{key}: {deed:?} was told {}, its record is {found:?}", end.code));
            }
        }
        Ok(())
    }

    /// Every settlement is where its history ends, is of the amount that was answered, and was told of in every state.
    fn rows(&mut self, intentions: &[Intention], lines: &[Line], told: &str) -> Result<()> {
        let lines: Vec<Line> = lines.iter().filter(|line| line.id > 0).cloned().collect();
        let (states, wrong) = history::replay(&lines);
        self.findings.extend(wrong);
        let mut rows = told.lines().map(row).collect::<Result<BTreeMap<_, _>>>()?;
        self.lines.push(format!("{} settlements, {} changes of their state", rows.len(), lines.len()));
        for intention in intentions.iter().filter(|one| one.is_done()) {
            let Deed::Withdraw { cents, .. } = &intention.deed else { continue };
            let id = intention.end().and_then(|said| said.result.get("settlement_id")?.as_i64());
            let found = id.and_then(|id| rows.get(&id)).map(|row| row.cents.as_str());
            if found != Some(&cents.to_string()) {
                self.findings
                    .push(format!("{}: {cents} cents were withdrawn, the row has {found:?}", intention.key));
            }
        }
        for (id, state) in states {
            let changes = lines.iter().filter(|line| line.id == id).count();
            match rows.remove(&id) {
                Some(row)
                    if (row.state.0.as_str(), row.state.1.as_str()) == state
                        && row.version + 1 == changes
                        && row.told == changes => {}
                Some(Row { state: (status, reason), version, told, .. }) => self.findings.push(format!(
                    "settlement {id}: {changes} changes end at {state:?}; the row is {status} {reason}, \
                     version {version}, told of {told} times"
                )),
                None => self.findings.push(format!("settlement {id} is in the audit and nowhere else")),
            }
        }
        for id in rows.keys() {
            self.findings.push(format!("settlement {id} is not in the audit"));
        }
        Ok(())
    }
}

fn line(told: &str) -> Result<Line> {
    let mut parts = told.split('|');
    let mut part = || parts.next().context("a line of the history");
    let (event, id, key) = (part()?.to_owned(), part()?, part()?.to_owned());
    // A code is about the supplier, not about a settlement.
    let id = if event == Deed::Code.event() { 0 } else { id.parse().context("a settlement's id")? };
    Ok(Line { event, id, key })
}

fn row(told: &str) -> Result<(i64, Row)> {
    let mut parts = told.split('|');
    let mut part = || parts.next().context("a settlement's row");
    let (id, state) = (part()?.parse()?, (part()?.to_owned(), part()?.to_owned()));
    let (cents, version, told) = (part()?.to_owned(), part()?.parse()?, part()?.parse()?);
    Ok((id, Row { state, cents, version, told }))
}

/// 9120 as "9,120".
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1_000, 9_120, 1_234_567].map(grouped).join(" "), "0 999 1,000 9,120 1,234,567");
    }
}
