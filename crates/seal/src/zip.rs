//! An archive that is the same every time: ZIP with STORED entries and every free field fixed.
//!
//! Writing: entries sorted by the bytes of their names, 1980-01-01, no attributes, no extra fields, no
//! comments, no ZIP64, general purpose bit 11 only for names that aren't ASCII. DEFLATE is left out because
//! its output depends on the compressor; field layout after PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and
//! 4.3.16.
//!
//! Reading: the central directory is read, and then the archive must equal, byte for byte, what the writer
//! makes of those entries. So there is one archive for one list of files: no name twice, no second directory,
//! no comment, no byte before, between or behind, no header that says another thing than its twin, no
//! compression and so nothing that unpacks to more than it is. Names that lead out of a folder are refused.
//!
//! What it is not: a general unpacker. It writes no files.

use crate::hash::Digest;

/// Largest archive that is written or read, in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Most entries in one archive.
pub const MAX_ENTRIES: usize = 64;

/// Longest name, in bytes.
pub const MAX_NAME: usize = 255;

const LOCAL: [u8; 4] = *b"PK\x03\x04";
const CENTRAL: [u8; 4] = *b"PK\x01\x02";
const END: [u8; 4] = *b"PK\x05\x06";
const LOCAL_LEN: usize = 30;
const CENTRAL_LEN: usize = 46;
const END_LEN: usize = 22;
/// Version 1.0: stored files only.
const VERSION: u16 = 10;
/// Name is UTF-8 (general purpose bit 11).
const FLAG_UTF8: u16 = 0x0800;
/// 1980-01-01, the earliest day that a DOS date can say.
const DATE: u16 = 0x0021;

/// One file: its name (`/` separates, relative, UTF-8) and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name inside the archive.
    pub name: &'a str,
    /// Content.
    pub content: &'a [u8],
}

impl Entry<'_> {
    /// SHA-256 of the content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.content)
    }
}

/// Why an archive was not written or not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// More than [`MAX_BYTES`].
    #[error("archive is larger than {MAX_BYTES} bytes; leave out what is not needed")]
    TooLarge,
    /// More than [`MAX_ENTRIES`].
    #[error("archive has {count} entries, the most are {MAX_ENTRIES}; leave out what is not needed")]
    TooManyEntries {
        /// Entries counted or claimed.
        count: usize,
    },
    /// A name is empty, too long, absolute, or leads out of the folder.
    #[error(
        "archive has the entry name {name:?}; use relative names without \"..\", \"\\\" or control characters"
    )]
    Name {
        /// The name, as far as it is UTF-8.
        name: String,
    },
    /// Two entries have one name.
    #[error("archive has two entries named {name:?}; readers would disagree about which one counts")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// No end record in the last 22 bytes.
    #[error("archive has no end record in its last 22 bytes; it is cut, not a ZIP, or has a comment")]
    NoEndRecord,
    /// A record lies outside of the archive, or has another signature.
    #[error("archive is broken at byte {offset}; get the file again")]
    Broken {
        /// Where the record should be.
        offset: usize,
    },
    /// An entry is compressed or encrypted.
    #[error("archive entry {name:?} is not stored as it is; compressed entries are not accepted")]
    NotStored {
        /// The entry's name.
        name: String,
    },
    /// The archive is not the one that these entries make.
    #[error(
        "archive differs at byte {offset} from the only form accepted for its entries; get the file again"
    )]
    Differs {
        /// First differing byte.
        offset: usize,
    },
}

impl Error {
    /// The stable name of this refusal.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "zip_too_large",
            Self::TooManyEntries { .. } => "zip_too_many_entries",
            Self::Name { .. } => "zip_name",
            Self::DuplicateName { .. } => "zip_duplicate_name",
            Self::NoEndRecord => "zip_no_end_record",
            Self::Broken { .. } => "zip_broken",
            Self::NotStored { .. } => "zip_not_stored",
            Self::Differs { .. } => "zip_differs",
        }
    }
}

