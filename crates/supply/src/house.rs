//! What all commands of one server share.

use std::fmt;
use std::sync::Arc;

use guard::Guard;
use kernel::{Clock, Random};
use secrecy::{ExposeSecret as _, SecretString};

use crate::keys::Keys;
use crate::policy::Policy;

/// Policy, randomness, clock, keys, and who hears of which event.
#[derive(Clone)]
pub struct House {
    /// The numbers of section 23.
    pub policy: Policy,
    /// Where ids and numbers come from.
    pub random: Arc<dyn Random>,
    /// The time for preparations; decisions get theirs from the door.
    pub clock: Arc<dyn Clock>,
    /// What seals and tells apart secrets.
    pub keys: Keys,
    /// Who is told what; see [`House::destinations`].
    pub routes: Vec<Route>,
    /// What looks at answers, audit and outbox before they are written (section 15.1); a server has one.
    pub guard: Option<Arc<Guard>>,
}

/// Events whose name begins with `prefix` go to `destination`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// `supply.settlement.` for all of settlements, the whole name for one.
    pub prefix: String,
    /// Name of a channel of the relay.
    pub destination: String,
}

/// What an action does to the credential of its account.
#[derive(Clone, Debug)]
pub enum Live {
    /// This one is the account's from now on.
    Taken(SecretString),
    /// It has none any more.
    Gone,
}

impl House {
    /// A house for tables of tests, with nobody to tell, in the spring of 2026.
    #[cfg(test)]
    pub(crate) fn for_tests(policy: Policy) -> Self {
        let random = Arc::new(testkit::CountingRandom::default());
        let clock = Arc::new(testkit::MovableClock::at(1_774_576_984));
        Self { policy, random, clock, keys: Keys::for_tests(), routes: Vec::new(), guard: None }
    }

    /// Channels that are to hear of the event called `name`, each once.
    #[must_use]
    pub fn destinations(&self, name: &str) -> Vec<String> {
        let mut destinations: Vec<String> = Vec::new();
        for route in self.routes.iter().filter(|route| name.starts_with(&route.prefix)) {
            if !destinations.contains(&route.destination) {
                destinations.push(route.destination.clone());
            }
        }
        destinations
    }

    /// A credential that its provider has just confirmed is in this process: parts of it must not leave (section
    /// 15.2). Only such ones: whoever could name any text would see the answers of others withheld.
    pub(crate) fn glimpse(&self, secret: &SecretString) {
        // Of one that is too short for parts the guard knows the shape at most.
        let _ = self.guard.as_ref().map(|guard| guard.glimpse(secret.expose_secret()));
    }

    /// What is live since an action was done, and what is not any more.
    pub fn settled(&self, live: &Live, account_id: i64) {
        let Some(guard) = &self.guard else { return };
        let name = format!("account:{account_id}");
        match live {
            Live::Taken(secret) => guard.keep(&name, secret.expose_secret()),
            Live::Gone => guard.forget(&name),
        }
    }

    /// `prefix`, the day in Shanghai without dashes, and 12 characters of Crockford's base32 (60 random bits):
    /// `STL20260327` + 12 (section 5.7). Not to be guessed.
    #[must_use]
    pub fn number(&self, prefix: &str, day: &str) -> String {
        const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        let bits = u64::from_be_bytes(bytes);
        let digit = |place: u32| DIGITS.get(usize::try_from(bits >> (5 * place) & 31).unwrap_or(0)).copied();
        let digits = (0..12).rev().filter_map(digit);
        format!("{prefix}{}{}", day.replace('-', ""), digits.map(char::from).collect::<String>())
    }
}

impl fmt::Debug for House {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("House").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(routes: &[(&str, &str)]) -> House {
        let routes = routes
            .iter()
            .map(|(prefix, destination)| Route {
                prefix: (*prefix).into(),
                destination: (*destination).into(),
            })
            .collect();
        House { routes, ..crate::fixtures::house() }
    }

    #[test]
    fn an_event_goes_to_each_of_its_channels_once() {
        let house =
            house(&[("supply.", "bus"), ("supply.settlement.", "statements"), ("supply.settlement.", "bus")]);
        assert_eq!(house.destinations("supply.settlement.cancel.succeeded"), ["bus", "statements"]);
        assert_eq!(house.destinations("supply.package.publish.succeeded"), ["bus"]);
        assert!(house.destinations("certify.certificate.issue.succeeded").is_empty());
    }

    #[test]
    fn a_number_has_its_day_and_twelve_digits_that_differ() {
        let house = house(&[]);
        let (one, two) = (house.number("STL", "2026-03-27"), house.number("STL", "2026-03-27"));
        assert_eq!((one.len(), one.get(..11)), (23, Some("STL20260327")));
        assert_ne!(one, two);
    }
}
