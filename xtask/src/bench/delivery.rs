//! Deliveries of real shape, unique by number and cheap to make.
//!
//! A request is laid out once, with a Stripe checkout event as its body; each
//! delivery overwrites the ids, which have fixed widths and places, and signs.
//! The load shares the cores with the server, so what isn't needed isn't done.

use std::net::SocketAddr;
use std::ops::Range;

use anyhow::{Context, Result};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Signing secret of the source `stripe`, for these runs only.
pub(crate) const STRIPE_SECRET: &str = "whsec_bench_4f1d0c7b9a3e5862";

/// Bearer token of the source `internal`, for these runs only.
pub(crate) const INTERNAL_TOKEN: &str = "bench-internal-7c2f9e61d0b84a35";

/// A paid checkout, certified by default. Values are made up.
const CHECKOUT: &str = include_str!("../../../bench/checkout.session.completed.paid.json");

/// The ids in [`CHECKOUT`]: text, then which part of it a delivery overwrites.
const EVENT_ID: (&str, Range<usize>) = ("evt_1SkQl3B7WZ01zgkWh3b8kqQe", 20..28);
const EVENT_ID_TIME: (&str, Range<usize>) = ("evt_1SkQl3B7WZ01zgkWh3b8kqQe", 5..10);
const SESSION_ID: (&str, Range<usize>) =
    ("cs_test_a1YS1URlnyQCN5fUUduORoQ7Pw41PJqDWkIVQCpJPqkfIhd6tVY8XB1OLY", 10..66);
const INTENT_ID: (&str, Range<usize>) = ("pi_3SkQl0B7WZ01zgkW0Zc3hJ7Q", 19..27);

/// Type of the certified event, and one of the same length that no policy
/// certifies.
const CERTIFIED_TYPE: &str = "checkout.session.completed";
const RECORDED_TYPE: &str = "ledger.statement.completed";

/// Deliveries that share one second in their id, as a busy sender's do.
const PER_SECOND: u64 = 5_000;

/// Where a transfer has its key (a number of so many digits) and its account.
const KEY: &str = "7777777777777777777";
const ACCOUNT: &str = "777777";

/// Accounts of transfers: numbered from the first, so many.
pub(crate) const FIRST_ACCOUNT: u64 = 100_000;
pub(crate) const ACCOUNTS: u64 = 100_000;

/// What each transfer takes from its account.
pub(crate) const AMOUNT: u64 = 100;

/// The account of transfer `number`. The first [`ACCOUNTS`] transfers have one each, so that its balance
/// tells how often they took effect.
pub(crate) fn account(number: u64) -> u64 {
    // A prime that is no factor of the count: each account's turn comes once a round.
    FIRST_ACCOUNT + number.wrapping_mul(7_919) % ACCOUNTS
}

/// How the sender shows who it is.
#[derive(Clone)]
enum Proof {
    /// Stripe's scheme: HMAC-SHA256 over time, dot and body, hexadecimal.
    Signed { mac: Hmac<Sha256>, at: Range<usize>, body: Range<usize> },
    /// The bearer token stands in the head already.
    Bearer,
}

/// What a slot of the body holds.
#[derive(Clone, Copy)]
enum Slot {
    Time,
    Number,
    Random,
    Key,
    Account,
}

/// One request, laid out; [`Delivery::numbered`] turns it into the n-th.
#[derive(Clone)]
pub(crate) struct Delivery {
    bytes: Vec<u8>,
    slots: Vec<(Range<usize>, Slot)>,
    proof: Proof,
}

impl Delivery {
    /// Paid checkouts, signed as Stripe signs; `time` in Unix seconds is the
    /// signature's.
    ///
    /// # Errors
    /// The bundled event lost one of its ids.
    pub(crate) fn checkout(to: SocketAddr, time: u64) -> Result<Delivery> {
        let mac = Hmac::new_from_slice(STRIPE_SECRET.as_bytes())?.chain_update(format!("{time}."));
        let blank = "0".repeat(64);
        let header = format!("Stripe-Signature: t={time},v1={blank}");
        let mut delivery = Delivery::laid_out(to, "stripe", &header, CHECKOUT)?;
        let text = std::str::from_utf8(&delivery.bytes)?;
        let at = text.find(&blank).context("the request has no room for the signature")?;
        let body = text.len() - CHECKOUT.len()..text.len();
        delivery.proof = Proof::Signed { mac, at: at..at + blank.len(), body };
        Ok(delivery)
    }

