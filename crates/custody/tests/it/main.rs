//! The crate from outside: envelopes in rows, key services, providers, senders. Servers are on loopback.

#[cfg(test)]
mod made_up;
#[cfg(test)]
mod paying;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod transit;
