//! The system calls that matter, told apart by number: a call's registers become a [`Call`],
//! the same for every spelling (`open`, `openat`, `creat`) and both architectures. Not here:
//! anything that reads the tracee's memory or `/proc` (that is [`super::view`]).

use libc::{AT_FDCWD, c_long};

/// A system call of interest at its entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// The kernel's name of it.
    pub(super) name: &'static str,
    /// What it does.
    pub(super) kind: Kind,
}

/// What a call does, with addresses in the tracee's memory.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Bytes to a descriptor (file, socket or neither), at an offset or at its own position;
    /// `flags` as `pwritev2` has them.
    Write { fd: i32, source: Buffer, at: Option<u64>, flags: i32 },
    /// Bytes from one descriptor to another inside the kernel. `offset` is the address of the
    /// target offset, 0 for the descriptor's own.
    Copy { fd: i32, offset: u64 },
    /// A flush.
    Sync(Flush),
    /// A new length.
    Truncate { place: Place, len: u64 },
    /// Space reserved or punched.
    Allocate { fd: i32, mode: i32 },
    /// New permission bits.
    Chmod { place: Place, mode: u32 },
    /// An open that may create or cut.
    Open { path: PathArg, flags: i32 },
    /// An open whose flags stand in the tracee's `open_how` at this address.
    OpenHow { path: PathArg, how: u64 },
    /// A rename; `flags` as `renameat2` has them.
    Rename { from: PathArg, to: PathArg, flags: u32 },
    /// A hard link.
    Link { from: PathArg, to: PathArg, flags: i32 },
    /// A symbolic link.
    Symlink { at: PathArg },
    /// A name removed, of a file or of an empty directory.
    Unlink { path: PathArg },
    /// A directory made.
    Mkdir { path: PathArg },
    /// A file mapped to memory. Never a point, but its writes would be unseen.
    Map { fd: i32, protection: i32, flags: i32 },
    /// A connection taken. Never a point.
    Accept,
    /// A connection begun. Never a point.
    Connect { fd: i32 },
    /// Bytes from a descriptor. Never a point.
    Receive { fd: i32, target: Buffer },
}

/// Which bytes a call moves.
#[derive(Debug, Clone, Copy)]
pub(super) enum Buffer {
    /// `len` bytes at `addr`.
    Flat { addr: u64, len: u64 },
    /// `count` iovecs at `addr`.
    Vector { addr: u64, count: u64 },
    /// One `msghdr` at `addr`.
    Message { addr: u64 },
    /// `count` `mmsghdr`s at `addr`.
    Messages { addr: u64, count: u64 },
}

/// What a flush reaches.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flush {
    /// `fsync`.
    Full(i32),
    /// `fdatasync`.
    Content(i32),
    /// `sync_file_range`, which promises nothing over a power cut.
    Range(i32),
    /// `syncfs`.
    FileSystem(i32),
    /// `sync`.
    Everything,
}

/// A path argument: the string at `addr`, relative to descriptor `dir`.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathArg {
    /// A directory descriptor or `AT_FDCWD`.
    pub(super) dir: i32,
    /// Address of the NUL-terminated path.
    pub(super) addr: u64,
}

/// A file named by descriptor or by path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// By descriptor.
    Fd(i32),
    /// By path.
    Path(PathArg),
}

/// The low half of a register as the int the kernel takes it for.
pub(super) fn int(register: u64) -> i32 {
    word(register).cast_signed()
}

fn word(register: u64) -> u32 {
    u32::try_from(register & 0xffff_ffff).unwrap_or_default()
}

const fn at(dir: i32, addr: u64) -> PathArg {
    PathArg { dir, addr }
}

const fn flat(addr: u64, len: u64) -> Buffer {
    Buffer::Flat { addr, len }
}

const fn vector(addr: u64, count: u64) -> Buffer {
    Buffer::Vector { addr, count }
}

/// The call behind number `nr`, or `None` for one that can change nothing of interest.
pub(super) fn decode(nr: u64, args: [u64; 6]) -> Option<Call> {
    let nr = c_long::try_from(nr).ok()?;
    let (name, kind) = transfer(nr, args)
        .or_else(|| file(nr, args))
        .or_else(|| tree(nr, args))
        .or_else(|| legacy(nr, args))?;
    Some(Call { name, kind })
}

