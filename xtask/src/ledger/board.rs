//! What the writers know of the market: who trades, and what answers told of orders, settlements and packages. It
//! aims commands; whether one hits is the market's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value as Json;

use super::command::{By, Command, Sent, What};

/// How much of anything is remembered.
const KEPT: usize = 600;

/// A supplier.
#[derive(Clone, Debug)]
pub(super) struct Seller {
    pub(super) tenant: i64,
    pub(super) user: i64,
    pub(super) operator: i64,
    pub(super) accounts: Vec<i64>,
}

/// A buyer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) tenant: i64,
    pub(super) user: i64,
    pub(super) key: i64,
}

/// An order as far as its buyer knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) order: i64,
    /// Place of the buyer.
    pub(super) client: usize,
    /// Tenant of the supplier.
    pub(super) tenant: i64,
    /// Tokens left.
    pub(super) left: u64,
}

/// A package as far as its market knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) package: i64,
    pub(super) tenant: i64,
    /// Whole tokens.
    pub(super) total: i64,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) sellers: Vec<Seller>,
    pub(super) clients: Vec<Client>,
    pub(super) drafts: Vec<Offer>,
    pub(super) offers: Vec<Offer>,
    pub(super) former: Vec<Offer>,
    pub(super) unpaid: Vec<Known>,
    pub(super) open: Vec<Known>,
    pub(super) ended: Vec<Known>,
    /// Tenant and id, by where they stand.
    pub(super) asked: Vec<(i64, i64)>,
    pub(super) paying: Vec<(i64, i64)>,
    pub(super) paid: Vec<(i64, i64)>,
    pub(super) closed: Vec<(i64, i64)>,
    pub(super) codes: BTreeMap<i64, String>,
    pub(super) earnings: Vec<(i64, i64)>,
    pub(super) due: VecDeque<(By, What)>,
    /// Names of what is due and not sent yet.
    pub(super) queued: BTreeSet<String>,
    /// What was sent lately.
    pub(super) sent: Vec<Command>,
    pub(super) calls: Vec<(By, What)>,
}

fn keep<T>(list: &mut Vec<T>, one: T) {
    if list.len() >= KEPT {
        list.drain(..KEPT / 4);
    }
    list.push(one);
}

fn taken<T: Copy>(list: &mut Vec<T>, is: impl Fn(&T) -> bool) -> Option<T> {
    let place = list.iter().position(is)?;
    Some(list.swap_remove(place))
}

impl Board {
    /// A command is on its way: others may repeat it.
    pub(super) fn sending(&mut self, command: &Command) {
        keep(&mut self.sent, command.clone());
        if matches!(command.what, What::Use { .. }) {
            keep(&mut self.calls, (command.by, command.what.clone()));
        }
    }

    /// Something is due.
    pub(super) fn falls_due(&mut self, by: By, what: What) {
        if self.queued.insert(format!("{what:?}")) {
            self.due.push_back((by, what));
        }
    }

    /// What is due next.
    pub(super) fn next_due(&mut self) -> Option<(By, What)> {
        let next = self.due.pop_front()?;
        self.queued.remove(&format!("{:?}", next.1));
        Some(next)
    }

