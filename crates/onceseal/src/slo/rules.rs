//! Prometheus rules: ratios over the windows, and alerts when the error budget of a month burns too fast. Two windows
//! each, a long one that says it matters and a short one that says it still does (Google, The Site Reliability
//! Workbook, chapter 5, table 5-8).

use std::fmt::Write as _;

use supply::slo::button::Millionths;
use supply::slo::{BUTTONS, Button, METRICS};

use super::ERRORS;

/// How fast a budget burns, in tenths, over which windows, and whom it wakes.
struct Burn {
    tenths: u64,
    long: &'static str,
    short: &'static str,
    severity: &'static str,
}

const BURNS: [Burn; 4] = [
    Burn { tenths: 144, long: "1h", short: "5m", severity: "page" },
    Burn { tenths: 60, long: "6h", short: "30m", severity: "page" },
    Burn { tenths: 30, long: "1d", short: "2h", severity: "ticket" },
    Burn { tenths: 10, long: "3d", short: "6h", severity: "ticket" },
];
const WINDOWS: [&str; 7] = ["5m", "30m", "1h", "2h", "6h", "1d", "3d"];
/// Fewer than three say nothing of a ratio, however few requests there were: one of three at night would wake somebody,
/// and that all of three failed must. `increase` extrapolates, so the limit lies between two counts.
const FEWEST: &str = "2.5";
/// Of all answers 5 in 100 may take longer than a P95.
const SLOW: Millionths = 50_000;

