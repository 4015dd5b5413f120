//! Numbers that commit out of order.

use certify::ledgerfile::ProcessedFile;
use door::AuditRow;
use store::Write;

use crate::house::{House, payment};

/// A transaction that has its number and its audit row, and is not over, while a later one is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_export_never_passes_a_row_that_is_still_on_its_way() {
    let house = House::new().await;
    let path = house.folder.path().join("processed.jsonl");
    let file = ProcessedFile::at(path.clone());
    house.deliver(&payment(1)).await;
    let door = house.visa.door();
    let random = door.random();
    let slow = door.maintain("test.slow", Vec::new(), move |_, now| {
        let row =
            AuditRow::system("certify.event.processed", "certify_event", "av_evt_1".into(), "slow".into());
        let wait = Write::any("test.wait", "select pg_sleep(1) is not null", Vec::new());
        Ok((vec![row.write(now, &*random), wait], ()))
    });
    let beside = async {
        // The slow one has its row's number once somebody waits in its second statement.
        let sleeping = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";
        let look = || door.store().query(store::Query::new("test.sleeping", sleeping, Vec::new()));
        while look().await.expect("a look")[0].int(0) == Ok(0) {
            tokio::task::yield_now().await;
        }
        house.deliver(&payment(2)).await;
        house.visa.append_export(&file).await.expect("written");
    };
    let (ended, ()) = tokio::join!(slow, beside);
    ended.expect("committed");
    house.visa.append_export(&file).await.expect("written");
    let text = std::fs::read_to_string(path).expect("a list");
    assert_eq!(text.lines().filter(|line| line.contains("evt_1")).count(), 2, "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
}
