//! A store whose file may not grow.

use door::Failure;
use store::Error;

use crate::domain::add;
use crate::scene::{done, scene};

#[tokio::test]
async fn a_full_store_refuses_and_the_same_key_works_when_there_is_room() {
    let scene = scene().await;
    scene.done(add("before", 1)).await;
    let pages = scene.count("pragma page_count").await;
    scene.force(format!("pragma max_page_count = {pages}")).await;
    let mut refused = 0;
    for n in 0..400 {
        match scene.door.submit(add(&format!("n{n}"), 1).now()).await {
            Ok(answer) => drop(done(Ok(answer))),
            Err(failure) => {
                // The failure itself may still fit in.
                let full = matches!(
                    failure,
                    Failure::Store(Error::Unavailable { .. }) | Failure::Undone(Error::Unavailable { .. })
                );
                assert!(full, "{failure}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
    scene.force("pragma max_page_count = 1000000").await;
    for n in 0..400 {
        scene.done(add(&format!("n{n}"), 1)).await;
    }
    assert_eq!(scene.count("select count(*) from test_effects").await, 401);
    assert_eq!(scene.count("select count(distinct key) from test_effects").await, 401);
}