/// Writes the archive of these files. The order given does not matter.
///
/// ```
/// use seal::zip::{Entry, read, write};
///
/// let files = [Entry { name: "b", content: b"2" }, Entry { name: "a", content: b"1" }];
/// let archive = write(&files)?;
/// assert_eq!(read(&archive)?[0].name, "a");
/// # Ok::<(), seal::zip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Name`], [`Error::DuplicateName`], [`Error::TooManyEntries`] or [`Error::TooLarge`].
pub fn write(files: &[Entry<'_>]) -> Result<Vec<u8>, Error> {
    if files.len() > MAX_ENTRIES {
        return Err(Error::TooManyEntries { count: files.len() });
    }
    let mut sorted: Vec<&Entry<'_>> = files.iter().collect();
    sorted.sort_unstable_by_key(|entry| entry.name.as_bytes());
    if let Some([twice, _]) = sorted.array_windows().find(|[a, b]| a.name == b.name) {
        return Err(Error::DuplicateName { name: twice.name.to_owned() });
    }
    for entry in &sorted {
        check_name(entry.name)?;
    }
    let size = sorted
        .iter()
        .map(|e| LOCAL_LEN + CENTRAL_LEN + 2 * e.name.len() + e.content.len())
        .try_fold(END_LEN, usize::checked_add)
        .filter(|size| *size <= MAX_BYTES)
        .ok_or(Error::TooLarge)?;

    let mut out = Vec::with_capacity(size);
    let mut directory = Vec::new();
    for entry in sorted {
        let offset = field32(out.len())?;
        let head = Head::of(entry)?;
        out.extend_from_slice(&LOCAL);
        head.put(&mut out);
        out.extend_from_slice(&0_u16.to_le_bytes()); // extra field
        out.extend_from_slice(entry.name.as_bytes());
        out.extend_from_slice(entry.content);

        directory.extend_from_slice(&CENTRAL);
        directory.extend_from_slice(&VERSION.to_le_bytes()); // made by: host 0
        head.put(&mut directory);
        // Extra field, comment, disk, internal attributes, external attributes.
        directory.extend_from_slice(&[0; 12]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(entry.name.as_bytes());
    }
    let start = field32(out.len())?;
    let count = field16(files.len())?.to_le_bytes();
    out.extend_from_slice(&directory);
    out.extend_from_slice(&END);
    out.extend_from_slice(&[0; 4]); // this disk, disk of the directory
    out.extend_from_slice(&count);
    out.extend_from_slice(&count);
    out.extend_from_slice(&field32(directory.len())?.to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0; 2]); // comment
    Ok(out)
}

/// The fields that local header and central record share, in their order there.
struct Head {
    flags: u16,
    crc: u32,
    size: u32,
    name: u16,
}

impl Head {
    fn of(entry: &Entry<'_>) -> Result<Self, Error> {
        Ok(Self {
            flags: if entry.name.is_ascii() { 0 } else { FLAG_UTF8 },
            crc: crc32fast::hash(entry.content),
            size: field32(entry.content.len())?,
            name: field16(entry.name.len())?,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&VERSION.to_le_bytes()); // needed to extract
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&[0; 4]); // method STORED, time 00:00
        out.extend_from_slice(&DATE.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
        out.extend_from_slice(&self.size.to_le_bytes()); // compressed
        out.extend_from_slice(&self.size.to_le_bytes());
        out.extend_from_slice(&self.name.to_le_bytes());
    }
}

fn field32(value: usize) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| Error::TooLarge)
}

fn field16(value: usize) -> Result<u16, Error> {
    u16::try_from(value).map_err(|_| Error::TooLarge)
}

/// Only names that stay inside a folder on every system, and show as what they are.
fn check_name(name: &str) -> Result<(), Error> {
    let plain = !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.contains(|c: char| c == '\\' || c == ':' || c.is_control())
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if plain { Ok(()) } else { Err(Error::Name { name: shown(name.as_bytes()) }) }
}

/// A name from outside, cut for an error message.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..MAX_NAME).unwrap_or(name)).into_owned()
}

/// Reads an archive that [`write()`] could have made, and no other. Entries come sorted by name.
///
/// # Errors
/// [`Error`] says what is not as it must be. Work and memory stay within a small multiple of the archive.
pub fn read(archive: &[u8]) -> Result<Vec<Entry<'_>>, Error> {
    if archive.len() > MAX_BYTES {
        return Err(Error::TooLarge);
    }
    let end = archive.len().checked_sub(END_LEN).ok_or(Error::NoEndRecord)?;
    if bytes(archive, end, 4)? != END {
        return Err(Error::NoEndRecord);
    }
    let count = usize::from(u16_at(archive, end.saturating_add(10))?);
    if count > MAX_ENTRIES {
        return Err(Error::TooManyEntries { count });
    }
    let mut at = u32_at(archive, end.saturating_add(16))?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let (entry, next) = central(archive, at)?;
        entries.push(entry);
        at = next;
    }
    let rewritten = write(&entries)?;
    if rewritten == archive {
        return Ok(entries);
    }
    let same = rewritten.iter().zip(archive).take_while(|(a, b)| a == b).count();
    Err(Error::Differs { offset: same })
}

/// Reads the central record at `at`: its entry, and where the next record starts. What else the record says,
/// and the whole local header, is compared after rewriting.
fn central(archive: &[u8], at: usize) -> Result<(Entry<'_>, usize), Error> {
    if bytes(archive, at, 4)? != CENTRAL {
        return Err(Error::Broken { offset: at });
    }
    let method = u16_at(archive, at.saturating_add(10))?;
    let packed = u32_at(archive, at.saturating_add(20))?;
    let size = u32_at(archive, at.saturating_add(24))?;
    let name_len = usize::from(u16_at(archive, at.saturating_add(28))?);
    let offset = u32_at(archive, at.saturating_add(42))?;
    let raw = bytes(archive, at.saturating_add(CENTRAL_LEN), name_len)?;
    if method != 0 || packed != size {
        return Err(Error::NotStored { name: shown(raw) });
    }
    let name = std::str::from_utf8(raw).map_err(|_| Error::Name { name: shown(raw) })?;
    let start = offset.saturating_add(LOCAL_LEN).saturating_add(name_len);
    let content = bytes(archive, start, size)?;
    Ok((Entry { name, content }, at.saturating_add(CENTRAL_LEN).saturating_add(name_len)))
}

fn bytes(archive: &[u8], at: usize, len: usize) -> Result<&[u8], Error> {
    at.checked_add(len).and_then(|end| archive.get(at..end)).ok_or(Error::Broken { offset: at })
}

fn u16_at(archive: &[u8], at: usize) -> Result<u16, Error> {
    let field = bytes(archive, at, 2)?.first_chunk().ok_or(Error::Broken { offset: at })?;
    Ok(u16::from_le_bytes(*field))
}

fn u32_at(archive: &[u8], at: usize) -> Result<usize, Error> {
    let field = bytes(archive, at, 4)?.first_chunk().ok_or(Error::Broken { offset: at })?;
    usize::try_from(u32::from_le_bytes(*field)).map_err(|_| Error::Broken { offset: at })
}
