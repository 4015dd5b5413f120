//! The data folder: one server, and clear words when it can't be used.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use store::{FILE, LOCK, Query, is_locked};

use crate::scene::{NOTES, insert, open, scene, setup_text};

const FOLDER: &str = "ONCESEAL_TEST_FOLDER";

/// Runs the test `name` of this binary in another process, with `folder` for it to open.
fn elsewhere(name: &str, folder: &Path, adjust: impl FnOnce(&mut Command)) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env(FOLDER, folder);
    adjust(&mut command);
    command.output().unwrap()
}

fn given_folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn a_second_store_on_the_folder_is_refused_in_the_same_program() {
    let scene = scene().await;
    assert!(
        setup_text(open(scene.folder.path(), &[NOTES]).await)
            .contains("another server uses this data folder")
    );
    assert_eq!(is_locked(scene.folder.path()), Ok(true));
}

#[tokio::test]
async fn a_second_store_on_the_folder_is_refused_in_another_program() {
    const NAME: &str = "only_sqlite::folder::a_second_store_on_the_folder_is_refused_in_another_program";
    if let Some(folder) = given_folder() {
        assert_eq!(is_locked(&folder), Ok(true));
        println!("refused: {}", setup_text(open(&folder, &[NOTES]).await));
        return;
    }
    let scene = scene().await;
    let output = elsewhere(NAME, scene.folder.path(), |_| {});
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("refused: another server uses this data folder"), "{}", said(&output));
}

/// In a process of its own: a lock lives on for a moment in every child that another test starts.
#[tokio::test]
async fn a_closed_or_refused_store_frees_its_folder_at_once() {
    const NAME: &str = "only_sqlite::folder::a_closed_or_refused_store_frees_its_folder_at_once";
    if let Some(folder) = given_folder() {
        for _ in 0..20 {
            open(&folder, &[NOTES]).await.unwrap();
            assert_eq!(is_locked(&folder), Ok(false));
            assert!(!folder.join("state.db-wal").exists(), "every connection is closed");
        }
        std::fs::write(folder.join(FILE), "this is no database, whatever its name says").unwrap();
        setup_text(open(&folder, &[NOTES]).await);
        assert_eq!(is_locked(&folder), Ok(false));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(is_locked(folder.path()), Ok(false));
    let output = elsewhere(NAME, folder.path(), |_| {});
    assert!(output.status.success(), "{}", said(&output));
}

/// Opens `folder` as somebody who is not its owner, and gives the words of the refusal.
fn refusal_for_another_user(name: &str, folder: &Path) -> String {
    const NOBODY: u32 = 65_534;
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    });
    let output = elsewhere(name, folder, |command| {
        if root {
            // Root may write anywhere; only another user meets the rights.
            command.gid(NOBODY).uid(NOBODY);
        }
    });
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_read_only_folder_is_named_with_its_setting() {
    const NAME: &str = "only_sqlite::folder::a_read_only_folder_is_named_with_its_setting";
    if let Some(folder) = given_folder() {
        println!("refused: {}", setup_text(open(&folder, &[NOTES]).await));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o555);
    let text = refusal_for_another_user(NAME, folder.path());
    set_mode(folder.path(), 0o755);
    assert!(text.contains("the data folder can't be written") && text.contains("storage.folder"), "{text}");
}

#[tokio::test]
async fn a_read_only_database_file_is_refused_at_the_start() {
    const NAME: &str = "only_sqlite::folder::a_read_only_database_file_is_refused_at_the_start";
    if let Some(folder) = given_folder() {
        println!("refused: {}", setup_text(open(&folder, &[NOTES]).await));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), &[NOTES]).await.unwrap();
    set_mode(folder.path(), 0o777);
    set_mode(&folder.path().join(LOCK), 0o666);
    set_mode(&folder.path().join(FILE), 0o444);
    let text = refusal_for_another_user(NAME, folder.path());
    assert!(text.contains("the database file can't be written"), "{text}");
}

#[tokio::test]
async fn a_file_where_the_folder_should_be_is_named_with_its_setting() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("state");
    std::fs::write(&file, "").unwrap();
    assert!(setup_text(open(&file, &[NOTES]).await).contains("storage.folder"));
}

#[tokio::test]
async fn a_missing_folder_is_made_with_its_parents() {
    let place = tempfile::tempdir().unwrap();
    open(&place.path().join("a/b/c"), &[NOTES]).await.unwrap();
}

#[tokio::test]
async fn a_stranger_that_holds_the_database_makes_submissions_fail_in_bounded_time() {
    let scene = scene().await;
    let stranger = rusqlite::Connection::open(scene.folder.path().join(FILE)).unwrap();
    stranger.execute_batch("begin immediate; insert into notes (name) values ('stranger')").unwrap();
    let end = scene.write(vec![insert("a")]).await;
    assert!(matches!(end, Err(store::Error::Unavailable { .. })), "{end:?}");
    let count = Query::new("count", "select count(*) from notes", vec![]);
    assert_eq!(scene.store.query(count).await.unwrap()[0].int(0), Ok(0));
    stranger.execute_batch("rollback").unwrap();
    scene.write(vec![insert("a")]).await.unwrap();
}
