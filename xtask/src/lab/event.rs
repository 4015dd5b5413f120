//! Numbered deliveries as Stripe makes and signs them: the bundled paid checkout with other ids, another
//! session, another payment and another buyer for each number.

use anyhow::Context as _;
use source::samples::CHECKOUT_PAID;
use source::{Kind, Secret, Signer};

use super::house::STRIPE_SECRET;
use super::wire;

/// Ids in the sample, and the buyer's address.
const EVENT: &str = "evt_1SkQl3B7WZ01zgkWh3b8kqQe";
const SESSION: &str = "cs_test_a1YS1URlnyQCN5fUUduORoQ7Pw41PJqDWkIVQCpJPqkfIhd6tVY8XB1OLY";
const PAYMENT: &str = "pi_3SkQl0B7WZ01zgkW0Zc3hJ7Q";
const MAIL: &str = "buyer@example.com";

/// Which report of a change an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The one that there always is.
    First,
    /// The same change under another event id, as Stripe now and then sends it.
    Second,
}

/// An event and what it is about.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// `evt_...`
    pub(crate) id: String,
    /// The buyer's mail address in full: what must not stand anywhere.
    pub(crate) mail: String,
    /// The raw body.
    pub(crate) body: Vec<u8>,
}

/// The paid checkout number `number`: the same number and report give the same bytes.
///
/// # Errors
/// The sample lost one of its ids.
pub(crate) fn checkout(number: u64, report: Report) -> anyhow::Result<Event> {
    let id = match report {
        Report::First => format!("evt_1Lab{number:012}aaaaaaaa"),
        Report::Second => format!("evt_1Lab{number:012}bbbbbbbb"),
    };
    let session = format!("cs_test_lab{number:012}");
    let payment = format!("pi_3Lab{number:012}");
    let mail = format!("buyer.{number:06}@lab-mail.example");
    let mut body = CHECKOUT_PAID.to_owned();
    for (old, new) in [(EVENT, &id), (SESSION, &session), (PAYMENT, &payment), (MAIL, &mail)] {
        anyhow::ensure!(body.contains(old), "the sample lost {old}");
        body = body.replace(old, new);
    }
    Ok(Event { id, mail, body: body.into_bytes() })
}

/// The request that delivers an event at a time in Unix seconds, over a connection that closes after it.
///
/// # Errors
/// The secret is none; it is fixed, so never.
pub(crate) fn delivery(event: &Event, now: i64) -> anyhow::Result<Vec<u8>> {
    let secret = Secret::new(STRIPE_SECRET).context("the secret of the laboratory")?;
    let signer = Signer::new(Kind::Stripe, &secret).context("the secret of the laboratory")?;
    let headers = signer.sign(&event.body, now, "");
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    Ok(wire::request("POST", "/webhooks/stripe", &headers, &event.body))
}

#[cfg(test)]
mod tests {
    use source::samples::CHECKOUT_PAID_SECOND_ID;

    use super::*;

    #[test]
    fn both_reports_of_a_number_have_one_session_and_two_ids() {
        assert!(CHECKOUT_PAID_SECOND_ID.contains(SESSION) && !CHECKOUT_PAID_SECOND_ID.contains(EVENT));
        let (first, second) = (checkout(7, Report::First).unwrap(), checkout(7, Report::Second).unwrap());
        let has = |event: &Event, session: &str| String::from_utf8_lossy(&event.body).contains(session);
        assert!(has(&first, "cs_test_lab000000000007") && has(&second, "cs_test_lab000000000007"));
        assert_ne!(first.id, second.id);
        assert!(!has(&checkout(8, Report::First).unwrap(), "cs_test_lab000000000007"));
    }
}
