//! Where certificates' files stand, by configuration.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::home::Home;

/// A port on which nobody listens: discard.
const NOBODY: &str = "http://127.0.0.1:9";

/// A bucket at `NOBODY`, with canaries for keys.
fn with_bucket() -> Home {
    let home = Home::new();
    home.write("secrets/s3", "CANARYS3SECRET");
    home.configure(&format!(
        "[s3]\nendpoint = \"{NOBODY}\"\naccess_key = {{ env = \"S3_ID\" }}\nsecret_key = {{ file = \"secrets/s3\" }}\n\
         path_style = true\nauthorities = \"own.pem\"\ntimeout = \"200ms\""
    ));
    std::fs::copy("tests/it/keys/tls-one.pem", home.path("own.pem")).unwrap();
    home
}

#[test]
fn every_setting_of_a_bucket_is_documented_and_no_key_is_shown() {
    let page = include_str!("../../../../docs/configuration.md");
    let home = with_bucket();
    let set = ["--set", "storage.files=s3://certificates/prod"];
    let lines = home.json(&[&["config", "show"], &set[..]].concat());
    let settings: Vec<_> =
        lines.as_array().unwrap().iter().map(|line| line["setting"].as_str().unwrap()).collect();
    let ours: Vec<_> =
        settings.into_iter().filter(|name| name.starts_with("s3.") || *name == "storage.files").collect();
    assert_eq!(ours.len(), 9, "{ours:?}");
    for setting in ours {
        assert!(page.contains(&format!("| `{setting}` |")), "{setting} is missing in docs/configuration.md");
    }
    assert!(!lines.to_string().contains("CANARY"));
}

#[test]
fn a_bucket_that_cannot_be_used_stops_the_start_and_no_key_is_told() {
    let home = with_bucket();
    let serve = |files: &str, log: &str, code: i32| {
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--set", files]);
        command.env("S3_ID", "AKIACANARYID").env("RUST_LOG", log);
        let out = command.output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    };
    let told = serve(
        "storage.files=s3://certificates/prod",
        "trace,hyper=trace,reqwest=trace,object_store=trace",
        1,
    );
    let expected =
        "storage.files: the bucket can't be used: s3://certificates/prod: no connection: Connection refused";
    assert!(told.contains(expected), "{told}");
    assert!(!told.contains("CANARY"), "{told}");
    let told = serve("storage.files=s3://AKIACANARYID:CANARYS3SECRET@certificates", "info", 2);
    assert!(told.contains("keys belong into s3.access_key") && !told.contains("CANARY"), "{told}");
}

#[test]
fn a_bucket_without_a_place_and_a_place_without_a_mount_are_refused() {
    let home = with_bucket();
    let ran = home.run(&["config", "check"]);
    assert!(ran.code() == 2 && ran.error().contains("storage.files names no bucket"), "{}", ran.all());
    let home = Home::new();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0", "--set", "storage.files=mnt"]);
    assert!(
        ran.code() == 1 && ran.error().contains("storage.files: the delivery folder can't be used mnt"),
        "{}",
        ran.all()
    );
    assert!(ran.error().contains("mount it or make it") && !home.path("mnt").exists(), "{}", ran.error());
}

fn ready(base: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(base.trim_start_matches("http://"))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_server_keeps_its_files_in_the_shared_folder_that_is_named() {
    let home = Home::new();
    std::fs::create_dir(home.path("mnt")).unwrap();
    home.write(
        "onceseal.toml",
        &std::fs::read_to_string(home.path("onceseal.toml"))
            .unwrap()
            .replace("[storage]\n", "[storage]\nfiles = \"mnt\"\n"),
    );
    let server = home.serve();
    home.send("checkout-paid", "3");
    let list = |folder: &str| std::fs::read_dir(home.path(folder)).unwrap().count();
    assert_eq!(
        (list("mnt"), list("mnt/.part"), list("data/deliveries")),
        (4, 0, 0),
        "three files, and .part"
    );
    assert!(ready(&server.base).unwrap().starts_with("HTTP/1.1 200 "));
    std::fs::rename(home.path("mnt"), home.path("away")).unwrap();
    let unready = || ready(&server.base).unwrap().contains("the certificates' files can't be written");
    let began = Instant::now();
    while !unready() {
        assert!(began.elapsed() < Duration::from_secs(10), "a verdict is given again for half a second");
    }
    std::fs::rename(home.path("away"), home.path("mnt")).unwrap();
    assert_eq!(home.run(&["check"]).code(), 0);
    server.stop();
}
