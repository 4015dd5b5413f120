//! A folder as a file system sees it: nodes, what each directory names now, and what of both
//! would survive a power cut. Held in memory; a file of the base is read only once it changes.
//! Not here: which call does what (that is [`mod@super::replay`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use super::point::{Depth, FileId};
use super::tracer::is_forgotten;

/// A node's place in the table; the folder itself is [`ROOT`].
type Id = usize;
const ROOT: Id = 0;

/// What one directory names.
type Names = BTreeMap<OsString, Id>;

/// A file or directory.
#[derive(Debug)]
pub(super) struct Node {
    kind: Kind,
    /// Durable permission bits.
    mode: u32,
    /// Changes waiting for a sync, in order.
    pending: Vec<Change>,
}

#[derive(Debug)]
enum Kind {
    /// Durable content.
    File(Content),
    /// Names as they are now, and as they would survive.
    Directory { live: Names, durable: Names },
    /// A link of the base, kept as it is.
    Symlink(PathBuf),
}

#[derive(Debug)]
enum Content {
    /// Still what this file of the base holds.
    Base(PathBuf),
    /// Changed since.
    Own(Vec<u8>),
}

/// A change of one node that a sync makes durable.
#[derive(Debug)]
pub(super) enum Change {
    /// Bytes at an offset.
    Wrote(u64, Vec<u8>),
    /// A new length.
    Resized(u64),
    /// New permission bits.
    Moded(u32),
}

/// A file moved between directories, whose old name may not vanish before the new one stands.
#[derive(Debug)]
struct Move {
    node: Id,
    from: (Id, OsString),
    to: Id,
    old_side: OldSide,
}

#[derive(Debug, PartialEq, Eq)]
enum OldSide {
    /// Its old directory was not synced since.
    Unsynced,
    /// It was: the old name stands only for want of the new one.
    Synced,
}

/// The folder.
#[derive(Debug)]
pub(super) struct Disk {
    nodes: Vec<Node>,
    known: HashMap<FileId, Id>,
    moves: Vec<Move>,
}

impl Node {
    /// An empty file.
    pub(super) fn file(mode: u32) -> Self {
        Self { kind: Kind::File(Content::Own(Vec::new())), mode, pending: Vec::new() }
    }

    /// An empty directory.
    pub(super) fn directory(mode: u32) -> Self {
        Self {
            kind: Kind::Directory { live: Names::new(), durable: Names::new() },
            mode,
            pending: Vec::new(),
        }
    }

    fn settle(&mut self, depth: Depth) -> io::Result<()> {
        let mut kept = Vec::new();
        for change in std::mem::take(&mut self.pending) {
            match (change, depth) {
                (Change::Moded(mode), Depth::Full) => self.mode = mode,
                (Change::Moded(mode), Depth::Content) => kept.push(Change::Moded(mode)),
                (Change::Wrote(offset, bytes), _) => write(self.content()?, offset, &bytes)?,
                (Change::Resized(len), _) => self.content()?.resize(length(len)?, 0),
            }
        }
        self.pending = kept;
        Ok(())
    }

    fn content(&mut self) -> io::Result<&mut Vec<u8>> {
        let Kind::File(content) = &mut self.kind else {
            return Err(io::Error::other("content written to what is no file"));
        };
        if let Content::Base(path) = content {
            *content = Content::Own(fs::read(path)?);
        }
        match content {
            Content::Own(bytes) => Ok(bytes),
            Content::Base(_) => Err(io::Error::other("the base was not read")),
        }
    }
}

fn length(len: u64) -> io::Result<usize> {
    usize::try_from(len).map_err(io::Error::other)
}

fn write(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let start = length(offset)?;
    let end = start + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    if let Some(place) = content.get_mut(start..end) {
        place.copy_from_slice(bytes);
    }
    Ok(())
}

impl Disk {
    /// The base, all of it durable.
    pub(super) fn load(base: &Path) -> io::Result<Self> {
        let mut disk = Self { nodes: Vec::new(), known: HashMap::new(), moves: Vec::new() };
        let mut twins = HashMap::new();
        disk.take_in(base, &mut twins)?;
        Ok(disk)
    }

