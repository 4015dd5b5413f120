//! Seeds: many, the same ones twice, and those that failed once.

use std::sync::Arc;

use sim::hunt::{Hunt, Kind};
use sim::{Stage, run, tally};

fn hunt(count: u64, kind: Kind, threads: usize) -> Hunt {
    Hunt { first: 1, count, kind, threads, first_only: false, within: None }
}

fn passes(seed: u64) {
    let report = run(&Stage::new().unwrap(), seed, true);
    assert!(report.findings.is_empty(), "seed {seed}: {:?}", report.findings);
}

#[test]
fn two_hundred_seeds_find_nothing() {
    let caught = hunt(200, Kind::All, 2).run(|_, _, _| {}).unwrap();
    let failed: Vec<_> = caught.failed.iter().map(|report| (report.seed, &report.findings)).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(caught.tally.seeds, 200);
    assert!(caught.tally.steps >= 200 * 50 && caught.tally.submissions > 200 * 20);
}

#[test]
fn a_seed_is_the_same_run_whatever_ran_before() {
    tally::listen();
    let digests = |stage: &Arc<Stage>, seeds: &[u64]| -> Vec<_> {
        let digest = |seed: &u64| (*seed, run(stage, *seed, true).trace.digest());
        let mut digests: Vec<_> = seeds.iter().map(digest).collect();
        digests.sort_unstable_by_key(|(seed, _)| *seed);
        digests
    };
    let one = digests(&Stage::new().unwrap(), &[1, 2, 3, 4, 5, 10, 15, 20]);
    let other = digests(&Stage::new().unwrap(), &[15, 3, 10, 1, 4, 2, 20, 5]);
    assert_eq!(one, other);
    assert!(one.windows(2).all(|pair| pair[0].1 != pair[1].1), "different seeds are different runs");
}

#[test]
fn most_branches_are_taken_within_a_few_seeds() {
    let caught = hunt(100, Kind::All, 1).run(|_, _, _| {}).unwrap();
    let missed: Vec<_> = caught.tally.branches().filter(|(_, count)| *count == 0).collect();
    assert!(missed.len() <= 3, "never taken: {missed:?}");
    assert!(caught.tally.mishaps().all(|(_, count)| count > 0));
}

#[test]
fn most_of_the_supply_side_happens_within_a_few_of_its_seeds() {
    let caught = hunt(60, Kind::Supply, 2).run(|_, _, _| {}).unwrap();
    let failed: Vec<_> = caught.failed.iter().map(|report| (report.seed, &report.findings)).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!((caught.tally.seeds, caught.tally.traded), (60, 60));
    let missed: Vec<_> = caught.tally.outcomes().filter(|(_, count)| *count == 0).collect();
    assert!(missed.len() <= 5, "never happened: {missed:?}");
}

/// A claim's commit was lost, had happened, and the store failed at the look for it: the key hung on the
/// claim of nobody until its lease ended.
#[test]
fn a_claim_whose_lost_commit_happened_does_not_hold_its_key() {
    passes(4487);
    passes(28379);
}

/// Recovery read what was delivered and its hash in two looks, and another payload's failed attempt came
/// between: the certificate was one payload's, its record said the other's.
#[test]
fn a_recovery_takes_payload_and_hash_from_one_look() {
    passes(89_840);
}
