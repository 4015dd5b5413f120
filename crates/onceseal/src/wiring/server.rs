//! A house with a socket and its workers: recovery, announcements, export, reload. Started in an order in
//! which nothing is served before what a crash left was looked after, stopped in the reverse one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::supply::consumers::Payouts;
use certify::buffer::Flusher;
use certify::recovery::Recovery;
use relay::{Channel, Log, Relay, Telegram};
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use web::tls::Tls;
use web::{ServeSettings, Stopped};

use super::export::Export;
use super::keeper::Keeper;
use super::reload::Reload;
use super::scheduler::Scheduler;
use super::{
    House, Metrics, Surroundings, destinations, market, node, plain, public_url, sms, waker, withheld,
};
use crate::cli::api::{RunFile, Running};
use crate::config::secret::Layout;
use crate::config::settings::ArrivalMode;
use crate::config::supply::SmsSender;
use crate::config::{Config, Loaded, Places, endpoint};

/// A server that is ready to be run.
pub struct Server {
    /// The parts.
    pub house: House,
    /// Where it listens.
    pub address: SocketAddr,
    /// Base address for clients on this machine.
    pub base: String,
    router: axum::Router,
    listener: TcpListener,
    settings: ServeSettings,
    recovery: Recovery,
    flusher: Option<Flusher>,
    relay: relay::Handle,
    export: Export,
    scheduler: Option<Scheduler>,
    keeper: Option<Keeper>,
    tasks: Vec<JoinHandle<()>>,
    run_file: RunFile,
}

impl Server {
    /// Checks the sources, takes address and folder, recovers, starts the workers. Requests are answered
    /// once [`Server::run`] is called.
    ///
    /// # Errors
    /// Says which setting or part, why, and what to do.
    pub async fn start(places: Places, loaded: Loaded) -> Result<Self, String> {
        let endpoints = endpoint::all(&loaded)?;
        let config = &loaded.config;
        let mut channels = channels(config)?;
        let tls = tls(config)?;
        let (listener, address) = listen(config.server.listen).await?;
        let base = base(address, tls.is_some());
        let metrics = meters();
        let house = House::open(config, &public_url(config, &base), endpoints).await?;
        let plain = endpoint::plain_account(&loaded);
        plain::keep(plain, &house.visa).await?;
        recover(&house, plain).await?;
        house.visa.reached_at(node::address(address));
        let recovery = Recovery::start(&house.visa, config.storage.sync_after.0);
        let buffered = config.arrivals.mode == ArrivalMode::Buffered;
        let flusher = buffered.then(|| house.visa.buffer_arrivals());
        if let Some(supply) = &house.supply {
            begin(supply).await?;
            channels.extend(codes(config, &house)?);
            channels.extend(payouts(config, supply)?);
            channels.push(Arc::<supply::consumers::Statements>::clone(&supply.statements));
        }
        let relay = Relay::start(
            house.visa.door().clone(),
            Arc::clone(&house.clock),
            channels,
            relay::Settings { quick: config.supply.outbox_quick_retries, ..relay::Settings::default() },
        );
        let export = Export::start(Arc::clone(&house.visa), &config.storage.folder);
        let rebuild = Some(export.rebuild());
        let interval = config.supply.scheduler_interval.0;
        let scheduler = house
            .supply
            .as_ref()
            .map(|supply| Scheduler::start(supply.door.clone(), Arc::clone(&supply.house), interval));
        let keeper = house.supply.as_ref().map(|supply| Keeper::start(Arc::clone(supply)));
        let around = Surroundings { metrics: metrics.clone(), nudge: Some(relay.nudger()), rebuild };
        let router = house.router(config, around)?;
        let (router, waker) = waker::wake(traced(router, config), relay.nudger());
        let run_file = tell(&house, &base, config)?;
        let settings = ServeSettings {
            max_connections: usize::try_from(config.server.max_connections).unwrap_or(usize::MAX),
            tls: tls.clone(),
            metrics,
            ..ServeSettings::default()
        };
        let (visa, lines) = (Arc::clone(&house.visa), withheld::of(&house));
        let reload = Reload { places, loaded, visa, tls }
            .start()
            .map_err(|cause| format!("no signal handler: {cause}"))?;
        Ok(Self {
            house,
            router,
            address,
            base,
            listener,
            settings,
            recovery,
            flusher,
            relay,
            export,
            scheduler,
            keeper,
            tasks: [reload, waker].into_iter().chain(lines).collect(),
            run_file,
        })
    }

    /// Wakes the announcements at once instead of at their next look.
    pub fn nudge(&self) -> relay::Nudge {
        self.relay.nudger()
    }

    /// Serves until `stop` is there, then ends everything in order.
    ///
    /// # Errors
    /// What the listener can't recover from.
    pub async fn run<F>(self, stop: F) -> std::io::Result<Stopped>
    where
        F: Future<Output = ()> + Send,
    {
        let served = web::serve(self.listener, self.router, self.settings, stop).await;
        self.tasks.iter().for_each(JoinHandle::abort);
        if let Some(scheduler) = self.scheduler {
            scheduler.stop().await;
        }
        if let Some(keeper) = self.keeper {
            keeper.stop().await;
        }
        self.relay.stop().await;
        self.export.stop().await;
        self.recovery.stop().await;
        if let Some(flusher) = self.flusher {
            flusher.stop().await;
        }
        drop(self.run_file);
        served
    }
}

