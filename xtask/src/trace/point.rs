//! What a recording consists of: one [`Point`] for every system call that changes the traced
//! folder or sends over TCP. Plain values; not here: how they are gathered or replayed.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// One system call that touched the folder or a TCP connection.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Its place in the global order, from 1; `None` outside the counted stretch.
    pub(crate) number: Option<u64>,
    /// Kernel thread id of the caller.
    pub(crate) thread: i32,
    /// The kernel's name of the call.
    pub(crate) call: &'static str,
    /// What it was aimed at.
    pub(crate) target: Target,
    /// What it changed; [`Effect::Nothing`] when it failed or never returned.
    pub(crate) effect: Effect,
    /// What the kernel returned: a count or descriptor, a negated errno, or `None` when the
    /// caller was killed first.
    pub(crate) result: Option<i64>,
}

/// What a point was aimed at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A file or directory, its path relative to the traced folder (empty: the folder itself).
    File(PathBuf),
    /// Two names, from and to, both relative to the traced folder.
    Names(PathBuf, PathBuf),
    /// Every file there is (`sync`).
    Everything,
    /// A TCP connection.
    Socket(Socket),
}

/// A TCP connection of the tracee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Socket {
    /// The tracee's end.
    pub(crate) local: SocketAddr,
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// Whether the tracee accepted it or connected.
    pub(crate) origin: Origin,
}

/// Who opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client: the tracee accepted.
    Accepted,
    /// The tracee connected.
    Connected,
}

/// A file's identity while the tracee ran (the kernel may give it to another file later; the
/// log tells when).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    /// Device.
    pub(crate) dev: u64,
    /// Inode.
    pub(crate) ino: u64,
}

/// What a point changed, with all that a replay needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: the call failed, was a mere hint, or found all as it wanted it.
    Nothing,
    /// Bytes the kernel took for a connection (empty when they came from a file in the kernel).
    Sent(Vec<u8>),
    /// Bytes at an offset. `through`: the call itself made them durable (`O_DSYNC` and kin).
    Wrote { file: FileId, offset: u64, bytes: Vec<u8>, through: Through },
    /// A file opened: created with these permission bits, or found and cut to nothing.
    Created { file: FileId, mode: u32, naming: Naming },
    /// A new length: the end cut off, or zeros added.
    Resized { file: FileId, len: u64 },
    /// New permission bits.
    Moded { file: FileId, mode: u32 },
    /// A flush that succeeded.
    Synced { file: FileId, depth: Depth },
    /// `sync` or `syncfs` succeeded.
    SyncedAll,
    /// A rename; with what its target named before.
    Renamed { file: FileId, over: Option<FileId>, exchange: bool },
    /// A second name for a file.
    Linked { file: FileId },
    /// A name removed (file or empty directory).
    Unlinked { file: FileId },
    /// A directory made with these permission bits.
    DirectoryMade { file: FileId, mode: u32 },
    /// Something the replay has no model for; it refuses there. The text says what.
    Unmodelled(&'static str),
}

/// Whether a write call was durable by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    /// Waits for a flush.
    Cache,
    /// Durable when the call returned.
    Disk,
}

/// Whether a created file got its name with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Under the target's path.
    Named,
    /// Without any (`O_TMPFILE`).
    Nameless,
}

/// How much of one file a flush covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Content and length (`fdatasync`).
    Content,
    /// Permission bits as well (`fsync`).
    Full,
}

impl Point {
    /// Whether the kernel carried it out.
    pub(crate) fn succeeded(&self) -> bool {
        self.result.is_some_and(|result| result >= 0)
    }

    /// The bytes it sent over TCP, with the connection.
    pub(crate) fn sent(&self) -> Option<(&Socket, &[u8])> {
        match (&self.target, &self.effect) {
            (Target::Socket(socket), Effect::Sent(bytes)) => Some((socket, bytes)),
            _ => None,
        }
    }

    /// The file it was aimed at, relative to the traced folder; of two names the new one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.target {
            Target::File(path) | Target::Names(_, path) => Some(path),
            Target::Everything | Target::Socket(_) => None,
        }
    }
}

impl fmt::Display for Point {
    /// One line of the log: `12 [4711] pwrite64 state.db-wal 4096@32 = 4096`. No payload.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{number}")?,
            None => f.write_str("-")?,
        }
        write!(f, " [{}] {} {}", self.thread, self.call, self.target)?;
        match &self.effect {
            Effect::Wrote { offset, bytes, .. } => write!(f, " {}@{offset}", bytes.len())?,
            Effect::Resized { len, .. } => write!(f, " to {len}")?,
            Effect::Created { naming, .. } => write!(f, " created {naming:?}")?,
            Effect::Unmodelled(what) => write!(f, " UNMODELLED: {what}")?,
            _ => {}
        }
        match self.result {
            Some(result) if result < 0 => write!(f, " = {}", nix::errno::Errno::from_raw(errno(result))),
            Some(result) => write!(f, " = {result}"),
            None => f.write_str(" = never returned"),
        }
    }
}

fn errno(result: i64) -> i32 {
    i32::try_from(result.saturating_neg()).unwrap_or_default()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) if path.as_os_str().is_empty() => f.write_str("."),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Names(from, to) => write!(f, "{} -> {}", from.display(), to.display()),
            Self::Everything => f.write_str("*"),
            Self::Socket(Socket { local, peer, origin }) => match origin {
                Origin::Accepted => write!(f, "{local} to client {peer}"),
                Origin::Connected => write!(f, "{local} to {peer}"),
            },
        }
    }
}
