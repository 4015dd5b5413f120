//! Made-up input: nothing panics, what is sealed opens, and only where it belongs.

use std::sync::Arc;

use custody::envelope::Envelope;
use custody::payout::{Account, Method};
use custody::sms::Phone;
use custody::{AccountType, Custody, LocalKeyring, Mark, Material, Place, Provider, format};
use futures::FutureExt;
use proptest::prelude::*;
use secrecy::{ExposeSecret, SecretString};
use testkit::{CountingRandom, Seeded};

fn custody() -> Custody {
    let mut seeded = Seeded::new(11);
    let bytes: Vec<u8> = (0..4).flat_map(|_| seeded.bits().to_le_bytes()).collect();
    let material = Material::from_bytes("kek", &bytes).unwrap();
    let ring = LocalKeyring::new("local", 1, vec![(1, material)], Arc::new(CountingRandom::default()));
    Custody::new(Arc::new(ring.unwrap()), Arc::new(CountingRandom::default()))
}

/// The local keyring waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

/// Four parts that a careless concatenation would mix up.
fn parts() -> impl Strategy<Value = (i64, String, String, String)> {
    (0..20i64, "[a1|.]{0,3}", "[a1|.]{0,3}", "[a1|.]{0,3}")
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), shaped in "v1\\.[0-9]{0,3}(\\.[A-Za-z0-9_=-]{0,40}){0,4}") {
        for text in [&text, &shaped] {
            let _ = Envelope::parse(text);
            let _ = Phone::parse(text);
            let secret = SecretString::from(text.as_str());
            for provider in Provider::ALL {
                for kind in AccountType::ALL {
                    let _ = format::check(provider, kind, &secret);
                }
            }
            for method in Method::ALL {
                if let Ok(account) = Account::parse(method, &secret) {
                    // The one spelling is its own.
                    let again = Account::parse(method, account.secret()).unwrap();
                    prop_assert_eq!(again.secret().expose_secret(), account.secret().expose_secret());
                    prop_assert!(account.masked().contains("***"));
                }
            }
        }
    }

    #[test]
    fn a_key_of_one_provider_never_passes_as_anthropic_s_or_google_s(text in "sk-[A-Za-z0-9]{20,60}") {
        let mark = |provider| format::check(provider, AccountType::ApiKey, &SecretString::from(text.as_str())).mark;
        prop_assert_eq!(mark(Provider::Openai), Mark::Pass);
        prop_assert_eq!(mark(Provider::Anthropic), Mark::Fail);
        prop_assert_eq!(mark(Provider::Gemini), Mark::Fail);
    }

    #[test]
    fn what_is_sealed_opens_in_its_place_and_in_no_other(
        secret in "\\PC{1,80}", here in parts(), there in parts(),
    ) {
        fn place((tenant_id, table, row, platform): &(i64, String, String, String)) -> Place<'_> {
            Place { tenant_id: *tenant_id, table, row, platform }
        }
        let custody = custody();
        let sealed = now(custody.seal(&place(&here), &SecretString::from(secret.as_str()))).unwrap();
        let opened = now(custody.open(&place(&here), "local", &sealed.envelope)).unwrap();
        prop_assert_eq!(opened.expose_secret(), secret);
        prop_assert_eq!(Envelope::parse(&sealed.envelope).unwrap().stored(), sealed.envelope.clone());
        let elsewhere = now(custody.open(&place(&there), "local", &sealed.envelope));
        prop_assert_eq!(elsewhere.is_ok(), here == there);
    }
}