/// Takes the address.
async fn listen(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|cause| format!("server.listen {listen}: {cause}; another program may have it"))?;
    let address = listener.local_addr().map_err(|cause| format!("server.listen {listen}: {cause}"))?;
    Ok((listener, address))
}

/// Looks after what a crash left.
async fn recover(house: &House, plain: Option<&str>) -> Result<(), String> {
    let swept = house.visa.recover_at_start().await.map_err(|cause| cause.to_string())?;
    tracing::info!(
        rebuilt = swept.rebuilt,
        orphaned = swept.orphaned,
        plain_refs = plain,
        "recovered_at_start"
    );
    Ok(())
}

/// Tells commands on this machine how to reach the server.
fn tell(house: &House, base: &str, config: &Config) -> Result<RunFile, String> {
    let running =
        Running { address: base.to_owned(), token: house.token.expose().to_owned(), pid: std::process::id() };
    let written = running.write(&config.storage.folder);
    written.map_err(|cause| format!("storage.folder: run/server.json can't be written: {cause}"))
}

/// What the supply side needs before its first request: the platform's own accounts.
async fn begin(supply: &web::supply::Supply) -> Result<(), String> {
    let seeded = ::supply::platform::seed(&supply.door, supply.house.policy.currency).await;
    match seeded {
        Ok(()) => Ok(()),
        // Fenced, it only reads; whoever moves the installation started it.
        Err(door::Failure::Store(store::Error::Fenced)) => Ok(()),
        Err(cause) => Err(format!("the platform's accounts can't be opened: {cause}")),
    }
}

/// The channel of SMS codes, where somebody sends them.
fn codes(config: &Config, house: &House) -> Result<Option<Arc<dyn Channel>>, String> {
    let (Some(supply), Some(sender)) = (&house.supply, sms::sender(config)?) else { return Ok(None) };
    let Some(codes) = &supply.house.keys.sms else { return Ok(None) };
    let removed = config.supply.sms.removes_repeats || config.supply.sms.sender == SmsSender::Development;
    Ok(Some(Arc::new(sms::Codes {
        sender,
        repeats: if removed { relay::Repeats::Removed } else { relay::Repeats::Shown },
        codes: Arc::clone(codes),
        custody: supply.house.keys.custody.clone(),
        store: supply.door.store().clone(),
        clock: Arc::clone(&house.clock),
    })))
}

/// The channel of payouts, where a service pays.
fn payouts(config: &Config, supply: &web::supply::Supply) -> Result<Option<Arc<dyn Channel>>, String> {
    let Some(service) = market::payouts(config)? else { return Ok(None) };
    Ok(Some(Arc::new(Payouts {
        door: supply.door.clone(),
        house: Arc::clone(&supply.house),
        service,
        key_life: Duration::from_secs(3600 * u64::from(config.supply.payout.key_life_hours)),
    })))
}

/// Requests become parts of their callers' traces where traces are exported.
fn traced(router: axum::Router, config: &Config) -> axum::Router {
    match &config.telemetry.endpoint {
        #[cfg(feature = "otel")]
        Some(_) => crate::telemetry::carry(router),
        // Without the feature the setting was refused.
        _ => router,
    }
}

/// The channels that are named; an unnamed one would send what nobody asked for.
fn channels(config: &Config) -> Result<Vec<Arc<dyn Channel>>, String> {
    let destinations = destinations(config);
    let named = |name: &str| destinations.iter().any(|one| one == name);
    let mut channels: Vec<Arc<dyn Channel>> = Vec::new();
    if named("log") {
        channels.push(Arc::new(Log { alerts: Some(market::ALERTS) }));
    }
    if let Some(settings) = config.announce.telegram.as_ref().filter(|_| named("telegram")) {
        let fail = |cause: String| format!("announce.telegram: {cause}");
        let token = settings.token.read(Layout::Line).map_err(|cause| fail(format!("token: {cause}")))?;
        let token = SecretString::from(token.expose().to_owned());
        let mut telegram = relay::telegram::Settings::new(token, settings.chat_id.to_string());
        telegram.base_url.clone_from(&settings.base_url);
        channels.push(Arc::new(Telegram::new(telegram).map_err(|cause| fail(cause.to_string()))?));
    }
    Ok(channels)
}

fn tls(config: &Config) -> Result<Option<Arc<Tls>>, String> {
    let Some(files) = &config.server.tls else { return Ok(None) };
    let tls = Tls::open(files.certificate.clone(), files.key.clone()).map_err(|cause| cause.to_string())?;
    Ok(Some(Arc::new(tls)))
}

/// How a client on this machine reaches the listener.
fn base(address: SocketAddr, tls: bool) -> String {
    let mut reached = address;
    if address.ip().is_unspecified() {
        reached.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("{}://{reached}", if tls { "https" } else { "http" })
}

/// The process' meters. `None` for a second server in one process: the first has them.
fn meters() -> Option<Metrics> {
    let recorder = web::recorder().ok()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).ok()?;
    Some(handle)
}
