//! The rules that need more than the fields, in the order of section 11.4: supplier, open settlement, cool-down,
//! daily limit, balance, SMS code.

use kernel::Time;
use kernel::money::Money;
use ledger::{Account, ids};
use secrecy::SecretString;
use store::{Write, values};

use crate::action::{Context, Refusal, Stop};
use crate::code::{Code, Invariant};
use crate::rows::Supplier;

use super::state::{MOST, SmsCode, State};

/// Wrong tries that a code bears; the last of them kills it.
const TRIES: i64 = 5;

const BURN: &str = "update supply_sms_codes set attempts = attempts + 1
where id = $1 and attempts = $2 and consumed_at is null";

/// What the rules found.
#[derive(Debug)]
pub(super) struct Allowed<'a> {
    pub(super) supplier: &'a Supplier,
    pub(super) code: &'a SmsCode,
}

/// Asks all of them. `asked` is the total and the code that was typed.
pub(super) fn all<'a>(
    context: &Context,
    state: &'a State,
    (total, given): (Money, &SecretString),
    at: Time,
) -> Result<Allowed<'a>, Stop> {
    let seen = |refusal: Refusal| state.seen(refusal);
    let blocked = || seen(Refusal::of(Code::SetBlocked));
    let supplier = state.supplier.as_ref().filter(|supplier| !supplier.is_blocked()).ok_or_else(blocked)?;
    if supplier.currency != total.currency() {
        return Err(seen(Refusal::of(Code::ComCurrency)).into());
    }
    if let Some(open) = state.standing.open.filter(|_| !door::planted::is("open-settlement-not-asked")) {
        return Err(seen(Refusal::of(Code::SetOpen).with("settlement_id", open)).into());
    }
    cooled_down(context, state, at).map_err(seen)?;
    within_the_day(context, state, total, at)?;
    let available =
        state.books.balance(Account::available(ids::Supplier(supplier.user_id)), supplier.currency)?;
    let withdrawable = available.floor_to_minor();
    if total.exceeds(withdrawable)? {
        let refusal =
            Refusal::broken(Invariant::Set002).with("available_amount", withdrawable).with("asked", total);
        return Err(seen(refusal.with("currency_code", total.currency().code())).into());
    }
    of_so_many(state, total)?;
    let code = right(context, state.code.as_ref(), given, at).map_err(seen)?;
    Ok(Allowed { supplier, code })
}

/// Row 5 of section 12. Cancelled and rejected settlements were never processing.
fn cooled_down(context: &Context, state: &State, at: Time) -> Result<(), Refusal> {
    let end = state.standing.processing_at.map(|since| since.plus(context.house.policy.withdraw_cooldown));
    match end {
        Some(end) if at < end => {
            Err(Refusal::of(Code::SetCooling).with("retry_after_seconds", seconds_up(at, end)))
        }
        _ => Ok(()),
    }
}

/// Row 4 of section 12: the calendar day in Shanghai.
fn within_the_day(context: &Context, state: &State, total: Money, at: Time) -> Result<(), Stop> {
    let midnight = at.shanghai_midnight();
    let today = state.recent.iter().filter(|(created, _)| *created >= midnight).map(|(_, amount)| *amount);
    let today = Money::sum(total.currency(), today)?;
    let most = context.house.policy.withdraw_daily_max;
    if !today.plus(total)?.exceeds(most)? {
        return Ok(());
    }
    let left = if today.exceeds(most)? { Money::zero(total.currency()) } else { most.minus(today)? };
    Err(state.seen(Refusal::of(Code::SetDaily).with("left", left)).into())
}

/// What one settlement can take is limited by the number of earnings, too; the rest is for the next one.
fn of_so_many(state: &State, total: Money) -> Result<(), Stop> {
    if i64::try_from(state.portions.len()).is_ok_and(|length| length < MOST) {
        return Ok(());
    }
    let lots = state.portions.iter().map(|portion| portion.lot.amount);
    let most = Money::sum(total.currency(), lots)?.floor_to_minor();
    if !total.exceeds(most)? {
        return Ok(());
    }
    let refusal = Refusal::of(Code::SetSingle).with("maximum", most).with("maximum_earnings", MOST);
    Err(state.seen(refusal).into())
}

/// The code, if the typed one is right. A wrong one costs a try, which stays although nothing else does.
fn right<'a>(
    context: &Context,
    code: Option<&'a SmsCode>,
    given: &SecretString,
    at: Time,
) -> Result<&'a SmsCode, Refusal> {
    let refused = || Refusal::of(Code::SetCode);
    let alive = |code: &&SmsCode| code.consumed_at.is_none() && code.expires_at > at && code.attempts < TRIES;
    let code = code.filter(alive).ok_or_else(refused)?;
    let keys = context.house.keys.sms.as_ref().ok_or_else(|| Refusal::of(Code::SetOff))?;
    let version = u32::try_from(code.key_version).unwrap_or_default();
    match keys.matches(version, &code.code_ref, &code.code_hash, given) {
        Ok(true) => Ok(code),
        Ok(false) => {
            let burn = Write::one("settlement.try", BURN, values![code.id, code.attempts]);
            Err(Refusal { writes: vec![burn], ..refused() })
        }
        Err(error) => {
            tracing::warn!(%error, "an SMS code can't be compared; its key is not there any more");
            Err(refused())
        }
    }
}

/// Seconds from `at` to `end`, rounded up.
pub(in crate::settlements) fn seconds_up(at: Time, end: Time) -> i64 {
    i64::try_from(end.since(at).as_micros().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
