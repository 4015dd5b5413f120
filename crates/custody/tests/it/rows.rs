//! Envelopes as rows hold them (cases SEC-12 and SEC-13).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use custody::{Custody, EnvelopeError, KmsError, LocalKeyring, Material, Place};
use secrecy::{ExposeSecret, SecretString};
use testkit::{CountingRandom, Seeded};

const SECRET: &str = "sk-CANARY_UP-0123456789abcdefghij";
const PLACE: Place<'static> =
    Place { tenant_id: 7, table: "supply_accounts", row: "ck_0000000000000000000001", platform: "openai" };

fn material(version: u32) -> Material {
    let mut seeded = Seeded::new(u64::from(version));
    let bytes: Vec<u8> = (0..4).flat_map(|_| seeded.bits().to_le_bytes()).collect();
    Material::from_bytes(format!("kek {version}"), &bytes).unwrap()
}

fn keyring(current: u32, versions: &[u32]) -> LocalKeyring {
    let materials = versions.iter().map(|version| (*version, material(*version))).collect();
    LocalKeyring::new("local/credentials", current, materials, Arc::new(CountingRandom::default())).unwrap()
}

fn custody(current: u32, versions: &[u32]) -> Custody {
    Custody::new(Arc::new(keyring(current, versions)), Arc::new(CountingRandom::default()))
}

async fn opened(custody: &Custody, place: &Place<'_>, stored: &str) -> Result<String, EnvelopeError> {
    let secret = custody.open(place, "local/credentials", stored).await?;
    Ok(secret.expose_secret().to_owned())
}

#[tokio::test]
async fn a_secret_comes_back_from_its_own_row_and_each_seal_differs() {
    let custody = custody(1, &[1]);
    let sealed = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    assert_eq!(opened(&custody, &PLACE, &sealed.envelope).await.as_deref(), Ok(SECRET));
    assert_eq!(
        (sealed.cipher_algo, sealed.kms_key_alias.as_str(), sealed.key_version),
        ("AES-256-GCM", "local/credentials", 1)
    );
    let again = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    let fields = |text: &str| text.split('.').skip(2).map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (fields(&sealed.envelope), fields(&again.envelope));
    assert!(one.iter().zip(&other).all(|(one, other)| one != other));
}

#[tokio::test]
async fn moved_to_another_row_tenant_table_or_platform_it_does_not_open() {
    let custody = custody(1, &[1]);
    let sealed = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    let others = [
        Place { tenant_id: 8, ..PLACE },
        Place { table: "supply_settlements", ..PLACE },
        Place { row: "ck_0000000000000000000002", ..PLACE },
        Place { platform: "anthropic", ..PLACE },
        // The same characters, cut elsewhere.
        Place { row: "ck_0000000000000000000001o", platform: "penai", ..PLACE },
    ];
    for place in others {
        let error = opened(&custody, &place, &sealed.envelope).await.unwrap_err();
        assert_eq!(error, EnvelopeError::Refused { place: place.to_string() });
        assert!(!format!("{error} {error:?}").contains("CANARY"));
    }
}

#[tokio::test]
async fn every_flipped_bit_is_refused() {
    let custody = custody(1, &[1]);
    let sealed = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap().envelope;
    let mut refused = 0;
    for place in 0..sealed.len() {
        for bit in 0..8 {
            let mut bytes = sealed.clone().into_bytes();
            bytes[place] ^= 1 << bit;
            // A column holds text: what is no UTF-8 can't come back from the store.
            let Ok(flipped) = String::from_utf8(bytes) else { continue };
            assert!(opened(&custody, &PLACE, &flipped).await.is_err(), "byte {place} bit {bit}");
            refused += 1;
        }
    }
    assert_eq!(refused, sealed.len() * 7);
    for cut in 0..sealed.len() {
        assert!(opened(&custody, &PLACE, &sealed[..cut]).await.is_err(), "cut at {cut}");
    }
}

