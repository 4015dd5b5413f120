//! The race on one PostgreSQL: several servers, sends spread over all of them, one server after the other
//! killed and started again meanwhile. A sender that was not cut comes again until it is told 2xx, as real
//! ones do: of each change it must then have the one result.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

use super::drive::{self, Sending};
use super::judge::{FORMS, Verdict};
use super::plan::Plan;
use super::{Bug, Race, await_announcements, plant};
use crate::canary;
use crate::lab::house::Database;
use crate::lab::nodes::{Node, Nodes};
use crate::lab::record::Records;
use crate::lab::{self, Setup};
use crate::services::postgres::{self, Postgres, USER};
use crate::services::psql::Psql;

/// Tries of a sender: more than a dead server and its successor's start can use up.
const TRIES_MAX: usize = 40;
/// From one kill to the next.
const KILL_EVERY: Duration = Duration::from_millis(2_500);
/// Kills that a run has to have had to be worth anything.
const KILLS_MIN: usize = 3;
/// Every uncut send is answered with links.
const LINKED: usize = 100;
/// How long a session may hold something after the last answer: longer than the engine lets a dead node's
/// session live (`postgres.idle_timeout`).
const AT_REST_WITHIN: Duration = Duration::from_secs(15);

/// Sends are spread over the nodes; who comes again goes to the next one.
impl Sending for Nodes {
    fn address(&self, number: usize, again: usize) -> SocketAddr {
        self.node(number + again).address()
    }

    fn tries(&self) -> usize {
        TRIES_MAX
    }
}

/// Races on a private PostgreSQL.
///
/// # Errors
/// A server doesn't start; what is wrong with the results is in the verdict.
pub(super) fn raced(asked: &Race, program: &Path, bug: Option<Bug>) -> anyhow::Result<Verdict> {
    let folder = lab::scratch("race")?;
    let server = Postgres::launch(&postgres::Options::default())?;
    let database = Database::at(&server.url(USER), "")?;
    let databases = vec![database; usize::from(asked.nodes)];
    let setup = Setup { passphrase: false, level: "info", ..asked.setup() };
    let nodes = Nodes::start_with(program, &folder, &setup, databases, |command| plant(command, bug))?;
    let plan = Plan::new(asked.seed, asked.changes)?;
    println!("{}; {} servers on one PostgreSQL", plan.summary(), nodes.count());
    let since = Instant::now();
    let (told, kills) = driven(&plan, &nodes, bug)?;
    println!("{}; {kills} servers killed and started again", drive::summary(&told, since.elapsed()));
    let psql = Psql::at(&server.url(USER))?;
    let mut verdict = Verdict::default();
    if kills < KILLS_MIN {
        verdict.find(format!("only {kills} servers were killed; send more changes"));
    }
    let waited = Instant::now();
    let announced = await_announcements(|| Records::at(&psql));
    verdict.stuck(stuck(&psql, announced)?);
    verdict.line(format!("nothing was under way {} ms after the last answer", waited.elapsed().as_millis()));
    verdict.answers(&plan, &told, LINKED);
    let records = Records::at(&psql)?;
    alike(&nodes, &records, &mut verdict)?;
    // Now every node has all files, also of certificates that another one made.
    for node in nodes.iter() {
        node.ask(|server| verdict.operator(server, &plan))?;
        verdict.checked(&mut node.house.command(program, &["check"]))?;
    }
    verdict.record(&records, &plan, &told);
    for node in nodes.iter() {
        unknown(&nodes, verdict.folder(&node.house.deliveries(), &records, &told)?, &mut verdict)?;
    }
    let logs = nodes.iter().map(Node::logs).collect::<anyhow::Result<Vec<_>>>()?.concat();
    let houses: Vec<_> = nodes.iter().map(|node| node.house.clone()).collect();
    nodes.stop()?;
    let mails: Vec<&str> = plan.events().map(|event| event.mail.as_str()).collect();
    for house in &houses {
        canary::leaks(house, &mails)?.into_iter().for_each(|leak| verdict.find(leak));
    }
    verdict.announced(&records, &logs)?;
    verdict.lines().for_each(|line| println!("{line}"));
    Ok(verdict)
}

