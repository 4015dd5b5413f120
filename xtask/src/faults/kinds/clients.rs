//! Senders that give up at any moment: connected only, half a request sent, the answer not waited for. What
//! they began goes on or is dropped; nothing of it is left in the database's sessions.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use testkit::Seeded;

use super::Kind;
use crate::faults::load::{Fired, Load};
use crate::faults::scene::{Played, struck};
use crate::faults::site::{CONNECTIONS, NODES, Site};

pub(super) const KINDS: &[Kind] =
    &[Kind { name: "clients-give-up", about: "10,000 clients go away at random moments", play: give_up }];

/// Clients that give up.
const CLIENTS: usize = 10_000;
/// Of them at once.
const AT_ONCE: usize = 48;
/// Longest wait of one for its answer, in milliseconds.
const WAIT_MAX: u64 = 60;
/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// When a client gives up.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Connected,
    /// After so many of a hundred parts of its request.
    Sending(u64),
    /// So many milliseconds after it sent all.
    Waiting(u64),
    /// After so many bytes of the answer.
    Reading(u64),
}

const MOMENTS: usize = 4;

fn give_up(site: &mut Site) -> Result<Played> {
    struck(site, |site, load| {
        let counts = abandoned(site, load)?;
        let [connected, sending, waiting, reading] = counts;
        let mut fired = Fired { proof: String::new(), in_flight: load.in_flight(), ghosts: 0 };
        // A pool that had lost a connection would never have all of them again.
        load.fired(|| {
            let sessions: usize = site.ask(SESSIONS)?.parse()?;
            Ok((sessions == NODES * CONNECTIONS).then(String::new))
        })?;
        fired.proof = format!(
            "{CLIENTS} clients went away ({connected} when connected, {sending} while sending, {waiting} while \
             waiting, {reading} while reading), all {} connections of the pools at work afterwards",
            NODES * CONNECTIONS
        );
        Ok(fired)
    })
}

const SESSIONS: &str =
    "select count(*) from pg_stat_activity where usename = 'onceseal' and backend_type = 'client backend'";

/// Lets all clients come and go; how many gave up at each kind of moment.
fn abandoned(site: &Site, load: &Load) -> Result<[usize; MOMENTS]> {
    let (next, counts) = (AtomicUsize::new(0), Mutex::new([0; MOMENTS]));
    let client = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= CLIENTS {
                return Ok(());
            }
            let moment = moment(&mut Seeded::new(u64::try_from(number)?));
            let delivery = load.fresh()?;
            let request = delivery.request()?;
            load.abandon(&delivery, || gone(site.places.address(number), &request, moment))?;
            let at = match moment {
                Moment::Connected => 0,
                Moment::Sending(_) => 1,
                Moment::Waiting(_) => 2,
                Moment::Reading(_) => 3,
            };
            let mut counts = counts.lock().map_err(|_| anyhow::anyhow!("a client panicked"))?;
            if let Some(count) = counts.get_mut(at) {
                *count += 1;
            }
        }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(client)).collect();
        clients.into_iter().try_for_each(|client| client.join().ok().context("a client panicked")?)
    })?;
    counts.into_inner().map_err(|_| anyhow::anyhow!("a client panicked"))
}

fn moment(choice: &mut Seeded) -> Moment {
    match choice.below(10) {
        0 => Moment::Connected,
        1..=3 => Moment::Sending(choice.below(100)),
        4..=7 => Moment::Waiting(choice.below(WAIT_MAX)),
        _ => Moment::Reading(1 + choice.below(200)),
    }
}

/// Comes, and goes at the moment.
fn gone(to: SocketAddr, request: &[u8], moment: Moment) -> Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, CONNECT_WITHIN)?;
    stream.set_read_timeout(Some(CONNECT_WITHIN))?;
    let share = match moment {
        Moment::Connected => 0,
        Moment::Sending(share) => request.len() * usize::try_from(share)? / 100,
        Moment::Waiting(_) | Moment::Reading(_) => request.len(),
    };
    // The server may have gone first.
    let _ = stream.write_all(request.get(..share).unwrap_or(request));
    match moment {
        Moment::Waiting(millis) => std::thread::park_timeout(Duration::from_millis(millis)),
        Moment::Reading(bytes) => {
            let mut some = vec![0; usize::try_from(bytes)?];
            let _ = stream.read(&mut some);
        }
        Moment::Connected | Moment::Sending(_) => {}
    }
    Ok(())
}
