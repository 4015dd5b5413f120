//! A session of its own that looks at the supplier all the time, in one statement and so at one instant: open
//! settlements, and whether what it holds is what it earned less what it was paid.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::services::session::Session;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(5);
/// Wrong looks that are told one by one.
const TOLD_MAX: usize = 10;

/// What is wrong at an instant for the supplier of the tenant `$1`; nothing as a rule.
const LOOK: &str = "select concat_ws('; ',
  case when x.open > 1 then x.open || ' settlements open at once' end,
  case when x.frozen <> x.asked then 'frozen ' || x.frozen || ', asked for ' || x.asked end,
  case when x.held + x.paid <> x.earned
    then 'earned ' || x.earned || ', paid ' || x.paid || ', left ' || x.held end)
from (select
  (select count(*) from supply_settlements t where t.user_id = s.user_id and t.status in ('pending', 'processing')) as open,
  (select coalesce(sum(t.total_amount), 0) from supply_settlements t where t.user_id = s.user_id and t.status in ('pending', 'processing')) as asked,
  (select coalesce(sum(t.total_amount), 0) from supply_settlements t where t.user_id = s.user_id and t.status = 'completed') as paid,
  (select coalesce(sum(e.amount), 0) from supply_earnings e where e.user_id = s.user_id) as earned,
  (select sum(b.balance) from billing_accounts b where b.owner_type = 'supplier' and b.owner_id = s.user_id
    and b.account_code in ('supplier_pending', 'supplier_available', 'supplier_frozen')) as held,
  (select b.balance from billing_accounts b where b.owner_type = 'supplier' and b.owner_id = s.user_id
    and b.account_code = 'supplier_frozen') as frozen
  from supply_suppliers s where s.tenant_id = $1) x";

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) looks: u64,
    /// The longest time between two looks.
    pub(super) gap: Duration,
    pub(super) findings: Vec<String>,
}

/// A watching thread.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Seen>>,
}

impl Watch {
    /// Looks from now on.
    ///
    /// # Errors
    /// The database takes no session.
    pub(super) fn start(url: &str, tenant: i64) -> Result<Self> {
        let (over, url) = (Arc::new(AtomicBool::new(false)), url.to_owned());
        let ended = Arc::clone(&over);
        // A runtime of its own drives the session, which the caller's must not wait for.
        let thread = std::thread::spawn(move || {
            let session = Session::open(&url)?;
            looked(&session, &LOOK.replace("$1", &tenant.to_string()), &ended)
        });
        Ok(Self { over, thread })
    }

    /// Ends it.
    ///
    /// # Errors
    /// A look failed.
    pub(super) fn end(self) -> Result<Seen> {
        self.over.store(true, Ordering::SeqCst);
        let seen = self.thread.join().ok().context("the watching thread panicked")??;
        ensure!(seen.looks > 10, "only {} looks at the supplier", seen.looks);
        Ok(seen)
    }
}

fn looked(session: &Session, look: &str, over: &AtomicBool) -> Result<Seen> {
    let (mut seen, mut last) = (Seen::default(), Instant::now());
    while !over.load(Ordering::SeqCst) {
        let wrong = session.run(look)?;
        seen.looks += 1;
        seen.gap = seen.gap.max(last.elapsed());
        last = Instant::now();
        if !wrong.is_empty() && seen.findings.len() < TOLD_MAX {
            seen.findings.push(format!("look {}: {wrong}", seen.looks));
        }
        std::thread::park_timeout(EVERY);
    }
    Ok(seen)
}