    fn take_in(&mut self, path: &Path, twins: &mut HashMap<(u64, u64), Id>) -> io::Result<Id> {
        let found = fs::symlink_metadata(path)?;
        let mode = found.mode() & 0o7777;
        if found.is_dir() {
            let id = self.push(Node::directory(mode));
            let mut names = Names::new();
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
                    // A socket or pipe lives with its program.
                    continue;
                }
                names.insert(entry.file_name(), self.take_in(&entry.path(), twins)?);
            }
            if let Some(Node { kind: Kind::Directory { live, durable }, .. }) = self.nodes.get_mut(id) {
                (*live, *durable) = (names.clone(), names);
            }
            return Ok(id);
        }
        let key = (found.dev(), found.ino());
        if let Some(id) = twins.get(&key) {
            return Ok(*id);
        }
        let kind = if found.is_symlink() {
            Kind::Symlink(fs::read_link(path)?)
        } else {
            Kind::File(Content::Base(path.to_owned()))
        };
        let id = self.push(Node { kind, mode, pending: Vec::new() });
        twins.insert(key, id);
        Ok(id)
    }

    fn push(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// A new node, under the identity the kernel gave it.
    pub(super) fn add(&mut self, file: FileId, node: Node) -> Id {
        let id = self.push(node);
        self.known.insert(file, id);
        id
    }

    /// The node of an identity; at its first mention the one that `path` names.
    pub(super) fn find(&mut self, file: FileId, path: &Path) -> io::Result<Id> {
        if let Some(id) = self.known.get(&file) {
            return Ok(*id);
        }
        let id = self.walk(path)?;
        self.known.insert(file, id);
        Ok(id)
    }

    fn walk(&self, path: &Path) -> io::Result<Id> {
        let mut at = ROOT;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            at = *self.live(at)?.get(name).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, "the base and the points so far hold no such file")
            })?;
        }
        Ok(at)
    }

    fn place<'a>(&self, path: &'a Path) -> io::Result<(Id, &'a OsStr)> {
        let name = path.file_name().ok_or_else(|| io::Error::other("a path without a name"))?;
        Ok((self.walk(path.parent().unwrap_or(Path::new("")))?, name))
    }

    fn live(&self, id: Id) -> io::Result<&Names> {
        match self.nodes.get(id) {
            Some(Node { kind: Kind::Directory { live, .. }, .. }) => Ok(live),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    fn directory(&mut self, id: Id) -> io::Result<(&mut Names, &mut Names)> {
        match self.nodes.get_mut(id) {
            Some(Node { kind: Kind::Directory { live, durable }, .. }) => Ok((live, durable)),
            _ => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    /// Whether the node is a directory.
    pub(super) fn is_directory(&self, id: Id) -> bool {
        self.live(id).is_ok()
    }

    /// Notes a change that waits for a sync.
    pub(super) fn change(&mut self, id: Id, change: Change) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.pending.push(change);
        }
    }

    /// Gives a node a name, in place of what had it.
    pub(super) fn name(&mut self, path: &Path, id: Id) -> io::Result<()> {
        let (directory, name) = self.place(path)?;
        self.directory(directory)?.0.insert(name.to_owned(), id);
        Ok(())
    }

    /// Takes a name away; gives the node it named.
    pub(super) fn unname(&mut self, path: &Path) -> io::Result<Id> {
        let (directory, name) = self.place(path)?;
        self.directory(directory)?.0.remove(name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Moves a name.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let ((old, name), (new, _)) = (self.place(from)?, self.place(to)?);
        let node = self.unname(from)?;
        if old != new {
            let from = (old, name.to_owned());
            self.moves.push(Move { node, from, to: new, old_side: OldSide::Unsynced });
        }
        self.name(to, node)
    }

    /// Swaps what two names lead to.
    pub(super) fn exchange(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (first, second) = (self.walk(from)?, self.walk(to)?);
        self.name(from, second)?;
        self.name(to, first)
    }

    /// Makes a file's changes durable.
    ///
    /// # Errors
    /// When its base can't be read.
    pub(super) fn sync_file(&mut self, id: Id, depth: Depth) -> io::Result<()> {
        self.nodes.get_mut(id).map_or(Ok(()), |node| node.settle(depth))
    }

    /// Makes a directory's names durable.
    pub(super) fn sync_directory(&mut self, id: Id) -> io::Result<()> {
        let (live, durable) = self.directory(id)?;
        durable.clone_from(live);
        let mut kept = Vec::new();
        for mut step in std::mem::take(&mut self.moves) {
            if step.to == id {
                // The new name stands: the old one may go, if its own sync came already.
                if step.old_side == OldSide::Synced {
                    self.drop_old_name(&step)?;
                }
                continue;
            }
            if step.from.0 == id {
                step.old_side = OldSide::Synced;
                self.directory(id)?.1.entry(step.from.1.clone()).or_insert(step.node);
            }
            kept.push(step);
        }
        self.moves = kept;
        Ok(())
    }

    fn drop_old_name(&mut self, step: &Move) -> io::Result<()> {
        let (live, durable) = self.directory(step.from.0)?;
        let (name, stale) = (&step.from.1, Some(&step.node));
        if durable.get(name) == stale && live.get(name) != stale {
            durable.remove(name);
        }
        Ok(())
    }

    /// Makes everything durable.
    pub(super) fn sync_all(&mut self) -> io::Result<()> {
        self.sync_names()?;
        (0..self.nodes.len()).try_for_each(|id| self.sync_file(id, Depth::Full))
    }

    /// Makes all names durable as they are, and no content.
    pub(super) fn sync_names(&mut self) -> io::Result<()> {
        self.moves.clear();
        for id in 0..self.nodes.len() {
            if self.is_directory(id) {
                self.sync_directory(id)?;
            }
        }
        Ok(())
    }

    /// Makes the present name of a node durable where it has no durable one, and so on upwards.
    pub(super) fn name_durably(&mut self, id: Id) -> io::Result<()> {
        let mut at = id;
        while at != ROOT && !self.is_named_durably(at) {
            let Some((directory, name)) = self.live_name(at) else { return Ok(()) };
            self.directory(directory)?.1.insert(name, at);
            at = directory;
        }
        Ok(())
    }

    fn is_named_durably(&self, id: Id) -> bool {
        self.nodes.iter().any(|node| match &node.kind {
            Kind::Directory { durable, .. } => durable.values().any(|named| *named == id),
            Kind::File(_) | Kind::Symlink(_) => false,
        })
    }

    fn live_name(&self, id: Id) -> Option<(Id, OsString)> {
        self.nodes.iter().enumerate().find_map(|(directory, node)| match &node.kind {
            Kind::Directory { live, .. } => {
                live.iter().find(|(_, named)| **named == id).map(|(name, _)| (directory, name.clone()))
            }
            Kind::File(_) | Kind::Symlink(_) => None,
        })
    }

    /// Writes what is durable to a folder that is new or empty.
    ///
    /// # Errors
    /// When it holds something, or can't be written.
    pub(super) fn write_out(&self, into: &Path) -> io::Result<()> {
        fs::create_dir_all(into)?;
        if fs::read_dir(into)?.next().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the folder to replay into is not empty",
            ));
        }
        Writer { disk: self, written: HashMap::new(), above: HashSet::new() }.directory(ROOT, into)
    }
}

