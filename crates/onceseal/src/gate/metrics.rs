//! The servers' meters, as anybody reads them. Not here: what they must be.

use play::Call;

use super::stage::Stage;

/// The sum of a counter over all its labels and all servers; 0 before it was first raised.
///
/// # Errors
/// No answer, or no success.
pub async fn counter(stage: &Stage, name: &str) -> Result<i64, String> {
    let mut total = 0;
    for client in stage.clients() {
        let answer = client.send(&Call::get("/metrics", "")).await?.done()?;
        total += sum(&String::from_utf8_lossy(&answer.body), name);
    }
    Ok(total)
}

fn sum(text: &str, name: &str) -> i64 {
    let of = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let (_, number) = rest.starts_with(['{', ' ']).then(|| rest.rsplit_once(' '))??;
        number.trim().parse::<i64>().ok()
    };
    text.lines().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn a_counter_is_summed_over_its_labels_and_no_other_counter_is_taken_for_it() {
        let text =
            "# TYPE a_total counter\na_total{x=\"1\"} 2\na_total{x=\"b c\"} 3\na_total_more 7\nb_total 9\n";
        assert_eq!((sum(text, "a_total"), sum(text, "b_total"), sum(text, "c_total")), (5, 9, 0));
    }
}
