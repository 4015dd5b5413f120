//! What a call changes: looked at twice, at its entry (does it touch the folder or a TCP
//! connection, and what stood there before) and at its return (what it did). Not here: which
//! thread may run when (that is [`super::tracer`]).

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::calls::{Buffer, Call, Flush, Kind, PathArg, Place, int, may_change};
use super::point::{Depth, Effect, FileId, Naming, Target, Through};
use super::sockets::Sockets;
use super::view::{Last, Thread, id_at, id_of};

/// What the judgement needs over the whole run.
#[derive(Debug)]
pub(super) struct Scene {
    /// The traced folder, canonical.
    pub(super) folder: PathBuf,
    /// The connections seen.
    pub(super) sockets: Sockets,
}

/// A call that is a point, as it stood at its entry.
#[derive(Debug)]
pub(super) struct Begun {
    /// The call.
    pub(super) call: Call,
    /// What it is aimed at.
    pub(super) target: Target,
    before: Before,
}

/// What only the entry can tell.
#[derive(Debug)]
enum Before {
    /// Nothing needed.
    Plain,
    /// The bytes about to be written or sent.
    Bytes(Vec<u8>),
    /// The open's flags, and whether its file existed.
    Open { flags: i32, found: Found },
    /// The file that a name leads to, and what the new name led to.
    Names { file: Option<FileId>, over: Option<FileId> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    There,
    Absent,
}

impl Scene {
    /// The call as a point, or `None` when it touches neither the folder nor a TCP connection.
    pub(super) fn begin(&mut self, thread: Thread, call: Call) -> Option<Begun> {
        let (target, before) = match call.kind {
            Kind::Write { fd, source, .. } => {
                let target = self.descriptor(thread, fd)?;
                (target, Before::Bytes(thread.gather(source, u64::MAX)))
            }
            Kind::Copy { fd, .. } | Kind::Allocate { fd, .. } => {
                (self.descriptor(thread, fd)?, Before::Plain)
            }
            Kind::Sync(Flush::Everything) => (Target::Everything, Before::Plain),
            Kind::Sync(Flush::Full(fd) | Flush::Content(fd) | Flush::Range(fd) | Flush::FileSystem(fd)) => {
                (self.descriptor(thread, fd)?, Before::Plain)
            }
            Kind::Truncate { place, .. } | Kind::Chmod { place, .. } => self.place(thread, place)?,
            Kind::Open { path, flags } => self.open(thread, path, flags)?,
            Kind::OpenHow { path, how } => self.open(thread, path, int(thread.number(how)))?,
            Kind::Rename { from, to, .. } => self.rename(thread, from, to)?,
            Kind::Link { from, to, flags } => self.link(thread, from, to, flags)?,
            Kind::Unlink { path: at } | Kind::Symlink { at } | Kind::Mkdir { path: at } => {
                self.name(thread, at)?
            }
            Kind::Map { .. } | Kind::Accept | Kind::Connect { .. } | Kind::Receive { .. } => return None,
        };
        Some(Begun { call, target, before })
    }

    fn inside(&self, path: &Path) -> Option<Target> {
        path.strip_prefix(&self.folder).ok().map(|path| Target::File(path.to_owned()))
    }

    fn descriptor(&mut self, thread: Thread, fd: i32) -> Option<Target> {
        let behind = thread.behind(fd)?;
        if behind.is_absolute() {
            return self.inside(&behind);
        }
        self.sockets.tcp(thread, &behind).map(Target::Socket)
    }

    fn place(&mut self, thread: Thread, place: Place) -> Option<(Target, Before)> {
        match place {
            Place::Fd(fd) => Some((self.descriptor(thread, fd)?, Before::Plain)),
            Place::Path(path) => {
                let path = thread.resolve(path, Last::Followed)?;
                Some((self.inside(&path)?, Before::Names { file: id_at(&path), over: None }))
            }
        }
    }

    fn open(&self, thread: Thread, path: PathArg, flags: i32) -> Option<(Target, Before)> {
        if !may_change(flags) {
            return None;
        }
        let path = thread.resolve(path, Last::Followed)?;
        let found = if path.exists() { Found::There } else { Found::Absent };
        Some((self.inside(&path)?, Before::Open { flags, found }))
    }

