//! A full disk: refused while it lasts, normal afterwards, with the same writer.

use std::process::Command;

use store::{Error, Write};

use crate::scene::{Scene, insert, insert_bytes, scene};

fn is_unavailable(end: &crate::scene::End) -> bool {
    matches!(end, Err(Error::Unavailable { .. }))
}

async fn limit_pages(scene: &Scene, pages: u32) {
    let sql = format!("pragma max_page_count = {pages}");
    scene.write(vec![Write::any("limit", sql, vec![])]).await.unwrap();
}

#[tokio::test]
async fn a_full_database_refuses_and_the_same_writer_goes_on_when_there_is_room() {
    let scene = scene().await;
    limit_pages(&scene, 40).await;
    let mut kept = Vec::new();
    let mut refused = 0;
    for n in 0..60 {
        let name = format!("fill-{n}");
        match scene.write(vec![insert_bytes(&name, 4000)]).await {
            Ok(_) => kept.push(name),
            end => {
                assert!(is_unavailable(&end), "{end:?}");
                refused += 1;
            }
        }
    }
    assert!(!kept.is_empty() && refused > 10, "{} kept, {refused} refused", kept.len());
    assert_eq!(scene.names().await, kept);
    limit_pages(&scene, 100_000).await;
    scene.write(vec![insert_bytes("room", 40_000)]).await.unwrap();
    kept.push("room".into());
    assert_eq!(scene.names().await, kept);
    assert_eq!(scene.store.integrity().await, Ok(vec![]));
}

#[tokio::test]
async fn a_group_that_runs_into_the_end_acknowledges_exactly_what_it_kept() {
    let scene = scene().await;
    limit_pages(&scene, 40).await;
    let hold = scene.hold();
    let ends: Vec<_> = (0..100)
        .map(|n| {
            let name = format!("n-{n}");
            let size = if n == 50 { 1_000_000 } else { 10 };
            (scene.enqueue(vec![insert_bytes(&name, size)]), name)
        })
        .collect();
    drop(hold);
    let mut acknowledged = Vec::new();
    for (end, name) in ends {
        match end.await.unwrap() {
            Ok(_) => acknowledged.push(name),
            end => assert!(is_unavailable(&end), "{end:?}"),
        }
    }
    assert_eq!(scene.names().await, acknowledged);
    assert!(acknowledged.contains(&"n-99".to_owned()), "those behind the large one still fit");
}

/// In a process of its own: a limit on the size of files, which the engine meets while it commits.
#[test]
fn a_commit_that_cannot_be_written_is_undone_and_the_writer_needs_no_restart() {
    const CHILD: &str = "ONCESEAL_TEST_FILE_LIMIT";
    const NAME: &str =
        "only_sqlite::full::a_commit_that_cannot_be_written_is_undone_and_the_writer_needs_no_restart";
    if std::env::var_os(CHILD).is_some() {
        return under_a_file_limit();
    }
    // The signal for it is ignored, so that the write fails instead.
    let output = Command::new("/bin/sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$1\" --exact --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg(NAME)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("recovered"), "{said}");
}

fn limit_files(bytes: &str) {
    let own = std::process::id().to_string();
    let limit = format!("--fsize={bytes}:unlimited");
    assert!(Command::new("prlimit").args(["--pid", &own, &limit]).status().unwrap().success());
}

#[tokio::main(flavor = "current_thread")]
async fn under_a_file_limit() {
    let scene = scene().await;
    scene.write(vec![insert("before")]).await.unwrap();
    let log = scene.store.log_bytes();
    limit_files(&(log + 10_000).to_string());
    for n in 0..5 {
        let end = scene.write(vec![insert_bytes(&format!("lost-{n}"), 200_000)]).await;
        assert!(is_unavailable(&end), "{end:?}");
    }
    let hold = scene.hold();
    let ends =
        [insert_bytes("lost-a", 50_000), insert_bytes("lost-b", 50_000)].map(|w| scene.enqueue(vec![w]));
    drop(hold);
    for end in ends {
        assert!(is_unavailable(&end.await.unwrap()));
    }
    assert_eq!(scene.names().await, ["before"]);
    limit_files("unlimited");
    scene.write(vec![insert_bytes("after", 200_000)]).await.unwrap();
    assert_eq!(scene.names().await, ["before", "after"]);
    assert_eq!(scene.store.integrity().await, Ok(vec![]));
    println!("recovered");
}
