//! The product under load: a server on a database of its own, and the requests of each job.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use play::{Call, Market};
use tokio::runtime::Runtime;

use super::seed::{STEP, Seeded, WITHDRAWN};
use crate::lab::house::Database;
use crate::lab::market::Outside;
use crate::lab::{House, Server, Setup};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
    /// A supplier's first withdrawal.
    Withdraw,
    /// The same withdrawal again.
    Replay,
    /// A draft is published.
    Publish,
    /// Prices of 200 packages.
    BatchPrice,
}

impl Job {
    pub(super) const ALL: [Self; 4] = [Self::Withdraw, Self::Replay, Self::Publish, Self::BatchPrice];

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Withdraw => "withdraw",
            Self::Replay => "replay of a withdrawal",
            Self::Publish => "publish",
            Self::BatchPrice => "batch price, 200 items",
        }
    }

    /// The status of its success.
    pub(super) const fn expected(self) -> u16 {
        match self {
            Self::Withdraw | Self::Replay => 201,
            Self::Publish | Self::BatchPrice => 200,
        }
    }

    /// What tells its transactions in the server's log.
    pub(super) const fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Withdraw => &["into supply_settlements"],
            Self::Replay => &["into audit_events"],
            Self::Publish => &["update supply_packages"],
            Self::BatchPrice => {
                &["supply_idempotency_record", "supply_batch_items", "update supply_packages"]
            }
        }
    }

    /// The request of one copy of the supplier, laid out.
    pub(super) fn request(self, seeded: &Seeded, copy: usize) -> Result<Vec<u8>> {
        let moved = |id: i64| id + STEP * i64::try_from(copy).unwrap_or_default();
        let (path, body) = match self {
            Self::Withdraw | Self::Replay => (
                "/api/v1/supply/settlements/withdraw".to_owned(),
                format!(
                    r#"{{"withdraw_amount":{WITHDRAWN},"payment_method":"alipay","payment_account":"13800000000","sms_code":"{}"}}"#,
                    seeded.code
                ),
            ),
            Self::Publish => {
                (format!("/api/v1/supply/packages/{}/publish", moved(seeded.draft)), String::new())
            }
            Self::BatchPrice => ("/api/v1/supply/packages/batch-price".to_owned(), {
                let item = |id: &i64| {
                    let id = moved(*id);
                    format!(r#"{{"package_id":{id},"price_per_1m_input":9,"price_per_1m_output":33}}"#)
                };
                let items: Vec<String> = seeded.packages.iter().map(item).collect();
                format!(r#"{{"items":[{}]}}"#, items.join(","))
            }),
        };
        let token = seeded.tokens.get(copy).context("no token of this copy")?;
        // A replay has the withdrawal's key.
        let job = if self == Self::Replay { Self::Withdraw } else { self };
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n\
             x-request-id: 6f1c0000-0000-4000-8000-{copy:012}\r\nidempotency-key: bench-{job:?}-{copy:012}\r\n\
             {kind}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(request.into_bytes())
    }
}

/// What a server does beside answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Earnings are released at once.
    Seeding,
    /// Nothing comes due: withdrawals stay as they were made.
    Measuring,
}

/// A server on the database at `url` in a new house at `folder`, with the keys of `first` where there is one.
///
/// # Errors
/// It doesn't start.
pub(super) fn start(
    program: &Path,
    (folder, first): (&Path, Option<&House>),
    outside: &Outside,
    (url, pace): (&str, Pace),
) -> Result<(House, Server)> {
    let database = Some(Database::at(url, "")?);
    let mut setup = Setup {
        database,
        level: "error",
        ..outside.setup("sms_ttl_seconds = 3600\ncalls_per_minute = 1000000\n")
    };
    if pace == Pace::Measuring {
        let text = setup.supply.replace("review_seconds = 0", "review_seconds = 3600");
        setup.supply = text.replace("interval = \"200ms\"", "interval = \"10m\"");
    }
    let house = House::make(folder, &setup)?;
    match first {
        None => crate::lab::market::keys(&house, program)?,
        Some(first) => crate::lab::nodes::copy_keys(first, &house)?,
    }
    let server = house.start(program)?;
    Ok((house, server))
}

/// The answer to the original's withdrawal.
///
/// # Errors
/// No answer, or a refusal.
pub(super) fn answer(market: &Market, seeded: &Seeded, runtime: &Runtime) -> Result<Vec<u8>> {
    let path = "/api/v1/supply/settlements?page_size=1";
    let token = seeded.tokens.get(1).context("no token of a copy")?;
    let answer =
        runtime.block_on(market.client.send(&Call::get(path, token))).map_err(|cause| anyhow!(cause))?;
    answer.done().map(|answer| answer.body).map_err(|cause| anyhow!(cause))
}

/// Processor time of a program so far, in microseconds (`/proc/PID/stat`, fields 14 and 15, hundredths of a second).
///
/// # Errors
/// It is gone.
pub(super) fn processor_time(pid: u32) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text.rsplit_once(") ").context("/proc/PID/stat")?;
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Ok(ticks.sum::<u64>() * 10_000)
}
