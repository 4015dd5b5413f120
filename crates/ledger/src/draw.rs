//! A sum taken out of earnings, oldest first: the allocation of a withdrawal (section 11.4, step 8), and
//! what a refund or the recovery of a debt reverses (section 11.5, check 4).

use kernel::Time;
use kernel::money::Money;

use crate::error::Error;
use crate::ids::Earning;

/// An earning and how much of it can be taken: `available_amount` for a withdrawal, `amount -
/// reversed_amount` for the reversal of what is still pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lot {
    /// Which earning.
    pub earning: Earning,
    /// Its `available_at`.
    pub available_at: Time,
    /// What can be taken; none is below zero.
    pub amount: Money,
}

/// What is taken out of one earning: a row of `supply_settlement_items`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Which earning.
    pub earning: Earning,
    /// Above zero.
    pub amount: Money,
}

/// Takes `total` from the lots, in the order of `available_at`, then id, whatever order they come in. The
/// items are in that order too and add up to `total` exactly; lots that give nothing have none.
///
/// # Errors
/// [`Error::Short`] when the lots hold less, [`Error::Negative`] for a total or a lot below zero,
/// [`Error::Money`] for another currency.
pub fn oldest_first(total: Money, lots: &[Lot]) -> Result<Vec<Item>, Error> {
    let amounts = || lots.iter().map(|lot| lot.amount);
    if let Some(amount) = amounts().chain([total]).find(|amount| amount.sign().is_lt()) {
        return Err(Error::Negative { amount });
    }
    let mut lots: Vec<_> = lots.iter().collect();
    lots.sort_by_key(|lot| (lot.available_at, lot.earning));
    let mut left = total;
    let mut items = Vec::new();
    for lot in lots {
        let amount = left.least(lot.amount)?;
        if amount.sign().is_gt() {
            items.push(Item { earning: lot.earning, amount });
            left = left.minus(amount)?;
        }
    }
    if left.sign().is_gt() {
        return Err(Error::Short { asked: total, there: total.minus(left)? });
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::money::Currency;
    use proptest::prelude::*;

    const CNY: Currency = Currency::CNY;

    fn lot(earning: i64, second: i64, count: i64) -> Lot {
        let (earning, available_at) = (Earning(earning), Time::from_seconds(second));
        Lot { earning, available_at, amount: Money::from_count(count, CNY) }
    }

    fn taken(total: i64, lots: &[Lot]) -> Result<Vec<(i64, i64)>, Error> {
        let items = oldest_first(Money::from_count(total, CNY), lots)?;
        Ok(items.iter().map(|item| (item.earning.0, item.amount.count())).collect())
    }

    #[test]
    fn the_oldest_goes_first_and_the_id_decides_between_equals() {
        let lots = [lot(9, 1, 5), lot(3, 2, 5), lot(2, 2, 5), lot(1, 3, 5), lot(4, 1, 0)];
        assert_eq!(taken(12, &lots), Ok(vec![(9, 5), (2, 5), (3, 2)]));
        assert_eq!(taken(20, &lots), Ok(vec![(9, 5), (2, 5), (3, 5), (1, 5)]));
        assert_eq!(taken(0, &lots), Ok(vec![]));
    }

    #[test]
    fn too_little_is_refused_with_both_figures() {
        let (asked, there) = (Money::from_count(21, CNY), Money::from_count(20, CNY));
        let lots = [lot(1, 1, 15), lot(2, 1, 5)];
        assert_eq!(taken(21, &lots), Err(Error::Short { asked, there }));
        assert!(taken(-1, &lots).is_err());
        assert!(taken(1, &[lot(1, 1, 5), lot(2, 2, -1)]).is_err());
    }

    proptest! {
        #[test]
        fn items_add_up_and_take_no_more_than_there_is(
            counts in proptest::collection::vec((0..5_i64, 0..1_000_000_i64), 0..20),
            part in 0..=1000_i64,
        ) {
            let lots: Vec<_> =
                (1..).zip(counts).map(|(id, (second, count))| lot(id, second, count)).collect();
            let sum: i64 = lots.iter().map(|lot| lot.amount.count()).sum();
            let items = taken(sum * part / 1000, &lots).unwrap();
            prop_assert_eq!(items.iter().map(|item| item.1).sum::<i64>(), sum * part / 1000);
            let whole = |(id, count): &(i64, i64)| {
                lots.iter().any(|lot| lot.earning.0 == *id && lot.amount.count() == *count)
            };
            // All but the last are taken whole, and none twice.
            prop_assert!(items.iter().rev().skip(1).all(whole));
            prop_assert!(items.iter().all(|item| item.1 > 0));
        }
    }
}
