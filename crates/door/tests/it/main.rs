//! Tests of the door through its public API, with a small domain of its own on a real store.

#[cfg(test)]
mod clients;
#[cfg(test)]
mod commits;
#[cfg(test)]
mod domain;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod lost;
#[cfg(test)]
mod only_postgres;
#[cfg(test)]
mod only_sqlite;
#[cfg(test)]
mod races;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod slices;
#[cfg(test)]
mod twins;
