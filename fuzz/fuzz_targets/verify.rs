//! Any bytes to the verifier, the strict JSON reader and the archive reader.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use seal::key::SigningKey;
use seal::verify::{Trust, Verdict, verify};
use seal::{jcs, json, zip};

/// The key that made the golden files.
static TRUST: LazyLock<Trust> = LazyLock::new(|| Trust::pinned(SigningKey::from_seed(&[7; 32]).public_key()));

const GENUINE: [&[u8]; 3] = [
    include_bytes!("../../crates/seal/tests/golden/certificate.html"),
    include_bytes!("../../crates/seal/tests/golden/certificate.json"),
    include_bytes!("../../crates/seal/tests/golden/certificate.zip"),
];

fuzz_target!(|file: &[u8]| {
    let report = verify(file, &TRUST);
    assert_eq!(report.verdict == Verdict::Valid, GENUINE.contains(&file), "{:?}", report.verdict);

    if let Ok(value) = json::parse(file)
        && let Ok(written) = jcs::exact(&value)
    {
        assert_eq!(json::parse(&written).as_ref(), Ok(&value));
        assert_eq!(jcs::to_vec(&value).as_ref(), Ok(&written));
    }
    if let Ok(entries) = zip::read(file) {
        assert_eq!(zip::write(&entries).as_deref(), Ok(file));
    }
});
