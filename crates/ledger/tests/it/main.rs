//! Tests of the ledger through its public interface.

#[cfg(test)]
mod checks;
#[cfg(test)]
mod life;
#[cfg(test)]
mod worked_example;
#[cfg(test)]
mod world;