#[tokio::test]
async fn the_parts_of_two_envelopes_of_one_row_don_t_mix() {
    let custody = custody(1, &[1]);
    let one = custody.seal(&PLACE, &SecretString::from(SECRET)).await.unwrap().envelope;
    let other = custody.seal(&PLACE, &SecretString::from("sk-another")).await.unwrap().envelope;
    let (one, other): (Vec<_>, Vec<_>) = (one.split('.').collect(), other.split('.').collect());
    for part in 2..5 {
        let mut mixed = one.clone();
        mixed[part] = other[part];
        assert!(opened(&custody, &PLACE, &mixed.join(".")).await.is_err(), "part {part}");
    }
}

#[tokio::test]
async fn with_fixed_randomness_the_text_is_pinned_and_made_by_another_library_too() {
    // Golden: computed apart with Python's `cryptography` 48 from the description in section 13.1.
    let sealed = custody(1, &[1]).seal(&PLACE, &SecretString::from(SECRET)).await.unwrap().envelope;
    assert_eq!(sealed, include_str!("golden.txt").trim_end());
    // And opened with ring, whose AES-GCM shares no code with ours.
    let parts: Vec<_> =
        sealed.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap_or_default()).collect();
    let mut dek = [0; 32];
    kernel::Random::fill(&CountingRandom::default(), &mut dek);
    let key = ring::aead::UnboundKey::new(&ring::aead::AES_256_GCM, &dek).unwrap();
    let nonce = ring::aead::Nonce::try_assume_unique_for_key(&parts[3]).unwrap();
    let mut aad = Vec::new();
    for part in ["7", PLACE.table, PLACE.row, PLACE.platform] {
        aad.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
        aad.extend_from_slice(part.as_bytes());
    }
    let mut text = parts[4].clone();
    let key = ring::aead::LessSafeKey::new(key);
    let opened = key.open_in_place(nonce, ring::aead::Aad::from(aad), &mut text).unwrap();
    assert_eq!(opened, SECRET.as_bytes());
}

#[tokio::test]
async fn a_rewrap_changes_the_wrap_and_leaves_the_secret_s_ciphertext() {
    let before = custody(1, &[1]).seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    let custody = custody(2, &[1, 2]);
    let after = custody.rewrap(&before.kms_key_alias, &before.envelope).await.unwrap().unwrap();
    assert_eq!((before.key_version, after.key_version), (1, 2));
    let tail = |text: &str| text.splitn(4, '.').nth(3).unwrap().to_owned();
    assert_eq!(tail(&before.envelope), tail(&after.envelope));
    // Either opens while both versions are there; the new one still binds the row.
    assert_eq!(opened(&custody, &PLACE, &before.envelope).await.as_deref(), Ok(SECRET));
    assert_eq!(opened(&custody, &PLACE, &after.envelope).await.as_deref(), Ok(SECRET));
    assert!(opened(&custody, &Place { tenant_id: 8, ..PLACE }, &after.envelope).await.is_err());
    assert_eq!(custody.rewrap(&after.kms_key_alias, &after.envelope).await, Ok(None));
}

#[tokio::test]
async fn a_wrap_does_not_open_as_another_version() {
    let sealed = custody(1, &[1]).seal(&PLACE, &SecretString::from(SECRET)).await.unwrap().envelope;
    let claimed = sealed.replacen("v1.1.", "v1.2.", 1);
    let error = opened(&custody(2, &[1, 2]), &PLACE, &claimed).await.unwrap_err();
    assert_eq!(error, KmsError::Refused { alias: "local/credentials".into(), version: 2 }.into());
}

