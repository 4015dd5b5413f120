//! What people want of the supply side, each under a key of its own, and what must stand in the tables once it is
//! done. Not here: who wants what when (`steps`).

use supply::packages::{BatchPrice, Item, Publish};
use supply::settlements::{Cancel, Complete, Fail, Reject, Return, Start, Withdraw};

use super::Market;
use super::counter::Counter;
use super::mount::Mount;
use super::stock::{DRAFTS, MISSING, ON_SALE};

/// What keys begin with.
pub(super) const PREFIX: &str = "sim-errand-";
/// Where the payout goes.
const PHONE: &str = "13800000000";

/// An errand; its numbers tell apart those of one kind, or name what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Errand {
    Mount(u64),
    Publish(i64, u64),
    Batch(u64),
    Withdraw(u64),
    Cancel(i64, u64),
    Start(i64),
    Complete(i64),
    Fail(i64),
    Reject(i64),
    Return(i64),
}

/// Who has an errand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Operator,
    Staff,
}

/// What an errand leaves behind when it is done, beside its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traces {
    /// Its audit event.
    pub(super) event: &'static str,
    /// What the outbox tells, one of these.
    pub(super) told: &'static [&'static str],
    /// What is posted.
    pub(super) journal: Option<&'static str>,
}

impl Errand {
    /// First word of its outcomes.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Mount(_) => "mount",
            Self::Publish(..) => "publish",
            Self::Batch(_) => "batch",
            Self::Withdraw(_) => "withdraw",
            Self::Cancel(..) => "cancel",
            Self::Start(_) => "start",
            Self::Complete(_) => "complete",
            Self::Fail(_) => "fail",
            Self::Reject(_) => "reject",
            Self::Return(_) => "return",
        }
    }

    /// Its key in histories and traces.
    pub(super) fn name(self) -> String {
        let word = self.word();
        match self {
            Self::Mount(nth) | Self::Batch(nth) | Self::Withdraw(nth) => format!("{word}-{nth}"),
            Self::Publish(id, nth) | Self::Cancel(id, nth) => format!("{word}-{id}-{nth}"),
            Self::Start(id) | Self::Complete(id) | Self::Fail(id) | Self::Reject(id) | Self::Return(id) => {
                format!("{word}-{id}")
            }
        }
    }

    /// Its idempotency key.
    pub(super) fn key(self) -> String {
        format!("{PREFIX}{}", self.name())
    }

    /// Name of the errand with this idempotency key.
    pub(super) fn name_of(key: &str) -> Option<&str> {
        key.strip_prefix(PREFIX)
    }

    /// What it is about, where it is about something that is there.
    pub(super) const fn object(self) -> Option<i64> {
        match self {
            Self::Mount(_) | Self::Batch(_) | Self::Withdraw(_) => None,
            Self::Publish(id, _)
            | Self::Cancel(id, _)
            | Self::Start(id)
            | Self::Complete(id)
            | Self::Fail(id)
            | Self::Reject(id)
            | Self::Return(id) => Some(id),
        }
    }

    pub(super) const fn who(self) -> Who {
        match self {
            Self::Mount(_) | Self::Publish(..) | Self::Batch(_) | Self::Withdraw(_) | Self::Cancel(..) => {
                Who::Operator
            }
            Self::Start(_) | Self::Complete(_) | Self::Fail(_) | Self::Reject(_) | Self::Return(_) => {
                Who::Staff
            }
        }
    }

    pub(super) const fn traces(self) -> Traces {
        let (event, told, journal): (_, &'static [&'static str], _) = match self {
            Self::Mount(_) => ("supply.account.create", &["supply.account.create.succeeded"], None),
            Self::Publish(..) => ("supply.package.publish", &["supply.package.publish.succeeded"], None),
            Self::Batch(_) => (
                "supply.package.price.batch_update",
                &[
                    "supply.package.batch_price.succeeded",
                    "supply.package.batch_price.partial",
                    "supply.package.batch_price.failed",
                ],
                None,
            ),
            Self::Withdraw(_) => (
                "supply.settlement.withdraw.create",
                &["supply.settlement.withdraw.succeeded"],
                Some("J-WITHDRAW"),
            ),
            Self::Cancel(..) => (
                "supply.settlement.withdraw.cancel",
                &["supply.settlement.cancel.succeeded"],
                Some("J-CANCEL"),
            ),
            Self::Start(_) => {
                ("supply.settlement.payout.start", &["supply.settlement.payout_start.succeeded"], None)
            }
            Self::Complete(_) => (
                "supply.settlement.payout.complete",
                &["supply.settlement.payout.succeeded"],
                Some("J-PAYOUT-OK"),
            ),
            Self::Fail(_) => {
                ("supply.settlement.payout.fail", &["supply.settlement.payout.failed"], Some("J-PAYOUT-FAIL"))
            }
            Self::Reject(_) => (
                "supply.settlement.risk_reject",
                &["supply.settlement.risk_reject.succeeded"],
                Some("J-CANCEL"),
            ),
            Self::Return(_) => (
                "supply.settlement.payout.return",
                &["supply.settlement.payout_return.succeeded"],
                Some("J-PAYOUT-RETURN"),
            ),
        };
        Traces { event, told, journal }
    }

    /// Sends it; `payload` is 1 or 2.
    pub(super) fn send(self, market: &Market, at: &Counter<'_>, payload: i64) {
        let id = self.object().unwrap_or(0);
        match self {
            // Of three mounts two are of one credential.
            Self::Mount(nth) => {
                let alias = format!("spare {payload}");
                at.submit(
                    self,
                    payload,
                    Mount::new(nth % 2, alias, (&market.foreign, &at.shop.node.process)),
                );
            }
            Self::Publish(..) => at.submit(self, payload, Publish { package_id: id }),
            Self::Batch(nth) => match BatchPrice::of(&at.shop.house.policy, items(nth, payload)) {
                Ok(batch) => at.submit(self, payload, batch),
                Err(refusal) => market.world.find(format!("a batch is none: {refusal:?}")),
            },
            Self::Withdraw(_) => {
                let amount = if payload == 1 { "40.00" } else { "170" };
                let code = market.newest_code(&at.shop.house);
                let account = PHONE.into();
                at.submit(
                    self,
                    payload,
                    Withdraw { amount: amount.into(), method: "alipay".into(), account, code },
                );
            }
            Self::Cancel(..) => at.submit(self, payload, Cancel { settlement_id: id }),
            Self::Start(_) => at.submit(self, payload, Start { settlement_id: id }),
            Self::Complete(_) => {
                let payment_transaction_id = format!("T-{payload}");
                at.submit(self, payload, Complete { settlement_id: id, payment_transaction_id });
            }
            Self::Fail(_) => {
                let failure_code = format!("closed_{payload}");
                at.submit(self, payload, Fail { settlement_id: id, failure_code });
            }
            Self::Reject(_) => {
                let reason = format!("reason {payload}");
                at.submit(self, payload, Reject { settlement_id: id, reason });
            }
            Self::Return(_) => at.submit(self, payload, Return { settlement_id: id }),
        }
    }
}

/// New prices: of all packages; of some, and of one that there is not; of none that there is.
fn items(nth: u64, payload: i64) -> Vec<Item> {
    let [first, second, third, fourth] = ON_SALE;
    let [draft, other] = DRAFTS;
    let [missing, none] = MISSING;
    let ids: &[i64] = match nth {
        0 => &[third, first, draft, fourth, second, other],
        1 => &[second, missing, draft, first],
        _ => &[none, missing],
    };
    let price = |base: u64| (base + 2 * nth).saturating_add_signed(payload).to_string();
    ids.iter().map(|id| Item::parse(*id, &price(8), &price(32))).collect()
}
