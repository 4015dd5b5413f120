//! Tests of the crate through its public API.

#[cfg(test)]
mod archive;
#[cfg(test)]
mod bundle;
#[cfg(test)]
mod canonical;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod keysets;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod verdicts;
