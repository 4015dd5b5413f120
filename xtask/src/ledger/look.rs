//! What the store says, and what the model says, in the same words: a line a row. And in which order the commands
//! of a batch were committed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use store::{Query, Row, values};

use super::command::{Capacity, Place, Sent, What};
use super::model::Model;
use super::stage::{Engine, Market};

/// A row's name, and what it says.
pub(super) type Lines = BTreeMap<String, String>;

/// Tables: what each line is called, how many columns name it, and the rest. All columns but words are whole
/// numbers.
const TABLES: [(&str, usize, &str, &str); 9] = [
    ("balance", 3, "tttnii", "select a.owner_type, cast(a.owner_id as text), a.account_code, a.balance,
        coalesce(sum(case when e.direction = 'dr' then e.amount else 0 end), 0),
        coalesce(sum(case when e.direction = 'cr' then e.amount else 0 end), 0)
        from billing_accounts a left join billing_ledger_entries e on e.billing_account_id = a.id
        group by a.id, a.owner_type, a.owner_id, a.account_code, a.balance"),
    ("journals", 1, "tii", "select j.journal_type, count(distinct j.id),
        sum(case when e.direction = 'dr' then e.amount else 0 end)
        from billing_journals j join billing_ledger_entries e on e.journal_id = j.id group by j.journal_type"),
    ("order", 1, "ititiiii", "select o.id, o.status, o.buyer_user_id, o.close_reason, o.total_amount, o.used_quota, o.platform_fee, o.supplier_earnings from supply_orders o"),
    ("earning", 1, "itiiiiii", "select e.id, e.status, e.amount, e.available_amount, e.frozen_amount, e.withdrawn_amount, e.reversed_amount, e.tenant_id
        from supply_earnings e where e.earnings_type <> 'refund'"),
    ("settlement", 1, "ittiiii", "select t.id, t.status, t.fail_reason, t.total_amount, t.fee_amount, t.net_amount,
        case when t.returned_at is null then 0 else 1 end from supply_settlements t"),
    ("item", 2, "iii", "select i.settlement_id, i.earning_id, i.amount from supply_settlement_items i"),
    ("package", 1, "itiiiii", "select p.id, p.status, p.available_quota, p.reserved_quota, p.sold_quota, p.price_per_1m_input, p.price_per_1m_output from supply_packages p"),
    ("account", 1, "iii", "select a.id, a.available_quota, a.frozen_quota from supply_accounts a"),
    ("code", 1, "iii", "select c.id, c.attempts, case when c.consumed_at is null then 0 else 1 end from supply_sms_codes c"),
];
/// What is only counted and summed.
const SUMS: &str = "select count(*), coalesce(sum(u.total_cost), 0), coalesce(sum(u.platform_fee), 0) from supply_usage_records u";
const TAKEN: &str =
    "select count(*), coalesce(sum(e.amount), 0) from supply_earnings e where e.earnings_type = 'refund'";

/// Everything that the store says of money and quota, as one committed state.
pub(super) async fn stored(market: &Market) -> Result<Lines> {
    let mut queries: Vec<Query> =
        TABLES.iter().map(|(name, .., sql)| Query::new(name, *sql, vec![])).collect();
    queries.push(Query::new("calls", SUMS, vec![]));
    queries.push(Query::new("taken back", TAKEN, vec![]));
    let answers = market.door.store().queries(queries).await?;
    let mut lines = Lines::new();
    for ((name, named, columns, _), rows) in TABLES.iter().zip(&answers) {
        for row in rows {
            let cells = columns.chars().enumerate().map(|(place, kind)| cell(row, place, kind));
            let cells: Vec<String> = cells.collect::<Result<_>>()?;
            let (names, rest) = cells.split_at(*named);
            lines.insert(format!("{name} {}", names.join(" ")), rest.join(" "));
        }
    }
    for (name, width, rows) in [("calls", 3, answers.get(9)), ("taken back", 2, answers.get(10))] {
        let row = rows.and_then(|rows| rows.first()).context("no sums")?;
        let cells: Result<Vec<String>> = (0..width).map(|place| cell(row, place, 'i')).collect();
        lines.insert(name.into(), cells?.join(" "));
    }
    derive(&mut lines)?;
    Ok(lines)
}

fn cell(row: &Row, place: usize, kind: char) -> Result<String> {
    Ok(match kind {
        't' => row.text_or_null(place)?.unwrap_or("-").to_owned(),
        'n' => row.int_or_null(place)?.map_or_else(|| "-".into(), |count| count.to_string()),
        _ => row.int(place)?.to_string(),
    })
}

/// Of cached balance, debits and credits: the balance by entries, and the cached one.
fn derive(lines: &mut Lines) -> Result<()> {
    for (name, line) in lines.iter_mut().filter(|(name, _)| name.starts_with("balance ")) {
        let cells: Vec<&str> = line.split(' ').collect();
        let [cached, debits, credits] = cells.as_slice() else { anyhow::bail!("{name}: {line}") };
        let (debits, credits): (i128, i128) = (debits.parse()?, credits.parse()?);
        let is_asset = ["clearing", "receivable", "expense"].iter().any(|end| name.ends_with(end));
        let derived = if is_asset { debits - credits } else { credits - debits };
        let cached = if *cached == "-" { derived.to_string() } else { (*cached).to_owned() };
        *line = format!("{derived} cached {cached}");
    }
    Ok(())
}

/// The same of the model.
pub(super) fn modelled(model: &Model) -> Lines {
    let mut lines = Lines::new();
    for ((owner_type, owner, code), balance) in &model.books.balances {
        lines.insert(format!("balance {owner_type} {owner} {code}"), format!("{balance} cached {balance}"));
    }
    for (kind, (count, sum)) in &model.books.journals {
        lines.insert(format!("journals {kind}"), format!("{count} {sum}"));
    }
    for (id, order) in &model.orders {
        let line = format!(
            "{} {} {} {} {} {} {}",
            order.status.word(),
            order.buyer,
            order.reason,
            order.total,
            order.used,
            order.fees,
            order.earned
        );
        lines.insert(format!("order {id}"), line);
    }
    for (id, one) in &model.earnings {
        let line = format!(
            "{} {} {} {} {} {} {}",
            one.status(),
            one.amount,
            one.available,
            one.frozen,
            one.withdrawn,
            one.reversed,
            one.tenant
        );
        lines.insert(format!("earning {id}"), line);
    }
    for (id, one) in &model.settlements {
        let ((status, reason), net) = (one.state.words(), one.total - one.fee);
        let line = format!("{status} {reason} {} {} {net} {}", one.total, one.fee, u8::from(one.is_returned));
        lines.insert(format!("settlement {id}"), line);
        for (earning, amount) in &one.items {
            lines.insert(format!("item {id} {earning}"), amount.to_string());
        }
    }
    more(model, &mut lines);
    lines
}

fn more(model: &Model, lines: &mut Lines) {
    for (id, one) in &model.packages.all {
        let mut line = format!("{} {} {} {}", one.stage.word(), one.available, one.reserved, one.sold);
        // Writing to a string can't fail.
        let _ = write!(line, " {} {}", one.prices.0, one.prices.1);
        lines.insert(format!("package {id}"), line);
    }
    for (id, one) in &model.packages.accounts {
        lines.insert(format!("account {id}"), format!("{} {}", one.available, one.frozen));
    }
    for (id, tries, is_used) in model.codes() {
        lines.insert(format!("code {id}"), format!("{tries} {}", u8::from(is_used)));
    }
    let calls = || model.calls.values();
    let (costs, fees) =
        (calls().map(|call| call.charge).sum::<i128>(), calls().map(|call| call.fee).sum::<i128>());
    lines.insert("calls".into(), format!("{} {costs} {fees}", model.calls.len()));
    lines.insert("taken back".into(), format!("{} {}", model.taken_back.0, -model.taken_back.1));
}

/// Where the two differ.
pub(super) fn differences(stored: &Lines, modelled: &Lines) -> Vec<String> {
    let nothing = || "nothing".to_owned();
    let mut found = Vec::new();
    for (name, line) in modelled {
        if stored.get(name) != Some(line) {
            let there = stored.get(name).cloned().unwrap_or_else(nothing);
            found.push(format!("{name}: the store says {there}, the model {line}"));
        }
    }
    let unknown = stored.iter().filter(|(name, _)| !modelled.contains_key(*name));
    found.extend(unknown.map(|(name, line)| format!("{name}: the store says {line}, the model nothing")));
    found
}

/// When a request was committed: the moment, the row, the store's time.
#[derive(Clone, Copy, Debug)]
struct Committed {
    moment: (i64, i64),
    time: i64,
}

/// What the system finds done, or not due any more, is on no record: it changes nothing.
fn is_nothing(sent: &Sent) -> bool {
    sent.command.by.capacity == Capacity::System && sent.told.code == 409
}

/// The commands of a batch in the order of their commits, with their places; and how many share a moment. `seen`
/// is the last audit row of the batch before.
///
/// Every command, repeat and refusal but those of [`is_nothing`] leaves an audit row in its own transaction. SQLite has
/// one writer, which counts the rows up; of PostgreSQL the commit's own time stamp is asked. Two commands that touch one
/// row can't share a microsecond: the second takes its lock after the first's commit and is a round trip away from its
/// own. So whatever shares one can be told in either order.
pub(super) async fn ordered(
    market: &Market,
    batch: Vec<Sent>,
    seen: &mut i64,
) -> Result<(Vec<(Sent, Place)>, usize)> {
    let (effects, answers) = committed(market, seen).await?;
    let mut placed = Vec::with_capacity(batch.len());
    for sent in batch {
        if sent.told.open {
            continue;
        }
        let Some(answer) = answers.get(&sent.request).copied() else {
            ensure!(is_nothing(&sent), "{sent:?} left no audit row");
            continue;
        };
        let is_slice = matches!(sent.command.what, What::Reprice { .. }) && !sent.told.replayed;
        let effect = effects.get(&sent.request).copied().filter(|_| is_slice).unwrap_or(answer);
        placed.push((sent, effect, answer));
    }
    placed.sort_by_key(|(_, effect, _)| effect.moment);
    let shared = placed.windows(2).filter(|pair| match pair {
        [one, two] => one.1.moment.0 == two.1.moment.0,
        _ => false,
    });
    let shared = shared.count();
    // The first place of all that were not answered yet, by when they were: a commit has its time stamp before others
    // can see it, so only what was answered is sure to be seen, and only with all that stands before it.
    let mut ends: Vec<(u64, u64)> = (1..).zip(&placed).map(|(at, (sent, ..))| (sent.span.1, at)).collect();
    ends.sort_unstable();
    let mut first = u64::MAX;
    for (_, at) in ends.iter_mut().rev() {
        first = first.min(*at);
        *at = first;
    }
    let since = |began: u64| {
        let answered = ends.partition_point(|(end, _)| *end < began);
        ends.get(answered).map_or(u64::MAX, |(_, first)| first - 1)
    };
    let placed = (1..).zip(placed).map(|(at, (sent, effect, answer))| {
        let since = since(sent.span.0).min(at - 1);
        (sent, Place { at, since, time: effect.time, answered: answer.time })
    });
    Ok((placed.collect(), shared))
}

type Moments = BTreeMap<String, Committed>;

/// By request: the first row of a price that changed, and the row of the answer.
async fn committed(market: &Market, seen: &mut i64) -> Result<(Moments, Moments)> {
    let moment = match market.engine {
        Engine::Sqlite => "a.id",
        Engine::Postgres => "cast(extract(epoch from pg_xact_commit_timestamp(a.xmin)) * 1000000 as bigint)",
    };
    let sql = format!(
        "select a.request_id, a.event_name, a.id, {moment}, a.created_at from audit_events a where a.id > $1 order by a.id"
    );
    let (mut effects, mut answers) = (Moments::new(), Moments::new());
    for row in market.rows(&sql, values![*seen]).await? {
        let (request, event, id) = (row.text(0)?.to_owned(), row.text(1)?, row.int(2)?);
        let committed = Committed { moment: (row.int(3)?, id), time: row.time(4)?.micros() };
        *seen = id.max(*seen);
        if event == "supply.package.price.update" || event == "invariant_violation" {
            effects.entry(request).or_insert(committed);
        } else {
            answers.insert(request, committed);
        }
    }
    ensure!(!answers.is_empty(), "no command of the batch left an audit row");
    Ok((effects, answers))
}

/// Balances that are below zero and may not be.
pub(super) fn negative(stored: &Lines) -> impl Iterator<Item = String> {
    let balances = stored.iter().filter(|(name, _)| name.starts_with("balance "));
    let bounded = balances.filter(|(name, _)| !name.ends_with("cash_clearing"));
    let below = bounded.filter(|(_, line)| line.split(' ').any(|word| word.starts_with('-')));
    below.map(|(name, line)| format!("{name} is below zero: {line}"))
}
