//! Whatever happens in whatever order: journals balance, no leg is zero or less, no balance falls below
//! zero, and every check of section 11.5 holds after each step.

use proptest::prelude::*;

use crate::world::{Step, World};

const MOST: i64 = 3_000_000_000;

fn step() -> impl Strategy<Value = Step> {
    let amount = -5..MOST;
    prop_oneof![
        3 => amount.clone().prop_map(Step::Topup),
        3 => amount.clone().prop_map(Step::Pay),
        6 => (-5..MOST / 4).prop_map(Step::Use),
        1 => amount.clone().prop_map(Step::Bonus),
        6 => any::<usize>().prop_map(Step::Release),
        4 => amount.clone().prop_map(Step::Withdraw),
        1 => Just(Step::Cancel),
        2 => Just(Step::PayoutOk),
        1 => Just(Step::PayoutFail),
        1 => any::<usize>().prop_map(Step::PayoutReturn),
        2 => (-5..MOST / 4).prop_map(Step::Refund),
        1 => Just(Step::Close),
        1 => amount.clone().prop_map(Step::Compensate),
        1 => amount.prop_map(Step::CompensateBuyer),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_check_holds_after_every_step(steps in proptest::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in steps {
            let before = world.journals.len();
            let taken = world.take(step);
            if taken.is_err() {
                prop_assert_eq!(world.journals.len(), before, "{:?} was refused and posted", step);
            }
            prop_assert_eq!(world.check(), Ok(()), "after {:?}: {:?}", step, taken);
        }
    }
}

#[test]
fn the_random_life_reaches_every_kind_of_journal() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut kinds = std::collections::BTreeMap::new();
    for _ in 0..60 {
        let mut world = World::new();
        for step in proptest::collection::vec(step(), 80).new_tree(&mut runner).unwrap().current() {
            let _refused = world.take(step);
        }
        for journal in &world.journals {
            *kinds.entry(journal.kind()).or_insert(0) += 1;
        }
    }
    let missing: Vec<_> = ledger::JournalKind::ALL.iter().filter(|kind| !kinds.contains_key(*kind)).collect();
    assert!(missing.is_empty(), "never posted: {missing:?}; posted: {kinds:?}");
}
