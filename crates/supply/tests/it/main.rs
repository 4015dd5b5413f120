//! Tests of the supply side through the door, on a real store: what is decided is in the modules' own tables;
//! here it is written, repeated, raced and read back.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod books;
#[cfg(test)]
mod checking;
#[cfg(test)]
mod earnings;
#[cfg(test)]
mod market;
#[cfg(test)]
mod mounting;
#[cfg(test)]
mod orders;
#[cfg(test)]
mod orders_desk;
#[cfg(test)]
mod orders_walk;
#[cfg(test)]
mod packages;
#[cfg(test)]
mod packages_batch;
#[cfg(test)]
mod packages_drafts;
#[cfg(test)]
mod packages_floors;
#[cfg(test)]
mod packages_moves;
#[cfg(test)]
mod packages_system;
#[cfg(test)]
mod platform;
#[cfg(test)]
mod provider;
#[cfg(test)]
mod reviewing;
#[cfg(test)]
mod rewrapping;
#[cfg(test)]
mod settlements;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod sweeping;
#[cfg(test)]
mod tokens;
