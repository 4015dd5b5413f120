//! Files that were changed, forged or built to hurt the verifier.

use crate::shared::{check, draft, edited, key, replaced, sealed, verdict};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::{ProptestConfig, any, proptest};
use seal::bundle::{Draft, seal};
use seal::hash::Digest;
use seal::verify::{MAX_BYTES, Verdict};
use seal::zip::{Entry, read, write};
use seal::{jcs, json};
use serde_json::{Value, json};

/// L, the group order, little-endian.
const ORDER: &str = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

/// The served ZIP with the content of one file changed and all check sums right.
fn rezipped(name: &str, change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let archive = sealed().zip;
    let entries = read(&archive).unwrap();
    let changed = change(entries.iter().find(|entry| entry.name == name).unwrap().content);
    let with = |entry: &Entry<'_>| entry.name == name;
    let files: Vec<_> = entries
        .iter()
        .map(|e| if with(e) { Entry { name: e.name, content: &changed } } else { *e })
        .collect();
    write(&files).unwrap()
}

/// A certificate with its own page, metadata and manifest, signed by key 7 whatever the manifest says.
fn signed(edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    edited(|certificate| {
        edit(certificate);
        let manifest = jcs::to_vec(&certificate["manifest"]).unwrap();
        certificate["signature"]["signature"] = json!(key(7).sign(&manifest).to_string());
    })
}

#[test]
fn an_edited_page_is_invalid() {
    assert_eq!(verdict(&replaced(&sealed().html, b"5.00", b"9.00")), "page_differs");
    assert_eq!(
        verdict(&rezipped("certificate.html", |page| replaced(page, b"5.00", b"9.00"))),
        "page_differs"
    );
    assert_eq!(verdict(&rezipped("certificate.html", |page| [page, b"\n"].concat())), "page_differs");
}

#[test]
fn a_page_of_another_certificate_is_invalid() {
    let other = seal(&Draft { html: b"<p>other</p>".to_vec(), ..draft() }, &key(7)).unwrap();
    let page = read(&other.zip).unwrap()[0].content.to_vec();
    assert_eq!(verdict(&rezipped("certificate.html", |_| page.clone())), "page_differs");
    let line = sealed().html[draft().html.len()..].to_vec();
    assert_eq!(verdict(&[b"<p>other</p>", line.as_slice()].concat()), "page_differs");
}

#[test]
fn text_around_the_proof_line_is_invalid() {
    let html = sealed().html;
    assert_eq!(verdict(&[html.as_slice(), b"<p>more</p>"].concat()), "html_no_proof");
    assert_eq!(verdict(&[html.as_slice(), b"\n"].concat()), "html_no_proof");
    assert_eq!(verdict(&html[..html.len() - 1]), "html_no_proof");
    assert_eq!(verdict(&draft().html), "html_no_proof");
    assert_eq!(verdict(&[html.as_slice(), &html[draft().html.len()..]].concat()), "page_differs");
    assert_eq!(verdict(&replaced(&html, b" -->\n", b"= -->\n")), "html_proof_text");
}

#[test]
fn edited_metadata_are_invalid() {
    let zip = rezipped("metadata.json", |metadata| replaced(metadata, b"\"amount\":500", b"\"amount\":900"));
    assert_eq!(verdict(&zip), "metadata_differs");
    assert_eq!(
        verdict(&edited(|c| c["metadata"]["run"]["event"]["amount"] = json!(900))),
        "metadata_differs"
    );
    assert_eq!(verdict(&edited(|c| c["metadata"]["run"]["mode"] = json!("test"))), "metadata_differs");
    assert_eq!(verdict(&edited(|c| c["metadata"]["more"] = json!(1))), "metadata_differs");
}

#[test]
fn an_edited_manifest_is_invalid() {
    assert_eq!(verdict(&edited(|c| c["manifest"]["ref"] = json!("av_evt_2"))), "signature_wrong");
    assert_eq!(verdict(&edited(|c| c["manifest"]["files"][0]["size"] = json!(1))), "signature_wrong");
    assert_eq!(verdict(&edited(|c| c["manifest"]["more"] = json!(1))), "form");
    assert_eq!(verdict(&edited(|c| c["manifest"]["files"] = json!([]))), "form");
    assert_eq!(verdict(&edited(|c| c["manifest"] = json!([[], "onceseal-manifest/1", "r", "h"]))), "form");
}

