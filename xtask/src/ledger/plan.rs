//! What a writer asks next, out of its own seeded stream: mostly what makes sense by the [`Board`], often at a
//! limit, now and then what must be refused; what is due; and what was asked before, or its key for something else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use store::values;
use testkit::Seeded;

use super::board::{Board, Client, Known, Offer, Seller};
use super::command::{By, Capacity, Command, What};
use super::stage::{Market, PLATFORM};

/// Of a hundred commands so many are sent again as they were, and so many under the key of another.
const REPEATS: u64 = 10;
const MISUSES: u64 = 2;
/// Of so many of the latest commands one is repeated.
const LATEST: usize = 120;
const NOBODY: Client = Client { tenant: 0, user: 0, key: 0 };
const NO_ORDER: Known = Known { order: 0, client: 0, tenant: 0, left: 0 };
const TOKEN: i64 = 1_000_000;
const MINOR: i64 = 1_000_000;

/// A writer's choices.
pub(super) struct Writer {
    pub(super) market: Arc<Market>,
    pub(super) board: Arc<Mutex<Board>>,
    pub(super) chance: Seeded,
    /// Begins the name of its keys and calls.
    pub(super) name: String,
    pub(super) count: u64,
}

/// What others have poisoned is read all the same: their failure is told by themselves.
pub(super) fn locked(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

fn as_admin(tenant: i64) -> By {
    By { tenant, operator: PLATFORM, capacity: Capacity::Admin }
}

pub(super) fn as_system(tenant: i64) -> By {
    By { tenant, operator: PLATFORM, capacity: Capacity::System }
}

const fn as_buyer(client: Client) -> By {
    By { tenant: client.tenant, operator: client.user, capacity: Capacity::User }
}

const fn as_seller(seller: &Seller) -> By {
    By { tenant: seller.tenant, operator: seller.operator, capacity: Capacity::User }
}

impl Writer {
    fn below(&mut self, end: i64) -> i64 {
        i64::try_from(self.chance.below(u64::try_from(end).unwrap_or(1))).unwrap_or_default()
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        let place = self.chance.below(u64::try_from(list.len()).unwrap_or_default());
        list.get(usize::try_from(place).unwrap_or_default()).cloned()
    }

    /// One of a list of the board.
    fn any<T: Clone>(&mut self, list: impl Fn(&Board) -> &Vec<T>) -> Option<T> {
        let board = Arc::clone(&self.board);
        self.pick(list(&locked(&board)))
    }

    /// The next command.
    pub(super) async fn next(&mut self) -> Result<Command> {
        self.count += 1;
        let key = format!("key-{}-{}", self.name, self.count);
        let of_hundred = self.chance.below(100);
        if of_hundred < REPEATS
            && let Some(command) = self.lately()
        {
            return Ok(command);
        }
        if of_hundred < REPEATS + MISUSES
            && let Some(command) = self.misused()
        {
            return Ok(command);
        }
        let waiting = locked(&self.board).due.len();
        let share = if waiting > 400 { 60 } else { 25 };
        if self.chance.chance(share)
            && let Some((by, what)) = locked(&self.board).next_due()
        {
            return Ok(Command { by, what, key });
        }
        let (by, what) = self.chosen().await?;
        Ok(Command { by, what, key })
    }

    /// Something that was sent a moment ago: later most keys are free again, since time flies here.
    fn lately(&mut self) -> Option<Command> {
        let board = Arc::clone(&self.board);
        let board = locked(&board);
        let latest = board.sent.len().saturating_sub(LATEST);
        self.pick(board.sent.get(latest..)?)
    }

    /// The key of something that was sent, with other figures.
    fn misused(&mut self) -> Option<Command> {
        let mut command = self.lately()?;
        match &mut command.what {
            What::TopUp { amount, .. } | What::Bonus { amount } | What::CompensateSupplier { amount, .. } => {
                *amount += MINOR;
            }
            What::Create { quota, .. } => *quota += TOKEN,
            What::Use { tokens, .. } => tokens.0 += 1,
            What::Withdraw { amount, .. } => *amount = "12.34".into(),
            What::Cancel { settlement } | What::Start { settlement } => *settlement += 1,
            What::Pay { order } => *order += 1,
            _ => return None,
        }
        Some(command)
    }

    async fn chosen(&mut self) -> Result<(By, What)> {
        let of_thousand = self.chance.below(1000);
        // Without offers there is no market.
        if locked(&self.board).offers.len() < 12 && self.chance.chance(30) {
            return Ok(self.package(930 + of_thousand % 45));
        }
        Ok(match of_thousand {
            0..40 => self.top_up(),
            40..400 => self.order(of_thousand),
            400..680 => self.usage(),
            680..740 => self.gift(),
            740..930 => self.money(of_thousand).await?,
            _ => self.package(of_thousand),
        })
    }

    /// One in three is the first, whom everybody hammers.
    fn seller(&mut self) -> Seller {
        let hot = self.chance.chance(35).then(|| locked(&self.board).sellers.first().cloned()).flatten();
        let nobody = || Seller { tenant: 0, user: 0, operator: 0, accounts: vec![] };
        hot.or_else(|| self.any(|board| &board.sellers)).unwrap_or_else(nobody)
    }

    /// The seller of a tenant; now and then another one.
    fn owner(&mut self, tenant: i64) -> Seller {
        let is = |one: &&Seller| one.tenant == tenant;
        let owner = locked(&self.board).sellers.iter().find(is).cloned();
        let owner = owner.filter(|_| !self.chance.chance(2));
        owner.unwrap_or_else(|| self.seller())
    }

    fn client(&mut self) -> Client {
        self.any(|board| &board.clients).unwrap_or(NOBODY)
    }

    /// The client at a place.
    fn buyer(&self, place: usize) -> Client {
        locked(&self.board).clients.get(place).copied().unwrap_or(NOBODY)
    }

    fn top_up(&mut self) -> (By, What) {
        let client = self.client();
        let first = locked(&self.board).clients.first().map(|first| first.user) == Some(client.user);
        // The first buyer is poor.
        let most = if first { 3_000 } else { 600_000 };
        let amount = match self.chance.below(20) {
            0 => 0,
            1 => MINOR / 2,
            _ => (self.below(most) + 1) * MINOR,
        };
        let user = if self.chance.chance(3) { client.user + 1000 } else { client.user };
        (as_admin(client.tenant), What::TopUp { buyer: user, amount })
    }

    fn order(&mut self, of: u64) -> (By, What) {
        if of < 165 {
            return self.create();
        }
        let list: fn(&Board) -> &Vec<Known> = match (self.chance.below(100), of) {
            (..6, _) => |board| &board.ended,
            (12.., ..345) => |board| &board.unpaid,
            _ => |board| &board.open,
        };
        let latest = locked(&self.board).unpaid.last().copied().filter(|_| of < 300);
        let mut known = latest.or_else(|| self.any(list)).unwrap_or(NO_ORDER);
        if known.tenant == 0 {
            known.tenant = self.seller().tenant;
        }
        let client = if self.chance.chance(2) { self.client() } else { self.buyer(known.client) };
        let order = known.order;
        match of {
            165..315 => (as_buyer(client), What::Pay { order }),
            315..340 => (as_buyer(client), What::CancelOrder { order }),
            340..345 => (as_system(known.tenant), What::TimeOut { order }),
            345..350 => (as_system(known.tenant), What::Close { order }),
            _ => {
                let most = self.below(6) * 400 * MINOR;
                let charge = self.chance.chance(60).then(|| self.below(most + 1));
                let charge = charge.map(|charge| if self.chance.chance(3) { -1 } else { charge });
                (as_admin(known.tenant), What::Refund { order, charge })
            }
        }
    }

    fn create(&mut self) -> (By, What) {
        let client = self.client();
        let list: fn(&Board) -> &Vec<Offer> =
            if self.chance.chance(4) { |board| &board.former } else { |board| &board.offers };
        let offer = self.any(list).unwrap_or(Offer { package: 0, tenant: 0, total: 1_000 });
        let quota = match self.chance.below(20) {
            0 => self.below(1_000) * TOKEN,
            1 => offer.total * TOKEN,
            2 => self.below(2_000_000) * TOKEN + 1,
            3..8 => (self.below(50_000) + 1_000) * TOKEN,
            _ => (self.below(1_500_000) + 1_000) * TOKEN,
        };
        (as_buyer(client), What::Create { buyer: client.user, package: offer.package, quota })
    }

    fn usage(&mut self) -> (By, What) {
        if self.chance.chance(6)
            && let Some((by, mut call)) = self.any(|board| &board.calls)
        {
            // It was reported before; now and then with other figures.
            if let What::Use { tokens, .. } = &mut call {
                tokens.1 += u64::from(self.chance.chance(30));
            }
            return (by, call);
        }
        let list: fn(&Board) -> &Vec<Known> =
            if self.chance.chance(6) { |board| &board.ended } else { |board| &board.open };
        let known = self.any(list).unwrap_or(NO_ORDER);
        let client = self.buyer(known.client);
        let by = as_admin(client.tenant);
        let all = match self.chance.below(20) {
            0..4 => known.left,
            4 => known.left + 1 + self.chance.below(1000),
            5 => 0,
            6..10 => self.chance.below(200),
            _ => self.chance.below(known.left / 3 + 2),
        };
        let input = self.chance.below(all + 1);
        let key = if self.chance.chance(2) { client.key + 1000 } else { client.key };
        let what = What::Use {
            order: known.order,
            key,
            call: format!("call-{}-{}", self.name, self.count),
            tokens: (input, all - input),
            success: !self.chance.chance(8),
            started: self.market.now().micros(),
        };
        (by, what)
    }

    fn gift(&mut self) -> (By, What) {
        let (seller, client) = (self.seller(), self.client());
        let amount = match self.chance.below(40) {
            0 => 0,
            1..4 => self.below(12_000_000) * MINOR + 1,
            4..8 => 1 + self.below(10),
            _ => self.below(80_000 * MINOR) + 1,
        };
        let by = as_admin(seller.tenant);
        match self.chance.below(10) {
            0..4 => (by, What::Bonus { amount }),
            4..7 => {
                let supplier = if self.chance.chance(4) { client.user } else { seller.user };
                (by, What::CompensateSupplier { supplier, amount })
            }
            7 => {
                let buyer = if self.chance.chance(10) { seller.user } else { client.user };
                (as_admin(client.tenant), What::CompensateBuyer { buyer, amount: amount.min(50_000 * MINOR) })
            }
            _ => {
                let (tenant, earning) = self.any(|board| &board.earnings).unwrap_or((seller.tenant, 0));
                (as_system(tenant), What::Release { earning })
            }
        }
    }

    async fn money(&mut self, of: u64) -> Result<(By, What)> {
        let seller = self.seller();
        match of {
            740..785 => return Ok((as_seller(&seller), What::SendCode)),
            785..840 => return self.withdraw(&seller).await,
            _ => {}
        }
        let list: fn(&Board) -> &Vec<(i64, i64)> = match (self.chance.below(100), of) {
            (..4, _) => |board| &board.closed,
            (4..8, _) | (16.., ..885) => |board| &board.asked,
            (8..12, _) | (16.., ..920) => |board| &board.paying,
            _ => |board| &board.paid,
        };
        let (tenant, settlement) = self.any(list).unwrap_or((seller.tenant, 0));
        let owner = self.owner(tenant);
        let admin = as_admin(owner.tenant);
        Ok(match of {
            840..855 => (as_seller(&owner), What::Cancel { settlement }),
            855..862 => (admin, What::Reject { settlement }),
            862..885 => (as_system(owner.tenant), What::Start { settlement }),
            885..910 => (admin, What::Complete { settlement }),
            910..920 => (admin, What::Fail { settlement }),
            _ => (admin, What::Return { settlement }),
        })
    }

    async fn withdraw(&mut self, seller: &Seller) -> Result<(By, What)> {
        let sql = "select balance from billing_accounts where owner_type = 'supplier' and owner_id = $1 and account_code = 'supplier_available'";
        let rows = self.market.rows(sql, values![seller.user]).await?;
        let available = rows.first().map(|row| row.int(0)).transpose()?.unwrap_or_default() / MINOR;
        let known = locked(&self.board).codes.get(&seller.tenant).cloned();
        if known.is_none() && self.chance.chance(60) {
            return Ok((as_seller(seller), What::SendCode));
        }
        let code = known.filter(|_| !self.chance.chance(10)).unwrap_or_else(|| "12345".into());
        let minor = match self.chance.below(30) {
            0 => 999,
            1 => available + 1,
            2 => 5_000_001,
            3 => 1_000,
            4..16 => available.min(5_000_000),
            _ => 1_000 + self.below((available - 1_000).clamp(1, 4_900_000)),
        };
        let amount = match self.chance.below(40) {
            0 => self.pick(&["10.001", "-10", "1e3", "0", "0.00", "010", ""]).unwrap_or_default().to_owned(),
            _ => format!("{}.{:02}", minor / 100, minor % 100),
        };
        let payee = if self.chance.chance(3) { "9999" } else { "13800000000" };
        Ok((as_seller(seller), What::Withdraw { amount, code, payee: payee.into() }))
    }

    fn package(&mut self, of: u64) -> (By, What) {
        let list: fn(&Board) -> &Vec<Offer> = match (self.chance.below(100), of) {
            (..5, _) | (40.., ..975) => |board| &board.drafts,
            (5..10, _) | (15..40, ..975) => |board| &board.former,
            _ => |board| &board.offers,
        };
        let seller = self.seller();
        let offer = self.any(list).unwrap_or(Offer { package: 0, tenant: seller.tenant, total: 0 });
        let owner = self.owner(offer.tenant);
        let (by, system, package) = (as_seller(&owner), as_system(owner.tenant), offer.package);
        match of {
            930..950 => self.draft(&seller),
            950..975 => (by, What::Publish { package }),
            975..978 => (by, What::Pause { package }),
            978..980 => (by, What::Unlist { package }),
            980..994 => self.reprice(&owner),
            994..996 => (system, What::Expire { package }),
            996..998 => (system, What::SellOut { package }),
            _ => (system, What::Restock { package }),
        }
    }

    fn draft(&mut self, seller: &Seller) -> (By, What) {
        let account = self.pick(&seller.accounts).unwrap_or_default();
        let account = if self.chance.chance(3) { account + 100_000 } else { account };
        let model = if self.chance.chance(3) { "gpt-unknown" } else { "gpt-x" };
        let total = (self.below(12_000_000) + 100_000) * TOKEN;
        let what = What::Draft {
            account,
            model: model.into(),
            total,
            least: 1_000 * TOKEN,
            prices: self.prices(),
            days: 1 + self.below(25),
        };
        (as_seller(seller), what)
    }

    /// Now and then below the floor, often at it.
    fn prices(&mut self) -> (i64, i64) {
        match self.chance.below(12) {
            0 => (7_999_999, 32_000_000),
            1 => (8_000_000, 31_999_999),
            2..6 => (8_000_000, 32_000_000),
            _ => (8_000_000 + self.below(9_000_000), 32_000_000 + self.below(40_000_000)),
        }
    }

    fn reprice(&mut self, seller: &Seller) -> (By, What) {
        let mut items = BTreeMap::new();
        for n in 0..=self.chance.below(40) {
            let list: fn(&Board) -> &Vec<Offer> = match n % 4 {
                0 => |board| &board.drafts,
                1 => |board| &board.former,
                _ => |board| &board.offers,
            };
            let Some(offer) = self.any(list) else { continue };
            if offer.tenant == seller.tenant || self.chance.chance(5) {
                items.insert(offer.package, self.prices());
            }
        }
        if items.is_empty() {
            items.insert(1 << 40, self.prices());
        }
        let items = items.into_iter().map(|(package, (input, output))| (package, input, output)).collect();
        (as_seller(seller), What::Reprice { items })
    }
}
