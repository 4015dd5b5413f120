//! What survives a power cut.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};

use super::{Stage, append, expected, sync_directory, tree};
use crate::trace::{Durability, Effect, replay, replay_with};

/// The tracee's side.
pub(super) fn play(role: &str) -> bool {
    match role {
        "overwrite" => overwrite(),
        "create" => create(),
        "append" => {
            append("kept", "1").sync_data().unwrap();
            append("kept", "2");
        }
        "rename" => rename(),
        "rename-across" => rename_across(),
        "replace" => replace(),
        "remove" => remove(),
        "cut" => File::options().write(true).open("kept").unwrap().set_len(2).unwrap(),
        "direct" => {
            let file = File::options().write(true).custom_flags(libc::O_DSYNC).open("kept").unwrap();
            file.write_all_at(b"NEW", 1).unwrap();
        }
        "modes" => modes(),
        "folders" => folders(),
        "copies" => copies(),
        "symlink" => symlink("kept", "link").unwrap(),
        _ => return false,
    }
    true
}

/// Runs a role to its end and cuts the power there.
fn after_cut(role: &str, base: &[(&str, &str)], model: Durability) -> (Stage, super::PathBuf) {
    let stage = Stage::new(base);
    let recording = stage.run(role);
    let left = stage.fresh("left");
    replay_with(&stage.base(), &recording.points, &left, model).unwrap();
    (stage, left)
}

fn strict(role: &str, base: &[(&str, &str)], left: &[(&str, &str)]) {
    let (stage, folder) = after_cut(role, base, Durability::Strict);
    assert_eq!(tree(&folder), expected(left));
    drop(stage);
}

fn overwrite() {
    let file = OpenOptions::new().write(true).open("one").unwrap();
    file.write_all_at(b"synced", 0).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(b"unsynced", 2).unwrap();
    fs::write("two", "unsynced").unwrap();
}

#[test]
fn a_write_counts_up_to_the_last_sync_of_its_file() {
    strict("overwrite", &[("one", "before"), ("two", "before")], &[("one", "synced"), ("two", "before")]);
}

fn create() {
    for (name, flush) in [("d/none", false), ("d/content", true), ("e/content", true)] {
        let mut file = File::create(name).unwrap();
        file.write_all(b"text").unwrap();
        if flush {
            file.sync_all().unwrap();
        }
    }
    sync_directory("d");
}

#[test]
fn a_new_file_needs_its_own_sync_and_its_directorys() {
    let base = [("d/old", "o"), ("e/old", "o")];
    let left =
        [("d/", ""), ("d/content", "text"), ("d/none", ""), ("d/old", "o"), ("e/", ""), ("e/old", "o")];
    strict("create", &base, &left);
}

#[test]
fn the_lenient_model_keeps_the_name_of_a_synced_new_file() {
    let (_stage, left) = after_cut("create", &[("d/old", "o"), ("e/old", "o")], Durability::LenientExt4);
    assert_eq!(fs::read(left.join("e/content")).unwrap(), b"text");
}

#[test]
fn names_left_without_their_content_are_empty_files() {
    let (_stage, left) = after_cut("create", &[("d/old", "o"), ("e/old", "o")], Durability::Names);
    let [synced, unsynced] = ["e/content", "d/none"].map(|name| fs::read_to_string(left.join(name)).unwrap());
    assert_eq!((synced.as_str(), unsynced.as_str()), ("text", ""));
}

#[test]
fn an_append_after_the_sync_is_dropped() {
    strict("append", &[("kept", "0")], &[("kept", "01")]);
}

fn rename() {
    fs::rename("d/a", "d/b").unwrap();
    sync_directory("d");
    fs::rename("e/a", "e/b").unwrap();
}

#[test]
fn a_rename_counts_once_its_directory_is_synced() {
    let left = [("d/", ""), ("d/b", "x"), ("e/", ""), ("e/a", "y")];
    strict("rename", &[("d/a", "x"), ("e/a", "y")], &left);
}

fn rename_across() {
    for (name, synced) in [("neither", [].as_slice()), ("new", &["new/to"]), ("old", &["old/from"])] {
        fs::rename(format!("{name}/from/f"), format!("{name}/to/f")).unwrap();
        synced.iter().for_each(|path| sync_directory(path));
    }
    for (first, second) in [("from", "to"), ("to", "from")] {
        fs::rename(format!("{first}-first/from/f"), format!("{first}-first/to/f")).unwrap();
        sync_directory(&format!("{first}-first/{first}"));
        sync_directory(&format!("{first}-first/{second}"));
    }
}

#[test]
fn a_rename_between_directories_never_loses_the_file() {
    let names = ["neither", "new", "old", "from-first", "to-first"];
    let base: Vec<(String, &str)> = names
        .iter()
        .flat_map(|name| [(format!("{name}/from/f"), "x"), (format!("{name}/to/other"), "o")])
        .collect();
    let base: Vec<(&str, &str)> = base.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let (_stage, left) = after_cut("rename-across", &base, Durability::Strict);
    let stands = |name: &str| ["from", "to"].map(|side| left.join(name).join(side).join("f").exists());
    assert_eq!(names.map(stands), [[true, false], [true, true], [true, false], [false, true], [false, true]]);
}

