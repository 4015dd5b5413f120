//! Sections 5.2, 5.3 and 6.2: packages and the quota of their accounts, with what they were a moment ago.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::figures::MINOR;
use super::{Decided, id};
use crate::ledger::command::{By, Capacity, Place, Repriced, Sent, What};

const DAY: i64 = 86_400 * 1_000_000;
/// Of the one model that all packages are of, for input and output.
const FLOORS: (i128, i128) = (8 * MINOR, 32 * MINOR);
/// Its name; no other is on the list.
const MODEL: &str = "gpt-x";
/// The version moved while it was decided.
const OUTRUN: &str = "SUP_PKG_4091";

/// States of section 6.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum Stage {
    Draft,
    Active,
    Paused,
    SoldOut,
    Expired,
}

impl Stage {
    pub(in crate::ledger) const fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::SoldOut => "sold_out",
            Self::Expired => "expired",
        }
    }
}

/// A package.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Package {
    pub(in crate::ledger) tenant: i64,
    pub(in crate::ledger) account: i64,
    pub(in crate::ledger) stage: Stage,
    pub(in crate::ledger) total: i128,
    pub(in crate::ledger) available: i128,
    pub(in crate::ledger) reserved: i128,
    pub(in crate::ledger) sold: i128,
    pub(in crate::ledger) least: i128,
    pub(in crate::ledger) prices: (i128, i128),
    days: i64,
    /// 0 until it is published.
    pub(in crate::ledger) ends: i64,
}

/// A mounted account's quota.
#[derive(Clone, Debug)]
pub(in crate::ledger) struct Account {
    pub(in crate::ledger) tenant: i64,
    pub(in crate::ledger) available: i128,
    pub(in crate::ledger) frozen: i128,
}

/// What something was: as a batch found it (0), and as each change left it.
type Past<T> = BTreeMap<i64, Vec<(u64, T)>>;

/// All of them.
#[derive(Debug, Default)]
pub(in crate::ledger) struct Packages {
    pub(in crate::ledger) all: BTreeMap<i64, Package>,
    pub(in crate::ledger) accounts: BTreeMap<i64, Account>,
    /// What this batch's commands may have seen.
    past: (Past<Package>, Past<Account>),
    /// Place of the command that is carried out.
    now: u64,
}

/// What it was at a moment.
fn at<T: Clone>(past: Option<&Vec<(u64, T)>>, moment: u64, now: &T) -> T {
    let found = past.and_then(|past| past.iter().rev().find(|(at, _)| *at <= moment).or(past.first()));
    found.map_or_else(|| now.clone(), |(_, then)| then.clone())
}

/// When it changed after a moment.
fn after<T>(past: Option<&Vec<(u64, T)>>, moment: u64) -> impl Iterator<Item = u64> {
    past.into_iter().flatten().map(|(at, _)| *at).filter(move |at| *at > moment)
}

fn below(prices: (i128, i128)) -> bool {
    prices.0 < FLOORS.0 || prices.1 < FLOORS.1
}

impl Packages {
    pub(super) fn of(&self, package: i64) -> Option<&Package> {
        self.all.get(&package)
    }

    /// From here on changes are of the command at this place, whatever it is: orders move quota, too.
    pub(super) fn moment(&mut self, at: u64) {
        self.now = at;
    }

    pub(super) fn forget(&mut self) {
        self.past = Default::default();
        self.now = 0;
    }

    fn with_account(&self, package: i64) -> Option<(Package, Account)> {
        let found = self.all.get(&package)?;
        Some((found.clone(), self.accounts.get(&found.account)?.clone()))
    }

    /// Changes a package and its account.
    fn change(&mut self, number: i64, change: impl FnOnce(&mut Package, &mut Account)) {
        let Some(package) = self.all.get_mut(&number) else { return };
        let Some(account) = self.accounts.get_mut(&package.account) else { return };
        let (packages, accounts) = &mut self.past;
        let packages = packages.entry(number).or_insert_with(|| vec![(0, package.clone())]);
        let accounts = accounts.entry(package.account).or_insert_with(|| vec![(0, account.clone())]);
        change(package, account);
        packages.push((self.now, package.clone()));
        accounts.push((self.now, account.clone()));
    }

