//! The order of the files, which the supply specification fixes (section 10).

use store::dialect::Dialect;
use store::migration::{CERTIFY, CORE, Chain, File, SUPPLY};

use super::files;
use super::look::{Look, TAKEN};
use crate::scene::{dump, open, setup_text};

fn chain(files: Vec<File>) -> Chain {
    Chain { name: "reordered", files: files.leak() }
}

/// Every order of the four files.
fn orders() -> Vec<[usize; 4]> {
    let mut orders = Vec::new();
    for n in 0..256_usize {
        let order = [n >> 6, (n >> 4) & 3, (n >> 2) & 3, n & 3];
        if (0..4).all(|file| order.contains(&file)) {
            orders.push(order);
        }
    }
    orders
}

#[tokio::test]
async fn any_other_order_of_the_four_files_is_refused_and_applies_none() {
    let files = files();
    let orders = orders();
    assert_eq!((orders.len(), files.len()), (24, 4));
    for order in &orders[1..] {
        let folder = tempfile::tempdir().unwrap();
        let reordered = chain(order.iter().map(|n| files[*n]).collect());
        let text = setup_text(open(folder.path(), &[reordered]).await);
        assert!(text.contains("can't be applied before"), "{order:?}: {text}");
        assert!(!dump(folder.path()).iter().any(|line| line.contains("supply_") || line.contains("core_")));
    }
}

#[tokio::test]
async fn the_patch_without_the_tables_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let text = setup_text(open(folder.path(), &[CORE, chain(vec![SUPPLY.files[1]])]).await);
    assert_eq!(
        text,
        "the schema file supply_schema_v1_patch_2026-03-27 can't be applied before supply_schema_v1; apply the files in their order"
    );
    let text = setup_text(open(folder.path(), &[SUPPLY]).await);
    assert!(text.contains("supply_schema_v1 can't be applied before platform_core_schema_v1"), "{text}");
}

#[tokio::test]
async fn file_by_file_or_all_at_once_the_schema_is_the_same_and_a_second_run_changes_nothing() {
    let (step, once) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for count in 0..=3 {
        open(step.path(), &[CORE, chain(SUPPLY.files[..count].to_vec())]).await.unwrap();
    }
    open(once.path(), &[CORE, SUPPLY]).await.unwrap();
    let first = dump(once.path());
    open(once.path(), &[CORE, SUPPLY]).await.unwrap();
    assert_eq!(dump(once.path()), first);
    let without_times = |lines: Vec<String>| -> Vec<String> {
        lines
            .into_iter()
            .filter(|line| !line.contains("_schema_v1") && !line.contains("_functions_v1"))
            .collect()
    };
    assert_eq!(without_times(dump(step.path())), without_times(first));
}

/// As an administrator runs them, without the registry. SQLite can't be told to add a column only once.
#[tokio::test]
async fn the_files_run_again_by_hand_change_nothing() {
    let look = Look::at(&[CORE, SUPPLY]).await;
    let before = dump(look.folder());
    for file in files() {
        let sql = look.dialect().render(file.sql).into_owned();
        if look.dialect() == Dialect::Sqlite && file.sql.contains("{if_absent}") {
            assert!(look.tried(&[sql])[0].starts_with("duplicate column name"));
        } else {
            assert_eq!(look.tried(std::slice::from_ref(&sql)), [TAKEN], "{}", file.name);
            look.run(&[sql]);
        }
    }
    assert_eq!(dump(look.folder()), before);
}

#[tokio::test]
async fn a_program_without_the_supply_side_may_run_with_its_tables() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[CORE, CERTIFY, SUPPLY]).await.unwrap();
    open(folder.path(), &[CORE, CERTIFY]).await.unwrap();
}
