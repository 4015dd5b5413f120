//! Parts of live secrets: shapes miss half a key, so the guard also knows the secrets that were decrypted,
//! as keyed digests of their windows (section 15.2, "Fragments"). Not here: which texts are looked at.
//!
//! Of a secret three things stay in memory: HMACs of its windows, cut to 16 bytes; 30 bits of a second keyed
//! hash of each window, in no order that leads back to the HMACs; its name. Never the text.
//!
//! Each place of an exit's text is hashed by two multiplications under the key and looked up in a filter of
//! bits; only where the filter says "maybe" (less than one place in a thousand) the HMAC decides. The hash
//! does not roll from place to place: a window fits into two words, and without the chain from one place to
//! the next the processor works on several at once.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;
use zeroize::Zeroizing;

use crate::mac::MacKey;
use crate::query::is_forbidden_name;

/// Length of a window, in bytes: parts of a secret shorter than this are not recognised.
pub const WINDOW: usize = 12;

/// Bits of the filter for each window, so that few places are answered with a wrong "maybe".
const BITS_PER_WINDOW: usize = 128;

/// The filter's smallest and largest size in words of 64 bits: 512 bytes, and 8 MiB for half a million windows; with
/// more of them it only gets slower.
const WORDS: Range<usize> = 64..1 << 20;

/// A secret of which no window exists.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret has less than {WINDOW} bytes, so parts of it can't be recognised; use a longer one")]
pub struct TooShort;

/// What is kept of one secret.
struct Kept {
    digests: Vec<[u8; 16]>,
    /// Sorted, so that the order of the windows is gone.
    places: Vec<u32>,
}

/// The live secrets.
pub struct Fragments {
    mac: MacKey,
    mixing: Zeroizing<[u64; 2]>,
    secrets: HashMap<String, Kept>,
    digests: HashMap<[u8; 16], u32>,
    filter: Vec<u64>,
    /// Windows whose bits stand in the filter, and how many of them are of forgotten secrets.
    marked: usize,
    stale: usize,
}