    /// An answer came.
    pub(super) fn learn(&mut self, sent: &Sent) {
        let json = sent.told.json();
        let id =
            |name: &str| json.pointer(&format!("/data/{name}")).and_then(Json::as_i64).unwrap_or_default();
        let (tenant, succeeded) = (sent.command.by.tenant, sent.told.code < 300 && sent.told.same);
        match &sent.command.what {
            _ if sent.told.replayed => {}
            What::Create { buyer, package, quota } if succeeded => {
                let offer = self.offers.iter().find(|offer| offer.package == *package).copied();
                let client = self.clients.iter().position(|client| client.user == *buyer);
                if let (Some(offer), Some(client)) = (offer, client) {
                    let left = u64::try_from(quota / 1_000_000).unwrap_or_default();
                    let known = Known { order: id("order_id"), client, tenant: offer.tenant, left };
                    keep(&mut self.unpaid, known);
                }
            }
            What::Pay { order } if succeeded => {
                if let Some(known) = taken(&mut self.unpaid, |known| known.order == *order) {
                    keep(&mut self.open, known);
                }
            }
            What::CancelOrder { order } | What::TimeOut { order } if succeeded => {
                if let Some(known) = taken(&mut self.unpaid, |known| known.order == *order) {
                    keep(&mut self.ended, known);
                }
            }
            What::Close { order } | What::Refund { order, .. } if succeeded => self.over(*order),
            What::Use { order, tokens, success, .. } if succeeded => {
                self.used(*order, *tokens, *success, id("earning_id"));
            }
            What::Use { order, .. } if sent.told.error() == "SUP_ORD_4091" => self.over(*order),
            _ if succeeded => self.learn_more(sent, tenant, &id),
            _ => {}
        }
    }

    fn over(&mut self, order: i64) {
        if let Some(known) = taken(&mut self.open, |known| known.order == order) {
            keep(&mut self.ended, known);
        }
    }

    fn used(&mut self, order: i64, tokens: (u64, u64), success: bool, earning: i64) {
        let Some(known) = self.open.iter_mut().find(|known| known.order == order) else { return };
        if success {
            known.left = known.left.saturating_sub(tokens.0 + tokens.1);
        }
        let (tenant, is_over) = (known.tenant, known.left == 0);
        if earning > 0 {
            keep(&mut self.earnings, (tenant, earning));
        }
        if is_over {
            self.over(order);
        }
    }

    fn learn_more(&mut self, sent: &Sent, tenant: i64, id: &dyn Fn(&str) -> i64) {
        match &sent.command.what {
            What::Bonus { .. } => keep(&mut self.earnings, (tenant, id("earning_id"))),
            What::SendCode => {
                if let Some((code, _)) = &sent.code_ref {
                    self.codes.insert(tenant, code.clone());
                }
            }
            What::Withdraw { .. } => {
                self.codes.remove(&tenant);
                keep(&mut self.asked, (tenant, id("settlement_id")));
            }
            What::Cancel { settlement } | What::Reject { settlement } => {
                if let Some(one) = taken(&mut self.asked, |one| one.1 == *settlement) {
                    keep(&mut self.closed, one);
                }
            }
            What::Start { settlement } => {
                if let Some(one) = taken(&mut self.asked, |one| one.1 == *settlement) {
                    keep(&mut self.paying, one);
                }
            }
            What::Complete { settlement } => {
                if let Some(one) = taken(&mut self.paying, |one| one.1 == *settlement) {
                    keep(&mut self.paid, one);
                }
            }
            What::Fail { settlement } => {
                if let Some(one) = taken(&mut self.paying, |one| one.1 == *settlement) {
                    keep(&mut self.closed, one);
                }
            }
            What::Return { settlement } => {
                if let Some(one) = taken(&mut self.paid, |one| one.1 == *settlement) {
                    keep(&mut self.closed, one);
                }
            }
            What::Draft { total, .. } => {
                let offer = Offer { package: id("package_id"), tenant, total: total / 1_000_000 };
                keep(&mut self.drafts, offer);
            }
            What::Publish { package } | What::Restock { package } => {
                let is = |offer: &Offer| offer.package == *package;
                let found = taken(&mut self.drafts, is).or_else(|| taken(&mut self.former, is));
                self.offers.extend(found);
            }
            What::Pause { package }
            | What::Unlist { package }
            | What::Expire { package }
            | What::SellOut { package } => {
                if let Some(offer) = taken(&mut self.offers, |offer| offer.package == *package) {
                    keep(&mut self.former, offer);
                }
            }
            _ => {}
        }
    }
}
