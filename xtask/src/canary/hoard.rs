//! What is secret in a house, in every spelling in which it could leak. The texts are never shown: a finding
//! has the secret's name.

use std::path::PathBuf;

use aho_corasick::{AhoCorasick, MatchKind};
use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use seal::key::SigningKey;

use super::{CANARIES, CREDENTIAL, OBSERVED, SECRET_END, shown};
use crate::lab::House;
use crate::lab::house::PASSPHRASE;

/// A shorter secret would be found by chance.
const SHORTEST: usize = 8;

/// All canaries of a house.
pub(crate) struct Hoard {
    /// Names, for people; several canaries may share one.
    names: Vec<String>,
    /// The plain spelling of each.
    texts: Vec<Vec<u8>>,
    automaton: AhoCorasick,
    /// The canary of each pattern.
    owners: Vec<usize>,
}

/// A secret before its spellings are made.
struct Secret {
    name: String,
    bytes: Vec<u8>,
}

impl Hoard {
    /// Reads a house's secrets: its secret files, its keys, and what was told of tokens and mails.
    ///
    /// # Errors
    /// One of them can't be read, or is too short to be looked for.
    pub(crate) fn of(house: &House) -> anyhow::Result<Self> {
        let mut secrets = Vec::new();
        for path in secret_files(house)? {
            let bytes = std::fs::read(&path)?;
            secrets.push(Secret { name: shown(house.folder(), &path), bytes });
        }
        ensure!(!secrets.is_empty(), "{} is no house: it has no secret", house.folder().display());
        keys(house, &mut secrets)?;
        let told = house.folder().join(OBSERVED).join(CANARIES);
        for line in std::fs::read_to_string(told).unwrap_or_default().lines() {
            let (name, text) = line.split_once('\t').context("a canary without a name")?;
            secrets.push(Secret { name: name.into(), bytes: text.into() });
        }
        Self::made(secrets)
    }

    fn made(secrets: Vec<Secret>) -> anyhow::Result<Self> {
        let (mut patterns, mut owners) = (Vec::new(), Vec::new());
        for (owner, secret) in secrets.iter().enumerate() {
            ensure!(secret.bytes.len() >= SHORTEST, "{} is too short to be looked for", secret.name);
            let mut spelt = spellings(&secret.bytes);
            if secret.name == CREDENTIAL {
                spelt.extend(secret.bytes.windows(SHORTEST).map(<[u8]>::to_vec));
            }
            owners.extend(spelt.iter().map(|_| owner));
            patterns.extend(spelt);
        }
        let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&patterns)?;
        let (names, texts) = secrets.into_iter().map(|secret| (secret.name, secret.bytes)).unzip();
        Ok(Self { names, texts, automaton, owners })
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.names.len()
    }

    /// The plain text of a canary, to plant it; counted round.
    pub(crate) fn text(&self, number: usize) -> &[u8] {
        self.texts.get(number % self.texts.len().max(1)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The name of a canary.
    pub(crate) fn name(&self, number: usize) -> &str {
        self.names.get(number).map(String::as_str).unwrap_or_default()
    }

    /// Canaries in some bytes, each with its first place.
    pub(crate) fn found_in(&self, bytes: &[u8]) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for hit in self.automaton.find_overlapping_iter(bytes) {
            let owner = self.owners.get(hit.pattern().as_usize()).copied().unwrap_or_default();
            if !found.iter().any(|(known, _)| *known == owner) {
                found.push((owner, hit.start()));
            }
        }
        found
    }
}

/// `secrets/*` of a laboratory's house, `*.secret` of a demo's.
fn secret_files(house: &House) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(house.folder())? {
        let path = entry?.path();
        if shown(house.folder(), &path).ends_with(SECRET_END) {
            files.push(path);
        } else if path.ends_with("secrets") {
            for entry in std::fs::read_dir(path)? {
                files.push(entry?.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// As it is, in hexadecimal, in both base64 alphabets, in a URL and in JSON.
fn spellings(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![
        bytes.to_vec(),
        hex::encode(bytes).into_bytes(),
        hex::encode_upper(bytes).into_bytes(),
        STANDARD_NO_PAD.encode(bytes).into_bytes(),
        URL_SAFE_NO_PAD.encode(bytes).into_bytes(),
    ];
    if let Ok(text) = std::str::from_utf8(bytes) {
        let url: String = text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_.~".contains(c) { c.to_string() } else { percent(c) })
            .collect();
        all.push(url.into_bytes());
        all.push(text.replace('+', "\\u002b").into_bytes());
    }
    all.sort();
    all.dedup();
    all
}

fn percent(c: char) -> String {
    let mut bytes = [0; 4];
    c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Anchor keys: each line of the file, and the seed itself. The slug secret: as text and as bytes.
fn keys(house: &House, secrets: &mut Vec<Secret>) -> anyhow::Result<()> {
    let folder = house.data().join("keys");
    let all = std::fs::read_dir(folder).context("the house has no keys; was it ever started?")?;
    let mut paths = all.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let inner = std::fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
            paths.extend(inner.collect::<std::io::Result<Vec<_>>>()?);
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).with_context(|| name.clone())?;
        if text.starts_with("-----BEGIN") {
            for line in text.lines().filter(|line| !line.starts_with('-') && line.len() >= SHORTEST) {
                secrets.push(Secret { name: format!("{name} (a line)"), bytes: line.into() });
            }
            secrets.push(Secret { name: format!("{name} (its seed)"), bytes: seed(&text)? });
        } else {
            let raw = hex::decode(text.trim()).with_context(|| name.clone())?;
            secrets.push(Secret { name, bytes: raw });
        }
    }
    Ok(())
}

/// The 32 bytes at the end of a PKCS#8 file (RFC 8410, section 7), decrypted where need be.
fn seed(pem: &str) -> anyhow::Result<Vec<u8>> {
    let plain = if pem.contains("ENCRYPTED") {
        SigningKey::from_encrypted_pem(pem, PASSPHRASE.as_bytes())?.to_pem()?.to_string()
    } else {
        pem.to_owned()
    };
    let body: String = plain.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(body)?;
    Ok(der.get(der.len().saturating_sub(32)..).unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_spelling() {
        let secret = Secret { name: "token".into(), bytes: b"CANARY+tok/en:1".to_vec() };
        let hoard = Hoard::made(vec![secret]).unwrap();
        for text in [
            "x CANARY+tok/en:1 y",
            "43414e4152592b746f6b2f656e3a31",
            "43414E4152592B746F6B2F656E3A31",
            "Q0FOQVJZK3Rvay9lbjox",
            "https://x/?t=CANARY%2Btok%2Fen%3A1",
        ] {
            assert_eq!(hoard.found_in(text.as_bytes()).len(), 1, "{text}");
        }
        assert!(hoard.found_in(b"CANARY+tok/en:2").is_empty());
    }

    #[test]
    fn of_a_credential_any_eight_characters_count() {
        let secret = |name: &str| Secret { name: name.into(), bytes: b"sk-CaNaRy7xQ2mV9sK4".to_vec() };
        let hoard = Hoard::made(vec![secret(CREDENTIAL)]).unwrap();
        assert_eq!(hoard.found_in(b"..Ry7xQ2mV..").len(), 1);
        assert!(hoard.found_in(b"..Ry7xQ2m..").is_empty());
        let other = Hoard::made(vec![secret("token")]).unwrap();
        assert!(other.found_in(b"..Ry7xQ2mV..").is_empty());
    }
}