#[test]
fn additional_missing_and_renamed_members_are_invalid() {
    assert_eq!(verdict(&edited(|c| c["more"] = json!(1))), "form");
    assert_eq!(verdict(&edited(|c| drop(c["signature"].take()))), "form");
    assert_eq!(verdict(&edited(|c| c["signature"]["more"] = json!(1))), "form");
    assert_eq!(verdict(&edited(|c| c["format"] = json!("onceseal-certificate/2"))), "form");
    assert_eq!(verdict(br#"{"format":"onceseal-certificate/1"}"#), "form");
    assert_eq!(verdict(b"{}"), "form");
}

#[test]
fn another_spelling_of_the_same_json_is_invalid() {
    let text = sealed().json;
    let pretty = serde_json::to_vec_pretty(&json::parse(&text).unwrap()).unwrap();
    assert_eq!(verdict(&pretty), "not_canonical");
    assert_eq!(verdict(&[text.as_slice(), b"\n"].concat()), "not_canonical");
    assert_eq!(verdict(&replaced(&text, "Zoë".as_bytes(), br"Zo\u00eb")), "not_canonical");
    assert_eq!(verdict(&replaced(&text, b"\"v\":1", b"\"v\":1,\"v\":1")), "json_duplicate_name");
    assert_eq!(verdict(&replaced(&text, b"\"amount\":500", b"\"amount\":5e2")), "jcs_float");
    let zip = rezipped("manifest.json", |manifest| [b" ", manifest].concat());
    assert_eq!(verdict(&zip), "not_canonical");
    let zip = rezipped("metadata.json", |metadata| [metadata, b" "].concat());
    assert_eq!(verdict(&zip), "metadata_differs");
}

#[test]
fn a_weak_key_is_named_as_the_reason() {
    // A signature that fits any message under such a key: R is the neutral element, S is 0.
    let mut trivial = [0; 64];
    trivial[0] = 1;
    for first in [0, 1] {
        let mut weak = [0; 32];
        weak[0] = first;
        let file = edited(|c| {
            c["signature"]["public_key"] = json!(URL_SAFE_NO_PAD.encode(weak));
            c["signature"]["signature"] = json!(URL_SAFE_NO_PAD.encode(trivial));
        });
        assert_eq!(verdict(&file), "public_key_weak");
    }
}

#[test]
fn a_malleated_signature_is_invalid() {
    let mut bytes = *sealed().signature.as_bytes();
    let mut carry = 0;
    for (byte, order) in bytes[32..].iter_mut().zip(hex::decode(ORDER).unwrap()) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        *byte = (sum & 0xff).try_into().unwrap();
        carry = sum >> 8;
    }
    let file = edited(|c| c["signature"]["signature"] = json!(URL_SAFE_NO_PAD.encode(bytes)));
    assert_eq!(verdict(&file), "signature_malleated");
}

#[test]
fn another_spelling_of_the_signature_is_invalid() {
    let (bytes, spelt) = (*sealed().signature.as_bytes(), sealed().signature.to_string());
    let stray = format!("{}{}", &spelt[..85], char::from(spelt.as_bytes()[85] + 1));
    let spellings =
        [URL_SAFE.encode(bytes), STANDARD.encode(bytes), hex::encode(bytes), format!("{spelt} "), stray];
    for spelling in spellings {
        let file = edited(|c| c["signature"]["signature"] = json!(spelling));
        assert_eq!(verdict(&file), "signature_text", "{spelling}");
    }
}

#[test]
fn a_swapped_key_algorithm_or_key_id_is_invalid() {
    let other = key(8);
    assert_eq!(verdict(&edited(|c| c["signature"]["kid"] = json!(other.id().to_string()))), "key_id_differs");
    assert_eq!(verdict(&edited(|c| c["signature"]["alg"] = json!("none"))), "form");
    let file = edited(|c| {
        c["signature"]["kid"] = json!(other.id().to_string());
        c["signature"]["public_key"] = json!(other.public_key().to_string());
    });
    assert_eq!(verdict(&file), "signature_wrong");
}

#[test]
fn a_signer_who_contradicts_himself_is_invalid() {
    let listed = |c: &mut Value| {
        let metadata = jcs::to_vec(&c["metadata"]).unwrap();
        c["manifest"]["files"][1]["sha256"] = json!(Digest::of(&metadata).to_string());
        c["manifest"]["files"][1]["size"] = json!(metadata.len());
    };
    let wrong_hash = signed(|c| {
        c["metadata"]["run"]["event"]["amount"] = json!(900);
        listed(c);
    });
    assert_eq!(verdict(&wrong_hash), "run_hash_differs");
    assert_eq!(verdict(&signed(|c| c["manifest"]["files"][1]["name"] = json!("x"))), "form");
    assert_eq!(verdict(&signed(|c| c["manifest"]["format"] = json!("onceseal-manifest/2"))), "form");
    let no_version = signed(|c| {
        c["metadata"]["run"]["v"] = json!(0);
        listed(c);
    });
    assert_eq!(verdict(&no_version), "run_no_version");
}

#[test]
fn an_archive_with_other_files_is_invalid() {
    let archive = sealed().zip;
    let entries = read(&archive).unwrap();
    let more = [entries.as_slice(), &[Entry { name: "readme.txt", content: b"" }]].concat();
    assert_eq!(verdict(&write(&more).unwrap()), "zip_files");
    assert_eq!(verdict(&write(&entries[..3]).unwrap()), "zip_files");
    assert_eq!(verdict(&write(&[Entry { name: "inner.zip", content: &archive }]).unwrap()), "zip_files");
    assert_eq!(verdict(&write(&[]).unwrap()), "zip_files");
    assert_eq!(verdict(&replaced(&archive, b"manifest.sig", b"manifest.sag")), "zip_files");
    assert_eq!(verdict(&replaced(&archive, b"manifest.sig", b"../../ab.sig")), "zip_name");
}

#[test]
fn what_is_no_certificate_is_invalid_at_once() {
    for file in [&b""[..], b"\0", b"%PDF-1.7", b"hello", b" {}", b"\xef\xbb\xbf{}"] {
        assert_eq!(verdict(file), "not_recognised");
    }
    assert_eq!(verdict(&vec![b'{'; MAX_BYTES + 1]), "too_large");
    assert_eq!(verdict(&b"{\"a\":".repeat(100_000)), "json_too_deep");
    assert_eq!(verdict(format!("{{\"a\":[{}1]}}", "1,".repeat(8_000_000)).as_bytes()), "json_too_large");
    assert_eq!(verdict(&vec![b'<'; MAX_BYTES]), "html_no_proof");
    assert_eq!(verdict(&[&b"PK\x03\x04"[..], &vec![0; MAX_BYTES - 4]].concat()), "zip_no_end_record");
}

#[test]
fn a_reason_repeats_no_more_than_a_line_of_the_file() {
    let file = edited(|c| c["manifest"]["files"] = json!("x".repeat(100_000)));
    let Verdict::Invalid(reason) = check(&file).verdict else { panic!("valid") };
    assert!(reason.to_string().len() < 300, "{}", reason.to_string().len());
}

#[test]
fn an_unsigned_word_never_reaches_the_report() {
    let report = check(&edited(|c| c["manifest"]["ref"] = json!("av_evt_2")));
    assert_eq!((report.reference, report.run_hash, report.key_id), (None, None, None));
    assert_eq!((report.issued_at, report.mode, report.signer), (None, None, None));
}

#[test]
fn one_flipped_bit_anywhere_is_invalid() {
    for file in [sealed().html, sealed().zip, sealed().json] {
        for at in 0..file.len() {
            let mut flipped = file.clone();
            flipped[at] ^= 1;
            assert!(matches!(check(&flipped).verdict, Verdict::Invalid(_)), "byte {at}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_changed_byte_is_invalid(at in any::<proptest::sample::Index>(), mask in 1_u8..) {
        for mut file in [sealed().html, sealed().zip, sealed().json] {
            let at = at.index(file.len());
            file[at] ^= mask;
            assert!(matches!(check(&file).verdict, Verdict::Invalid(_)), "byte {at}");
        }
    }

    #[test]
    fn one_byte_more_or_less_is_invalid(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        for file in [sealed().html, sealed().zip, sealed().json] {
            let at = at.index(file.len());
            let (mut longer, mut shorter) = (file.clone(), file);
            longer.insert(at, byte);
            shorter.remove(at);
            assert!(matches!(check(&longer).verdict, Verdict::Invalid(_)), "byte {at} more");
            assert!(matches!(check(&shorter).verdict, Verdict::Invalid(_)), "byte {at} less");
        }
    }

    #[test]
    fn any_bytes_get_a_verdict(start in "(PK\u{3}\u{4}|\\{|<)?", rest in any::<Vec<u8>>()) {
        let file = [start.as_bytes(), &rest].concat();
        assert!(matches!(check(&file).verdict, Verdict::Invalid(_)));
    }
}
