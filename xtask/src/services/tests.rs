//! The servers themselves, started for real.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::pgbouncer::{self, PgBouncer};
use super::postgres::{Durability, Options, Postgres, Stop, Tls};
use super::psql::Psql;
use super::running::{children, stat, wait};
use super::standby::Standby;

fn unsynced() -> Options {
    Options { durability: Durability::Unsynced, ..Options::default() }
}

fn ask(url: &str, sql: &str) -> String {
    Psql::at(url).unwrap().ask(sql).unwrap()
}

#[test]
fn a_server_answers_and_is_gone_after_its_drop() {
    let server = Postgres::launch(&unsynced()).unwrap();
    assert_eq!(ask(&server.url("onceseal"), "select 1"), "1");
    let (folder, address, id) = (server.socket().to_owned(), server.address(), server.id().unwrap());
    drop(server);
    assert!(!folder.exists());
    assert!(TcpStream::connect(address).is_err());
    assert!(!Path::new(&format!("/proc/{id}")).exists());
}

#[test]
fn a_client_has_no_rights_but_to_make_databases_and_needs_its_password() {
    let server = Postgres::launch(&Options { tls: Tls::On, ..unsynced() }).unwrap();
    let url = server.url("postgres");
    assert_eq!(ask(&url, "create database another"), "");
    assert!(Psql::at(&url).unwrap().ask("create role another").is_err());
    assert_eq!(ask(&url, "select rolsuper from pg_roles where rolname = current_user"), "f");
    let wrong = url.replacen(server.password(), "wrong", 1);
    let refused = Psql::at(&wrong).unwrap().ask("select 1").unwrap_err().to_string();
    assert!(refused.contains("password authentication failed"), "{refused}");
    let checked = format!("{url}?sslmode=verify-full&sslrootcert={}", server.certificate().display());
    assert_eq!(ask(&checked, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"), "t");
}

#[test]
fn a_killed_or_stopped_server_comes_back_at_the_same_place_with_all_that_was_committed() {
    let mut server = Postgres::launch(&unsynced()).unwrap();
    let url = server.url("onceseal");
    ask(&url, "create table kept (number int); insert into kept values (1)");
    server.kill9().unwrap();
    assert!(Psql::at(&url).unwrap().ask("select 1").is_err());
    server.start().unwrap();
    ask(&url, "insert into kept values (2)");
    server.stop(Stop::Immediate).unwrap();
    server.start().unwrap();
    server.restart().unwrap();
    assert_eq!(ask(&url, "select sum(number) from kept"), "3");
    server.set("lock_timeout", "1234ms").unwrap();
    assert_eq!(ask(&url, "show lock_timeout"), "1234ms");
    assert!(server.start().is_err(), "it runs already");
    // Dropped while it is down after a kill: the memory it had goes too.
    server.kill9().unwrap();
}

#[test]
fn a_standby_has_its_primary_s_rows_and_takes_over() {
    let options = Options { tls: Tls::On, ..unsynced() };
    let mut primary = Postgres::launch(&options).unwrap();
    let mut standby = Standby::of(&primary, "second", &options).unwrap();
    primary.set("synchronous_standby_names", "second").unwrap();
    ask(&primary.url("onceseal"), "create table kept (number int); insert into kept values (7)");
    standby.caught_up(&primary).unwrap();
    let url = standby.server.url("onceseal");
    assert_eq!(ask(&url, "select number from kept"), "7");
    assert!(Psql::at(&url).unwrap().ask("insert into kept values (8)").is_err(), "read-only");
    standby.server.restart().unwrap();
    standby.streams(&primary).unwrap();
    assert_eq!(primary.execute("select sync_state from pg_stat_replication").unwrap(), "sync");
    primary.kill9().unwrap();
    standby.promote().unwrap();
    ask(&url, "insert into kept values (8)");
    let third = Standby::of(&standby.server, "third", &options).unwrap();
    assert_eq!(ask(&third.server.url("onceseal"), "select sum(number) from kept"), "15");
}

#[test]
fn a_pooler_gives_an_idle_client_s_session_to_another_and_comes_back_after_a_kill() {
    let server = Postgres::launch(&unsynced()).unwrap();
    let options = pgbouncer::Options { pool_size: 1, ..pgbouncer::Options::default() };
    let mut pooler = PgBouncer::launch(&server, &options).unwrap();
    let url = pooler.url("onceseal");
    let mut idle = Psql::at(&url).unwrap().command().spawn().unwrap();
    writeln!(idle.stdin.as_mut().unwrap(), "select pg_backend_pid();").unwrap();
    let mut session = String::new();
    BufReader::new(idle.stdout.as_mut().unwrap()).read_line(&mut session).unwrap();
    // The first client is still there; in session mode this one would wait for its end.
    assert_eq!(ask(&url, "select pg_backend_pid()"), session.trim());
    assert!(ask(&pooler.console_url(), "show databases").contains("onceseal"));
    pooler.restart().unwrap();
    assert_eq!(ask(&url, "select 1"), "1");
    // It notices that its session broke.
    drop(idle.stdin.take());
    idle.wait().unwrap();
}

#[test]
fn a_killed_run_takes_its_servers_along() {
    // The run: one of the tests above, in a program of its own.
    let test =
        "services::tests::a_pooler_gives_an_idle_client_s_session_to_another_and_comes_back_after_a_kill";
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut run = command.args(["--exact", test]).stdout(Stdio::null()).spawn().unwrap();
    let id = i32::try_from(run.id()).unwrap();
    let named = |id: i32| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    let is_server = |id: &i32| ["postgres\n", "pgbouncer\n"].contains(&named(*id).as_str());
    let mut servers = Vec::new();
    let both = wait(Duration::from_secs(60), || {
        servers = children(id).into_iter().filter(is_server).collect();
        Ok(servers.len() == 2)
    });
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(both.unwrap(), "{servers:?}");
    let gone = |id: &i32| stat(*id).is_none_or(|(state, _)| state == 'Z');
    assert!(wait(Duration::from_secs(20), || Ok(servers.iter().all(gone))).unwrap(), "{servers:?}");
}
