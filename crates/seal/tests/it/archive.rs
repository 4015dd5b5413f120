//! The archive: the same every time, and no second way to read one.

use crate::shared::{list, replaced, text, unbase64, unhex, vectors};
use seal::hash::Digest;
use seal::zip::{Entry, Error, MAX_BYTES, read, write};

const TWO: [Entry<'static>; 2] =
    [Entry { name: "aaaaaa", content: b"one" }, Entry { name: "bbbbbb", content: b"two" }];

/// Where the parts of the archive of `TWO` start: 30 + 6 + 3 bytes a local entry, 46 + 6 a central one.
const DIRECTORY: usize = 2 * 39;
const END: usize = DIRECTORY + 2 * 52;

fn two() -> Vec<u8> {
    write(&TWO).unwrap()
}

fn patched(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut archive = two();
    archive[at..at + bytes.len()].copy_from_slice(bytes);
    archive
}

fn code(archive: &[u8]) -> &'static str {
    read(archive).unwrap_err().code()
}

#[test]
fn the_vectors_are_written_and_read_byte_for_byte() {
    let vectors = vectors("zip");
    for name in ["stored", "utf8_name"] {
        let case = &vectors[name];
        let contents: Vec<_> =
            list(case, "files").iter().map(|file| (text(file, "name"), unbase64(file, "data_b64"))).collect();
        let files: Vec<_> = contents.iter().map(|(name, content)| Entry { name, content }).collect();
        let archive = write(&files).unwrap();
        assert_eq!(archive, unbase64(case, "zip_b64"), "{name}");
        assert_eq!(Digest::of(&archive).to_string(), text(case, "sha256_hex"));
        assert_eq!(read(&archive).unwrap(), files);
    }
    assert_eq!(write(&[]).unwrap(), unhex(&vectors["empty"], "zip_hex"));
    assert_eq!(read(&write(&[]).unwrap()).unwrap(), []);
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    assert_eq!(write(&[TWO[1], TWO[0]]).unwrap(), two());
}

#[test]
fn names_that_lead_out_of_a_folder_are_neither_written_nor_read() {
    for name in
        ["", "/abs/x", "../x", "a/../x", "..", "./x", "..././x", "a//b", "a/", "a\\b", "C:x", "a\nb", "a\0"]
    {
        assert_eq!(write(&[Entry { name, content: b"" }]).unwrap_err().code(), "zip_name", "{name:?}");
    }
    for name in ["../../", "/etc/x", "a/../x", "..\\..\\", "a/./bc", "link/\0"] {
        assert_eq!(code(&replaced(&two(), b"aaaaaa", name.as_bytes())), "zip_name", "{name:?}");
    }
    assert_eq!(code(&replaced(&two(), b"aaaaaa", b"aaaa\xff\xff")), "zip_name");
    assert_eq!(write(&[Entry { name: &"a".repeat(256), content: b"" }]).unwrap_err().code(), "zip_name");
}

#[test]
fn one_name_twice_is_refused() {
    assert_eq!(write(&[TWO[0], TWO[0]]).unwrap_err(), Error::DuplicateName { name: "aaaaaa".to_owned() });
    assert_eq!(code(&replaced(&two(), b"bbbbbb", b"aaaaaa")), "zip_duplicate_name");
}

#[test]
fn a_local_header_that_says_another_thing_is_refused() {
    for (at, bytes) in [
        (0, &b"PK\x05\x06"[..]), // signature
        (4, &[20]),              // version
        (6, &[1]),               // encrypted
        (6, &[8]),               // data descriptor
        (8, &[8]),               // method
        (10, &[1]),              // time
        (14, &[0]),              // CRC
        (18, &[2]),              // packed size
        (22, &[2]),              // size
        (26, &[5]),              // length of the name
        (28, &[1]),              // extra field
        (30, b"zzzzzz"),         // name
        (36, b"two"),            // content
    ] {
        assert_eq!(code(&patched(at, bytes)), "zip_differs", "at {at}");
    }
}

