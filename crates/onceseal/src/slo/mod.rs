//! The promises of the supply side as files for those who watch it: Prometheus rules ([`rules`]) and a Grafana
//! dashboard ([`dashboard`]), both made of the tables in [`supply::slo`], so that no limit stands in two places. They
//! stand in `deploy/`, and a test compares.

pub mod dashboard;
pub mod rules;

/// Names of the files below a folder like `deploy/`, and their texts.
#[must_use]
pub fn files() -> [(&'static str, String); 2] {
    [
        ("prometheus/onceseal-supply.rules.yml", rules::text()),
        ("grafana/onceseal-supply.json", dashboard::text()),
    ]
}

/// Errors that a request can end in, as a matcher of the label `outcome`.
const ERRORS: &str = "failed|stuck|lost_race";

#[cfg(test)]
mod tests {
    use super::*;
    use supply::slo::End;

    #[test]
    fn the_files_in_the_tree_are_those_that_are_made() {
        for (name, text) in files() {
            let place = format!("{}/../../deploy/{name}", env!("CARGO_MANIFEST_DIR"));
            let stands = std::fs::read_to_string(&place).unwrap_or_default();
            assert!(stands == text, "deploy/{name} differs; run `onceseal slo files deploy`");
        }
    }

    #[test]
    fn the_matcher_has_the_ends_that_count() {
        let mut ends: Vec<_> = End::ALL.into_iter().filter(|end| end.is_error()).map(End::as_str).collect();
        let mut matched: Vec<_> = ERRORS.split('|').collect();
        ends.sort_unstable();
        matched.sort_unstable();
        assert_eq!(ends, matched);
    }
}
