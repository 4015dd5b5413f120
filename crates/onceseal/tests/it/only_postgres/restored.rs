//! After a point-in-time restore: a copy of the database as it was then takes its place.

use testkit::postgres;

use crate::restored::{brought_back, home, live_on, sent};

#[test]
fn certificates_and_keys_younger_than_the_restored_moment_come_back() {
    let home = home();
    let database = postgres::beside(&home.path("")).unwrap();
    let server = home.serve();
    sent(&home, "evt_before");
    assert_eq!(server.stop(), 0);
    let name = database.direct.rsplit('/').next().unwrap().split('?').next().unwrap();
    let elsewhere = postgres::required();
    let alone = || {
        let end = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'");
        postgres::execute(&elsewhere.direct, &end);
    };
    alone();
    postgres::execute(&elsewhere.direct, &format!("create database {name}_then template {name}"));
    let hashes = live_on(&home, home.serve());
    alone();
    postgres::execute(&elsewhere.direct, &format!("drop database {name}"));
    postgres::execute(&elsewhere.direct, &format!("alter database {name}_then rename to {name}"));
    brought_back(&home, &hashes);
}
