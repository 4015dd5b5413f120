//! A living SQLite store becomes a PostgreSQL database: every kind of column, every kind of change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::copy::{Begun, Copy, Tally, Walk};
use store::migration::{CERTIFY, CORE, Chain, File, SUPPLY};
use store::{Error, Query, Settings, Store, Value, Write, values};
use testkit::MovableClock;
use testkit::postgres::{self, Database};

use crate::scene::{Scene, setup_text};

const HOUSE: Chain = Chain {
    name: "house",
    files: &[File::new(
        "house_v1",
        "create table people (id {pk}, name text not null unique, boss {int} references people (id), at {time}, flag {flag},
           kept {json}, asked {jsonb}, money {money}, address {inet}, body {bytes}) {strict};
         create table words (person {int} not null references people (id), word text not null, primary key (word, person)) {strict_by_key};
         create table growth (id {pk}, person {int} not null references people (id), note text) {strict};
         {append_only growth}
         create table marks (name text primary key, value {int} not null) {strict};
         insert into marks (name, value) values ('seed', 1) on conflict do nothing;",
    )],
};

async fn source() -> Scene {
    source_of(1000).await
}

/// An installation that was made then.
async fn source_of(second: i64) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::folder(folder.path());
    let store = Store::open(&settings, &[HOUSE], Arc::new(MovableClock::at(second))).await.unwrap();
    Scene { store, folder }
}

fn target(database: &Database) -> Settings {
    Settings::Postgres(database.settings())
}

async fn begin(source: &Scene, database: &Database) -> Result<Begun, Error> {
    let source = Store::look(&Settings::folder(source.folder.path())).await?;
    Copy::begin(&source, &target(database), &[HOUSE], Arc::new(MovableClock::at(2000))).await
}

async fn copy(source: &Scene, database: &Database) -> Box<Copy> {
    match begin(source, database).await.unwrap() {
        Begun::Copy(copy) => copy,
        Begun::Finished(at) => panic!("finished at {at}"),
    }
}

/// All of it, with the source at rest.
async fn copied(source: &Scene, database: &Database) -> Vec<Tally> {
    let copy = copy(source, database).await;
    copy.catch_up(Walk::Append, &|_, _| ()).await.unwrap();
    let tallies = copy.last(&|_, _| ()).await.unwrap();
    copy.finish().await.unwrap();
    tallies
}

fn person(name: &str, boss: Option<i64>) -> Write {
    let sql = "insert into people (name, boss, at, flag, kept, asked, money, address, body) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let json = r#"{"b": 1.50, "a": ["ä", null]}"#;
    let at = kernel::Time::from_micros(1_700_000_000_123_456);
    let money = Value::Money(-12_345_678);
    let mut row = values![name, boss, at, true, json, json];
    row.push(money);
    row.extend(values!["2001:db8::7", vec![0_u8, 255, 7]]);
    Write::one("people.insert", sql, row)
}

fn grow(person: i64) -> Write {
    let sql =
        "insert into growth (person, note) select id, 'n' from people where id >= $1 order by id limit 1";
    Write::any("growth.insert", sql, values![person])
}

fn word(person: i64, word: &str) -> Write {
    let sql =
        "insert into words (person, word) select id, $1 from people where id = $2 on conflict do nothing";
    Write::any("words.insert", sql, values![word, person])
}

async fn count(store: &Store, sql: &'static str) -> i64 {
    store.query(Query::new("count", sql, vec![])).await.unwrap()[0].int(0).unwrap()
}