/// One writing out: which nodes already have a file, and which directories it is inside.
struct Writer<'a> {
    disk: &'a Disk,
    written: HashMap<Id, PathBuf>,
    above: HashSet<Id>,
}

impl Writer<'_> {
    fn directory(&mut self, id: Id, path: &Path) -> io::Result<()> {
        let Some(Node { kind: Kind::Directory { durable, .. }, mode, .. }) = self.disk.nodes.get(id) else {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        };
        if !self.above.insert(id) {
            return Err(io::Error::other("a directory inside itself"));
        }
        for (name, id) in durable {
            if !is_forgotten(Path::new(name)) {
                self.node(*id, &path.join(name))?;
            }
        }
        self.above.remove(&id);
        fs::set_permissions(path, Permissions::from_mode(*mode))
    }

    fn node(&mut self, id: Id, path: &Path) -> io::Result<()> {
        let Some(node) = self.disk.nodes.get(id) else { return Ok(()) };
        if let Some(twin) = self.written.get(&id)
            && matches!(node.kind, Kind::File(_))
        {
            return fs::hard_link(twin, path);
        }
        match &node.kind {
            Kind::Directory { .. } => {
                fs::create_dir(path)?;
                return self.directory(id, path);
            }
            Kind::Symlink(to) => return symlink(to, path),
            Kind::File(Content::Base(from)) => drop(fs::copy(from, path)?),
            Kind::File(Content::Own(bytes)) => fs::write(path, bytes)?,
        }
        self.written.insert(id, path.to_owned());
        fs::set_permissions(path, Permissions::from_mode(node.mode))
    }
}
