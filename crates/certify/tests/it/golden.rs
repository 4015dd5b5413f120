//! Bytes that never change: the three served files of one event under one key, as template version 1 made
//! them. Whoever has such a certificate must still get these bytes from its record in ten years.
//!
//! A change of the page or the bundle is a new template version with golden files of its own beside these;
//! these stay as they are.

use certify::shelf::Form;
use seal::verify::{Trust, Verdict, verify};
use source::samples::CHECKOUT_PAID;

use crate::house::House;

const GOLDEN: [(Form, &[u8]); 3] = [
    (Form::Html, include_bytes!("../golden/template-1.html")),
    (Form::Zip, include_bytes!("../golden/template-1.zip")),
    (Form::Json, include_bytes!("../golden/template-1.json")),
];

/// The name of the certificate: a function of the event's identity and the slug key.
const SLUG: &str = "e58ac1bad8606346f1fabe8616da83c31af8a5d2";

#[tokio::test]
async fn template_version_1_gives_these_bytes_for_ever() {
    let house = House::new().await;
    house.deliver(CHECKOUT_PAID).await;
    for (form, golden) in GOLDEN {
        let path = house.folder.path().join("deliveries").join(format!("{SLUG}.{}", form.extension()));
        let bytes = std::fs::read(path).expect("a file under the pinned name");
        assert!(bytes == golden, "{} differs from tests/golden/template-1", form.extension());
    }
    assert!(String::from_utf8_lossy(GOLDEN[2].1).contains(r#""template":1"#));
}

#[tokio::test]
async fn the_record_alone_gives_the_golden_bytes_again() {
    let house = House::new().await;
    house.deliver(CHECKOUT_PAID).await;
    for file in house.files() {
        std::fs::remove_file(file).expect("removed");
    }
    let house = house.reopened().await;
    for (form, golden) in GOLDEN {
        let served = house.visa.delivered(SLUG, form).await.expect("rebuilt");
        assert!(served.bytes == golden, "{} differs when rebuilt", form.extension());
    }
}

#[tokio::test]
async fn each_golden_file_verifies_offline_under_its_key() {
    let house = House::new().await;
    let trust = Trust::pinned(house.visa.keys().active().expect("a key").public_key());
    for (form, golden) in GOLDEN {
        let report = verify(golden, &trust);
        assert_eq!(report.verdict, Verdict::Valid, "{}: {report:?}", form.extension());
    }
}
