//! Reads beside the one writer.

use std::time::Duration;

use store::Query;

use crate::scene::{insert, scene};

#[tokio::test]
async fn reads_do_not_wait_for_the_writer() {
    let scene = scene().await;
    scene.write(vec![insert("a")]).await.unwrap();
    let _hold = scene.hold();
    let waits = scene.enqueue(vec![insert("b")]);
    for _ in 0..8 {
        assert_eq!(tokio::time::timeout(Duration::from_secs(5), scene.names()).await.unwrap(), ["a"]);
    }
    drop(waits);
}

#[tokio::test]
async fn a_long_read_does_not_hold_up_the_others() {
    let scene = scene().await;
    let endless = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000000) select max(i) from n";
    let long = scene.store.query(Query::new("long", endless, vec![]));
    let short = async {
        for _ in 0..20 {
            assert!(scene.names().await.is_empty());
        }
        "short"
    };
    tokio::select! {
        biased;
        _ = long => panic!("the short reads waited for the long one"),
        first = short => assert_eq!(first, "short"),
    }
}