impl Fragments {
    /// An empty set under a random key. The key need not outlive the set.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        let seed = Zeroizing::new(MacKey::new(key, "guard fragments filter").tag(b""));
        let word = |at: usize| {
            let bytes = seed.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(1, u64::from_le_bytes)
        };
        Self {
            mac: MacKey::new(key, "guard fragments window"),
            mixing: Zeroizing::new([word(0), word(8)]),
            secrets: HashMap::new(),
            digests: HashMap::new(),
            filter: vec![0; WORDS.start],
            marked: 0,
            stale: 0,
        }
    }

    /// Takes a decrypted secret in, under a name such as its `key_id`; a name that is known is replaced. Of a
    /// credential that is a JSON object, the members with names of credentials are taken (of one without such
    /// names, all texts); of a PEM file, the lines of the key; of a JWT, the signature, since the rest has the
    /// same words as other tokens. A public prefix such as `sk-proj-` is left out, and so are windows of one or
    /// two different characters.
    ///
    /// # Errors
    /// No part of the secret is long enough for a window. An older secret under the name is forgotten even so.
    pub fn remember(&mut self, name: &str, secret: &str) -> Result<(), TooShort> {
        self.forget(name);
        let mut kept = Kept { digests: Vec::new(), places: Vec::new() };
        for part in parts(secret) {
            for window in windows(&part) {
                kept.digests.push(self.digest(window));
                kept.places.push(self.place(window));
            }
        }
        if kept.digests.is_empty() {
            return Err(TooShort);
        }
        kept.places.sort_unstable();
        for digest in &kept.digests {
            *self.digests.entry(*digest).or_insert(0) += 1;
        }
        self.mark(&kept.places);
        self.secrets.insert(name.to_owned(), kept);
        if words_for(self.marked) > self.filter.len() {
            self.rebuild();
        }
        Ok(())
    }

    /// Drops a secret, for instance of a deleted account. Windows that another one shares stay.
    pub fn forget(&mut self, name: &str) {
        let Some(kept) = self.secrets.remove(name) else { return };
        self.stale += kept.places.len();
        for digest in kept.digests {
            if let Some(count) = self.digests.get_mut(&digest) {
                *count -= 1;
                if *count == 0 {
                    self.digests.remove(&digest);
                }
            }
        }
        // A bit that stayed costs a needless HMAC now and then; a rebuilt filter costs all the others' places.
        if self.stale * 2 > self.marked {
            self.rebuild();
        }
    }

    /// Number of secrets known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// Whether no secret is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The first place at which a window of a live secret stands, from `from` on.
    #[must_use]
    pub fn find(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        if self.secrets.is_empty() {
            return None;
        }
        let rest = text.get(from..)?;
        let at = rest.array_windows::<WINDOW>().position(|window| self.knows(window))?;
        Some(from + at..from + at + WINDOW)
    }

    /// All places, windows that overlap or touch joined.
    pub(crate) fn find_all(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        let mut from = 0;
        while let Some(window) = self.find(text, from) {
            from = window.start + 1;
            match places.last_mut() {
                Some(last) if window.start <= last.end => last.end = window.end,
                _ => places.push(window),
            }
        }
        places
    }

    fn knows(&self, window: &[u8; WINDOW]) -> bool {
        let place = self.place(window);
        let (word, bits) = slot(place, self.filter.len());
        self.filter.get(word).is_some_and(|set| set & bits == bits)
            && self.digests.contains_key(&self.digest(window))
    }

    fn digest(&self, window: &[u8; WINDOW]) -> [u8; 16] {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ..] = self.mac.tag(window);
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
    }

    /// 32 bits of a keyed hash: the two words of the window, each mixed with the key, multiplied and folded.
    fn place(&self, window: &[u8; WINDOW]) -> u32 {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *window;
        let [first, second] = *self.mixing;
        let low = u64::from_le_bytes([a, b, c, d, e, f, g, h]) ^ first;
        let high = u64::from(u32::from_le_bytes([i, j, k, l])).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ second;
        let folded = low.wrapping_mul(high | 1);
        let folded = (folded ^ (folded >> 32) ^ high).wrapping_mul(0xd6e8_feb8_6659_fd93);
        // The upper half of a product is the mixed one; the shift leaves 32 bits.
        u32::try_from(folded >> 32).unwrap_or(u32::MAX)
    }

    /// The filter anew from the places that are kept: sized for what is there, with nothing left of what went.
    fn rebuild(&mut self) {
        let kept = std::mem::take(&mut self.secrets);
        (self.marked, self.stale) = (0, 0);
        self.filter = vec![0; words_for(kept.values().map(|kept| kept.places.len()).sum())];
        for kept in kept.values() {
            self.mark(&kept.places);
        }
        self.secrets = kept;
    }

    fn mark(&mut self, places: &[u32]) {
        let words = self.filter.len();
        self.marked += places.len();
        for place in places {
            let (word, bits) = slot(*place, words);
            if let Some(set) = self.filter.get_mut(word) {
                *set |= bits;
            }
        }
    }
}

/// Words of the filter for some windows, a power of two, so that it doubles when it grows.
fn words_for(windows: usize) -> usize {
    (windows * BITS_PER_WINDOW / 64).next_power_of_two().clamp(WORDS.start, WORDS.end)
}

/// A word of the filter and two bits in it, from disjoint parts of a place.
const fn slot(place: u32, words: usize) -> (usize, u64) {
    ((place >> 12) as usize & (words - 1), (1 << (place & 63)) | (1 << ((place >> 6) & 63)))
}

/// The windows of a part that tell it apart.
fn windows(part: &str) -> impl Iterator<Item = &[u8; WINDOW]> {
    let start = public_prefix(part).min(part.len().saturating_sub(WINDOW));
    part.as_bytes().get(start..).unwrap_or_default().array_windows().filter(|window| is_telling(window))
}

/// Whether a window of a secret stands in a text; of one that has none, the whole.
pub(crate) fn shares(text: &[u8], secret: &str) -> bool {
    let parts = parts(secret);
    let mut windows = parts.iter().flat_map(|part| windows(part)).peekable();
    if windows.peek().is_none() {
        let whole = secret.trim().as_bytes();
        return !whole.is_empty() && text.windows(whole.len()).any(|window| window == whole);
    }
    windows.any(|window| text.array_windows().any(|place| place == window))
}

/// A window of one or two different characters tells nothing and stands in innocent texts: `000000000000`.
fn is_telling(window: &[u8; WINDOW]) -> bool {
    let first = window.first();
    let second = window.iter().find(|byte| Some(*byte) != first);
    window.iter().any(|byte| Some(byte) != first && Some(byte) != second)
}

