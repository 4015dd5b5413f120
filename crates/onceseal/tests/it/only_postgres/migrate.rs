//! The schema as the command sees it: many at once, beside servers that run.

use std::sync::Arc;

use serde_json::Value as Json;
use store::migration::{CERTIFY, CORE, Chain, File, Older};
use store::{Settings, Store};
use testkit::{MovableClock, postgres};

use super::moving::Moving;
use crate::home::Home;

const fn next(older: Older) -> File {
    File { older, ..File::new("next_v1", "create table next_things (id {pk}) {strict};") }
}

static MAY_SERVE: [File; 1] = [next(Older::MayServe)];
static MUST_STOP: [File; 1] = [next(Older::MustStop)];

/// A newer program has brought the home's database up.
fn newer(home: &Home, files: &'static [File]) {
    let settings = Settings::Postgres(postgres::beside(&home.path("")).unwrap().settings());
    let chains = [CORE, CERTIFY, Chain { name: "next", files }];
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(Store::open(&settings, &chains, Arc::new(MovableClock::at(1000)))).unwrap();
}

fn status(home: &Home) -> (i32, Json) {
    let ran = home.run(&["migrate", "status", "--json"]);
    (ran.code(), serde_json::from_str(&ran.out()).unwrap())
}

#[test]
fn of_four_that_bring_it_up_at_once_all_find_it_up() {
    let home = Home::new();
    let (code, missing) = status(&home);
    assert!(code == 3 && missing["files"][0]["state"] == "missing", "{missing}");
    let up =
        || home.command(&["migrate", "up", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let all: Vec<_> = (0..4).map(|_| up()).collect();
    let applied: Vec<Json> = all
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            serde_json::from_slice(&output.stdout).unwrap()
        })
        .collect();
    assert!(applied.iter().any(|one| !one["applied"].as_array().unwrap().is_empty()), "{applied:?}");
    let (code, current) = status(&home);
    assert!(code == 0 && current["up_to_date"] == true, "{current}");
    let locks = "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())";
    assert_eq!(postgres::rows(&postgres::beside(&home.path("")).unwrap().direct, locks), ["0"]);
}

#[test]
fn older_servers_go_on_beside_a_newer_one_that_only_adds() {
    let home = Home::new();
    let server = home.serve();
    newer(&home, &MAY_SERVE);
    home.send("checkout-paid", "3");
    assert!(ready(&server.base).contains("200 OK"));
    let (code, seen) = status(&home);
    assert_eq!(code, 0, "{seen}");
    let last = seen["files"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["state"], &last["older_programs"]), (&"unknown".into(), &"may serve".into()));
    server.stop();
    home.serve().stop();
}

#[test]
fn an_older_server_is_taken_from_service_and_none_starts_where_it_must_stop() {
    let home = Home::new();
    let server = home.serve();
    assert!(ready(&server.base).contains("200 OK"));
    newer(&home, &MUST_STOP);
    while !ready(&server.base).contains("newer than this program") {
        std::thread::yield_now();
    }
    server.stop();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.code() == 1 && ran.error().contains("next_v1"), "{}", ran.all());
    let (code, seen) = status(&home);
    assert!(code == 3 && seen["verdict"].as_str().unwrap().contains("use the newer program"), "{seen}");
    assert_eq!(home.run(&["migrate", "up"]).code(), 1);
}

#[test]
fn a_file_that_older_servers_may_not_serve_with_waits_until_they_are_gone() {
    let home = Home::new();
    let server = home.serve();
    let database = postgres::beside(&home.path("")).unwrap();
    while postgres::rows(&database.direct, "select node_id from certify_nodes").is_empty() {
        std::thread::yield_now();
    }
    // As if this program had brought a file that is not there yet.
    postgres::execute(&database.direct, "delete from schema_migrations where name = 'certify_schema_v1'");
    let ran = home.run(&["migrate", "up"]);
    assert!(ran.code() == 7 && ran.error().contains("may not serve with certify_schema_v1"), "{}", ran.all());
    server.stop();
    assert_eq!(home.run(&["migrate", "up"]).code(), 0);
}

#[test]
fn a_table_in_long_use_ends_the_command_and_nothing_is_changed() {
    let home = Home::new();
    let database = postgres::beside(&home.path("")).unwrap();
    // Somebody creates what the file creates, and does not end.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (long, wire) =
        runtime.block_on(tokio_postgres::connect(&database.direct, tokio_postgres::NoTls)).unwrap();
    runtime.spawn(wire);
    runtime.block_on(long.batch_execute("begin; create table core_tenants (id int)")).unwrap();
    let ran = home.run(&["migrate", "up", "--patience", "2s"]);
    assert!(ran.code() == 1 && ran.error().contains("within 2 s"), "{}", ran.all());
    runtime.block_on(long.batch_execute("rollback")).unwrap();
    let tables = "select count(*) from pg_class where relname like 'core%' or relname like 'certify%'";
    assert_eq!(postgres::rows(&database.direct, tables), ["0"]);
    assert_eq!(home.run(&["migrate", "up"]).code(), 0);
}

#[test]
fn on_a_file_it_is_brought_up_while_no_server_runs() {
    let moving = Moving::new();
    assert_eq!(moving.run(&["migrate", "status"]).code(), 6);
    let up = moving.json(&["migrate", "up"]);
    assert_eq!(up["applied"].as_array().unwrap().len(), 2, "{up}");
    assert_eq!(moving.json(&["migrate", "up"])["applied"].as_array().unwrap().len(), 0);
    let server = moving.serve();
    assert_eq!(moving.run(&["migrate", "status"]).code(), 0);
    assert_eq!(moving.run(&["migrate", "up"]).code(), 7);
    server.stop();
    assert_eq!(moving.run(&["migrate", "up", "--patience", "5"]).code(), 2);
}

fn ready(base: &str) -> String {
    let host = base.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    std::io::read_to_string(stream).unwrap()
}