#[test]
fn a_central_record_that_says_another_thing_is_refused() {
    for (field, bytes, expected) in [
        (0, &b"PK\x03\x04"[..], "zip_broken"),
        (4, &[20, 3], "zip_differs"),             // made on Unix
        (8, &[8], "zip_differs"),                 // data descriptor
        (10, &[8], "zip_not_stored"),             // deflated
        (16, &[0], "zip_differs"),                // CRC
        (20, &[2], "zip_not_stored"),             // packed size alone
        (24, &[0, 0, 0, 0x80], "zip_not_stored"), // 2 GiB out of three bytes
        (28, &[0xff, 0xff], "zip_broken"),        // name beyond the end
        (30, &[1], "zip_differs"),                // extra field
        (32, &[1], "zip_differs"),                // comment
        (38, &[0, 0, 0xff, 0xa1], "zip_differs"), // a symbolic link
        (42, &[39], "zip_differs"),               // the other entry's content
        (42, &[0xff, 0xff, 0xff, 0xff], "zip_broken"),
        (46, b"zzzzzz", "zip_differs"),
    ] {
        assert_eq!(code(&patched(DIRECTORY + field, bytes)), expected, "field {field}");
    }
}

#[test]
fn an_end_record_that_says_another_thing_is_refused() {
    for (field, bytes, expected) in [
        (0, &b"PK\x06\x06"[..], "zip_no_end_record"),
        (4, &[1], "zip_differs"),  // disk
        (8, &[1], "zip_differs"),  // entries on this disk
        (10, &[1], "zip_differs"), // entries
        (10, &[3], "zip_broken"),
        (10, &[0xff, 0xff], "zip_too_many_entries"), // ZIP64 or 65,535 entries
        (12, &[1], "zip_differs"),                   // size of the directory
        (16, &[0xff, 0xff, 0xff, 0xff], "zip_broken"), // ZIP64
        (20, &[4], "zip_differs"),                   // comment
    ] {
        assert_eq!(code(&patched(END + field, bytes)), expected, "field {field}");
    }
}

#[test]
fn bytes_before_between_and_behind_are_refused() {
    let archive = two();
    assert_eq!(code(&[b"#!/bin/sh\n", archive.as_slice()].concat()), "zip_broken");
    assert_eq!(code(&[archive.as_slice(), b"\n"].concat()), "zip_no_end_record");
    assert_eq!(code(&[archive.as_slice(), archive.as_slice()].concat()), "zip_differs");
    assert_eq!(code(&archive[..archive.len() - 1]), "zip_no_end_record");
    let mut between = archive.clone();
    between.splice(DIRECTORY..DIRECTORY, *b"gap");
    let shifted = u8::try_from(DIRECTORY).unwrap() + 3;
    let at = between.len() - 22 + 16;
    between[at] = shifted;
    assert_eq!(code(&between), "zip_differs");
}

#[test]
fn a_comment_with_a_second_end_record_is_refused() {
    let mut archive = two();
    let fake = write(&[Entry { name: "evil", content: b"x" }]).unwrap();
    let at = archive.len() - 2;
    archive[at..].copy_from_slice(&u16::try_from(fake.len()).unwrap().to_le_bytes());
    archive.extend_from_slice(&fake);
    assert!(matches!(code(&archive), "zip_differs" | "zip_broken"));
}

#[test]
fn size_and_number_of_entries_are_limited() {
    let names: Vec<String> = (0..65).map(|n| format!("{n:02}")).collect();
    let many: Vec<_> = names.iter().map(|name| Entry { name, content: b"" }).collect();
    assert_eq!(write(&many).unwrap_err(), Error::TooManyEntries { count: 65 });
    assert!(read(&write(&many[..64]).unwrap()).is_ok());
    let big = vec![0; MAX_BYTES];
    assert_eq!(write(&[Entry { name: "a", content: &big }]).unwrap_err(), Error::TooLarge);
    assert_eq!(read(&vec![0; MAX_BYTES + 1]).unwrap_err(), Error::TooLarge);
    assert_eq!(read(b"").unwrap_err(), Error::NoEndRecord);
}

#[test]
fn every_byte_of_an_archive_counts() {
    for at in 0..two().len() {
        let mut archive = two();
        archive[at] ^= 0x20;
        // Another content or name with its own check sum would be another archive; a flip never is one.
        assert!(read(&archive).is_err(), "byte {at}");
    }
}