    /// Moves quota between available, reserved and sold.
    pub(super) fn shift(&mut self, number: i64, (available, reserved, sold): (i128, i128, i128)) {
        self.change(number, |package, _| {
            package.available += available;
            package.reserved += reserved;
            package.sold += sold;
        });
    }

    pub(super) fn account_of(&mut self, number: i64, change: impl FnOnce(&mut Account)) {
        self.change(number, |_, account| change(account));
    }

    /// Every refusal of a command on one package that something explains which it may have seen.
    pub(super) fn explains(&mut self, sent: &Sent, place: Place) -> Vec<&'static str> {
        let (what, by) = (&sent.command.what, sent.command.by);
        let (What::Publish { package }
        | What::Pause { package }
        | What::Unlist { package }
        | What::Expire { package }
        | What::SellOut { package }
        | What::Restock { package }) = what
        else {
            return Vec::new();
        };
        let Some((now, account)) = self.with_account(*package) else { return vec!["SUP_PKG_4041"] };
        let past = (self.past.0.get(package), self.past.1.get(&now.account));
        let outrun = after(past.0, place.since).next().is_some();
        let moments = after(past.0, place.since).chain(after(past.1, place.since)).chain([place.since]);
        let then = |moment| (at(past.0, moment, &now), at(past.1, moment, &account));
        let refusal = |moment| Self::allowed((what, by), Some(&then(moment)), place).err();
        let mut seen: Vec<_> = moments.filter_map(refusal).collect();
        if outrun {
            seen.push(OUTRUN);
        }
        seen
    }

    /// Whether a package may take it.
    fn allowed((what, by): (&What, By), found: Option<&(Package, Account)>, place: Place) -> Decided {
        let found = found.filter(|(package, _)| package.tenant == by.tenant);
        let (package, account) = found.ok_or("SUP_PKG_4041")?;
        let over = package.ends != 0 && package.ends <= place.time;
        let (stage, conflict) = (package.stage, Err(OUTRUN));
        let system = by.capacity == Capacity::System;
        match (what, stage) {
            (What::Publish { .. }, Stage::SoldOut) => Err("SUP_PKG_4092"),
            (What::Publish { .. }, Stage::Expired) => Err("SUP_PKG_4093"),
            (What::Publish { .. }, Stage::Active) => conflict,
            (What::Publish { .. }, Stage::Paused) if over => Err("SUP_PKG_4093"),
            (What::Publish { .. }, _) if below(package.prices) => Err("SUP_PKG_4001"),
            (What::Publish { .. }, Stage::Draft) if account.available < package.total => Err("SUP_PKG_4002"),
            (What::Publish { .. }, _) | (What::Pause { .. }, Stage::Active) => Ok(vec![]),
            (What::Pause { .. } | What::Unlist { .. }, Stage::SoldOut) => Err("SUP_PKG_4092"),
            (What::Unlist { .. }, Stage::Active | Stage::Paused) if package.reserved > 0 => {
                Err("SUP_PKG_4094")
            }
            (What::Unlist { .. }, Stage::Active | Stage::Paused) => Ok(vec![]),
            (What::SellOut { .. } | What::Restock { .. }, _) if !system => Err("SUP_PKG_4092"),
            (What::Expire { .. }, Stage::Active | Stage::Paused | Stage::SoldOut) if over && system => {
                Ok(vec![])
            }
            (What::SellOut { .. }, Stage::Active) if package.available == 0 && package.reserved == 0 => {
                Ok(vec![])
            }
            (What::Restock { .. }, Stage::SoldOut) if package.available > 0 && !over => Ok(vec![]),
            _ => conflict,
        }
    }

    pub(super) fn decide(&mut self, (what, by): (&What, By), place: Place, data: &Json) -> Decided {
        match what {
            What::Draft { account, model, total, least, prices, days } => {
                let found = self.accounts.get(account).filter(|found| found.tenant == by.tenant);
                found.ok_or("SUP_ACC_4041")?;
                if model != MODEL {
                    return Err("SUP_PKG_4005");
                }
                let package = Package {
                    tenant: by.tenant,
                    account: *account,
                    stage: Stage::Draft,
                    total: i128::from(*total),
                    available: i128::from(*total),
                    reserved: 0,
                    sold: 0,
                    least: i128::from(*least),
                    prices: (i128::from(prices.0), i128::from(prices.1)),
                    days: *days,
                    ends: 0,
                };
                self.all.insert(id(data, "package_id"), package);
                Ok(vec![])
            }
            What::Reprice { items } => self.reprice((items, by), place, data),
            What::Publish { package }
            | What::Pause { package }
            | What::Unlist { package }
            | What::Expire { package }
            | What::SellOut { package }
            | What::Restock { package } => {
                Self::allowed((what, by), self.with_account(*package).as_ref(), place)?;
                self.moved(what, *package, place.time);
                Ok(vec![])
            }
            _ => Err("not a package's"),
        }
    }

    fn moved(&mut self, what: &What, number: i64, time: i64) {
        self.change(number, |package, account| match what {
            What::Publish { .. } => {
                if package.stage == Stage::Draft {
                    account.available -= package.total;
                    account.frozen += package.total;
                    package.ends = time + package.days * DAY;
                }
                package.stage = Stage::Active;
            }
            What::Pause { .. } => package.stage = Stage::Paused,
            What::SellOut { .. } => package.stage = Stage::SoldOut,
            What::Restock { .. } => package.stage = Stage::Active,
            _ => {
                // What is not sold goes back; what is reserved goes back with its order.
                account.available += package.available;
                account.frozen -= package.available;
                package.stage = Stage::Expired;
            }
        });
    }

    /// Each item for itself. In one slice, which holds its packages and leaves a row at its place if it changes a
    /// price or finds one too low. Where it leaves none its place is not known: then each refusal must be explained
    /// by some moment since the batch was sent.
    fn reprice(&mut self, (items, by): (&[Repriced], By), place: Place, data: &Json) -> Decided {
        let told = data.get("failures").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let told = told.iter().map(|one| {
            let code = one.get("error_code").and_then(Json::as_str).unwrap_or_default();
            (id(one, "package_id"), code)
        });
        let told: BTreeMap<i64, &str> = told.collect();
        let is_silent = told.len() == items.len() && told.values().all(|code| *code != "SUP_PKG_4001");
        for (number, input, output) in items {
            let prices = (i128::from(*input), i128::from(*output));
            let refused = self.unpriced((*number, by), prices, place.at, place);
            let told = told.get(number).copied();
            let seen = || {
                let moments = after(self.past.0.get(number), place.since).chain([place.since]);
                moments
                    .map(|moment| self.unpriced((*number, by), prices, moment, place))
                    .any(|one| one == told)
            };
            if refused != told && !(is_silent && seen()) {
                return Err(refused.unwrap_or("no failure of that item"));
            }
            if told.is_none() {
                self.change(*number, |package, _| package.prices = prices);
            }
        }
        let failed = i128::try_from(told.len()).unwrap_or(i128::MAX);
        Ok(vec![("failed_count", failed)])
    }

    /// Why a price could not be changed at a moment.
    fn unpriced(
        &self,
        (number, by): (i64, By),
        prices: (i128, i128),
        moment: u64,
        place: Place,
    ) -> Option<&'static str> {
        let Some(now) = self.all.get(&number).filter(|package| package.tenant == by.tenant) else {
            return Some("SUP_PKG_4041");
        };
        let package = at(self.past.0.get(&number), moment, now);
        match package.stage {
            Stage::SoldOut => Some(OUTRUN),
            Stage::Expired => Some("SUP_PKG_4093"),
            _ if package.ends != 0 && package.ends <= place.time => Some("SUP_PKG_4093"),
            _ if below(prices) => Some("SUP_PKG_4001"),
            _ => None,
        }
    }
}
