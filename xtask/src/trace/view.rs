//! What a stopped thread means by its numbers: its memory, the files behind its descriptors and
//! paths, seen through `process_vm_readv` and `/proc`. Reads only; not here: sockets
//! ([`super::sockets`]) and what a call changed ([`super::effects`]).

use std::ffi::OsString;
use std::fs;
use std::io::IoSliceMut;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::calls::{Buffer, PathArg};
use super::point::FileId;

/// The most one path may hold (`PATH_MAX`).
const PATH_LIMIT: usize = 4096;
/// The most one call moves (the kernel's own limit is 2 GiB); keeps a wild length from taking
/// this side's memory.
const READ_LIMIT: u64 = 1 << 30;
/// No read crosses such a boundary, so that an unmapped next page costs nothing.
const PAGE: u64 = 4096;
/// `sizeof(struct iovec)`, `sizeof(struct mmsghdr)` and the place of `msg_iov` in `msghdr`; the
/// same on every 64-bit Linux.
const IOVEC: u64 = 16;
const MESSAGE: u64 = 64;
const MESSAGE_IOV: u64 = 16;

/// One stopped thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thread(pub(super) i32);

/// What `/proc` says of an open file.
pub(super) struct Cursor {
    /// The position after the last call.
    pub(super) position: u64,
    /// The open flags.
    pub(super) flags: i32,
}

impl Thread {
    /// Up to `len` bytes at `addr`, fewer where the memory ends.
    pub(super) fn bytes(self, addr: u64, len: u64) -> Vec<u8> {
        let (Ok(base), Ok(len)) = (usize::try_from(addr), usize::try_from(len.min(READ_LIMIT))) else {
            return Vec::new();
        };
        let mut bytes = vec![0; len];
        let remote = [RemoteIoVec { base, len }];
        let got = process_vm_readv(Pid::from_raw(self.0), &mut [IoSliceMut::new(&mut bytes)], &remote);
        bytes.truncate(got.unwrap_or(0));
        bytes
    }

    /// The 64-bit number at `addr`, 0 where there is none.
    pub(super) fn number(self, addr: u64) -> u64 {
        <[u8; 8]>::try_from(self.bytes(addr, 8)).map_or(0, u64::from_ne_bytes)
    }

    /// The first `limit` bytes that `buffer` covers.
    pub(super) fn gather(self, buffer: Buffer, limit: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (addr, len) in self.pieces(buffer) {
            let room = limit.saturating_sub(bytes.len() as u64);
            bytes.extend(self.bytes(addr, len.min(room)));
        }
        bytes
    }

    fn pieces(self, buffer: Buffer) -> Vec<(u64, u64)> {
        match buffer {
            Buffer::Flat { addr, len } => vec![(addr, len)],
            Buffer::Vector { addr, count } => (0..count.min(1024))
                .map(|at| addr + at * IOVEC)
                .map(|at| (self.number(at), self.number(at + 8)))
                .collect(),
            Buffer::Message { addr } => {
                let (addr, count) = (self.number(addr + MESSAGE_IOV), self.number(addr + MESSAGE_IOV + 8));
                self.pieces(Buffer::Vector { addr, count })
            }
            Buffer::Messages { addr, count } => (0..count.min(1024))
                .flat_map(|at| self.pieces(Buffer::Message { addr: addr + at * MESSAGE }))
                .collect(),
        }
    }

    fn text(self, addr: u64) -> Option<PathBuf> {
        let mut text = Vec::new();
        while text.len() < PATH_LIMIT {
            let next = addr + text.len() as u64;
            let piece = self.bytes(next, PAGE - next % PAGE);
            if piece.is_empty() {
                return None;
            }
            if let Some(end) = piece.iter().position(|byte| *byte == 0) {
                text.extend(piece.into_iter().take(end));
                return Some(PathBuf::from(OsString::from_vec(text)));
            }
            text.extend(piece);
        }
        None
    }

    /// The magic link of a descriptor: opens and stats to the very file, named or not.
    pub(super) fn link(self, fd: i32) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{fd}", self.0))
    }

    /// What a descriptor stands for: a path, or such as `socket:[1234]`.
    pub(super) fn behind(self, fd: i32) -> Option<PathBuf> {
        let path = fs::read_link(self.link(fd)).ok()?;
        // The kernel marks a removed name; the file behind it is still the same one.
        match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
            Some(bare) if !path.exists() => Some(PathBuf::from(bare)),
            _ => Some(path),
        }
    }

    /// Position and flags of a descriptor.
    pub(super) fn cursor(self, fd: i32) -> Option<Cursor> {
        let text = fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", self.0)).ok()?;
        let value = |name| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let position = value("pos:")?.parse().ok()?;
        Some(Cursor { position, flags: i32::from_str_radix(value("flags:")?, 8).ok()? })
    }

    /// A path argument made absolute, its directory free of links; its last part as written,
    /// or followed where the call would follow it.
    pub(super) fn resolve(self, path: PathArg, last: Last) -> Option<PathBuf> {
        let path = self.absolute(path)?;
        let plain = match (path.parent(), path.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => fs::canonicalize(parent).ok()?.join(name),
            _ => fs::canonicalize(&path).ok()?,
        };
        match last {
            Last::Followed if plain.is_symlink() => fs::canonicalize(&plain).ok(),
            _ => Some(plain),
        }
    }

    /// The file a path argument leads to, all links followed (for `linkat` of a descriptor).
    pub(super) fn file_at(self, path: PathArg) -> Option<FileId> {
        fs::metadata(self.absolute(path)?).ok().map(|found| id_of(&found))
    }

    fn absolute(self, path: PathArg) -> Option<PathBuf> {
        let text = self.text(path.addr)?;
        if let Ok(own) = text.strip_prefix("/proc/self") {
            return Some(Path::new("/proc").join(self.0.to_string()).join(own));
        }
        if text.is_absolute() {
            return Some(text);
        }
        let from = if path.dir == libc::AT_FDCWD {
            PathBuf::from(format!("/proc/{}/cwd", self.0))
        } else {
            self.link(path.dir)
        };
        // An empty path means the descriptor itself, and joining it would add a slash.
        if text.as_os_str().is_empty() { Some(from) } else { Some(fs::read_link(from).ok()?.join(text)) }
    }
}

/// Whether a call follows a symbolic link in the last part of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// As `rename` and `unlink`.
    AsWritten,
    /// As `open` and `truncate`.
    Followed,
}

/// The identity in a file's metadata.
pub(super) fn id_of(found: &fs::Metadata) -> FileId {
    FileId { dev: found.dev(), ino: found.ino() }
}

/// The identity of the file, directory or link that a path names now, links not followed;
/// `None` for a socket or pipe as for nothing.
pub(super) fn id_at(path: &Path) -> Option<FileId> {
    let found = fs::symlink_metadata(path).ok()?;
    (found.is_file() || found.is_dir() || found.is_symlink()).then(|| id_of(&found))
}
