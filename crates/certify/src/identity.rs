//! What an event is called: its identity (account and the sender's id), its reference, its slug.

use hmac::{Hmac, KeyInit as _, Mac as _};
use kernel::Digest;
use sha2::Sha256;

/// Longest encoded id inside a reference; a longer one is named by its digest.
const ID_MAX: usize = 300;

/// An event's identity and the reference made from it (AuditVisa specification 2.3, 5.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Scope of the id: the source's account. Two endpoints of one account share it.
    pub account: String,
    /// The sender's id, byte for byte.
    pub event_id: String,
    /// `av_evt_...`, unique: the same for one identity, different for two.
    pub reference: String,
}

impl Identity {
    /// `av_` + id for plain ids (`evt_` and letters, digits, `_`) of the account whose references are
    /// plain; `av_evt_<account>~<id>` for all others, with the id percent-encoded where it is not
    /// unreserved. A plain id holds no `~`, so no two identities share a reference.
    #[must_use]
    pub fn new(account: &str, event_id: &str, plain: Plain) -> Self {
        let reference = match plain {
            Plain::Yes if is_plain(event_id) => format!("av_{event_id}"),
            _ => format!("av_evt_{account}~{}", encoded(event_id)),
        };
        Self { account: account.into(), event_id: event_id.into(), reference }
    }

    /// Name of the certificate's files: 40 hex digits of a keyed digest of the identity. Deterministic,
    /// not to be guessed, and never made of outside text.
    #[must_use]
    pub fn slug(&self, key: &[u8; 32]) -> String {
        let mut text = hex::encode(keyed(key, &["slug", &self.account, &self.event_id]));
        text.truncate(40);
        text
    }
}

/// Whether an account's references are the sender's ids with `av_` in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// They are.
    Yes,
    /// They name the account.
    No,
}

/// HMAC-SHA256 over fields with their lengths.
#[must_use]
pub fn keyed(key: &[u8; 32], fields: &[&str]) -> [u8; 32] {
    let digest = Digest::of_fields(&fields.iter().map(|field| field.as_bytes()).collect::<Vec<_>>());
    // HMAC pads a key to its block with zeros; doing it here leaves no length that could be refused.
    let mut block = [0; 64];
    for (place, byte) in block.iter_mut().zip(key) {
        *place = *byte;
    }
    let mut mac = <Hmac<Sha256>>::new(&block.into());
    mac.update(digest.as_bytes());
    mac.finalize().into_bytes().into()
}

fn is_plain(id: &str) -> bool {
    id.strip_prefix("evt_")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

fn encoded(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"_-.~:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    if text.len() <= ID_MAX { text } else { format!("#{}", Digest::of(id.as_bytes())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_example_is_plain() {
        let identity = Identity::new("stripe", "evt_1T5pdGGRtItDCjuJ7AJcYMdb", Plain::Yes);
        assert_eq!(identity.reference, "av_evt_1T5pdGGRtItDCjuJ7AJcYMdb");
    }

    #[test]
    fn other_accounts_and_other_ids_name_their_account() {
        let reference = |account, id, plain| Identity::new(account, id, plain).reference;
        assert_eq!(reference("paddle", "evt_1", Plain::No), "av_evt_paddle~evt_1");
        assert_eq!(reference("stripe", "../x", Plain::Yes), "av_evt_stripe~..%2Fx");
        assert_eq!(reference("stripe", "evt_paddle~evt_1", Plain::Yes), "av_evt_stripe~evt_paddle~evt_1");
    }

    #[test]
    fn no_two_identities_share_a_reference() {
        let long = ["x".repeat(400), format!("{}y", "x".repeat(399)), format!("#{}", Digest::of(b"x"))];
        let mut ids =
            vec!["a", "A", "a ", "a%20", "%61", "é", "e\u{301}", "evt_a", "evt_main~a", "main~a", "~a"];
        ids.extend(long.iter().map(String::as_str));
        let mut seen = std::collections::HashSet::new();
        for (account, plain) in [("main", Plain::Yes), ("other", Plain::No)] {
            for id in &ids {
                let reference = Identity::new(account, id, plain).reference;
                assert!(
                    reference.len() <= 512 && reference.bytes().all(|b| b.is_ascii_graphic()),
                    "{reference}"
                );
                assert!(seen.insert(reference), "{account} {id}");
            }
        }
    }

    #[test]
    fn a_slug_depends_on_key_account_and_id() {
        let slug = |key, account, id| Identity::new(account, id, Plain::No).slug(&[key; 32]);
        let all = [slug(1, "a", "b"), slug(2, "a", "b"), slug(1, "ab", ""), slug(1, "", "ab")];
        assert!(all.iter().all(|slug| slug.len() == 40 && slug.bytes().all(|b| b.is_ascii_hexdigit())));
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 4);
    }
}