/// Sends everything, while one server after the other is killed and started again.
fn driven(plan: &Plan, nodes: &Nodes, bug: Option<Bug>) -> anyhow::Result<(Vec<drive::Told>, usize)> {
    let (over, kills) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let killing = scope.spawn(|| -> anyhow::Result<()> {
            let mut next = Instant::now() + KILL_EVERY;
            while !over.load(Ordering::SeqCst) {
                if Instant::now() < next {
                    std::thread::park_timeout(Duration::from_millis(20));
                    continue;
                }
                next += KILL_EVERY;
                let node = nodes.node(kills.fetch_add(1, Ordering::SeqCst));
                node.kill9();
                node.start_with(|command| plant(command, bug)).context("a killed server doesn't start")?;
            }
            Ok(())
        });
        let told = drive::all(plan, nodes);
        over.store(true, Ordering::SeqCst);
        let killed = killing.join().ok().context("the killing thread panicked")?;
        killed.and(told)
    })
    .map(|told| (told, kills.load(Ordering::SeqCst)))
}

/// What did not come to an end.
fn stuck(psql: &Psql, announced: anyhow::Result<()>) -> anyhow::Result<Vec<String>> {
    let mut stuck: Vec<String> = announced.err().map(|cause| cause.to_string()).into_iter().collect();
    let since = Instant::now();
    let held = loop {
        let held = psql.ask(HELD)?;
        if held.is_empty() || since.elapsed() > AT_REST_WITHIN {
            break held;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    };
    stuck.extend(held.lines().map(|line| format!("held {AT_REST_WITHIN:?} after the last answer: {line}")));
    let open = psql
        .ask("select ref, status from certify_events where status in ('processing', 'failed', 'orphaned')")?;
    stuck.extend(open.lines().map(|line| format!("an event without an end: {line}")));
    Ok(stuck)
}

/// Sessions in a transaction but for the asking one, and advisory locks, each with a line.
const HELD: &str = "select 'a session in a transaction: ' || state || ', ' || query from pg_stat_activity \
     where datname = current_database() and pid <> pg_backend_pid() and xact_start < now() - interval '1 s' \
     and backend_type = 'client backend' \
     union all select 'an advisory lock' from pg_locks l join pg_database d on d.oid = l.database \
     where d.datname = current_database() and l.locktype = 'advisory' and l.granted \
     and exists (select from pg_stat_activity a where a.pid = l.pid and a.xact_start < now() - interval '1 s')";

/// What a killed or slower node built of a second report, whose result is the first one's: a sweep removes it
/// in its own time, and nobody gives it out.
fn unknown(nodes: &Nodes, files: Vec<String>, verdict: &mut Verdict) -> anyhow::Result<()> {
    for file in files {
        for node in nodes.iter() {
            let answer = node.get(&format!("/d/{file}"))?;
            if answer.status != 404 {
                verdict
                    .find(format!("{file}: no record names this file, and it is answered {}", answer.status));
            }
        }
    }
    Ok(())
}

/// Every node gives the recorded bytes of every file, whoever made the certificate.
fn alike(nodes: &Nodes, records: &Records, verdict: &mut Verdict) -> anyhow::Result<()> {
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    for (number, node) in (1..).zip(nodes.iter()) {
        for certificate in &records.certificates {
            for (form, hash) in FORMS.iter().zip(&certificate.hashes) {
                let file = format!("{}.{form}", certificate.slug);
                let answer = node.get(&format!("/d/{file}"))?;
                if answer.status == 200 && hex::encode(Sha256::digest(&answer.body)) == *hash {
                    *given.entry(file).or_default() += 1;
                } else {
                    verdict.find(format!("{file}: node {number} gives other bytes ({})", answer.status));
                }
            }
        }
    }
    let alike = given.values().filter(|count| **count == nodes.count()).count();
    ensure!(!given.is_empty(), "no file was given at all");
    verdict.line(format!("{alike} files are byte for byte the same from all {} servers", nodes.count()));
    Ok(())
}