fn replace() {
    for directory in ["d", "e"] {
        let mut file = File::create(format!("{directory}/tmp")).unwrap();
        file.write_all(b"new").unwrap();
        if directory == "d" {
            file.sync_all().unwrap();
        }
        fs::rename(format!("{directory}/tmp"), format!("{directory}/file")).unwrap();
        sync_directory(directory);
    }
}

#[test]
fn replacing_a_file_without_syncing_the_new_one_leaves_it_empty() {
    let left = [("d/", ""), ("d/file", "new"), ("e/", ""), ("e/file", "")];
    strict("replace", &[("d/file", "old"), ("e/file", "old")], &left);
}

fn remove() {
    fs::remove_file("d/a").unwrap();
    sync_directory("d");
    let late = OpenOptions::new().write(true).open("e/a").unwrap();
    fs::remove_file("e/a").unwrap();
    late.write_all_at(b"Y", 0).unwrap();
    late.sync_all().unwrap();
    fs::remove_dir("f").unwrap();
    // The freed inodes may come back under new names.
    fs::write("d/next", "unsynced").unwrap();
}

#[test]
fn a_removed_name_comes_back_unless_its_directory_was_synced() {
    let stage = Stage::new(&[("d/a", "x"), ("e/a", "y")]);
    for folder in [stage.live(), stage.base()] {
        fs::create_dir(folder.join("f")).unwrap();
    }
    let (recording, left) = (stage.run("remove"), stage.fresh("left"));
    replay(&stage.base(), &recording.points, &left).unwrap();
    assert_eq!(tree(&left), expected(&[("d/", ""), ("e/", ""), ("e/a", "Y"), ("f/", "")]));
}

#[test]
fn an_unsynced_cut_is_undone() {
    strict("cut", &[("kept", "whole")], &[("kept", "whole")]);
}

#[test]
fn a_write_through_needs_no_sync() {
    strict("direct", &[("kept", "xxxxx")], &[("kept", "xNEWx")]);
}

fn modes() {
    let key = OpenOptions::new().write(true).create_new(true).mode(0o600).open("key").unwrap();
    key.sync_all().unwrap();
    for name in ["full", "content"] {
        let file = File::options().write(true).open(name).unwrap();
        file.set_permissions(Permissions::from_mode(0o640)).unwrap();
        if name == "full" {
            file.sync_all().unwrap();
        } else {
            file.sync_data().unwrap();
        }
    }
    sync_directory(".");
}

#[test]
fn permission_bits_count_up_to_the_last_full_sync() {
    let (stage, left) = after_cut("modes", &[("full", ""), ("content", "")], Durability::Strict);
    let mode = |name| fs::metadata(left.join(name)).unwrap().mode() & 0o777;
    let before = fs::metadata(stage.base().join("content")).unwrap().mode() & 0o777;
    assert_eq!([mode("key"), mode("full"), mode("content")], [0o600, 0o640, before]);
}

fn folders() {
    for path in ["a", "b", "b/deep"] {
        fs::create_dir(path).unwrap();
        File::create(format!("{path}/f")).unwrap();
        sync_directory(path);
        if path == "a" {
            sync_directory(".");
        }
    }
}

#[test]
fn a_folder_without_a_synced_name_is_absent_with_all_it_holds() {
    strict("folders", &[], &[("a/", ""), ("a/f", "")]);
}

fn copies() {
    fs::copy("from", "copy").unwrap();
    File::open("copy").unwrap().sync_all().unwrap();
    fs::hard_link("copy", "twin").unwrap();
    sync_directory(".");
    append("twin", "!").sync_all().unwrap();
}

#[test]
fn a_copy_made_in_the_kernel_and_a_hard_link_are_followed() {
    strict("copies", &[("from", "text")], &[("copy", "text!"), ("from", "text"), ("twin", "text!")]);
}

#[test]
fn with_everything_durable_the_replay_is_the_folder_itself() {
    let files = ["d/a", "d/file", "e/a", "e/file", "from", "kept", "one", "full", "content"];
    let files = files.map(|name| (name, "content"));
    let roles = ["overwrite", "create", "append", "rename", "replace", "cut", "direct", "modes", "copies"];
    for role in roles {
        let (stage, left) = after_cut(role, &files, Durability::Everything);
        assert_eq!(tree(&left), tree(&stage.live()), "{role}");
    }
    let (stage, left) = after_cut("folders", &[], Durability::Everything);
    assert_eq!(tree(&left), tree(&stage.live()));
}

#[test]
fn the_replay_refuses_what_it_has_no_model_for() {
    let stage = Stage::new(&[("kept", "x")]);
    let recording = stage.run("symlink");
    let error = replay(&stage.base(), &recording.points, &stage.fresh("left")).unwrap_err().to_string();
    assert!(error.contains("a symbolic link"), "{error}");
    assert!(recording.points.iter().any(|point| matches!(point.effect, Effect::Unmodelled(_))));
}

#[test]
fn the_replay_refuses_another_base_and_a_used_folder() {
    let stage = Stage::new(&[("kept", "x")]);
    let recording = stage.run("append");
    fs::remove_file(stage.base().join("kept")).unwrap();
    let error = replay(&stage.base(), &recording.points, &stage.fresh("left")).unwrap_err().to_string();
    assert!(error.contains("hold no such file"), "{error}");
    replay(&stage.base(), &[], &stage.live()).unwrap_err();
}