fn agree(tallies: &[Tally]) {
    for tally in tallies {
        assert!(tally.agrees(), "{tally:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_products_own_schema_is_the_same_on_both_sides() {
    let (folder, database) = (tempfile::tempdir().unwrap(), postgres::required());
    let chains = [CORE, CERTIFY, SUPPLY];
    let settings = Settings::folder(folder.path());
    let clock = || Arc::new(MovableClock::at(1000));
    let source = Store::open(&settings, &chains, clock()).await.unwrap();
    let begun = Copy::begin(&source, &target(&database), &chains, clock()).await.unwrap();
    let Begun::Copy(copy) = begun else { panic!("{begun:?}") };
    copy.catch_up(Walk::Append, &|_, _| ()).await.unwrap();
    let tallies = copy.last(&|_, _| ()).await.unwrap();
    agree(&tallies);
    assert!(tallies.len() > 20, "{}", tallies.len());
    copy.finish().await.unwrap();
    Store::open(&target(&database), &chains, clock()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_kind_of_value_arrives_and_new_numbers_follow_on() {
    let (source, database) = (source().await, postgres::required());
    source.write(vec![person("one", None), person("two", Some(1)), grow(1), word(1, "w")]).await.unwrap();
    let tallies = copied(&source, &database).await;
    agree(&tallies);
    let rows: Vec<_> = tallies.iter().map(|tally| (tally.table.as_str(), tally.target.rows)).collect();
    assert_eq!(rows, [("people", 2), ("words", 1), ("growth", 1), ("marks", 1)]);
    let text = "select name || ' ' || boss || ' ' || at at time zone 'UTC' || ' ' || flag || ' ' || kept::text || ' ' || money || ' ' || address || ' ' || encode(body, 'hex') from people where id = 2";
    let expected = r#"two 1 2023-11-14 22:13:20.123456 true {"b": 1.50, "a": ["ä", null]} -12.345678 2001:db8::7/128 00ff07"#;
    assert_eq!(postgres::rows(&database.direct, text), [expected]);
    let clock = Arc::new(MovableClock::at(3000));
    let store = Store::open(&target(&database), &[HOUSE], clock).await.unwrap();
    let there = Scene { store, folder: tempfile::tempdir().unwrap() };
    there.write(vec![person("three", Some(2)), grow(3)]).await.unwrap();
    assert_eq!(count(&there.store, "select max(id) from people").await, 3);
    assert_eq!(count(&there.store, "select max(id) from growth").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_may_point_at_later_rows_of_their_own_table() {
    let (source, database) = (source().await, postgres::required());
    let people = (1..=1200).map(|n| person(&format!("p{n}"), None)).collect();
    source.write(people).await.unwrap();
    let point = "update people set boss = 1201 - id where id <> 600 and id <> 601";
    source.write(vec![Write::any("people.point", point, vec![])]).await.unwrap();
    agree(&copied(&source, &database).await);
    let there = postgres::rows(&database.direct, "select count(*)::text from people where boss = 1201 - id");
    assert_eq!(there, ["1198"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn texts_are_walked_by_their_bytes_whatever_the_database_says_of_language() {
    let (source, database) = (source().await, postgres::required());
    let insert = "insert into marks (name, value) values ($1, $2)";
    let starts = ["a", "B", "ä", "Z", "_", "é", "0"];
    let names = (0..2500_i64).zip(starts.iter().cycle());
    let marks =
        names.map(|(n, start)| Write::one("marks.insert", insert, values![format!("{start}-{n}"), n]));
    source.write(marks.collect()).await.unwrap();
    let copy = copy(&source, &database).await;
    copy.catch_up(Walk::Compare, &|_, _| ()).await.unwrap();
    assert_eq!(copy.catch_up(Walk::Compare, &|_, _| ()).await.unwrap(), 0);
    let change = "update marks set value = value + 1 where value % 5 = 0";
    source.write(vec![Write::any("marks.update", change, vec![])]).await.unwrap();
    assert_eq!(copy.catch_up(Walk::Compare, &|_, _| ()).await.unwrap(), 500);
    agree(&copy.last(&|_, _| ()).await.unwrap());
}

/// Adds, changes and deletes until it is told to stop; gives how often.
async fn live(scene: Arc<Scene>, stop: Arc<AtomicBool>) -> i64 {
    let mut turn = 0;
    while !stop.load(Ordering::SeqCst) {
        turn += 1;
        let change = "update people set boss = $1, asked = $2 where id = $3";
        let boss = (turn > 20).then_some(turn - 19);
        let change =
            Write::any("people.change", change, values![boss, format!("{{\"turn\":{turn}}}"), turn / 2]);
        let drop = Write::any("words.drop", "delete from words where person = $1", values![turn / 3]);
        let writes = vec![
            person(&format!("living-{turn}"), None),
            grow(turn),
            word(turn, "alive"),
            word(turn / 2, "again"),
            change,
            drop,
        ];
        scene.write(writes).await.unwrap();
    }
    turn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_source_that_is_written_meanwhile_arrives_whole() {
    let (source, database) = (Arc::new(source().await), postgres::required());
    source.write((0..3000).map(|n| person(&format!("p{n}"), None)).collect()).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let living = tokio::spawn(live(Arc::clone(&source), Arc::clone(&stop)));
    let copy = copy(&source, &database).await;
    for walk in [Walk::Append, Walk::Compare, Walk::Append, Walk::Compare] {
        copy.catch_up(walk, &|_, _| ()).await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    let turns = living.await.unwrap();
    source.store.fence().await.unwrap();
    let tallies = copy.last(&|_, _| ()).await.unwrap();
    agree(&tallies);
    let people = tallies.iter().find(|tally| tally.table == "people").unwrap();
    assert_eq!(people.target.rows, 3000 + u64::try_from(turns).unwrap());
    assert!(turns > 20, "{turns}");
}

const PAYOUTS: Chain = Chain {
    name: "payouts",
    files: &[File::new(
        "payouts_v1",
        "create table orders (id {pk}, no text not null unique) {strict};
         create table payouts (name text primary key, no text not null references orders (no)) {strict};",
    )],
};

/// Nothing in the child's own row says that its parent is too young for the walk.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_whose_parent_came_too_late_for_a_walk_waits_for_the_next_one() {
    let (folder, database) = (tempfile::tempdir().unwrap(), postgres::required());
    let settings = Settings::folder(folder.path());
    let clock = || Arc::new(MovableClock::at(1000));
    let store = Store::open(&settings, &[PAYOUTS], clock()).await.unwrap();
    let source = Scene { store, folder };
    let pair = |no: &str| {
        let order = Write::one("orders.insert", "insert into orders (no) values ($1)", values![no]);
        let payout =
            Write::one("payouts.insert", "insert into payouts (name, no) values ($1, $2)", values![no, no]);
        vec![order, payout]
    };
    source.write(pair("early")).await.unwrap();
    let Begun::Copy(copy) =
        Copy::begin(&source.store, &target(&database), &[PAYOUTS], clock()).await.unwrap()
    else {
        panic!("finished")
    };
    // The first word of a walk comes after its bounds were read, and before the children are.
    let late = std::sync::Once::new();
    let write_late = || {
        let mut end = source.enqueue(pair("late"));
        while end.try_recv().is_err() {
            std::thread::yield_now();
        }
    };
    copy.catch_up(Walk::Append, &|_, _| late.call_once(write_late)).await.unwrap();
    let names = "select name from payouts order by name";
    assert!(postgres::rows(&database.direct, names).is_empty(), "the chunk waits as a whole");
    copy.catch_up(Walk::Compare, &|_, _| ()).await.unwrap();
    assert_eq!(postgres::rows(&database.direct, names), ["early", "late"]);
    agree(&copy.last(&|_, _| ()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_that_ended_anywhere_goes_on_and_nobody_serves_it_before_its_end() {
    let (source, database) = (source().await, postgres::required());
    source.write((0..5000).map(|n| person(&format!("p{n}"), None)).collect()).await.unwrap();
    source.write(vec![grow(1), word(7, "w")]).await.unwrap();
    for after in [0, 1, 2000, 4000] {
        let copy = copy(&source, &database).await;
        let enough = tokio::sync::Notify::new();
        let told = |_: &str, rows: u64| {
            if rows >= after {
                enough.notify_one();
            }
        };
        // Cut like a kill: whatever was on its way stays on its way.
        tokio::select! {
            done = copy.catch_up(Walk::Append, &told) => { done.unwrap(); }
            () = enough.notified() => {}
        }
        let clock = Arc::new(MovableClock::at(3000));
        let text = setup_text(Store::open(&target(&database), &[HOUSE], clock).await);
        assert!(text.contains("copy into this database is not finished"), "{text}");
    }
    agree(&copied(&source, &database).await);
    assert!(matches!(begin(&source, &database).await.unwrap(), Begun::Finished(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_written_to_a_finished_copy_is_never_undone_by_a_late_one() {
    let (source, database) = (source().await, postgres::required());
    source.write(vec![person("one", None)]).await.unwrap();
    let late = copy(&source, &database).await;
    agree(&copied(&source, &database).await);
    postgres::execute(&database.direct, "update people set name = 'younger'");
    let text = late.last(&|_, _| ()).await.unwrap_err().to_string();
    assert!(text.contains("has finished this copy"), "{text}");
    assert_eq!(postgres::rows(&database.direct, "select name from people"), ["younger"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_target_with_anything_else_in_it_is_refused_and_stays_as_it_is() {
    let source = source().await;
    source.write(vec![person("one", None)]).await.unwrap();
    let other = source_of(1001).await;
    let strange = postgres::required();
    postgres::execute(&strange.direct, "create table invoices (id uuid)");
    let used = postgres::required();
    let clock = || Arc::new(MovableClock::at(5));
    drop(Store::open(&target(&used), &[HOUSE], clock()).await.unwrap());
    postgres::execute(&used.direct, "insert into people (name) values ('theirs')");
    let taken = postgres::required();
    other.write(vec![person("theirs", None)]).await.unwrap();
    copied(&other, &taken).await;
    for (database, why) in [(strange, "invoices"), (used, "people has rows"), (taken, "another installation")]
    {
        let text = begin(&source, &database).await.unwrap_err().to_string();
        assert!(text.contains("not empty") && text.contains(why), "{text}");
    }
    let ready = postgres::required();
    drop(Store::open(&target(&ready), &[HOUSE], clock()).await.unwrap());
    agree(&copied(&source, &ready).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_of_a_table_that_only_grows_is_never_replaced() {
    let (source, database) = (source().await, postgres::required());
    source.write(vec![person("one", None), grow(1)]).await.unwrap();
    let copy = copy(&source, &database).await;
    copy.catch_up(Walk::Append, &|_, _| ()).await.unwrap();
    postgres::execute(&database.direct, "insert into growth (id, person, note) values (9, 1, 'foreign')");
    let text = copy.last(&|_, _| ()).await.unwrap_err().to_string();
    assert!(text.contains("growth has rows that the source does not have"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_damaged_row_of_the_target_is_found_and_mended() {
    let (source, database) = (source().await, postgres::required());
    source.write((0..1500).map(|n| person(&format!("p{n}"), None)).collect()).await.unwrap();
    let copy = copy(&source, &database).await;
    copy.catch_up(Walk::Append, &|_, _| ()).await.unwrap();
    let damage = "update people set money = money + 0.000001 where id = 700; delete from people where id = 1500; insert into people (id, name) values (1600, 'surplus')";
    postgres::execute(&database.direct, damage);
    let tallies = copy.last(&|_, _| ()).await.unwrap();
    agree(&tallies);
    assert_eq!(tallies[0].written, 2);
}
