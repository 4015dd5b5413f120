//! The alert about an account whose available quota falls below the threshold that its owner set (section 5.2): once, until
//! it was above again.

use kernel::money::Quota;

use crate::action::Event;
use crate::alert::{self, Level};
use crate::caller::Object;
use crate::rows::Account;

/// What people hear when an account, as it was read, is left with so much.
pub(crate) fn fallen(account: &Account, available: Quota) -> Option<Event> {
    let least = account.min_quota_threshold?.count();
    let fell = account.available.count() >= least && available.count() < least;
    fell.then(|| alert::raised(Level::S1, "quota_below_threshold", &Object::row(Account::KIND, account.id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{account, tokens};

    #[test]
    fn it_is_told_where_the_quota_falls_below_and_not_again_there() {
        let told = |threshold: Option<u64>, before, after| {
            let min_quota_threshold = threshold.map(tokens);
            let account = Account { available: tokens(before), min_quota_threshold, ..account() };
            fallen(&account, tokens(after)).is_some()
        };
        let table = [
            (None, 1000, 0, false),
            (Some(500), 1000, 500, false),
            (Some(500), 1000, 499, true),
            (Some(500), 500, 499, true),
            (Some(500), 499, 100, false),
            (Some(500), 100, 900, false),
            (Some(0), 1000, 0, false),
        ];
        for (threshold, before, after, wanted) in table {
            assert_eq!(told(threshold, before, after), wanted, "{threshold:?} {before} {after}");
        }
    }
}