type Named = Option<(&'static str, Kind)>;

/// Calls that move bytes.
fn transfer(nr: c_long, [a, b, c, d, e, f]: [u64; 6]) -> Named {
    let fd = int(a);
    let write = |source| Kind::Write { fd, source, at: None, flags: 0 };
    let write_at =
        |source, at, flags| Kind::Write { fd, source, at: Some(at).filter(|at| *at != u64::MAX), flags };
    let receive = |target| Kind::Receive { fd, target };
    Some(match nr {
        libc::SYS_write => ("write", write(flat(b, c))),
        libc::SYS_pwrite64 => ("pwrite64", write_at(flat(b, c), d, 0)),
        libc::SYS_writev => ("writev", write(vector(b, c))),
        libc::SYS_pwritev => ("pwritev", write_at(vector(b, c), d, 0)),
        libc::SYS_pwritev2 => ("pwritev2", write_at(vector(b, c), d, int(f))),
        libc::SYS_sendto => ("sendto", write(flat(b, c))),
        libc::SYS_sendmsg => ("sendmsg", write(Buffer::Message { addr: b })),
        libc::SYS_sendmmsg => ("sendmmsg", write(Buffer::Messages { addr: b, count: c & 0xffff_ffff })),
        libc::SYS_sendfile => ("sendfile", Kind::Copy { fd, offset: 0 }),
        libc::SYS_copy_file_range => ("copy_file_range", Kind::Copy { fd: int(c), offset: d }),
        libc::SYS_splice => ("splice", Kind::Copy { fd: int(c), offset: d }),
        libc::SYS_accept | libc::SYS_accept4 => ("accept", Kind::Accept),
        libc::SYS_connect => ("connect", Kind::Connect { fd }),
        libc::SYS_read => ("read", receive(flat(b, c))),
        libc::SYS_readv => ("readv", receive(vector(b, c))),
        libc::SYS_recvfrom => ("recvfrom", receive(flat(b, c))),
        libc::SYS_recvmsg => ("recvmsg", receive(Buffer::Message { addr: b })),
        libc::SYS_mmap => ("mmap", Kind::Map { fd: int(e), protection: int(c), flags: int(d) }),
        _ => return None,
    })
}

/// Calls on one open or named file.
fn file(nr: c_long, [a, b, c, ..]: [u64; 6]) -> Named {
    let fd = int(a);
    let here = Place::Path(at(AT_FDCWD, a));
    let chmod_at = || Kind::Chmod { place: Place::Path(at(fd, b)), mode: word(c) };
    Some(match nr {
        libc::SYS_fsync => ("fsync", Kind::Sync(Flush::Full(fd))),
        libc::SYS_fdatasync => ("fdatasync", Kind::Sync(Flush::Content(fd))),
        libc::SYS_sync_file_range => ("sync_file_range", Kind::Sync(Flush::Range(fd))),
        libc::SYS_syncfs => ("syncfs", Kind::Sync(Flush::FileSystem(fd))),
        libc::SYS_sync => ("sync", Kind::Sync(Flush::Everything)),
        libc::SYS_ftruncate => ("ftruncate", Kind::Truncate { place: Place::Fd(fd), len: b }),
        libc::SYS_truncate => ("truncate", Kind::Truncate { place: here, len: b }),
        libc::SYS_fallocate => ("fallocate", Kind::Allocate { fd, mode: int(b) }),
        libc::SYS_fchmod => ("fchmod", Kind::Chmod { place: Place::Fd(fd), mode: word(b) }),
        libc::SYS_fchmodat => ("fchmodat", chmod_at()),
        libc::SYS_fchmodat2 => ("fchmodat2", chmod_at()),
        libc::SYS_openat => open("openat", at(fd, b), int(c))?,
        libc::SYS_openat2 => ("openat2", Kind::OpenHow { path: at(fd, b), how: c }),
        _ => return None,
    })
}

/// Calls on names.
fn tree(nr: c_long, [a, b, c, d, e, _]: [u64; 6]) -> Named {
    let first = at(int(a), b);
    Some(match nr {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_renameat => ("renameat", Kind::Rename { from: first, to: at(int(c), d), flags: 0 }),
        libc::SYS_renameat2 => ("renameat2", Kind::Rename { from: first, to: at(int(c), d), flags: word(e) }),
        libc::SYS_linkat => ("linkat", Kind::Link { from: first, to: at(int(c), d), flags: int(e) }),
        libc::SYS_symlinkat => ("symlinkat", Kind::Symlink { at: at(int(b), c) }),
        libc::SYS_unlinkat => ("unlinkat", Kind::Unlink { path: first }),
        libc::SYS_mkdirat => ("mkdirat", Kind::Mkdir { path: first }),
        _ => return None,
    })
}

/// An open is of interest only where it may create or cut.
fn open(name: &'static str, path: PathArg, flags: i32) -> Named {
    may_change(flags).then_some((name, Kind::Open { path, flags }))
}

/// Whether an open with these flags may create or cut a file.
pub(super) fn may_change(flags: i32) -> bool {
    flags & (libc::O_CREAT | libc::O_TRUNC) != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
}

/// The calls that newer architectures no longer have.
#[cfg(target_arch = "x86_64")]
fn legacy(nr: c_long, [a, b, ..]: [u64; 6]) -> Named {
    let here = |addr| at(AT_FDCWD, addr);
    Some(match nr {
        libc::SYS_open => open("open", here(a), int(b))?,
        libc::SYS_creat => open("creat", here(a), libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY)?,
        libc::SYS_rename => ("rename", Kind::Rename { from: here(a), to: here(b), flags: 0 }),
        libc::SYS_link => ("link", Kind::Link { from: here(a), to: here(b), flags: 0 }),
        libc::SYS_symlink => ("symlink", Kind::Symlink { at: here(b) }),
        libc::SYS_unlink => ("unlink", Kind::Unlink { path: here(a) }),
        libc::SYS_rmdir => ("rmdir", Kind::Unlink { path: here(a) }),
        libc::SYS_mkdir => ("mkdir", Kind::Mkdir { path: here(a) }),
        libc::SYS_chmod => ("chmod", Kind::Chmod { place: Place::Path(here(a)), mode: word(b) }),
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn legacy(_: c_long, _: [u64; 6]) -> Named {
    None
}
