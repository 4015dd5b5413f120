//! Sealing and rebuilding: the bytes that are served.

use crate::shared::{draft, key, sealed};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use seal::bundle::{Draft, TRAILER_END, TRAILER_START, rebuild, seal};
use seal::hash::{Digest, run_hash};
use seal::{jcs, json, zip};
use serde_json::json;

fn file(name: &str) -> Vec<u8> {
    let sealed = sealed();
    zip::read(&sealed.zip).unwrap().iter().find(|entry| entry.name == name).unwrap().content.to_vec()
}

fn code(draft: &Draft) -> &'static str {
    seal(draft, &key(7)).unwrap_err().code()
}

#[test]
fn the_served_files_are_the_golden_bytes() {
    let sealed = sealed();
    assert!(sealed.html == include_bytes!("../golden/certificate.html"), "html");
    assert!(sealed.zip == include_bytes!("../golden/certificate.zip"), "zip");
    assert!(sealed.json == include_bytes!("../golden/certificate.json"), "json");
}

#[test]
fn sealing_twice_and_rebuilding_give_the_same_bytes() {
    let first = sealed();
    assert_eq!(sealed(), first);
    assert_eq!(rebuild(&draft(), &first.signature, &key(7).public_key()).unwrap(), first);
}

#[test]
fn a_rebuild_with_another_draft_key_or_signature_is_refused() {
    let signature = sealed().signature;
    let other = Draft { reference: "av_evt_2".to_owned(), ..draft() };
    assert_eq!(rebuild(&other, &signature, &key(7).public_key()).unwrap_err().code(), "signature_wrong");
    assert_eq!(rebuild(&draft(), &signature, &key(8).public_key()).unwrap_err().code(), "signature_wrong");
    let foreign = seal(&draft(), &key(8)).unwrap().signature;
    assert_eq!(rebuild(&draft(), &foreign, &key(7).public_key()).unwrap_err().code(), "signature_wrong");
}

#[test]
fn the_hashes_are_those_of_the_files() {
    let sealed = sealed();
    assert_eq!(sealed.digests.html, Digest::of(&sealed.html));
    assert_eq!(sealed.digests.zip, Digest::of(&sealed.zip));
    assert_eq!(sealed.digests.json, Digest::of(&sealed.json));
    assert_eq!(sealed.digests.manifest, Digest::of(&file("manifest.json")));
    assert_eq!(sealed.run_hash, run_hash(&draft().run).unwrap());
    assert_eq!(sealed.key_id, key(7).id());
}

#[test]
fn every_json_file_is_canonical() {
    for bytes in [sealed().json, file("manifest.json"), file("metadata.json"), file("manifest.sig")] {
        let value = json::parse(&bytes).unwrap();
        assert_eq!(jcs::to_vec(&value).unwrap(), bytes);
    }
}

#[test]
fn the_manifest_names_page_and_metadata_with_hash_and_size() {
    let manifest = json::parse(&file("manifest.json")).unwrap();
    let (page, metadata) = (file("certificate.html"), file("metadata.json"));
    let expected = json!({
        "format": "onceseal-manifest/1",
        "ref": "av_evt_1",
        "run_hash": sealed().run_hash.to_string(),
        "files": [
            {"name": "certificate.html", "sha256": Digest::of(&page).to_string(), "size": page.len()},
            {"name": "metadata.json", "sha256": Digest::of(&metadata).to_string(), "size": metadata.len()},
        ],
    });
    assert_eq!(manifest, expected);
    assert_eq!(json::parse(&metadata).unwrap()["run"], draft().run);
    assert_eq!(page, draft().html);
}

#[test]
fn the_signature_covers_exactly_the_manifest_file() {
    let block = json::parse(&file("manifest.sig")).unwrap();
    assert_eq!(block["signature"], sealed().signature.to_string());
    assert_eq!(block["public_key"], key(7).public_key().to_string());
    let checked = key(7).public_key().verify(&file("manifest.json"), &sealed().signature);
    assert_eq!(checked, Ok(()));
}

#[test]
fn the_page_is_followed_by_one_line_that_holds_the_json() {
    let html = sealed().html;
    let line = String::from_utf8(html.strip_prefix(draft().html.as_slice()).unwrap().to_vec()).unwrap();
    let text = line.strip_prefix(TRAILER_START).unwrap().strip_suffix(TRAILER_END).unwrap();
    assert_eq!(URL_SAFE_NO_PAD.decode(text).unwrap(), sealed().json);
}

#[test]
fn a_draft_that_could_not_be_verified_is_not_sealed() {
    for html in ["", "{}", "PK", "\u{feff}<p>", "<p><!-- onceseal-proof:x -->\n"] {
        assert_eq!(code(&Draft { html: html.into(), ..draft() }), "bundle_page", "{html:?}");
    }
    for reference in ["", "av evt", "av\n", "av_é", &"x".repeat(513)] {
        assert_eq!(code(&Draft { reference: reference.to_owned(), ..draft() }), "bundle_reference");
    }
    for (run, expected) in [
        (json!({"issued_at": 1, "mode": "live"}), "bundle_run"),
        (json!({"v": 1, "mode": "live"}), "bundle_run"),
        (json!({"v": 1, "issued_at": "2026-01-01T00:00:00Z", "mode": "live"}), "bundle_run"),
        (json!({"v": 1, "issued_at": 1, "mode": "sandbox"}), "bundle_run"),
        (json!({"v": 1, "issued_at": 1, "mode": "live", "amount": 5.5}), "jcs_float"),
    ] {
        assert_eq!(code(&Draft { run, ..draft() }), expected);
    }
    let large = [b"<".as_slice(), &vec![b' '; zip::MAX_BYTES - 10]].concat();
    assert_eq!(code(&Draft { html: large, ..draft() }), "bundle_too_large");
    let run = json!({"v": 1, "issued_at": 1, "mode": "live", "memo": "x".repeat(1 << 20)});
    assert_eq!(code(&Draft { run, ..draft() }), "bundle_too_large");
}
