//! Cuts around a COMMIT on a PostgreSQL server, where the test command started one; without it the
//! protocol is tested with bytes made by hand (`commits`).

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use testkit::postgres::{self, Database};
use testkit::proxy::{Fault, Moment, Proxy};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

use crate::scene::bounded;

/// Long against a statement, short against a patient reader.
const LATE: Duration = Duration::from_secs(2);

struct Scene {
    proxy: Proxy,
    through: Client,
    beside: Client,
}

impl Scene {
    async fn new(database: &Database) -> Self {
        let config: Config = database.direct.parse().unwrap();
        let proxy = Proxy::start(target(&config)).unwrap();
        let mut through = Config::new();
        through.host("127.0.0.1").port(proxy.address().port());
        through.user(config.get_user().unwrap()).dbname(config.get_dbname().unwrap());
        if let Some(password) = config.get_password() {
            through.password(password);
        }
        let beside = client(&config).await;
        beside.batch_execute("create table note (id bigint primary key)").await.unwrap();
        Self { through: client(&through).await, proxy, beside }
    }

    /// Takes a lock, writes a row, and commits in one of three ways; whether the client was told so.
    async fn written(&self, way: usize) -> bool {
        let commit = self.through.prepare("commit").await.unwrap();
        let write = "begin; select pg_advisory_xact_lock(7); insert into note values (1)";
        match way {
            0 => self.through.batch_execute(&format!("{write}; commit")).await.is_ok(),
            1 => {
                self.through.batch_execute(write).await.unwrap();
                self.through.batch_execute("COMMIT").await.is_ok()
            }
            _ => {
                self.through.batch_execute(write).await.unwrap();
                self.through.execute(&commit, &[]).await.is_ok()
            }
        }
    }

    async fn rows(&self, sql: &str) -> i64 {
        bounded(self.beside.query_one(sql, &[])).await.unwrap().get(0)
    }
}

const LOOK: &str = "select count(*) from note";

fn target(config: &Config) -> SocketAddr {
    let host = match &config.get_hosts()[0] {
        Host::Tcp(name) => name.clone(),
        Host::Unix(_) => "127.0.0.1".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    (host, port).to_socket_addrs().unwrap().next().unwrap()
}

async fn client(config: &Config) -> Client {
    let (client, wire) = bounded(config.connect(NoTls)).await.unwrap();
    tokio::spawn(wire);
    client
}

#[tokio::test]
async fn a_commit_that_is_not_sent_did_not_happen() {
    for way in 0..3 {
        let Some(database) = postgres::fresh() else { return };
        let scene = Scene::new(&database).await;
        let cut = scene.proxy.set(Fault::Commit(Moment::Before));
        assert!(!bounded(scene.written(way)).await);
        // The lock is free when the server has given the transaction up.
        scene.beside.batch_execute("begin; select pg_advisory_xact_lock(7); commit").await.unwrap();
        assert_eq!((scene.rows(LOOK).await, cut.fired()), (0, 1), "way {way}");
    }
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_did_happen() {
    for way in 0..3 {
        let Some(database) = postgres::fresh() else { return };
        let scene = Scene::new(&database).await;
        let cut = scene.proxy.set(Fault::Commit(Moment::After));
        assert!(!bounded(scene.written(way)).await);
        assert_eq!((scene.rows(LOOK).await, cut.fired()), (1, 1), "way {way}");
    }
}

#[tokio::test]
async fn a_late_commit_is_missed_by_who_looks_without_the_lock_and_seen_by_who_waits_for_it() {
    let missed = async |way| {
        let Some(database) = postgres::fresh() else { return };
        let scene = Scene::new(&database).await;
        let cut = scene.proxy.set(Fault::Commit(Moment::Late(LATE)));
        assert!(!bounded(scene.written(way)).await);
        assert_eq!(scene.rows(LOOK).await, 0, "way {way}");
        scene.beside.batch_execute("begin; select pg_advisory_xact_lock(7)").await.unwrap();
        assert_eq!((scene.rows(LOOK).await, cut.fired()), (1, 1), "way {way}");
    };
    tokio::join!(missed(1), missed(2));
}

#[tokio::test]
async fn the_commit_of_an_aborted_transaction_answers_and_is_not_cut() {
    let Some(database) = postgres::fresh() else { return };
    let scene = Scene::new(&database).await;
    let cut = scene.proxy.set(Fault::Commit(Moment::After));
    assert!(scene.through.batch_execute("begin; select 1/0").await.is_err());
    bounded(scene.through.batch_execute("commit")).await.unwrap();
    assert_eq!((cut.fired(), scene.proxy.commits()), (0, 1));
    bounded(scene.written(0)).await;
    assert_eq!(cut.fired(), 1);
}
