//! What the README tells a stranger to type, typed.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::home::Home;

const README: &str = include_str!("../../../../README.md");

const CHINESE: &str = include_str!("../../../../README.zh-CN.md");

/// The fenced lines of this part of a README, block by block.
fn blocks(readme: &str, part: &str) -> Vec<String> {
    let part = readme.split("\n## ").find(|text| text.starts_with(part)).unwrap();
    part.split("\n```\n").skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn a_stranger_mounts_publishes_withdraws_and_repeats_with_the_lines_of_the_readme() {
    let home = Home::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let [serve, lines] = &blocks(README, "APIs that move money")[..] else { panic!("two blocks of lines") };
    let here = |text: &str| text.replace(":8080", &format!(":{port}"));
    let mut path = std::path::PathBuf::from(env!("CARGO_BIN_EXE_onceseal"));
    path.pop();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let shell = |text: &str| {
        let mut command = Command::new("bash");
        command.args(["-e", "-c", text]).current_dir(home.path("")).env_clear().env("PATH", &path);
        command
    };
    let serve = format!("exec {}", here(serve).trim());
    let mut demo = shell(&serve).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(demo.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().starts_with("listening on")), "the demo stays up");
    let ran = shell(&here(lines)).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert!(ran.status.success(), "{out}{error}");
    let withdrawn: Vec<&str> = out.lines().filter(|line| line.contains(r#""settlement_no":"STL"#)).collect();
    let [first, again] = withdrawn[..] else { panic!("two answers: {out}{error}") };
    assert!(first.contains(r#""idempotent_replay":false"#) && first.contains(r#""net_amount_minor":"4950""#));
    assert!(again.contains(r#""idempotent_replay":true"#), "{again}");
    let number = |line: &str| line.split_once(r#""settlement_no":""#).unwrap().1[..23].to_owned();
    assert_eq!(number(first), number(again));
    assert!(!out.contains(r#""error""#), "{out}");
    assert!(out.trim_end().ends_with("everything adds up"), "{out}");
}

#[test]
fn both_languages_have_the_same_lines_to_type() {
    let typed = |readme, part| {
        let blocks = blocks(readme, part);
        let lines = blocks.iter().flat_map(|block| block.lines()).filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let english = typed(README, "APIs that move money");
    assert!(english.len() > 30);
    assert_eq!(english, typed(CHINESE, "搬运资金的 API"));
}
