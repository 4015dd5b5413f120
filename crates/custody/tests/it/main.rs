//! The crate from outside: envelopes in rows, key services, providers, senders.

#[cfg(test)]
mod rows;