/// The parts of a credential that are secret.
fn parts(secret: &str) -> Vec<Zeroizing<String>> {
    let trimmed = secret.trim();
    let members = trimmed.starts_with('{').then(|| serde_json::from_str::<Value>(trimmed).ok()).flatten();
    let mut texts = Vec::new();
    if let Some(mut object) = members {
        collect(&object, Named::Secret, &mut texts);
        if texts.is_empty() {
            collect(&object, Named::Anyhow, &mut texts);
        }
        wipe(&mut object);
    }
    if texts.is_empty() {
        texts.push(Zeroizing::new(trimmed.to_owned()));
    }
    texts.into_iter().map(|text| plain(&text)).collect()
}

#[derive(Clone, Copy)]
enum Named {
    Secret,
    Anyhow,
}

fn collect(value: &Value, named: Named, texts: &mut Vec<Zeroizing<String>>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let telling = is_forbidden_name(name) || name == "private_key";
                match (value, named) {
                    (Value::String(text), Named::Secret) if telling => {
                        texts.push(Zeroizing::new(text.clone()));
                    }
                    (Value::String(_), Named::Secret) => {}
                    (value, _) => collect(value, named, texts),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, named, texts)),
        Value::String(text) if matches!(named, Named::Anyhow) => texts.push(Zeroizing::new(text.clone())),
        _ => {}
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => zeroize::Zeroize::zeroize(text),
        Value::Array(values) => values.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        _ => {}
    }
}

/// A PEM file's lines without their armour, a JWT's signature, anything else as it is.
fn plain(text: &str) -> Zeroizing<String> {
    if text.contains("-----BEGIN ") {
        return Zeroizing::new(text.lines().map(str::trim).filter(|line| !line.contains("-----")).collect());
    }
    let signature = text.starts_with("eyJ").then(|| text.rsplit_once('.')).flatten();
    Zeroizing::new(signature.map_or(text, |(_, signature)| signature).to_owned())
}

/// Starts of credentials that everybody knows, longer ones first.
const PREFIXES: [&str; 17] = [
    "sk-svcacct-",
    "sk-service-",
    "sk-admin-",
    "sk-proj-",
    "sk-None-",
    "sk-ant-",
    "sk-",
    "sess-",
    "AIza",
    "AQ.",
    "ya29.",
    "1//0",
    "GOCSPX-",
    "bce-v3/ALTAK",
    "ALTAK",
    "AKID",
    "lgw_",
];

/// Length of the public start of a secret, in bytes.
fn public_prefix(secret: &str) -> usize {
    let Some(prefix) = PREFIXES.iter().find(|prefix| secret.starts_with(**prefix)) else { return 0 };
    let rest = secret.get(prefix.len()..).unwrap_or_default();
    // `sk-ant-api03-`, `bce-v3/ALTAKSP-`: the kind of key goes on up to a hyphen.
    let kind = match *prefix {
        "sk-ant-" => rest.find('-').filter(|at| *at <= 12).map_or(0, |at| at + 1),
        "bce-v3/ALTAK" | "ALTAK" => rest.find('-').filter(|at| *at <= 4).map_or(0, |at| at + 1),
        _ => 0,
    };
    prefix.len() + kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_prefix_ends_where_the_secret_begins() {
        for (secret, prefix) in [
            ("sk-abcdef", "sk-"),
            ("sk-proj-abc", "sk-proj-"),
            ("sk-ant-api03-abc", "sk-ant-api03-"),
            ("bce-v3/ALTAKSP-abc/def", "bce-v3/ALTAKSP-"),
            ("AIzaabc", "AIza"),
            ("plain", ""),
        ] {
            assert_eq!(&secret[..public_prefix(secret)], prefix);
        }
    }

    #[test]
    fn the_filter_says_maybe_for_less_than_one_place_in_a_thousand() {
        let mut fragments = Fragments::new(&[7; 32]);
        for index in 0..100_u64 {
            let secret =
                format!("sk-{}", hex::encode(MacKey::new(&[1; 32], "test").tag(&index.to_be_bytes())));
            fragments.remember(&index.to_string(), &secret).unwrap();
        }
        let places = 200_000_u64;
        let maybe = (0..places).filter(|index| {
            let mut window = *b"............";
            window[2..10].copy_from_slice(&index.to_be_bytes());
            let (word, bits) = slot(fragments.place(&window), fragments.filter.len());
            fragments.filter[word] & bits == bits
        });
        let maybe = maybe.count();
        assert!(maybe < 200, "{maybe} of {places}");
    }
}
