//! Ports for servers, from below those that the kernel gives to outgoing connections (from 32768 on
//! Linux): while a server is down for a restart nobody can be handed its port by chance, and no connection
//! to it can meet itself.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::Context as _;

const FIRST: u16 = 15_000;
const COUNT: u16 = 15_000;

/// A port of 127.0.0.1 where nobody listens at this moment; another one at each call. Somebody else may
/// still be quicker: whoever starts a server there is ready to ask again.
///
/// # Errors
/// All are taken.
pub(super) fn free() -> anyhow::Result<u16> {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Neighbouring runs begin far apart.
    let begin = (std::process::id().wrapping_mul(7_919) % u32::from(COUNT)).try_into().unwrap_or(0_u16);
    (0..COUNT)
        .map(|_| {
            let place = u32::from(begin) + u32::from(TAKEN.fetch_add(1, Ordering::Relaxed));
            FIRST + u16::try_from(place % u32::from(COUNT)).unwrap_or(0)
        })
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .context("no port of 127.0.0.1 is free between 15000 and 29999")
}
