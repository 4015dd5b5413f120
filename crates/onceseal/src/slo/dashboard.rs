//! A Grafana dashboard of the same tables: what is asked, what fails, what is slow, what is left of the budgets, and
//! the metrics of the gate. Needs a data source of Prometheus and the recording rules.

use serde_json::{Value as Json, json};
use supply::slo::button::WHOLE;
use supply::slo::{BUTTONS, METRICS};

use super::ERRORS;

/// Grafana's grid is 24 wide.
const HALF: u32 = 12;
const HIGH: u32 = 8;

/// One graph: its title, unit, and what is drawn under which name.
struct Graph {
    title: String,
    unit: &'static str,
    lines: Vec<(String, String)>,
}

fn graph(title: impl Into<String>, unit: &'static str, lines: &[(&str, &str)]) -> Graph {
    let lines = lines.iter().map(|(expr, name)| ((*expr).to_owned(), (*name).to_owned())).collect();
    Graph { title: title.into(), unit, lines }
}

/// The part of each button's budget that is left of the last 30 days.
fn budgets() -> Graph {
    let left = |id: &str, budget: u32| {
        let of = |ends: &str| {
            format!("sum(increase(onceseal_supply_requests_total{{button=\"{id}\"{ends}}}[30d]))")
        };
        let errors = of(&format!(",outcome=~\"{ERRORS}\""));
        // 1 - errors / (all * budget): the budget as a fraction of whole numbers.
        format!("1 - {errors} * {WHOLE} / ({} * {budget})", of(""))
    };
    let lines = BUTTONS
        .iter()
        .map(|button| (left(button.id, button.budget()), format!("{} {}", button.id, button.name)));
    Graph { title: "Error budget left of 30 days".into(), unit: "percentunit", lines: lines.collect() }
}

fn graphs() -> Vec<Graph> {
    let mut graphs = vec![
        graph(
            "Requests a second",
            "reqps",
            &[("sum by (button) (rate(onceseal_supply_requests_total[5m]))", "{{button}}")],
        ),
        graph("Errors", "percentunit", &[("onceseal_supply:errors:ratio_rate5m", "{{button}}")]),
        budgets(),
        graph(
            "P95",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (button, le) (rate(onceseal_supply_request_seconds_bucket[5m])))",
                "{{button}}",
            )],
        ),
        graph("Lost races", "percentunit", &[("onceseal_supply:conflicts:ratio_rate1h", "{{button}}")]),
        graph(
            "How requests end",
            "reqps",
            &[("sum by (outcome) (rate(onceseal_supply_requests_total[5m]))", "{{outcome}}")],
        ),
    ];
    graphs.extend(METRICS.iter().map(|metric| {
        let title = format!("{} {} ({})", metric.id, metric.name, metric.wanted);
        let slug = metric.slug;
        let gate = format!("onceseal_supply:gate:ratio_rate1d{{metric=\"{slug}\"}}");
        let events = format!("max(increase(onceseal_supply_gate_events_total{{metric=\"{slug}\"}}[1d]))");
        match slug {
            "m012" => graph(title, "short", &[("max(onceseal_supply_suppliers_onboarded)", "suppliers")]),
            "m013" => graph(
                title,
                "short",
                &[
                    (&events, "left"),
                    ("sum(increase(onceseal_credential_exposure_blocked_total[1d]))", "withheld"),
                ],
            ),
            "m014" => graph(
                title,
                "percentunit",
                &[(
                    "sum(rate(onceseal_supply_ingress_requests_total{credential=\"platform\"}[1h])) / sum(rate(onceseal_supply_ingress_requests_total[1h]))",
                    "coverage",
                )],
            ),
            "m015" => graph(title, "short", &[(&events, "calls")]),
            "m016" => graph(
                title,
                "short",
                &[
                    ("sum(increase(onceseal_query_key_detected_total[1d]))", "seen"),
                    ("sum(increase(onceseal_query_key_rejected_total[1d]))", "refused"),
                ],
            ),
            _ => graph(title, "percentunit", &[(&gate, "1d")]),
        }
    }));
    graphs
}

/// The file.
#[must_use]
pub fn text() -> String {
    let panels: Vec<Json> = (0u32..)
        .zip(graphs())
        .map(|(number, Graph { title, unit, lines })| {
            let targets: Vec<Json> = ('A'..='Z')
                .zip(lines)
                .map(|(letter, (expr, name))| json!({ "refId": letter, "expr": expr, "legendFormat": name }))
                .collect();
            json!({
                "id": number + 1,
                "type": "timeseries",
                "title": title,
                "datasource": { "type": "prometheus", "uid": "${datasource}" },
                "gridPos": { "x": number % 2 * HALF, "y": number / 2 * HIGH, "w": HALF, "h": HIGH },
                "fieldConfig": { "defaults": { "unit": unit, "min": 0 }, "overrides": [] },
                "targets": targets,
            })
        })
        .collect();
    let dashboard = json!({
        "uid": "onceseal-supply",
        "title": "Onceseal: the supply side",
        "schemaVersion": 39,
        "editable": true,
        "refresh": "1m",
        "time": { "from": "now-24h", "to": "now" },
        "templating": { "list": [{ "name": "datasource", "type": "datasource", "query": "prometheus" }] },
        "panels": panels,
    });
    // A tree of texts and numbers always has a JSON form.
    format!("{}\n", serde_json::to_string_pretty(&dashboard).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_a_graph_for_each_metric_and_no_two_in_one_place() {
        let made: Json = serde_json::from_str(&text()).unwrap();
        let panels = made["panels"].as_array().unwrap();
        for metric in &METRICS {
            let titled = |panel: &&Json| panel["title"].as_str().unwrap().starts_with(metric.id);
            assert_eq!(panels.iter().filter(titled).count(), 1, "{}", metric.id);
        }
        let mut places: Vec<_> = panels.iter().map(|panel| panel["gridPos"].to_string()).collect();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), panels.len());
    }
}
