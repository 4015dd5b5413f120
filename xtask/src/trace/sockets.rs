//! Which descriptors of the tracee are TCP connections, to whom, and who opened them, told from
//! `/proc/PID/net/tcp`. Not here: Unix sockets, pipes and event descriptors (never points).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::point::{Origin, Socket};
use super::view::Thread;

/// The connections seen so far, by socket inode.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    known: HashMap<u64, Socket>,
    accepted: HashSet<u64>,
    /// Sockets that are no TCP connection: the table is read once for each of them.
    others: HashSet<u64>,
}

impl Sockets {
    /// Notes a descriptor that `accept` returned.
    pub(super) fn accepted(&mut self, thread: Thread, fd: i32) {
        if let Some(inode) = inode_of(thread, fd) {
            self.accepted.insert(inode);
            self.look_up(thread, inode);
        }
    }

    /// Notes a descriptor that `connect` was called on: now the table knows its peer, and a
    /// reset may take the entry away before the first send.
    pub(super) fn connected(&mut self, thread: Thread, fd: i32) {
        if let Some(inode) = inode_of(thread, fd) {
            self.others.remove(&inode);
            self.look_up(thread, inode);
        }
    }

    /// The TCP connection behind `link` (what a descriptor's link reads), if it is one.
    pub(super) fn tcp(&mut self, thread: Thread, link: &Path) -> Option<Socket> {
        self.look_up(thread, inode_in(link)?)
    }

    fn look_up(&mut self, thread: Thread, inode: u64) -> Option<Socket> {
        if let Some(socket) = self.known.get(&inode) {
            return Some(*socket);
        }
        if self.others.contains(&inode) {
            return None;
        }
        let found = ["tcp", "tcp6"]
            .into_iter()
            .filter_map(|table| fs::read_to_string(format!("/proc/{}/net/{table}", thread.0)).ok())
            .find_map(|table| table.lines().skip(1).find_map(|line| row(line, inode)));
        let Some((local, peer)) = found else {
            self.others.insert(inode);
            return None;
        };
        let origin = if self.accepted.contains(&inode) { Origin::Accepted } else { Origin::Connected };
        let socket = Socket { local, peer, origin };
        self.known.insert(inode, socket);
        Some(socket)
    }
}

fn inode_of(thread: Thread, fd: i32) -> Option<u64> {
    inode_in(&fs::read_link(thread.link(fd)).ok()?)
}

fn inode_in(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The two ends in a row of the table, if the row is that inode's.
fn row(line: &str, inode: u64) -> Option<(SocketAddr, SocketAddr)> {
    let mut fields = line.split_ascii_whitespace();
    let (local, peer) = (fields.nth(1)?, fields.next()?);
    (fields.nth(6)?.parse() == Ok(inode)).then_some(())?;
    Some((address(local)?, address(peer)?))
}

/// `0100007F:1F90`: the kernel prints each 32-bit word of the address as a native number.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Option<Vec<[u8; 4]>> = host
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok().map(u32::to_ne_bytes))
        .collect();
    let bytes = words?.concat();
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::V4(Ipv4Addr::from(four)),
        Err(_) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?)).to_canonical(),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_tcp_table_gives_both_ends() {
        let line = "   1: 0100007F:1F90 0200007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4242 1";
        let ends = row(line, 4242).unwrap();
        assert_eq!(ends, ("127.0.0.1:8080".parse().unwrap(), "127.0.0.2:50000".parse().unwrap()));
        assert_eq!(row(line, 4243), None);
    }

    #[test]
    fn a_version_four_address_in_the_version_six_table_is_told_plainly() {
        let mapped = address("0000000000000000FFFF00000100007F:0050").unwrap();
        assert_eq!(mapped, "127.0.0.1:80".parse().unwrap());
    }
}
