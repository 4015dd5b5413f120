//! Shared memory that a killed PostgreSQL leaves outside its folder. It takes it back when it starts again;
//! when it never does, it would stay until the machine's next start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Named pieces of shared memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// POSIX ones: files.
    files: Vec<PathBuf>,
    /// System V ones: their ids.
    segments: Vec<String>,
}

impl Left {
    /// What the living programs with these ids have in use.
    pub(super) fn of(ids: &[i32]) -> Self {
        let mut left = Self::default();
        for id in ids {
            left.read(&fs::read_to_string(format!("/proc/{id}/maps")).unwrap_or_default());
        }
        left
    }

    /// Reads `/proc/ID/maps`: address, rights, offset, device, inode, name.
    fn read(&mut self, maps: &str) {
        for line in maps.lines() {
            let mut fields = line.split_whitespace().skip(4);
            let (Some(inode), Some(name)) = (fields.next(), fields.next()) else { continue };
            if name.starts_with("/dev/shm/PostgreSQL.")
                && !self.files.iter().any(|known| known == Path::new(name))
            {
                self.files.push(name.into());
            }
            // The inode of a System V segment is its id.
            if name.starts_with("/SYSV") && !self.segments.iter().any(|known| known == inode) {
                self.segments.push(inode.to_owned());
            }
        }
    }

    /// Removes it; what is gone already is no error.
    pub(super) fn remove(&mut self) {
        for file in self.files.drain(..) {
            let _ = fs::remove_file(file);
        }
        for segment in self.segments.drain(..) {
            let _ = Command::new("ipcrm").args(["-m", &segment]).output();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_shared_memory_are_seen_once_in_the_maps() {
        let maps = "55e0-55e1 r--p 00000000 fe:00 1311 /usr/lib/postgresql/15/bin/postgres\n\
                    7f01-7f02 rw-s 00000000 00:01 32770 /SYSV0052e2c1 (deleted)\n\
                    7f03-7f04 rw-s 00000000 00:19 9 /dev/shm/PostgreSQL.1234567890\n\
                    7f05-7f06 rw-p 00000000 00:00 0\n";
        let mut left = Left::default();
        left.read(maps);
        left.read(maps);
        let files = vec![PathBuf::from("/dev/shm/PostgreSQL.1234567890")];
        assert_eq!(left, Left { files, segments: vec!["32770".into()] });
    }
}
