//! Handles on what seals, tells apart and derives secrets (section 13): the crate `custody`'s, for the commands'
//! preparations. No key is in here, and nothing of it is called inside a transaction but [`SmsCodes`], which
//! only computes.

use std::sync::Arc;

use custody::sms::SmsCodes;
use custody::{Custody, Fingerprints, Verifier};

/// Envelope, pepper and SMS key of one server. `Debug` shows names and versions.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Seals credentials, payout accounts and phones.
    pub custody: Custody,
    /// Finds a secret that is known already.
    pub fingerprints: Arc<Fingerprints>,
    /// Derives and compares SMS codes; `None` where no SMS service is set up, and then nothing is withdrawn
    /// (section 12, row 10).
    pub sms: Option<Arc<SmsCodes>>,
    /// Asks providers about credentials.
    pub verifier: Arc<Verifier>,
}

#[cfg(test)]
impl Keys {
    /// Keys made of counts, for tables of tests.
    pub(crate) fn for_tests() -> Self {
        use custody::provider::{Settings, policy::Policy};
        use custody::{LocalKeyring, Material};
        use kernel::money::{Quota, QuotaUnit};
        use testkit::{CountingRandom, MovableClock, Seeded};

        let material = |seed: u64| {
            let mut seeded = Seeded::new(seed);
            let bytes: Vec<u8> = (0..4).flat_map(|_| seeded.bits().to_be_bytes()).collect();
            Material::from_bytes(format!("key {seed}"), &bytes).unwrap()
        };
        let random = || Arc::new(CountingRandom::default());
        let keyring = LocalKeyring::new("local/supply", 1, vec![(1, material(1))], random()).unwrap();
        Self {
            custody: Custody::new(Arc::new(keyring), random()),
            fingerprints: Arc::new(Fingerprints::new(&material(2), None).unwrap()),
            sms: Some(Arc::new(SmsCodes::new((1, &material(3)), None).unwrap())),
            verifier: Arc::new(
                Verifier::new(
                    Settings::default(),
                    Policy::standard(Quota::whole(10_000_000, QuotaUnit::Token).unwrap()),
                    Arc::new(MovableClock::at(1_774_576_984)),
                    random(),
                )
                .unwrap(),
            ),
        }
    }
}