#[tokio::test]
async fn a_wrong_or_missing_key_opens_nothing_and_rewraps_nothing() {
    let sealed = custody(1, &[1]).seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    let wrong = LocalKeyring::new(
        "local/credentials",
        2,
        vec![(1, material(99)), (2, material(2))],
        Arc::new(CountingRandom::default()),
    );
    let wrong = Custody::new(Arc::new(wrong.unwrap()), Arc::new(CountingRandom::default()));
    let refused: EnvelopeError = KmsError::Refused { alias: "local/credentials".into(), version: 1 }.into();
    assert_eq!(opened(&wrong, &PLACE, &sealed.envelope).await, Err(refused.clone()));
    // The damaged row is not written again as garbage.
    assert_eq!(wrong.rewrap(&sealed.kms_key_alias, &sealed.envelope).await, Err(refused));
    let missing = opened(&custody(2, &[2]), &PLACE, &sealed.envelope).await.unwrap_err();
    assert!(matches!(missing, EnvelopeError::Kms(KmsError::UnknownVersion { version: 1, .. })), "{missing}");
    let elsewhere = custody(1, &[1]).open(&PLACE, "vault/credentials", &sealed.envelope).await.unwrap_err();
    assert!(matches!(elsewhere, EnvelopeError::Kms(KmsError::UnknownAlias { .. })), "{elsewhere}");
}

#[tokio::test]
async fn rows_move_from_one_key_service_to_another() {
    let sealed = custody(1, &[1]).seal(&PLACE, &SecretString::from(SECRET)).await.unwrap();
    let materials = vec![(1, material(5))];
    let next = LocalKeyring::new("next", 1, materials, Arc::new(CountingRandom::default())).unwrap();
    let custody = Custody::new(Arc::new(next), Arc::new(CountingRandom::default()))
        .with_earlier(Arc::new(keyring(1, &[1])));
    assert_eq!(opened(&custody, &PLACE, &sealed.envelope).await.as_deref(), Ok(SECRET));
    let moved = custody.rewrap(&sealed.kms_key_alias, &sealed.envelope).await.unwrap().unwrap();
    assert_eq!(moved.kms_key_alias, "next");
    let secret = custody.open(&PLACE, "next", &moved.envelope).await.unwrap();
    assert_eq!(secret.expose_secret(), SECRET);
    assert_eq!(custody.kms().current().await, Ok(1));
}

#[tokio::test]
async fn an_empty_or_endless_secret_is_not_sealed() {
    let custody = custody(1, &[1]);
    for secret in [String::new(), "x".repeat(custody::envelope::SECRET_MAX + 1)] {
        let sealed = custody.seal(&PLACE, &SecretString::from(secret)).await;
        assert_eq!(sealed, Err(EnvelopeError::Length));
    }
    let longest = SecretString::from("x".repeat(custody::envelope::SECRET_MAX));
    let sealed = custody.seal(&PLACE, &longest).await.unwrap();
    assert!(custody.open(&PLACE, "local/credentials", &sealed.envelope).await.is_ok());
}

#[test]
fn a_keyring_that_can_t_work_is_not_made() {
    use custody::kms::local::KeyringError;
    let random = || Arc::new(CountingRandom::default());
    let made = |alias: &str, current, materials| LocalKeyring::new(alias, current, materials, random());
    let error = |alias: &str, current, materials| made(alias, current, materials).unwrap_err();
    assert_eq!(error("a b", 1, vec![(1, material(1))]), KeyringError::Alias("a b".into()));
    assert_eq!(error("a", 2, vec![(1, material(1))]), KeyringError::Current(2));
    assert_eq!(error("a", 1, vec![(1, material(1)), (1, material(2))]), KeyringError::Version(1));
    assert_eq!(error("a", 0, vec![(0, material(1))]), KeyringError::Version(0));
    assert!(matches!(error("a", 1, vec![(1, material(1)), (2, material(1))]), KeyringError::Same(_)));
    let ring = made("a", 2, vec![(2, material(2)), (1, material(1))]).unwrap();
    assert_eq!(ring.versions().collect::<Vec<_>>(), [1, 2]);
}