/// A number of ten-millionths without a float.
fn decimal(ten_millionths: u64) -> String {
    let (whole, rest) = (ten_millionths / 10_000_000, ten_millionths % 10_000_000);
    let text = format!("{whole}.{rest:07}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The file.
#[must_use]
pub fn text() -> String {
    let mut rules = Rules(String::from(
        "# Made by `onceseal slo files`; change the tables in crates/supply/src/slo, not this file.\n\
         # severity: page wakes somebody, ticket waits for the morning. Every server counts the same audit, so of\n\
         # onceseal_supply_gate_* the largest is taken, not the sum.\ngroups:\n",
    ));
    rules.group("onceseal-supply-ratios");
    for window in WINDOWS {
        rules.ratios(window);
    }
    rules.group("onceseal-supply-buttons");
    for button in &BUTTONS {
        rules.button(button);
    }
    rules.group("onceseal-supply-metrics");
    rules.metrics();
    rules.0
}

/// The text so far.
struct Rules(String);

impl Rules {
    fn line(&mut self, indent: usize, text: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{:indent$}{text}", "");
    }

    fn group(&mut self, name: &str) {
        self.line(2, &format!("- name: {name}"));
        self.line(4, "rules:");
    }

    fn record(&mut self, name: &str, expr: &str) {
        self.line(6, &format!("- record: {name}"));
        self.line(8, &format!("expr: '{expr}'"));
    }

    fn slow(&mut self, button: &Button, seconds: &str, window: &str) {
        let (id, name) = (button.id, "onceseal_supply_request_seconds");
        let within =
            |how: &str| format!("sum({how}({name}_bucket{{button=\"{id}\",le=\"{seconds}\"}}[{window}]))");
        let all = |how: &str| format!("sum({how}({name}_count{{button=\"{id}\"}}[{window}]))");
        let mut recorded = |name: String, expr: &str| {
            self.record(&name, expr);
            self.line(8, "labels:");
            self.line(10, &format!("button: {id}"));
        };
        let ratio = format!("1 - {} / {}", within("rate"), all("rate"));
        recorded(format!("onceseal_supply:slow:ratio_rate{window}"), &ratio);
        if is_long(window) {
            let count = format!("{} - {}", all("increase"), within("increase"));
            recorded(format!("onceseal_supply:slow:increase{window}"), &count);
        }
    }

    /// How many there were over a window that says whether it matters.
    fn counts(&mut self, window: &str) {
        if !is_long(window) {
            return;
        }
        for (kind, ends) in [("errors", ERRORS), ("conflicts", "lost_race")] {
            let ended = format!("onceseal_supply_requests_total{{outcome=~\"{ends}\"}}");
            self.record(
                &format!("onceseal_supply:{kind}:increase{window}"),
                &format!("sum by (button) (increase({ended}[{window}]))"),
            );
        }
        let largest = |name: &str| {
            format!(
                "max by (metric) (increase(onceseal_supply_gate_{name}_total{{metric=~\"m004|m005|m011\"}}[{window}]))"
            )
        };
        self.record(&format!("onceseal_supply:gate:increase{window}"), &largest("events"));
        self.record(&format!("onceseal_supply:gate_requests:increase{window}"), &largest("requests"));
    }

    /// What is recorded over one window.
    fn ratios(&mut self, window: &str) {
        let all = format!("sum by (button) (rate(onceseal_supply_requests_total[{window}]))");
        let of = |ends: &str| {
            format!("sum by (button) (rate(onceseal_supply_requests_total{{outcome=~\"{ends}\"}}[{window}]))")
        };
        self.record(
            &format!("onceseal_supply:errors:ratio_rate{window}"),
            &format!("{} / {all}", of(ERRORS)),
        );
        self.record(
            &format!("onceseal_supply:conflicts:ratio_rate{window}"),
            &format!("{} / {all}", of("lost_race")),
        );
        for button in &BUTTONS {
            if let Some(seconds) = limit(button) {
                self.slow(button, &seconds, window);
            }
        }
        let largest = |name: &str| {
            format!(
                "max by (metric) (rate(onceseal_supply_gate_{name}_total{{metric=~\"m004|m005|m011\"}}[{window}]))"
            )
        };
        self.record(
            &format!("onceseal_supply:gate:ratio_rate{window}"),
            &format!("{} / {}", largest("events"), largest("requests")),
        );
        self.counts(window);
    }

    fn alert(&mut self, name: &str, expr: &str, (severity, labels): (&str, &[(&str, &str)]), summary: &str) {
        self.line(6, &format!("- alert: {name}"));
        self.line(8, &format!("expr: '{expr}'"));
        self.line(8, "labels:");
        self.line(10, &format!("severity: {severity}"));
        for (label, value) in labels {
            self.line(10, &format!("{label}: {value}"));
        }
        self.line(8, "annotations:");
        self.line(10, &format!("summary: '{summary}'"));
    }

    /// The four alerts of a budget. What is wrong with the ledger is so once already; all else must be seen three times.
    fn burning(&mut self, name: &str, series: (&str, &str), budget: Millionths, (key, value): (&str, &str)) {
        let (kind, what) = series;
        for Burn { tenths, long, short, severity } in BURNS {
            let limit = decimal(tenths * u64::from(budget));
            let over = |window: &str| {
                format!("onceseal_supply:{kind}:ratio_rate{window}{{{key}=\"{value}\"}} > {limit}")
            };
            let labels = [(key, value), ("window", long)];
            let speed = decimal(tenths * 1_000_000);
            let summary = format!("{value}: {what} use up their budget {speed} times too fast");
            let fewest = match value {
                "m004" => String::new(),
                _ => format!(" and onceseal_supply:{kind}:increase{long}{{{key}=\"{value}\"}} > {FEWEST}"),
            };
            let expr = format!("{} and {}{fewest}", over(long), over(short));
            self.alert(name, &expr, (severity, &labels), &summary);
        }
    }

    fn button(&mut self, button: &Button) {
        let label = ("button", button.id);
        self.burning("OncesealSupplyErrors", ("errors", "errors"), button.budget(), label);
        if button.p95.is_some() {
            self.burning("OncesealSupplySlow", ("slow", "slow answers"), SLOW, label);
        }
        if let Some(most) = button.conflicts {
            self.burning("OncesealSupplyConflicts", ("conflicts", "lost races"), most, label);
        }
        // A budget of 0 does not burn: the first is one too many.
        if button.explained.is_some() {
            let expr = "max(increase(onceseal_supply_batch_items_unexplained_total[10m])) > 0";
            let summary = format!("{}: an item failed and its receipt does not say why", button.id);
            self.alert("OncesealSupplyUnexplained", expr, ("page", &[label]), &summary);
        }
    }

    fn metrics(&mut self) {
        for (slug, budget) in [("m004", 1_000), ("m005", 100)] {
            self.burning("OncesealSupplyBilling", ("gate", "billing errors"), budget, ("metric", slug));
        }
        let named =
            |slug: &str| METRICS.iter().find(|metric| metric.slug == slug).map_or("", |metric| metric.name);
        let mut one = |metric: &str, severity: &str, expr: &str, summary: &str| {
            let (slug, part) = metric.split_once(' ').unwrap_or((metric, ""));
            let name = format!("OncesealSupplyGate{}{part}", slug.to_uppercase());
            let summary = format!("{}: {summary}", named(slug));
            self.alert(&name, expr, (severity, &[("metric", slug)]), &summary);
        };
        let gate = "onceseal_supply:gate:ratio_rate1d{metric=\"m011\"}";
        let of = |kind: &str| format!("onceseal_supply:{kind}:increase1d{{metric=\"m011\"}}");
        let rejected = format!("{} - {} > {FEWEST}", of("gate_requests"), of("gate"));
        let low = format!("{gate} < 0.9 and {rejected}");
        one("m011", "ticket", &low, "fewer than 90 of 100 credentials pass");
        one(
            "m011",
            "page",
            &format!("{gate} < 0.85 and {rejected}"),
            "fewer than 85 of 100 credentials pass: releases are blocked",
        );
        let suppliers = "max(onceseal_supply_suppliers_onboarded)";
        one("m012", "ticket", &format!("{suppliers} < 10"), "fewer than 10 suppliers had an active account");
        let grew = |slug: &str| {
            format!("max(increase(onceseal_supply_gate_events_total{{metric=\"{slug}\"}}[10m])) > 0")
        };
        one("m013", "page", &grew("m013"), "P0: a credential left; stop the rollout at once");
        let blocked = "sum(increase(onceseal_credential_exposure_blocked_total[10m])) > 0";
        one("m013 Blocked", "page", blocked, "P0: a credential was about to leave and was withheld");
        let stray = "sum(increase(onceseal_supply_ingress_requests_total{credential=\"none\"}[10m])) > 0";
        one("m014", "page", stray, "a request reached a handler without a platform credential");
        one("m015", "page", &grew("m015"), "P0: a consumer called a supplier past the platform");
        let seen = |name: &str| format!("sum(increase(onceseal_query_key_{name}_total[10m]))");
        let unequal = format!("{} - {} > 0.5", seen("detected"), seen("rejected"));
        one("m016", "page", &unequal, "a credential in an address was seen and its refusal is not on record");
        let ledger = "max(onceseal_ledger_violations) > 0";
        one("m004 Ledger", "page", ledger, "S0: the ledger does not balance; run onceseal ledger verify");
        let unseen = "time() - max(onceseal_ledger_verified_timestamp_seconds) > 7200";
        one(
            "m004 LedgerUnseen",
            "page",
            unseen,
            "nobody looked through the ledger for 2 hours; see ledger_look_broke_off",
        );
        // A server that has just started has not looked yet.
        self.line(8, "for: 15m");
    }
}

/// Whether the window is a long one of a burn.
fn is_long(window: &str) -> bool {
    BURNS.iter().any(|burn| burn.long == window)
}

/// The limit of its answers, in seconds, as Prometheus writes the end of a bucket.
fn limit(button: &Button) -> Option<String> {
    let millis = u64::try_from(button.p95?.as_millis()).ok()?;
    Some(decimal(millis * 10_000))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn limits_are_exact() {
        let limits: Vec<_> = BUTTONS.iter().filter_map(limit).collect();
        assert!(["0.8", "1.2", "0.3"].iter().all(|wanted| limits.iter().any(|limit| limit == wanted)));
        assert_eq!(decimal(144 * 1_000), "0.0144");
        assert_eq!(decimal(10_000_000), "1");
    }

    /// Conditions of the alerts.
    fn alerts(text: &str) -> Vec<String> {
        let parts = text.split("- alert: ").skip(1);
        parts.filter_map(|part| part.split("expr: '").nth(1)?.split('\'').next().map(str::to_owned)).collect()
    }

    #[test]
    fn a_ratio_alone_wakes_nobody_but_where_money_is_wrong() {
        let text = text();
        let of_ratios: Vec<_> =
            alerts(&text).into_iter().filter(|expr| expr.contains(":ratio_rate")).collect();
        assert!(of_ratios.len() > 4 * BUTTONS.len());
        for expr in of_ratios {
            let counted = expr.contains(":increase") && expr.ends_with("> 2.5");
            assert!(counted != expr.contains("\"m004\""), "{expr}");
        }
    }

    #[test]
    fn every_series_that_an_alert_asks_for_is_recorded() {
        let text = text();
        let recorded: Vec<&str> =
            text.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
        let mut asked = 0;
        for expr in alerts(&text) {
            for series in expr.split([' ', '(']).filter(|part| part.starts_with("onceseal_supply:")) {
                let name = series.split('{').next().unwrap();
                assert!(recorded.contains(&name), "{name} of {expr}");
                asked += 1;
            }
        }
        assert!(asked > 200, "{asked}");
    }

    #[test]
    fn whoever_is_woken_by_an_alert_finds_it_in_the_book() {
        let text = text();
        let book = include_str!("../../../../docs/operations.md");
        let names: BTreeSet<_> =
            text.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(book.contains(&format!("`{name}`")), "{name} is missing in docs/operations.md");
        }
    }

    #[test]
    fn every_button_and_every_metric_has_an_alert() {
        let text = text();
        for id in BUTTONS.iter().map(|button| button.id) {
            assert_eq!(text.matches(&format!("'{id}: errors use")).count(), 4, "{id}");
        }
        assert_eq!(text.matches("alert: OncesealSupplyUnexplained").count(), 1);
        for slug in METRICS.iter().map(|metric| metric.slug) {
            assert!(text.contains(&format!("          metric: {slug}\n")), "{slug}");
        }
    }
}
