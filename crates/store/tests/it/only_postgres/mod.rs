//! What only the server of its own has: sessions, locks between processes, its clock.

mod locks;