    /// Events of our own tasks, of a type that gets no certificate; same size.
    ///
    /// # Errors
    /// The bundled event lost one of its ids.
    pub(crate) fn internal(to: SocketAddr) -> Result<Delivery> {
        let body = CHECKOUT.replace(CERTIFIED_TYPE, RECORDED_TYPE);
        let header = format!("Authorization: Bearer {INTERNAL_TOKEN}");
        Delivery::laid_out(to, "internal", &header, &body)
    }

    /// Transfers with an idempotency key: `path` may hold `{account}`, `headers` are whole lines.
    ///
    /// # Errors
    /// Never: the places are in the text that is made here.
    pub(crate) fn transfer(to: SocketAddr, path: &str, headers: &str) -> Result<Delivery> {
        let body = format!(r#"{{"account":{ACCOUNT},"amount":{AMOUNT}}}"#);
        let path = path.replace("{account}", ACCOUNT);
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: {to}\r\nUser-Agent: bench\r\nAccept: */*\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nIdempotency-Key: {KEY}\r\n{headers}\r\n{body}",
            body.len()
        );
        let key = text.find(KEY).context("the request has no key")?;
        let accounts = text.match_indices(ACCOUNT).map(|(start, _)| start..start + ACCOUNT.len());
        // The key's own digits look like an account's.
        let apart = |place: &Range<usize>| place.end <= key || place.start >= key + KEY.len();
        let mut slots: Vec<_> = accounts.filter(apart).map(|place| (place, Slot::Account)).collect();
        slots.push((key..key + KEY.len(), Slot::Key));
        Ok(Delivery { bytes: text.into_bytes(), slots, proof: Proof::Bearer })
    }

    fn laid_out(to: SocketAddr, source: &str, proof: &str, body: &str) -> Result<Delivery> {
        let head = format!(
            "POST /webhooks/{source} HTTP/1.1\r\nHost: {to}\r\n\
             User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\nAccept: */*\r\n\
             Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n{proof}\r\n\r\n",
            body.len()
        );
        let slots = [
            (EVENT_ID_TIME, Slot::Time),
            (EVENT_ID, Slot::Number),
            (SESSION_ID, Slot::Random),
            (INTENT_ID, Slot::Number),
        ];
        let slots = slots
            .into_iter()
            .map(|((id, part), slot)| {
                let start =
                    head.len() + body.find(id).with_context(|| format!("the event has no id {id}"))?;
                Ok((start + part.start..start + part.end, slot))
            })
            .collect::<Result<_>>()?;
        Ok(Delivery { bytes: format!("{head}{body}").into_bytes(), slots, proof: Proof::Bearer })
    }

    /// The request of delivery `number`: the same number gives the same event.
    pub(crate) fn numbered(&mut self, number: u64) -> &[u8] {
        for (range, slot) in &self.slots {
            if let Some(place) = self.bytes.get_mut(range.clone()) {
                slot.fill(place, number);
            }
        }
        if let Proof::Signed { mac, at, body } = &self.proof {
            let body = self.bytes.get(body.clone()).unwrap_or_default();
            let mac = mac.clone().chain_update(body).finalize().into_bytes();
            if let Some(place) = self.bytes.get_mut(at.clone()) {
                // The place is twice as long as the code: it can't fail.
                let _ = hex::encode_to_slice(mac, place);
            }
        }
        &self.bytes
    }
}

impl Slot {
    fn fill(self, place: &mut [u8], number: u64) {
        match self {
            Slot::Time => letters(place, [number / PER_SECOND]),
            // Odd factor: a permutation of the 40 bits that eight letters hold,
            // so ids of one second look random and never meet.
            Slot::Number => letters(place, [number.wrapping_mul(0x9E_3779_B97F_4A7D)]),
            Slot::Random => letters(place, (0..).map(|part| mixed(number.wrapping_add(part << 48)))),
            Slot::Key => digits(place, KEYS_FROM + mixed(number) % KEYS),
            Slot::Account => digits(place, account(number)),
        }
    }
}