    fn name(&self, thread: Thread, path: PathArg) -> Option<(Target, Before)> {
        let path = thread.resolve(path, Last::AsWritten)?;
        Some((self.inside(&path)?, Before::Names { file: id_at(&path), over: None }))
    }

    fn rename(&self, thread: Thread, from: PathArg, to: PathArg) -> Option<(Target, Before)> {
        let (from, to) = (thread.resolve(from, Last::AsWritten)?, thread.resolve(to, Last::AsWritten)?);
        let before = Before::Names { file: id_at(&from), over: id_at(&to) };
        self.two_names(&from, &to).map(|target| (target, before))
    }

    fn link(&self, thread: Thread, from: PathArg, to: PathArg, flags: i32) -> Option<(Target, Before)> {
        let to = thread.resolve(to, Last::AsWritten)?;
        let follows = flags & (libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0;
        let (source, file) = if follows {
            // A descriptor's file may have no name at all.
            (to.clone(), thread.file_at(from))
        } else {
            let from = thread.resolve(from, Last::AsWritten)?;
            let file = id_at(&from);
            (from, file)
        };
        self.two_names(&source, &to).map(|target| (target, Before::Names { file, over: None }))
    }

    /// A target of two names; one outside the folder is told by an absolute path.
    fn two_names(&self, from: &Path, to: &Path) -> Option<Target> {
        let relative = |path: &Path| path.strip_prefix(&self.folder).unwrap_or(path).to_owned();
        let touched = from.starts_with(&self.folder) || to.starts_with(&self.folder);
        touched.then(|| Target::Names(relative(from), relative(to)))
    }
}

impl Begun {
    /// What the call did, now that it returned `result`.
    pub(super) fn settle(self, thread: Thread, folder: &Path, result: i64) -> (Target, Effect) {
        let effect = match u64::try_from(result) {
            Ok(result) => {
                self.done(thread, folder, result).unwrap_or(Effect::Unmodelled("the file was gone"))
            }
            Err(_) => Effect::Nothing,
        };
        (self.target, effect)
    }

    fn done(&self, thread: Thread, folder: &Path, result: u64) -> Option<Effect> {
        Some(match self.call.kind {
            Kind::Write { fd, at, flags, source } => self.written(thread, (fd, at, flags, source), result)?,
            Kind::Copy { fd, offset } => self.copied(thread, fd, offset, result)?,
            Kind::Sync(flush) => flushed(thread, flush)?,
            Kind::Truncate { place, len } => Effect::Resized { file: self.file(thread, place)?, len },
            Kind::Chmod { place, mode } => {
                Effect::Moded { file: self.file(thread, place)?, mode: mode & 0o7777 }
            }
            Kind::Allocate { fd, mode } => allocated(thread, fd, mode)?,
            Kind::Open { .. } | Kind::OpenHow { .. } => self.opened(thread, result)?,
            Kind::Rename { flags, .. } => self.renamed(flags)?,
            Kind::Link { .. } => self.linked()?,
            // Without an identity it was a socket or pipe, which is no part of the model.
            Kind::Unlink { .. } => {
                self.names().map_or(Effect::Nothing, |(file, _)| Effect::Unlinked { file })
            }
            Kind::Symlink { .. } => Effect::Unmodelled("a symbolic link"),
            Kind::Mkdir { .. } => {
                let Target::File(path) = &self.target else { return None };
                let found = fs::metadata(folder.join(path)).ok()?;
                Effect::DirectoryMade { file: id_of(&found), mode: found.mode() & 0o7777 }
            }
            Kind::Map { .. } | Kind::Accept | Kind::Connect { .. } | Kind::Receive { .. } => Effect::Nothing,
        })
    }

