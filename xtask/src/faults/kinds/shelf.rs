//! The store of files where it is a bucket: away, slow, deaf to nobody, asked twice. A proxy stands before
//! the tests' own server of S3's protocol.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use testkit::proxy::{Fault, Proxy, Twin, Way};

use super::Kind;
use crate::faults::load::{Fired, Load};
use crate::faults::scene::{Played, struck};
use crate::faults::site::Site;
use crate::lab::Build;

pub(super) const KINDS: &[Kind] = &[
    Kind { name: "s3-down", about: "the bucket's server is away for three seconds", play: down },
    Kind { name: "s3-late", about: "the bucket answers later than anybody waits", play: late },
    Kind {
        name: "s3-answers-lost",
        about: "the bucket does what it is asked, its answers are lost",
        play: lost,
    },
    Kind { name: "s3-twice", about: "each request to the bucket arrives twice", play: twice },
];

/// The bucket of the tests' server.
const BUCKET: &str = "onceseal-test";
const KEY: (&str, &str) = ("AKIALABFAULTS", "lab+s3/secret-1f7c9b20d4");
/// How long a fault that needs time stays on: longer than a node waits for a bucket's answer (`s3.timeout`
/// is 1 s here).
const LASTING: Duration = Duration::from_secs(3);

/// The tests' own server of S3's protocol, built where it is not.
///
/// # Errors
/// It doesn't build.
pub(in crate::faults) fn bucket_program() -> Result<PathBuf> {
    Build::Debug.example("certify", "s3_server")
}

/// The server of the bucket; killed when dropped.
struct Bucket {
    child: Child,
    address: SocketAddr,
}

impl Bucket {
    fn start(site: &Site) -> Result<Self> {
        let program = bucket_program()?;
        let folder = site.folder.join("s3");
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(program);
        command.arg("127.0.0.1:0").arg(&folder).args([KEY.0, KEY.1]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its standard output")?).read_line(&mut line)?;
        // From here on its drop ends the child.
        let mut bucket = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let place = line.rsplit_once('@').and_then(|(_, rest)| rest.split_once('/'));
        bucket.address = place.context("the bucket's server doesn't say where it listens")?.0.parse()?;
        Ok(bucket)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// With all nodes on a bucket behind a proxy.
fn bucketed(site: &mut Site, strike: impl FnOnce(&Load, &Proxy) -> Result<Fired>) -> Result<Played> {
    let bucket = Bucket::start(site)?;
    let proxy = Proxy::start(bucket.address)?;
    for node in site.nodes.iter() {
        node.house.secret("s3-id", KEY.0)?;
        node.house.secret("s3-secret", KEY.1)?;
    }
    let settings = [
        format!("storage.files=s3://{BUCKET}/lab"),
        format!("s3.endpoint=http://{}", proxy.address()),
        "s3.access_key={ file = \"secrets/s3-id\" }".into(),
        "s3.secret_key={ file = \"secrets/s3-secret\" }".into(),
        "s3.timeout=1s".into(),
    ];
    let flags = settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]).collect::<Vec<_>>();
    site.restart_nodes(|_| flags.clone())?;
    let played = struck(site, |_, load| strike(load, &proxy));
    site.restart_nodes(|_| Vec::new())?;
    played
}

/// On until it has fired often enough, and a while longer.
fn lasting(site: &mut Site, fault: Fault, (times, what): (u64, &str)) -> Result<Played> {
    bucketed(site, |load, proxy| {
        let in_flight = load.in_flight();
        let armed = proxy.set(fault);
        let mut fired = load.fired(|| Ok((armed.fired() >= times).then(String::new)))?;
        std::thread::park_timeout(LASTING);
        fired.proof = format!("{} {what}", armed.fired());
        fired.in_flight = fired.in_flight.max(in_flight);
        proxy.clear();
        Ok(fired)
    })
}

fn down(site: &mut Site) -> Result<Played> {
    bucketed(site, |load, proxy| {
        let in_flight = load.in_flight();
        let armed = proxy.set(Fault::Refuse);
        let cut = proxy.drop_all();
        let mut fired = load.fired(|| Ok((armed.fired() >= 20).then(String::new)))?;
        std::thread::park_timeout(LASTING);
        fired.proof = format!("{cut} connections to the bucket cut, {} refused", armed.fired());
        fired.in_flight = in_flight;
        proxy.clear();
        Ok(fired)
    })
}

fn late(site: &mut Site) -> Result<Played> {
    lasting(site, Fault::Hold(Way::ToClient), (8, "answers of the bucket held for three seconds"))
}

fn lost(site: &mut Site) -> Result<Played> {
    lasting(site, Fault::CutAfter { way: Way::ToClient, bytes: 20 }, (20, "answers of the bucket cut off"))
}

fn twice(site: &mut Site) -> Result<Played> {
    lasting(site, Fault::Twice(Twin::AtOnce), (60, "requests to the bucket doubled"))
}