/// Writes 5 bits a letter, the first letter from the highest bits used, twelve
/// letters a word.
fn letters(place: &mut [u8], words: impl IntoIterator<Item = u64>) {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    for (chunk, mut word) in place.chunks_mut(12).zip(words) {
        for letter in chunk.iter_mut().rev() {
            let index = usize::try_from(word & 31).unwrap_or_default();
            *letter = ALPHABET.get(index).copied().unwrap_or(b'0');
            word >>= 5;
        }
    }
}

/// Keys are all the numbers of 19 digits that start with 1 to 8.
const KEYS_FROM: u64 = 1_000_000_000_000_000_000;
const KEYS: u64 = 8 * KEYS_FROM;

/// Writes the last digits of a number, as many as there are places.
fn digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

/// The finaliser of SplitMix64: spreads a counter over all bits.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn to() -> SocketAddr {
        "127.0.0.1:80".parse().unwrap()
    }

    fn body(request: &[u8]) -> serde_json::Value {
        let text = std::str::from_utf8(request).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    #[test]
    fn numbers_give_distinct_events_of_distinct_sessions() {
        let mut delivery = Delivery::checkout(to(), 1_767_225_033).unwrap();
        let (mut events, mut sessions) = (HashSet::new(), HashSet::new());
        for number in 0..20_000 {
            let body = body(delivery.numbered(number));
            events.insert(body["id"].as_str().unwrap().to_owned());
            sessions.insert(body["data"]["object"]["id"].as_str().unwrap().to_owned());
        }
        assert_eq!((events.len(), sessions.len()), (20_000, 20_000));
    }

    #[test]
    fn a_number_gives_the_same_request_again() {
        let mut delivery = Delivery::checkout(to(), 1_767_225_033).unwrap();
        let first = delivery.numbered(7).to_vec();
        assert_ne!(first, delivery.numbered(8));
        assert_eq!(first, delivery.numbered(7));
    }

    #[test]
    fn the_signature_covers_time_and_body_as_sent() {
        let mut delivery = Delivery::checkout(to(), 1_767_225_033).unwrap();
        let request = String::from_utf8(delivery.numbered(3).to_vec()).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let sent = head.split_once("t=1767225033,v1=").unwrap().1;
        let mac = Hmac::<Sha256>::new_from_slice(STRIPE_SECRET.as_bytes()).unwrap();
        let mac = mac.chain_update("1767225033.").chain_update(body).finalize().into_bytes();
        assert_eq!(sent, hex::encode(mac));
    }

    #[test]
    fn a_transfer_has_a_key_and_an_account_of_its_own_in_path_and_body() {
        let mut delivery =
            Delivery::transfer(to(), "/Account/{account}/transfer", "Cookie: a=b\r\n").unwrap();
        let mut accounts = HashSet::new();
        for number in 0..ACCOUNTS {
            accounts.insert(account(number));
        }
        assert_eq!(u64::try_from(accounts.len()), Ok(ACCOUNTS));
        let request = String::from_utf8(delivery.numbered(3).to_vec()).unwrap();
        let account = account(3);
        assert!(request.starts_with(&format!("POST /Account/{account}/transfer HTTP/1.1\r\n")), "{request}");
        assert_eq!(body(request.as_bytes())["account"], account);
        let key = |request: &str| request.split("Idempotency-Key: ").nth(1).unwrap()[..19].to_owned();
        let other = String::from_utf8(delivery.numbered(4).to_vec()).unwrap();
        assert!(key(&request).parse::<u64>().is_ok() && key(&request) != key(&other));
        assert!(request.contains("\r\nCookie: a=b\r\n\r\n{"), "{request}");
    }

    #[test]
    fn an_internal_event_has_the_size_of_a_checkout() {
        let event = body(Delivery::internal(to()).unwrap().numbered(0));
        assert_eq!(event["type"], RECORDED_TYPE);
        assert_eq!(RECORDED_TYPE.len(), CERTIFIED_TYPE.len());
    }
}