    fn written(&self, thread: Thread, call: (i32, Option<u64>, i32, Buffer), result: u64) -> Option<Effect> {
        let (fd, at, flags, source) = call;
        let Before::Bytes(bytes) = &self.before else { return None };
        let taken = match source {
            // `sendmmsg` counts messages.
            Buffer::Messages { .. } => bytes.len(),
            _ => usize::try_from(result).ok()?,
        };
        let bytes: Vec<u8> = bytes.iter().copied().take(taken).collect();
        if matches!(self.target, Target::Socket(_)) {
            return Some(Effect::Sent(bytes));
        }
        let (cursor, found) = (thread.cursor(fd)?, fs::metadata(thread.link(fd)).ok()?);
        let appends = cursor.flags & libc::O_APPEND != 0 || flags & libc::RWF_APPEND != 0;
        let offset = match at {
            None => cursor.position.checked_sub(result)?,
            Some(_) if appends => found.len().checked_sub(result)?,
            Some(offset) => offset,
        };
        let direct = cursor.flags & libc::O_DSYNC != 0 || flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
        let through = if direct { Through::Disk } else { Through::Cache };
        Some(Effect::Wrote { file: id_of(&found), offset, bytes, through })
    }

    /// Bytes that never passed the tracee's memory are read back from the file.
    fn copied(&self, thread: Thread, fd: i32, offset: u64, result: u64) -> Option<Effect> {
        if matches!(self.target, Target::Socket(_)) {
            return Some(Effect::Sent(Vec::new()));
        }
        let end = if offset == 0 { thread.cursor(fd)?.position } else { thread.number(offset) };
        let offset = end.checked_sub(result)?;
        let open = fs::File::open(thread.link(fd)).ok()?;
        let mut bytes = vec![0; usize::try_from(result).ok()?];
        open.read_exact_at(&mut bytes, offset).ok()?;
        Some(Effect::Wrote { file: id_of(&open.metadata().ok()?), offset, bytes, through: Through::Cache })
    }

    fn opened(&self, thread: Thread, result: u64) -> Option<Effect> {
        let Before::Open { flags, found } = &self.before else { return None };
        let now = fs::metadata(thread.link(i32::try_from(result).ok()?)).ok()?;
        let file = id_of(&now);
        let made = |naming| Effect::Created { file, mode: now.mode() & 0o7777, naming };
        Some(if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            made(Naming::Nameless)
        } else if *found == Found::Absent {
            made(Naming::Named)
        } else if flags & libc::O_TRUNC != 0 {
            Effect::Resized { file, len: 0 }
        } else {
            Effect::Nothing
        })
    }

    fn names(&self) -> Option<(FileId, Option<FileId>)> {
        match &self.before {
            Before::Names { file, over } => Some(((*file)?, *over)),
            _ => None,
        }
    }

    fn renamed(&self, flags: u32) -> Option<Effect> {
        if matches!(&self.target, Target::Names(from, to) if from.is_absolute() || to.is_absolute()) {
            return Some(Effect::Unmodelled("a rename over the folder's border"));
        }
        let (file, over) = self.names()?;
        let exchange = flags & libc::RENAME_EXCHANGE != 0;
        // Two names of one file: the call succeeds and leaves both (rename(2)).
        Some(if over == Some(file) { Effect::Nothing } else { Effect::Renamed { file, over, exchange } })
    }

    fn linked(&self) -> Option<Effect> {
        if matches!(&self.target, Target::Names(from, to) if from.is_absolute() || to.is_absolute()) {
            return Some(Effect::Unmodelled("a link over the folder's border"));
        }
        Some(Effect::Linked { file: self.names()?.0 })
    }

    fn file(&self, thread: Thread, place: Place) -> Option<FileId> {
        match place {
            Place::Fd(fd) => fs::metadata(thread.link(fd)).ok().map(|found| id_of(&found)),
            Place::Path(_) => self.names().map(|(file, _)| file),
        }
    }
}

fn flushed(thread: Thread, flush: Flush) -> Option<Effect> {
    let (fd, depth) = match flush {
        Flush::Full(fd) => (fd, Depth::Full),
        Flush::Content(fd) => (fd, Depth::Content),
        Flush::Range(_) => return Some(Effect::Nothing),
        Flush::FileSystem(_) | Flush::Everything => return Some(Effect::SyncedAll),
    };
    Some(Effect::Synced { file: id_of(&fs::metadata(thread.link(fd)).ok()?), depth })
}

fn allocated(thread: Thread, fd: i32, mode: i32) -> Option<Effect> {
    let found = fs::metadata(thread.link(fd)).ok()?;
    Some(match mode {
        0 => Effect::Resized { file: id_of(&found), len: found.len() },
        libc::FALLOC_FL_KEEP_SIZE => Effect::Nothing,
        _ => Effect::Unmodelled("a hole punched"),
    })
}
