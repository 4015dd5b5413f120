//! The same event gives the same bytes, whoever builds it and where: each time in a new process, on a copy
//! of one home with its keys.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::home::Home;

/// Files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Address in links: otherwise it would be the free port that a server happened to get.
const PUBLIC_URL: (&str, &str) = ("ONCESEAL_SERVER__PUBLIC_URL", "https://visa.example.com");

/// In which order a copy's files are made.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Same,
    Reversed,
}

/// A home that was started once: it has keys, and no event yet.
fn first() -> Home {
    let home = Home::new();
    assert_eq!(home.serve_with(serve(&home)).stop(), 0);
    home
}

fn serve(home: &Home) -> Command {
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env(PUBLIC_URL.0, PUBLIC_URL.1);
    command
}

fn copy(from: &Path, to: &Path, order: Order) {
    std::fs::create_dir_all(to).unwrap();
    let mut paths: Vec<_> = std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    if order == Order::Reversed {
        paths.reverse();
    }
    for path in paths {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target, order);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
}

fn copied(from: &Home, order: Order) -> Home {
    let home = Home::new();
    std::fs::remove_dir_all(home.path("data")).unwrap();
    copy(&from.path("data"), &home.path("data"), order);
    testkit::postgres::copy_beside(&from.path(""), &home.path(""));
    home
}

/// Starts the server as told, sends the paid checkout, stops it, and reads what was delivered.
fn built(home: &Home, command: Command) -> Files {
    let server = home.serve_with(command);
    assert_eq!(home.send("checkout-paid", "1").len(), 1);
    assert_eq!(server.stop(), 0);
    let entries = std::fs::read_dir(home.path("data/deliveries")).unwrap().map(|entry| entry.unwrap().path());
    let files: Files = entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    assert_eq!(files.len(), 3);
    files
}

/// As [`built`], on a copy of `first` and with a changed command.
fn built_with(first: &Home, order: Order, change: impl FnOnce(&mut Command)) -> Files {
    let home = copied(first, order);
    let mut command = serve(&home);
    change(&mut command);
    built(&home, command)
}

fn fetched(base: &str, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(base.strip_prefix("http://").unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..end]));
    answer.split_off(end + 4)
}

#[test]
fn zone_and_locale_change_no_byte() {
    let first = first();
    let reference = built_with(&first, Order::Same, |_| {});
    for (zone, locale) in
        [("Pacific/Kiritimati", "tr_TR.UTF-8"), ("America/St_Johns", "ar_EG.UTF-8"), ("UTC", "C")]
    {
        let files = built_with(&first, Order::Same, |command| {
            command.env("TZ", zone).env("LANG", locale).env("LC_ALL", locale).env("LANGUAGE", locale);
        });
        assert!(files == reference, "TZ {zone} and LC_ALL {locale} give other bytes");
    }
}

#[test]
fn umask_working_directory_and_folder_order_change_no_byte() {
    let first = first();
    let reference = built_with(&first, Order::Same, |_| {});
    for mask in ["000", "077"] {
        let script = format!("umask {mask}; exec \"$0\" \"$@\"");
        let files = built_with(&first, Order::Reversed, |command| {
            let mut masked = Command::new("sh");
            masked.arg("-c").arg(script).arg(command.get_program()).args(command.get_args());
            masked.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            masked.current_dir(command.get_current_dir().unwrap());
            *command = masked;
        });
        assert!(files == reference, "umask {mask} and another folder order give other bytes");
    }
    let home = copied(&first, Order::Reversed);
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = serve(&home);
    command.arg("--config").arg(home.path("onceseal.toml")).arg("--data").arg(home.path("data"));
    command.current_dir(elsewhere.path());
    assert!(built(&home, command) == reference, "another working directory gives other bytes");
}

#[test]
fn the_record_gives_the_same_bytes_after_the_files_were_deleted() {
    let home = first();
    let reference = built(&home, serve(&home));
    for name in reference.keys() {
        std::fs::remove_file(home.path("data/deliveries").join(name)).unwrap();
    }
    let server = home.serve_with(serve(&home));
    for (name, bytes) in &reference {
        assert!(fetched(&server.base, &format!("/d/{name}")) == *bytes, "{name} is other bytes when rebuilt");
    }
    assert_eq!(server.stop(), 0);
}
